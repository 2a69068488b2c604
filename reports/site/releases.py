"""Runtimes and their releases, as runs show them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...conformance.judging.judgement import DECLINED, Verdict
from ...conformance.judging.vocabulary import DECLINES, FAILS, RIGHT, STATES, UNKNOWN
from ...conformance.results.result import Result
from .. import presentation
from ..findings import ASIDE, KNOWN, NEW, VALIDATION, Finding, findings_of
from ..run import Run
from ..subject import Subject, operator_of, subjects_of
from ..tally import Tally
from ..text import slug

_CPU = "CPUExecutionProvider"
_SHOWN = (NEW, KNOWN, VALIDATION, ASIDE)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a release on one operator version: icon, tone, words, figures."""

    icon: str
    tone: str
    words: str
    figures: str = ""

    def badge(self, label: str) -> dict[str, object]:
        """Return a badge in the form that shields.io reads."""
        return {"schemaVersion": 1, "label": label, "message": self.words, "color": _COLOURS[self.tone]}


_COLOURS = {"pass": "#17653a", "fail": "#ad1f17", "unsupported": "#56469a", "none": "#56606b"}


def outcome(tally: Tally | None) -> Outcome:
    """Return the state of results: conforms, fails, not supported, not tried."""
    if tally is None or not tally.total:
        return Outcome(*presentation.STATES[UNKNOWN], STATES[UNKNOWN])
    if not tally.judged:
        return Outcome(*presentation.STATES[DECLINES], STATES[DECLINES], f"{tally.total:,} tried")
    accepted = f"accepts {tally.total - tally.declined:,} of {tally.total:,}" if tally.declined else ""
    if tally.failed:
        return Outcome(*presentation.STATES[FAILS], f"fails {tally.failed:,} of {tally.judged:,}", accepted)
    figures = ", ".join(filter(None, [f"{tally.passed:,} correct", accepted]))
    return Outcome(*presentation.STATES[RIGHT], "conforms", figures)


@dataclass(frozen=True)
class Release:
    """One version of a runtime in one run; ``version`` is that of the runtime, and of its provider if that has one."""

    version: str
    subject: Subject

    @property
    def profile(self) -> str:
        """The profile that it was run with."""
        return self.subject.run.info["profile"]

    @cached_property
    def findings(self) -> list[Finding]:
        """The results that are shown of it: all but what it declines."""
        return [finding for finding in findings_of([self.subject]) if finding.section in _SHOWN]

    def operator_of(self, case: str) -> str:
        """Return the operator of a case without its version; empty where the case was not run."""
        result = self.subject.by_case.get(case)
        return "" if result is None else operator_of(result)

    def state(self, cases: Iterable[str], fault: str) -> str:
        """Return the outcome of cases of one finding: fails if one of them fails, else right if one passes.

        fault
            The known fault that the finding is, if any: a failure with another diagnosis does not count.
        """
        results = [self.subject.by_case[case] for case in cases if case in self.subject.by_case]
        if any(result.failing and _may_be(result, fault) for result in results):
            return FAILS
        if any(result.verdict is Verdict.PASS for result in results):
            return RIGHT
        return DECLINES if any(result.verdict in DECLINED for result in results) else UNKNOWN


def _may_be(result: Result, fault: str) -> bool:
    """Tell whether a fault, in whatever scope, may explain a failure."""
    return not fault or not result.diagnosis or _plain(fault) in map(_plain, result.diagnosis)


def _plain(fault: str) -> str:
    """Return a fault without its scope."""
    return fault.partition("@")[0]


@dataclass(frozen=True)
class Runtime:
    """A runtime with one provider in one way of use; ``releases`` are in order of version, the newest last."""

    name: str
    releases: tuple[Release, ...]

    @property
    def newest(self) -> Release:
        return self.releases[-1]

    @property
    def slug(self) -> str:
        return slug(self.name) or "unnamed"


def runtimes_of(runs: Sequence[Run]) -> tuple[list[Runtime], list[str]]:
    """The runtimes, by name, and what was left out, a line each. Of two runs of one release that one counts which has
    all operators, then the one with more releases of the runtime, since these had the same cases; else the larger."""
    by_name: defaultdict[str, defaultdict[str, list[Subject]]] = defaultdict(lambda: defaultdict(list))
    remarks = []
    for run in runs:
        if not run.info["complete"]:  # what it would have found is not known, and its silence is no praise
            remarks.append(f"{run.name}: left out, the run did not finish")
    for subject in subjects_of([run for run in runs if run.info["complete"]]):
        if not subject.tally.total or not subject.version:
            remarks.append(f"{subject.run.name}: nothing was run on {subject.name}, so it is not shown")
            continue
        by_name[_name(subject)][subject.version].append(subject)
    runtimes = []
    for name, versions in sorted(by_name.items(), key=lambda pair: pair[0].casefold()):
        beside = Counter(id(subject.run) for subjects in versions.values() for subject in subjects)
        releases = []
        for version in sorted(versions, key=_order):
            every = {operator for each in versions[version] for operator in each.by_operator}
            ranks = {
                id(each): ({*each.by_operator} == every, beside[id(each.run)], each.tally.total)
                for each in versions[version]
            }
            *less, subject = sorted(versions[version], key=lambda each: ranks[id(each)])
            releases.append(Release(version, subject))
            for other in less:
                siblings = ranks[id(other)][0] and beside[id(other.run)] < beside[id(subject.run)]
                more = "other releases beside" if siblings else "more on"
                remarks.append(f"{other.run.name}: left out, {subject.run.name} has {more} {name} {version}")
        runtimes.append(Runtime(name, tuple(releases)))
    return runtimes, remarks


def _name(subject: Subject) -> str:
    """The runtime, whatever somebody calls the target: runtime, provider, lane, options."""
    description = subject.info["description"]
    provider = str(description.get("provider") or "")
    parts = [str(description.get("runtime") or subject.name)]
    if provider and provider != _CPU:
        parts.append(provider.removesuffix("ExecutionProvider"))
    wrap = subject.info["wrap"]
    return " ".join(parts) + (f" +{wrap}" if wrap else "") + _options(subject)


def _options(subject: Subject) -> str:
    """Options that make another target of it, those left out that only say where the provider is."""
    options = subject.info["options"]
    told = {key: options[key] for key in ("precision", "optimize", "module") if key in options}
    return f" ({', '.join(f'{key} {value}' for key, value in told.items())})" if told else ""


def _order(version: str) -> tuple[tuple[int, int | str], ...]:
    """A key by which 1.9 comes before 1.10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|[a-z]+", version.lower()))

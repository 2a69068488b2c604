"""Runtimes and their releases, from runs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...conformance.judging.judgement import DECLINED, Verdict
from ...conformance.judging.vocabulary import DECLINES, FAILS, RIGHT, STATES, UNKNOWN
from ...conformance.results.result import Result
from .. import presentation
from ..findings import Finding, findings_of
from ..run import Run
from ..subject import Subject, operator_of, subjects_of
from ..tally import Tally
from ..text import slug


class Outcome(NamedTuple):
    """The outcome of a release on one operator version: icon, tone, text, figures."""

    icon: str
    tone: str
    words: str
    figures: str = ""


def outcome(tally: Tally | None) -> Outcome:
    """Return the outcome of a tally: conforms, fails, not supported, not tried."""
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
    """One version of a runtime in one run; ``version`` includes the version of its provider, if that has one."""

    version: str
    subject: Subject

    @property
    def profile(self) -> str:
        return self.subject.run.info["profile"]

    @cached_property
    def findings(self) -> list[Finding]:
        return findings_of([self.subject])

    def operator_of(self, case: str) -> str:
        """Return the operator of a case without its version; empty where the case was not run."""
        result = self.subject.by_case.get(case)
        return "" if result is None else operator_of(result)

    def state(self, cases: Iterable[str], fault: str) -> str:
        """Return the outcome of the cases of a finding: fails if one of them fails, else right if one passes.

        fault
            The known fault of the finding, if any: failures with another diagnosis do not count.
        """
        results = [self.subject.by_case[case] for case in cases if case in self.subject.by_case]
        if any(result.failing and _may_be(result, fault) for result in results):
            return FAILS
        if any(result.verdict is Verdict.PASS for result in results):
            return RIGHT
        return DECLINES if any(result.verdict in DECLINED for result in results) else UNKNOWN


def _may_be(result: Result, fault: str) -> bool:
    """Return whether a fault, in any scope, may explain a failure."""
    faults = [diagnosis.partition("@")[0] for diagnosis in result.diagnosis]
    return not fault or not faults or fault.partition("@")[0] in faults


@dataclass(frozen=True)
class Runtime:
    """A runtime with one provider and one set of options; ``releases`` are in order of version, the newest last."""

    name: str
    releases: tuple[Release, ...]

    @property
    def newest(self) -> Release:
        return self.releases[-1]

    @property
    def page(self) -> str:
        """The path of its page, relative to the site's folder."""
        return f"runtimes/{self.slug}.html"

    @property
    def slug(self) -> str:
        return slug(self.name) or "unnamed"


def runtimes_of(runs: Sequence[Run]) -> tuple[list[Runtime], list[str]]:
    """Return the runtimes by name, and one line for each run or target that was left out.

    If several runs have one release, the run with all operators counts; then the run with more releases of the runtime,
    since its releases had the same cases; then the larger run.
    """
    # An unfinished run lacks findings, which must not count as success.
    remarks = [f"{run.name}: left out, the run did not finish" for run in runs if not run.info["complete"]]
    by_name: defaultdict[str, defaultdict[str, list[Subject]]] = defaultdict(lambda: defaultdict(list))
    for subject in subjects_of([run for run in runs if run.info["complete"]]):
        if subject.tally.total and subject.version:
            by_name[_name(subject)][subject.version].append(subject)
        else:
            remarks.append(f"{subject.run.name}: nothing was run on {subject.name}, so it is not shown")
    runtimes = []
    for name, versions in sorted(by_name.items(), key=lambda pair: pair[0].casefold()):
        releases_in = Counter(id(subject.run) for subjects in versions.values() for subject in subjects)
        releases = []
        for version in sorted(versions, key=_order):
            operators = {operator for subject in versions[version] for operator in subject.by_operator}
            *rest, (complete, _, _, subject) = sorted(
                (
                    ({*subject.by_operator} == operators, releases_in[id(subject.run)], subject.tally.total, subject)
                    for subject in versions[version]
                ),
                key=lambda rank: rank[:3],
            )
            releases.append(Release(version, subject))
            for other_complete, siblings, _, left_out in rest:
                fewer = other_complete == complete and siblings < releases_in[id(subject.run)]
                more = "other releases beside" if fewer else "more on"
                remarks.append(f"{left_out.run.name}: left out, {subject.run.name} has {more} {name} {version}")
        runtimes.append(Runtime(name, tuple(releases)))
    return runtimes, remarks


def _name(subject: Subject) -> str:
    """Return runtime, provider, wrap and options, independent of the target's name."""
    description, options = subject.info["description"], subject.info["options"]
    name = str(description.get("runtime") or subject.name)
    provider = str(description.get("provider") or "").removesuffix("ExecutionProvider")
    if provider not in ("", "CPU"):
        name += f" {provider}"
    if subject.info["wrap"]:
        name += f" +{subject.info['wrap']}"
    # Other options only locate the provider.
    distinct = [f"{key} {options[key]}" for key in ("precision", "optimize", "module") if key in options]
    return f"{name} ({', '.join(distinct)})" if distinct else name


def _order(version: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts 1.9 before 1.10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|[a-z]+", version.lower()))

"""Runtimes and their releases, from runs, and the history of a finding over the releases of a runtime."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...conformance.judging.judgement import DECLINED, Verdict
from ...conformance.judging.vocabulary import DECLINES, FAILS, RIGHT, STATES, UNKNOWN
from ...conformance.results.result import Result
from ..findings import ASIDE, REFUSED, Finding, Member, findings_of
from ..matrix import STATE_TONES
from ..run import Run
from ..subject import Subject, Tally, subjects_of
from ..text import slug


class Outcome(NamedTuple):
    """The outcome of a release on one operator version: tone, text, figures."""

    tone: str
    words: str
    figures: str = ""


def outcome(tally: Tally | None) -> Outcome:
    """Return the outcome of a tally: conforms, fails, not supported, not tried."""
    if tally is None or not tally.total:
        return Outcome(STATE_TONES[UNKNOWN], STATES[UNKNOWN])
    if not tally.judged:
        return Outcome(STATE_TONES[DECLINES], STATES[DECLINES], f"{tally.total:,} tried")
    accepted = f"accepts {tally.total - tally.declined:,} of {tally.total:,}" if tally.declined else ""
    if tally.failed:
        return Outcome(STATE_TONES[FAILS], f"fails {tally.failed:,} of {tally.judged:,}", accepted)
    figures = ", ".join(filter(None, [f"{tally.passed:,} correct", accepted]))
    return Outcome(STATE_TONES[RIGHT], "conforms", figures)


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

    If several runs have one release, the largest counts.
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
        releases = []
        for version in sorted(versions, key=_order):
            *rest, subject = sorted(versions[version], key=lambda subject: subject.tally.total)
            releases.append(Release(version, subject))
            remarks += [f"{s.run.name}: left out, {subject.run.name} has more on {name} {version}" for s in rest]
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


@dataclass(frozen=True, eq=False)
class FindingHistory:
    """One finding in several releases of a runtime.

    number
        Its index among the findings of the runtime.
    shown
        The findings that show it, by version, oldest first; versions that do not show it are left out.
    """

    runtime: Runtime
    number: int
    shown: dict[str, tuple[Finding, ...]]

    @property
    def finding(self) -> Finding:
        """The finding of the newest release that shows it."""
        return self.shown[[*self.shown][-1]][0]

    @property
    def member(self) -> Member:
        """The finding's member in that release."""
        return self.finding.members[0]

    @property
    def title(self) -> str:
        return _title(self.finding)

    @property
    def note(self) -> str:
        """The reason from a list of known failures, else the conditions; empty where the title has them."""
        finding = self.finding
        if self.member.record["why"]:
            return self.member.record["why"]
        return f"{finding.when}: {finding.conditions}" if finding.conditions not in self.title else ""

    @property
    def anchor(self) -> str:
        return f"finding-{self.number}"

    @property
    def page(self) -> str:
        """Its address, relative to the site's folder: its place on the page of the runtime."""
        return f"{self.runtime.page}#{self.anchor}"

    @cached_property
    def states(self) -> dict[str, str]:
        """Outcomes by version, in the order of releases.

        A release without the finding is judged by its smallest cases in other releases; if it did not run them, by all
        its cases.
        """
        findings = [finding for found in self.shown.values() for finding in found]
        smallest = [member.record["smallest"] for finding in findings for member in finding.members]
        cases = {case for version in self.shown for case in self._cases_in(version)}
        states, fault = {}, self.finding.fault
        for release in self.runtime.releases:
            state = FAILS if release.version in self.shown else release.state(smallest, fault)
            states[release.version] = release.state(cases, fault) if state == UNKNOWN else state
        return states

    @property
    def counts(self) -> dict[str, int]:
        """The number of cases that show it, by version."""
        return {version: len(self._cases_in(version)) for version in self.shown}

    @property
    def changed(self) -> bool:
        """Whether one release shows it and another one is correct."""
        return {FAILS, RIGHT} <= set(self.states.values())

    @cached_property
    def sentence(self) -> str:
        """A sentence on the first and last release that show it."""
        versions, states = [*self.states], [*self.states.values()]
        if len(versions) == 1:
            return f"in {versions[0]}, the only release tested"
        failing = [k for k, state in enumerate(states) if state == FAILS]
        first, last = failing[0], failing[-1]
        parts = [f"in {versions[0]}, the oldest release tested"]
        if first:
            parts = [f"since {versions[first]} ({versions[first - 1]}: {STATES[states[first - 1]]})"]
        if between := [versions[k] for k in range(first, last) if states[k] == RIGHT]:
            parts.append(f"not in {', '.join(between)}")
        if last == len(versions) - 1:
            parts.append(f"still in {versions[last]}")
        else:
            parts.append(f"last in {versions[last]} ({versions[last + 1]}: {STATES[states[last + 1]]})")
        # Memory that was not written has the right value by chance, now and then.
        findings = [finding for found in self.shown.values() for finding in found]
        if RIGHT in states and any("uninitialized" in f.fault or f.verdict == "unstable" for f in findings):
            parts.append("a release without it may be right by chance")
        return "; ".join(parts)

    def _cases_in(self, version: str) -> set[str]:
        return {case for f in self.shown[version] for m in f.members for case in m.record["cases"]}


def histories_of(runtime: Runtime) -> list[FindingHistory]:
    """Return the findings of all releases of a runtime, those of the newest release first. Refusals are left out."""
    found: dict[tuple[str, ...], defaultdict[str, list[Finding]]] = {}
    for release in reversed(runtime.releases):
        for finding in release.findings:
            if finding.section != REFUSED:
                found.setdefault(_key(finding), defaultdict(list))[release.version].append(finding)
    versions = [release.version for release in runtime.releases]
    return [
        FindingHistory(runtime, number, {v: tuple(by_version[v]) for v in versions if v in by_version})
        for number, by_version in enumerate(found.values(), 1)
    ]


def _key(finding: Finding) -> tuple[str, ...]:
    """Return a key that identifies a finding across releases.

    The key is its fault; without a fault, the reason on a list of known failures, else title and conditions, and the
    operators.
    """
    kind = finding.kind if finding.section == ASIDE else ""
    if finding.fault:
        return finding.fault, kind
    (member,) = finding.members
    description = (member.record["why"],) if member.record["why"] else (_title(finding), finding.conditions)
    return (*description, kind, *sorted(member.record["operators"]))


def _title(finding: Finding) -> str:
    """Return the title without the example case of an unexplained finding."""
    return finding.title.partition("; the smallest is ")[0].partition(", and nothing is known that only")[0]

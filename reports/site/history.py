"""History of a finding over the releases of a runtime."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

from ...conformance.judging.vocabulary import DECLINES, FAILS, RIGHT, UNKNOWN
from ..findings import ASIDE, REFUSED, Finding, Member
from ..text import slug
from .releases import Release, Runtime


@dataclass(frozen=True)
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
        return self.shown[self._newest][0]

    @property
    def member(self) -> Member:
        """The finding's member in that release."""
        return self.finding.members[0]

    @property
    def _newest(self) -> str:
        return [*self.shown][-1]

    @property
    def title(self) -> str:
        return _title(self.finding)

    @property
    def note(self) -> str:
        """The reason from a list of known failures, else the conditions; empty where the title has them."""
        finding = self.finding
        if self.member.why:
            return self.member.why
        return f"{finding.when}: {finding.conditions}" if finding.conditions not in self.title else ""

    @property
    def page(self) -> str:
        """The path of its page, relative to the site's folder."""
        return f"findings/{self.runtime.slug}-{self.number:03d}-{slug(self.title)[:60].strip('-')}.html"

    @property
    def verdict(self) -> str:
        """The verdict of its smallest case; the finding's verdict where the run has no result of that case."""
        result = self.member.subject.by_case.get(self.member.smallest)
        return result.verdict.value if result else self.finding.verdict

    @cached_property
    def states(self) -> dict[str, str]:
        """Outcomes by version, in the order of releases."""
        return {release.version: self._state(release) for release in self.runtime.releases}

    @property
    def counts(self) -> dict[str, int]:
        """The number of cases that show it, by version."""
        return {version: len(self._cases_in(version)) for version in self.shown}

    @cached_property
    def sentence(self) -> str:
        """A sentence on the first and last release that show it."""
        return self._span(self.states)

    @cached_property
    def by_operator(self) -> dict[str, dict[str, str]]:
        """Outcomes by operator and version; empty if there is a single operator."""
        cases: defaultdict[str, set[str]] = defaultdict(set)
        for case in self._cases:
            for operator in {release.operator_of(case) for release in self.runtime.releases} - {""}:
                cases[operator].add(case)
        if len(cases) < 2:
            return {}
        return {operator: self._states_of(cases[operator]) for operator in sorted(cases)}

    def _states_of(self, cases: Set[str]) -> dict[str, str]:
        return {
            release.version: FAILS
            if cases & self._cases_in(release.version)
            else release.state(cases, self.finding.fault)
            for release in self.runtime.releases
        }

    @cached_property
    def exceptions(self) -> dict[str, str]:
        """Sentences like `sentence` for operators that differ from it."""
        spans = {
            operator: self._span(states)
            for operator, states in self.by_operator.items()
            if FAILS in states.values() and UNKNOWN not in states.values()
        }
        return {operator: span for operator, span in spans.items() if span != self.sentence}

    @property
    def changed(self) -> bool:
        """Whether one release shows it and another one is correct, for at least one operator."""
        return any({FAILS, RIGHT} <= set(states.values()) for states in (self.states, *self.by_operator.values()))

    def _span(self, states: dict[str, str]) -> str:
        versions = list(states)
        if len(versions) == 1:
            return f"in {versions[0]}, the only release tested"
        failing = [k for k, version in enumerate(versions) if states[version] == FAILS]
        first, last = failing[0], failing[-1]
        between = [version for version in versions[first:last] if states[version] == RIGHT]
        chance = ", perhaps by chance" if self._by_chance else ""

        def neighbour(version: str) -> str:
            if states[version] == RIGHT:
                return f"{version} is correct{chance}"
            return f"{version} refuses such models" if states[version] == DECLINES else f"unknown in {version}"

        if not first:
            since = f"in {versions[0]}, the oldest release tested"
        else:
            seen = "first seen in" if states[versions[first - 1]] == UNKNOWN else "since"
            since = f"{seen} {versions[first]} ({neighbour(versions[first - 1])})"
        without = f"; not in {', '.join(between)}" if between else ""
        if last == len(versions) - 1:
            return f"{since}{without}; still in {versions[last]}"
        return f"{since}{without}; last in {versions[last]} ({neighbour(versions[last + 1])})"

    @property
    def _by_chance(self) -> bool:
        """Whether uninitialized memory causes it: a release may then lack it by chance."""
        findings = [finding for findings in self.shown.values() for finding in findings]
        return any("uninitialized" in f.fault or f.verdict == "unstable" for f in findings)

    def _state(self, release: Release) -> str:
        if release.version in self.shown:
            return FAILS
        smallest = [m.smallest for findings in self.shown.values() for finding in findings for m in finding.members]
        state = release.state(smallest, self.finding.fault)
        return state if state != UNKNOWN else release.state(self._cases, self.finding.fault)

    def _cases_in(self, version: str) -> set[str]:
        return {case for finding in self.shown.get(version, ()) for m in finding.members for case in m.cases}

    @property
    def _cases(self) -> set[str]:
        return {case for version in self.shown for case in self._cases_in(version)}


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
    description = (member.why,) if member.why else (_title(finding), finding.conditions)
    return (*description, kind, *sorted(member.operators))


def _title(finding: Finding) -> str:
    """Return the title without the example case of an unexplained finding."""
    return finding.title.partition("; the smallest is ")[0].partition(", and nothing is known that only")[0]

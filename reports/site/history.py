"""A finding over the releases of a runtime: since when, until when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

from ...conformance.judging.vocabulary import DECLINES, FAILS, RIGHT, UNKNOWN
from ..findings import ASIDE, VALIDATION, Finding, Member
from ..gallery import Entry
from ..text import slug
from .releases import Release, Runtime


@dataclass(frozen=True)
class FindingHistory:
    """One finding in several releases of a runtime.

    number
        Its place among those of the runtime.
    shown
        By version the findings that show it there, none where it is not found.
    """

    runtime: Runtime
    number: int
    shown: dict[str, tuple[Finding, ...]]

    @property
    def finding(self) -> Finding:
        """The finding of the newest release that shows it."""
        return self._seen[-1][1][0]

    @property
    def member(self) -> Member:
        """The finding as that release shows it."""
        return self.finding.members[0]

    @property
    def entry(self) -> Entry:
        """The finding on the newest release that shows it."""
        version, findings = self._seen[-1]
        (subject,) = [release.subject for release in self.runtime.releases if release.version == version]
        return Entry(subject, findings[0], findings[0].members[0])

    @property
    def title(self) -> str:
        return _title(self.finding)

    @property
    def note(self) -> str:
        """The reason on a list of known failures, or else its conditions; empty where the title has them."""
        finding = self.finding
        if self.member.why:
            return self.member.why
        return f"{finding.when}: {finding.conditions}" if finding.conditions not in self.title else ""

    @property
    def page(self) -> str:
        """The path of its page from the site's folder on."""
        return f"findings/{self.runtime.slug}-{self.number:03d}-{slug(self.title)[:60].strip('-')}.html"

    @property
    def current(self) -> bool:
        """Tell whether the newest release shows it."""
        return self.states[self.runtime.newest.version] == FAILS

    @property
    def tone(self) -> str:
        if not self.current:
            return "quiet"
        return "known" if self.finding.section in (ASIDE, VALIDATION) else "fail"

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The smallest cases that show it, one of each release."""
        members = [member for _, findings in self._seen for finding in findings for member in finding.members]
        return tuple(dict.fromkeys(member.smallest for member in members if member.smallest))

    @cached_property
    def states(self) -> dict[str, str]:
        """Outcomes by version, in the order of releases."""
        return {release.version: self._state(release) for release in self.runtime.releases}

    @property
    def counts(self) -> dict[str, int]:
        """The number of cases that show it, by version."""
        return {
            version: len({case for finding in findings for member in finding.members for case in member.cases})
            for version, findings in self.shown.items()
        }

    @property
    def by_chance(self) -> bool:
        """Tell whether it comes of memory that nobody wrote: a release that does not show it may be lucky."""
        every = [finding for _, findings in self._seen for finding in findings]
        return any("uninitialized" in one.fault or one.verdict == "unstable" for one in every)

    @cached_property
    def sentence(self) -> str:
        """Since and until which release it is seen."""
        return self._told(self.states)

    @cached_property
    def by_operator(self) -> dict[str, dict[str, str]]:
        """By operator and version what becomes of it, where there are several operators."""
        cases: defaultdict[str, set[str]] = defaultdict(set)
        for case in self._every_case:
            for operator in {release.operator_of(case) for release in self.runtime.releases} - {""}:
                cases[operator].add(case)
        if len(cases) < 2:
            return {}
        return {operator: self._states_of(own) for operator, own in sorted(cases.items())}

    def _states_of(self, cases: Set[str]) -> dict[str, str]:
        """By version what becomes of some of the cases."""
        states = {}
        for release in self.runtime.releases:
            fails = cases & self._cases_in(release.version)
            states[release.version] = FAILS if fails else release.state(cases, self.finding.fault)
        return states

    @cached_property
    def apart(self) -> dict[str, str]:
        """Since and until when, of operators of which that is not what is said of all together."""
        told = {
            operator: self._told(states)
            for operator, states in self.by_operator.items()
            if FAILS in states.values() and UNKNOWN not in states.values()
        }
        return {operator: sentence for operator, sentence in told.items() if sentence != self.sentence}

    @property
    def changed(self) -> bool:
        """Tell whether some release has it and another one does it rightly, in one operator at least."""
        return any({FAILS, RIGHT} <= set(states.values()) for states in (self.states, *self.by_operator.values()))

    def _told(self, states: dict[str, str]) -> str:
        versions = list(states)
        failing = [place for place, version in enumerate(versions) if states[version] == FAILS]
        first, last = failing[0], failing[-1]
        if len(versions) == 1:
            return f"in {versions[0]}, the only release tested"
        between = [version for version in versions[first:last] if states[version] == RIGHT]
        without = f"; not in {', '.join(between)}" if between else ""
        return f"{self._since(states, first)}{without}; {self._until(states, last)}"

    def _since(self, states: dict[str, str], first: int) -> str:
        versions = list(states)
        if not first:
            return f"in {versions[0]}, the oldest release tested"
        before = versions[first - 1]
        if states[before] == UNKNOWN:
            return f"first seen in {versions[first]} (unknown in {before})"
        told = {
            RIGHT: f"{before} is correct{self._luck}",
            DECLINES: f"{before} refuses such models",
        }
        return f"since {versions[first]} ({told[states[before]]})"

    def _until(self, states: dict[str, str], last: int) -> str:
        versions = list(states)
        if last == len(versions) - 1:
            return f"still in {versions[last]}"
        after = versions[last + 1]
        told = {
            RIGHT: f"{after} is correct{self._luck}",
            DECLINES: f"{after} refuses such models",
            UNKNOWN: f"unknown in {after}",
        }
        return f"last in {versions[last]} ({told[states[after]]})"

    @property
    def _luck(self) -> str:
        return ", perhaps by chance" if self.by_chance else ""

    def _state(self, release: Release) -> str:
        if self.shown.get(release.version):
            return FAILS
        told = release.state(self.cases, self.finding.fault)
        return told if told != UNKNOWN else release.state(self._every_case, self.finding.fault)

    def _cases_in(self, version: str) -> set[str]:
        return {case for one in self.shown.get(version, ()) for member in one.members for case in member.cases}

    @property
    def _every_case(self) -> set[str]:
        return {case for version, _ in self._seen for case in self._cases_in(version)}

    @property
    def _seen(self) -> list[tuple[str, tuple[Finding, ...]]]:
        order = [release.version for release in self.runtime.releases]
        return [(version, self.shown[version]) for version in order if self.shown.get(version)]


def histories_of(runtime: Runtime) -> list[FindingHistory]:
    """The findings of all releases of a runtime: what the newest shows comes first, then what it shows no more."""
    shown: dict[tuple[str, ...], defaultdict[str, list[Finding]]] = {}
    for release in reversed(runtime.releases):
        for finding in release.findings:
            shown.setdefault(_key(finding), defaultdict(list))[release.version].append(finding)
    return [
        FindingHistory(runtime, number, {version: tuple(findings) for version, findings in by_version.items()})
        for number, by_version in enumerate(shown.values(), 1)
    ]


def _key(finding: Finding) -> tuple[str, ...]:
    """Key by which a finding is the same in two releases: its fault, the reason on a list, or else its title and
    conditions; by the operators, too, where there is no fault."""
    kind = finding.kind if finding.section == ASIDE else ""
    if finding.fault:
        return finding.fault, kind
    (member,) = finding.members
    told = (member.why,) if member.why else (_title(finding), finding.conditions)
    return (*told, kind, *sorted(member.operators))


def _title(finding: Finding) -> str:
    """The title without the case that an unexplained one names."""
    return finding.title.partition("; the smallest is ")[0].partition(", and nothing is known that only")[0]

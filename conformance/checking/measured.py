"""Measurements of nodes like these in recorded runs: what a target fails or does not support, and what helps.

Three things are known of a run. Its findings say under which conditions something fails, or which fault explains it: a
node has the conditions, or a small node like it shows the fault. The list of known failures of the target says more
than a short run has tried. Failures of which nobody knows a condition are compared by the report's columns: operator
version, element type, direction, biases, lengths and so on. Nothing is claimed of a configuration that was not tried.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...cases.specs.features import GROUPS, groups_with
from ...reference import fault_named
from ..judging.judgement import DECLINED, FAILING, UNTRIED, Verdict
from ..judging.vocabulary import NO_FAILURE, outcome_told
from ..probes.probe import worded
from ..results.expected.entries import Entry, applying, shipped_for
from ..results.expected.version_range import in_numbers
from ..results.folder import NoRun, read_folder
from ..results.records import Finding, TargetRecord
from ..results.result import Result
from ..results.support import listed
from ..targets.target import Target
from .stand_in import StandIn
from .ways_out import way_out, way_out_of

# Columns that are about the numbers that were fed, how often, or whether there is a node at all to speak of.
_OF_DATA = frozenset(GROUPS[feature] for feature in ("rerun", "nonfinite", "numerics", "exact", "illegal"))
_FEW = 2
"""Cases of a smaller configuration that must all fail before something is said of a node that has more."""


class MeasuredError(ValueError):
    """A folder holds no run that can be read; the text says why, in one line."""


@dataclass(frozen=True)
class Configuration:
    """The features of a node that are compared: ``columns`` are the report's."""

    domain: str
    op: str
    version: int
    type: str
    columns: frozenset[str]

    @property
    def place(self) -> _Place:
        return self.domain, self.op, self.version, self.type

    @staticmethod
    def of(node: StandIn) -> Configuration:
        kind = node.node
        columns = frozenset(groups_with(node.features)) - _OF_DATA
        return Configuration(kind.domain, kind.op_type, kind.since_version, node.element, columns)


_Place = tuple[str, str, int, str]


@dataclass(frozen=True)
class _FindingSeen:
    """A finding of a run: its results by operator version and type, and how many of its cases other targets pass."""

    target: str
    finding: Finding
    results: Mapping[_Place, Sequence[Result]]
    passing: Mapping[str, int]

    def met_by(self, node: StandIn) -> bool:
        """Tell whether a node has what the finding's cases have."""
        words = self.finding["conditions"].partition(" (")[0]
        traits = {worded(trait) for trait in node.traits} | {node.operator, f"{node.operator} altogether"}
        pairs = itertools.permutations(traits, 2)
        return words in traits or any(f"{a} and {b}" == words for a, b in pairs)

    def concerns(self, node: StandIn) -> bool:
        """Tell whether a node is like its cases: it shows the fault that explains them, or has what they have."""
        fault = fault_named(self.finding["fault"]) if self.finding["fault"] else None
        return node.shows(fault) if fault is not None else self.met_by(node)

    def note(self, node: StandIn) -> Note:
        finding, results = self.finding, self.results[Configuration.of(node).place]
        count = f"{len(results)} recorded case{'' if len(results) == 1 else 's'}"
        text = f"{self.target}: {finding['title']}, in {count} of this operator and type, such as {results[0].case}"
        if finding["why"]:
            text += f"; known: {finding['why']}"
        elif results[0].verdict in DECLINED:
            text += f": {results[0].message}"
        others = [f"{target} passes {count} of these cases" for target, count in self.passing.items()]
        helps = [way_out(finding, node.operator), *([f"{listed(others)}."] if others else [])]
        return Note(text, " ".join(filter(None, helps)))


@dataclass(frozen=True)
class Note:
    """The words of runs on a node, and what helps; empty where nothing is known to."""

    text: str
    helps: str = ""


@dataclass(frozen=True)
class Measured:
    """The words of recorded runs.

    results
        Results for which no finding has conditions, by configuration and target.
    seen
        Findings that have some.
    known
        By target, entries of the shipped list of its known failures.
    tried
        By target, operator versions and types that some recorded case is of.
    """

    results: Mapping[Configuration, Mapping[str, Sequence[Result]]]
    seen: Sequence[_FindingSeen]
    known: Mapping[str, Sequence[Entry]]
    tried: Mapping[str, frozenset[_Place]]

    def notes(self, node: StandIn) -> Iterator[Note]:
        """Measurements of nodes like this one."""
        configuration = Configuration.of(node)
        told: set[str] = set()
        for seen in self.seen:
            if configuration.place in seen.results and seen.concerns(node):
                told.add(seen.finding["why"])
                yield seen.note(node)
        for target, entries in self.known.items():
            for entry in entries:
                if entry.reason not in told and _about(entry, node):
                    told.add(entry.reason)
                    which = f" (of releases {entry.runtime})" if entry.runtime else ""
                    yield Note(
                        f"{target}: known of it: {entry.reason}{which}", way_out_of([*entry.faults, *entry.features])
                    )
        yield from self._alike(configuration)

    def untried(self, node: StandIn) -> Iterator[str]:
        """A note on what runs cannot say, since they hold no case of a node's operator version and type."""
        configuration = Configuration.of(node)
        kind = f"{node.operator}-{configuration.version} in {configuration.type}"
        for target, places in self.tried.items():
            if configuration.place not in places:
                yield f"what {target} makes of it: no recorded case is of {kind}"

    def _alike(self, node: Configuration) -> Iterator[Note]:
        """Failures of which nobody knows a condition, in cases configured like this node or a part of it."""
        noted: set[str] = set()
        for target, results in self.results.get(node, {}).items():
            noted.add(target)
            bad = [result for result in results if _bad(result)]
            if bad:
                yield Note(f"{target}: of {len(results)} recorded cases configured like this node {_in_words(bad)}")
        # A feature that fails whenever it is there fails beside other ones as well.
        parts = [c for c in self.results if _part(c, node)]
        for configuration in sorted(parts, key=lambda c: (len(c.columns), sorted(c.columns))):
            for target, results in self.results[configuration].items():
                if target not in noted and len(results) >= _FEW and all(map(_bad, results)):
                    noted.add(target)
                    have = ", ".join(sorted(configuration.columns)) or "nothing more than the operator"
                    yield Note(
                        f"{target}: all {len(results)} recorded cases with a part of it ({have}) {_in_words(results)}"
                    )


def _about(entry: Entry, node: StandIn) -> bool:
    """Tell whether an entry is about nodes like this one, whatever their data."""
    kind = node.node
    return bool(
        entry.op == node.operator
        and not entry.cases
        and (entry.features or entry.versions)
        and (not entry.versions or any(in_numbers(kind.since_version, given) for given in entry.versions))
        and (not entry.types or node.element in entry.types)
        and {*entry.features} <= node.features
    )


def _part(part: Configuration, node: Configuration) -> bool:
    return part.place == node.place and part.columns < node.columns


def _bad(result: Result) -> bool:
    return result.verdict in FAILING or result.verdict in DECLINED


def _in_words(bad: Sequence[Result]) -> str:
    counts = Counter((result.verdict.value, result.reason or "") for result in bad)
    smallest = min(bad, key=lambda result: (len(result.case), result.case))
    verdicts = ", ".join(f"{count} {outcome_told(*outcome)}" for outcome, count in counts.most_common())
    return f"came out so: {verdicts}; {smallest.case}: {smallest.message}"


def read_measured(folders: Sequence[Path]) -> Measured:
    """The results of runs. Raises MeasuredError."""
    runs = []
    for folder in folders:
        try:
            runs.append(read_folder(folder))
        except NoRun as error:
            raise MeasuredError(str(error)) from None
        if not runs[-1].results:
            raise MeasuredError(f"{folder}: holds no results")
    results = [result for run in runs for result in run.results]
    targets = [target for run in runs if run.info is not None for target in run.info["targets"]]
    seen = [seen for target in targets for seen in _seen_on(target, results)]
    explained = {(each.target, case) for each in seen for case in each.finding["cases"]}
    grouped: dict[Configuration, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        columns = frozenset(result.features)
        untold = not columns & _OF_DATA and result.verdict not in UNTRIED | {Verdict.NOT_TRIED}
        if untold and (result.target, result.case) not in explained:
            key = Configuration(result.domain, result.op, result.version, result.type, columns)
            grouped[key][result.target].append(result)
    tried: dict[str, set[_Place]] = defaultdict(set)
    for result in results:
        tried[result.target].add((result.domain, result.op, result.version, result.type))
    known = {target["name"]: _known_of(target) for target in targets}
    return Measured(grouped, seen, known, {target: frozenset(places) for target, places in tried.items()})


def _seen_on(target: TargetRecord, results: Sequence[Result]) -> Iterator[_FindingSeen]:
    """The findings on a target that say when a node is hit."""
    own = {result.case: result for result in results if result.target == target["name"]}
    for finding in target["findings"]:
        if finding["kind"] in NO_FAILURE or not (finding["conditions"] or finding["fault"]):
            continue
        cases = {case for case in finding["cases"] if case in own}
        mine: dict[_Place, list[Result]] = defaultdict(list)
        for case in filter(cases.__contains__, finding["cases"]):
            result = own[case]
            mine[result.domain, result.op, result.version, result.type].append(result)
        passing = Counter(
            result.target
            for result in results
            if result.target != target["name"] and result.case in cases and result.verdict is Verdict.PASS
        )
        yield _FindingSeen(target["name"], finding, mine, passing)


def _known_of(target: TargetRecord) -> tuple[Entry, ...]:
    """Entries of the shipped list that are about this version of a runtime."""
    listed_for = shipped_for(Target(target["name"], target["adapter"], target["options"]))
    return applying(listed_for, target["description"] or {})

"""Measurements of nodes like these in a recorded run: configurations that a target fails, or does not support.

A node is compared with recorded cases by operator version, element type, and what both have of the report's columns:
direction, biases, lengths, states, peepholes, functions, clip and so on. Nothing is claimed of a configuration that the
run did not try.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...cases.specs.features import GROUPS, groups_with
from ..judging.judgement import DECLINED, FAILING, UNTRIED, Verdict
from ..judging.vocabulary import outcome_told
from ..results.folder import NoRun, read_folder
from ..results.result import Result

__all__ = ["Configuration", "Measured", "MeasuredError", "read_measured"]

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

    @staticmethod
    def of(domain: str, op: str, version: int, type: str, features: frozenset[str]) -> Configuration:
        return Configuration(domain, op, version, type, frozenset(groups_with(features)) - _OF_DATA)


@dataclass(frozen=True)
class Measured:
    """Recorded results by configuration and target."""

    results: Mapping[Configuration, Mapping[str, Sequence[Result]]]

    def notes(self, node: Configuration) -> Iterator[str]:
        """Measurements of nodes like this one, a line for each target."""
        noted: set[str] = set()
        for target, results in self.results.get(node, {}).items():
            noted.add(target)
            bad = [result for result in results if _bad(result)]
            if bad:
                yield f"{target}: of {len(results)} recorded cases configured like this node {_in_words(bad)}"
        # What fails whenever it is there fails beside other things as well.
        parts = [c for c in self.results if _part(c, node)]
        for configuration in sorted(parts, key=lambda c: (len(c.columns), sorted(c.columns))):
            for target, results in self.results[configuration].items():
                if target not in noted and len(results) >= _FEW and all(map(_bad, results)):
                    noted.add(target)
                    have = ", ".join(sorted(configuration.columns)) or "nothing more than the operator"
                    yield f"{target}: all {len(results)} recorded cases with a part of it ({have}) {_in_words(results)}"


def _part(part: Configuration, node: Configuration) -> bool:
    same = (part.domain, part.op, part.version, part.type) == (node.domain, node.op, node.version, node.type)
    return same and part.columns < node.columns


def _bad(result: Result) -> bool:
    return result.verdict in FAILING or result.verdict in DECLINED


def _in_words(bad: Sequence[Result]) -> str:
    counts = Counter((result.verdict.value, result.reason or "") for result in bad)
    smallest = min(bad, key=lambda result: (len(result.case), result.case))
    verdicts = ", ".join(f"{count} {outcome_told(*outcome)}" for outcome, count in counts.most_common())
    return f"came out so: {verdicts}; {smallest.case}: {smallest.message}"


def read_measured(folders: Sequence[Path]) -> Measured:
    """The results of runs. Raises MeasuredError."""
    grouped: dict[Configuration, dict[str, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for folder in folders:
        try:
            results = read_folder(folder).results
        except NoRun as error:
            raise MeasuredError(str(error)) from None
        if not results:
            raise MeasuredError(f"{folder}: holds no results")
        for result in results:
            columns = frozenset(result.features)
            if not columns & _OF_DATA and result.verdict not in UNTRIED | {Verdict.NOT_TRIED}:
                key = Configuration(result.domain, result.op, result.version, result.type, columns)
                grouped[key][result.target].append(result)
    return Measured(grouped)

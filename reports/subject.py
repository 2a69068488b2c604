"""One target in one run: its results and their counts."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from ..conformance.judging.judgement import Verdict
from ..conformance.judging.vocabulary import word
from ..conformance.results.level_grades import graded_line
from ..conformance.results.records import LevelsRecord, TargetRecord
from ..conformance.results.result import Result
from ..conformance.text import plural
from ..reference import FORMATS, SPECIAL, topic_of
from .run import NO_TARGET, Run
from .tally import Tally

K = TypeVar("K")


def operator_of(result: Result) -> str:
    """Return the operator without its version: ``LSTM``, ``com.amd.quark::ExtendedLSTM``."""
    return f"{result.domain}::{result.op}" if result.domain else result.op or "unnamed"


def version_of(result: Result) -> str:
    """Return the operator with its version: ``LSTM-14``."""
    return f"{operator_of(result)}-{result.version}"


def groups_of(result: Result) -> Iterable[str]:
    """Return feature groups; without them, topics of the clauses (``lstm.clip.gates`` is ``clip``)."""
    topics = (topic_of(clause).partition(".")[0] or clause for clause in result.clauses)
    return result.features or dict.fromkeys(filter(None, topics))


def command_of(result: Result) -> str:
    """Return the command that repeats a case."""
    return result.repeat or f"onnxspec run --target {shlex.quote(result.target)} --case {result.case}"


def place_of(result: Result) -> str:
    """Return the first wrong element as text: ``Y[3, 0, 1, 5], step 3``; empty where there is none."""
    if result.where is None:
        return ""
    name, index = result.where.get("output", ""), ", ".join(map(str, (result.where.get("index") or ())[:16]))
    step = result.where.get("step")
    parts = [f"{name}[{index}]" if index else name, "" if step is None else f"step {step}"]
    return ", ".join(filter(None, parts))


class TypeRow(NamedTuple):
    """The results of one element type.

    ``passing_grade`` is the accuracy class that all results meet, except wrong ones. ``worst`` is the largest |error| /
    bound of a pass, ``shift`` the mean signed error in units of the type's rounding; None where unknown. ``digits`` is
    the number of digits that systematic errors leave; empty where errors average out.
    """

    type: str
    tally: Tally
    grade: str
    passing_grade: str
    worst: float | None
    shift: float | None
    digits: str


@dataclass(frozen=True)
class Subject:
    """A target in one run. ``number`` is its index on the page, ``info`` its entry in ``run.json``."""

    number: int
    name: str
    label: str
    run: Run
    info: TargetRecord

    @cached_property
    def results(self) -> list[Result]:
        return [result for result in self.run.results if result.target == self.name]

    @cached_property
    def by_case(self) -> dict[str, Result]:
        return {result.case: result for result in self.results}

    @cached_property
    def refused(self) -> frozenset[str]:
        """Operator versions and element types that the target declines in every case."""
        tallies = {**self.by_version, **self.by_type}
        return frozenset(name for name, tally in tallies.items() if tally.declined == tally.total)

    @cached_property
    def features(self) -> dict[tuple[str, str], Tally]:
        """Counts by feature group and operator version, without refused versions and types; group "" counts all."""
        return self._tallied(
            lambda result: (
                [(group, version_of(result)) for group in ("", *groups_of(result))]
                if self.refused.isdisjoint((version_of(result), result.type))
                else ()
            )
        )

    @cached_property
    def tally(self) -> Tally:
        return self._tallied(lambda result: ("",)).get("", Tally())

    @cached_property
    def by_version(self) -> dict[str, Tally]:
        """Counts by operator version, lower versions first."""
        tallies = self._tallied(lambda result: ((operator_of(result), result.version, version_of(result)),))
        return {version: tallies[operator, number, version] for operator, number, version in sorted(tallies)}

    @cached_property
    def by_operator(self) -> dict[str, Tally]:
        """Counts by operator, all versions together."""
        return self._tallied(lambda result: (operator_of(result),))

    @cached_property
    def by_type(self) -> dict[str, Tally]:
        return self._tallied(lambda result: (result.type,))

    @cached_property
    def by_feature(self) -> dict[tuple[str, str], Tally]:
        """Counts by feature group and operator version; a result counts in each of its groups."""
        return self._tallied(lambda result: [(group, version_of(result)) for group in groups_of(result)])

    def _tallied(self, keys: Callable[[Result], Iterable[K]]) -> dict[K, Tally]:
        tallies: defaultdict[K, Tally] = defaultdict(Tally)
        for result in self.results:
            for key in keys(result):
                tallies[key].add(result)
        return dict(tallies)

    @cached_property
    def types(self) -> list[TypeRow]:
        """One row per element type, sorted by name."""
        ratios: dict[str, float] = {}
        for result in self.results:
            if result.verdict is Verdict.PASS and result.worst is not None:
                ratios[result.type] = max(ratios.get(result.type, 0.0), result.worst)
        grades, passing, biases = self.info["grade"], self.info.get("passing_grade", {}), self.info["bias"]
        rows = []
        for name, tally in sorted(self.by_type.items()):
            grade, bias = grades.get(name, ""), biases.get(name)
            digits_left = bias.get("digits") if bias is not None else None
            digits = (
                ""
                if digits_left is None or name not in FORMATS
                else f"{digits_left:g} of {FORMATS[name].precision} digits"
            )
            shift = bias["shift"] if bias is not None else None
            rows.append(
                TypeRow(name or "unnamed", tally, grade, passing.get(name) or grade, ratios.get(name), shift, digits)
            )
        return rows

    @property
    def levels(self) -> list[str]:
        """Errors of quantized outputs, one line for each operator and number of bits."""
        return [f"{record['operator']}, {levels_text(record)}" for record in self.info.get("levels", [])]

    @property
    def version(self) -> str:
        """The runtime's version from the description, and the version of a plug-in provider."""
        description = self.info["description"]
        version, provider = (_text(description.get(key, "")) for key in ("version", "provider_version"))
        return f"{version}, provider {provider}" if version and provider else version

    @property
    def diagnosed(self) -> str:
        """A sentence on the failures with values that known faults explain; empty without such failures."""
        failing = [result for result in self.results if word(result.verdict.value).has_numbers]
        if not failing:
            return ""
        ids = {name for result in failing for name in result.diagnosis}
        faults = f"{len(ids)} known {'fault explains' if len(ids) == 1 else 'faults together explain'}"
        results = f"{plural(len(failing), 'failing result')} with values to compare"
        undiagnosed = Counter(_without_fault(result) for result in failing if not result.diagnosis)
        if not undiagnosed:
            return f"{faults} all {results}."
        explained = len(failing) - undiagnosed.total()
        start = f"{faults} {explained:,} of the" if explained else "No known fault explains the"
        rest = "; ".join(f"{undiagnosed[cause]:,} {cause}" for cause in _WITHOUT_FAULT if undiagnosed[cause])
        without_fault = (
            f for f in self.info["findings"] if not (f["fault"] or f["expected"]) and word(f["verdict"]).has_numbers
        )
        searched = all(f.get("searched", True) for f in without_fault if f["verdict"] != Verdict.INACCURATE.value)
        return f"{start} {results}; {rest}.{'' if searched else ' Not all known faults were tried.'}"

    @cached_property
    def holding(self) -> tuple[list[str], list[tuple[str, int, int]]]:
        """(feature groups where every judged case passed, (group, passing, judged) of the others, best first)."""
        passed, failed = Counter[str](), Counter[str]()
        for (group, _), tally in self.by_feature.items():
            passed[group] += tally.passed
            failed[group] += tally.failed
        aside = {self._group_of(flag) for flag in SPECIAL}
        held = sorted(group for group, count in passed.items() if count and not failed[group] and group not in aside)
        others = [(group, passed[group], passed[group] + count) for group, count in failed.items() if count]
        return held, sorted(others, key=lambda row: (-row[1] / row[2], row[0]))

    def _group_of(self, flag: str) -> str:
        """Return the rarest feature group that all results with a flag share; empty where there is none."""
        flagged = [result for result in self.results if flag in result.flags]
        if not flagged:
            return ""
        shared = set[str].intersection(*({*groups_of(result)} for result in flagged))
        sizes = Counter(group for result in self.results for group in groups_of(result) if group in shared)
        return min(shared, key=lambda group: (sizes[group], group), default="")


_WITHOUT_FAULT = (
    "within a wider accuracy class, which the finding names",
    "on the list of known failures, with the reason",
    "without a known cause",
)


def _without_fault(result: Result) -> str:
    """Return the text for a failing result that no fault explains."""
    by_class, on_list, unexplained = _WITHOUT_FAULT
    return by_class if result.verdict is Verdict.INACCURATE else on_list if result.expected else unexplained


def subjects_of(runs: Sequence[Run]) -> list[Subject]:
    """Return every target of every run. Its label includes the run where two runs have a target of that name."""
    targets: list[tuple[Run, str, TargetRecord]] = []
    for run in runs:
        described = {info["name"]: info for info in run.info["targets"]}
        names = dict.fromkeys([*described, *(result.target for result in run.results)])
        targets += [(run, name, described.get(name, NO_TARGET)) for name in names]
    twice = {name for name, n in Counter(name for _, name, _ in targets).items() if n > 1}
    return [
        Subject(number, name, f"{name} in {run.name}" if name in twice else name, run, info)
        for number, (run, name, info) in enumerate(targets)
    ]


_ENDS = (0, 1, 2, 4, 16, 64, 256, 4096, 65535)
"""Upper ends of the groups of cases by their largest difference in levels."""


def levels_text(record: LevelsRecord) -> str:
    """Return the grade of a record, and the number of cases by difference in levels where there are differences."""
    groups: Counter[tuple[int, str]] = Counter()
    for pairs, wrong in ((record["off"], ""), (record["wrong"], " wrong")):
        for levels, cases in pairs:
            groups[next((end for end in _ENDS if levels <= end), _ENDS[-1]), wrong] += cases
    line = graded_line([record], record["bits"])
    if not any(end for end, _ in groups):
        return line
    counts = [
        f"{'up to ' if end > 2 else ''}{end:,}: {count:,}{wrong}" for (end, wrong), count in sorted(groups.items())
    ]
    return f"{line}; cases by difference: {', '.join(counts)}"


def _text(value: object) -> str:
    """Return a value of a description, which may have any type, as text."""
    return str(value) if isinstance(value, str | bool | int | float) else ""

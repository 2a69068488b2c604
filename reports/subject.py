"""One target in one run: its results and their counts by verdict."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from ..conformance.judging.judgement import DECLINED, FAILING, Verdict
from ..conformance.judging.vocabulary import rank
from ..conformance.results.grades import digits_text, graded_line
from ..conformance.results.records import TargetRecord
from ..conformance.results.result import Result
from ..reference import FORMATS, LOSES_NAN, topic_of
from .run import NO_TARGET, Run

K = TypeVar("K")


def operator_of(result: Result) -> str:
    """Return the operator without its version: ``LSTM``, ``com.amd.quark::ExtendedLSTM``."""
    return f"{result.domain}::{result.op}" if result.domain else result.op or "unnamed"


def version_of(result: Result) -> str:
    """Return the operator with its version: ``LSTM-14``."""
    return f"{operator_of(result)}-{result.version}"


def groups_of(result: Result) -> tuple[str, ...]:
    """Return feature groups; without them, topics of the clauses (``lstm.clip.gates`` is ``clip``)."""
    return _renamed(result.features) or _topics(result.clauses)


@lru_cache(maxsize=4096)  # thousands of results share a list of features, and of clauses
def _renamed(features: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("invalid models" if feature == "forbidden models" else feature for feature in features)


@lru_cache(maxsize=4096)
def _topics(clauses: tuple[str, ...]) -> tuple[str, ...]:
    topics = (topic_of(clause).partition(".")[0] or clause for clause in clauses)
    return tuple(dict.fromkeys(filter(None, topics)))


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


class Tally(Struct):
    """The number of results by verdict and by whether the expected-failure file names the failure.

    ``unconventional`` counts passes that only break a convention, ``special`` passes that lose NaN.
    """

    counts: Counter[tuple[str, bool]] = field(default_factory=Counter)
    unconventional: int = 0
    special: int = 0

    def add(self, result: Result) -> None:
        self.counts[result.verdict.value, result.failing and result.expected] += 1
        if result.verdict is Verdict.PASS and result.flags:
            self.unconventional += "unconventional" in result.flags
            self.special += LOSES_NAN in result.flags

    @property
    def split(self) -> list[tuple[str, bool, int]]:
        """(verdict, whether known, count), worst first: the new failures, then the known ones, then other verdicts."""
        entries = [(verdict, known, count) for (verdict, known), count in self.counts.items()]
        return sorted(entries, key=lambda entry: (entry[0] not in FAILING, entry[1], rank(entry[0]), entry[0]))

    @property
    def verdicts(self) -> Counter[str]:
        """Counts by verdict, worst first."""
        counts = Counter[str]()
        for verdict in sorted({verdict for verdict, _ in self.counts}, key=lambda name: (rank(name), name)):
            counts[verdict] = self.counts[verdict, False] + self.counts[verdict, True]
        return counts

    @property
    def new(self) -> int:
        """Failing results that the expected-failure file does not name."""
        return sum(count for (verdict, known), count in self.counts.items() if verdict in FAILING and not known)

    @property
    def known(self) -> int:
        """Failing results that the expected-failure file names."""
        return sum(count for (_, known), count in self.counts.items() if known)

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def passed(self) -> int:
        return self.counts["pass", False]

    @property
    def failed(self) -> int:
        return self.new + self.known

    @property
    def judged(self) -> int:
        """Results with information on the arithmetic: passes and failures."""
        return self.passed + self.failed

    @property
    def declined(self) -> int:
        """Results of cases that the target declines."""
        return sum(self.counts[verdict.value, False] for verdict in DECLINED)

    @property
    def other(self) -> int:
        """Results without information on the target: not judged, or missing."""
        return self.total - self.judged - self.declined


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
        grades, passing, biases = self.info["grade"], self.info["passing_grade"], self.info["bias"]
        rows = []
        for name, tally in sorted(self.by_type.items()):
            grade, bias = grades.get(name, ""), biases.get(name)
            digits = digits_text(bias, name) if bias is not None and name in FORMATS else ""
            shift = bias["shift"] if bias is not None else None
            rows.append(
                TypeRow(name or "unnamed", tally, grade, passing.get(name) or grade, ratios.get(name), shift, digits)
            )
        return rows

    @property
    def levels(self) -> list[str]:
        """Errors of quantized outputs, one line for each operator and number of bits."""
        return [f"{record['operator']}, {graded_line([record], record['bits'])}" for record in self.info["levels"]]

    @property
    def version(self) -> str:
        """The runtime's version from the description, and the version of a plug-in provider."""
        description = self.info["description"]
        version, provider = (str(description.get(key) or "") for key in ("version", "provider_version"))
        return f"{version}, provider {provider}" if version and provider else version


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

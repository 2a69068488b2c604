"""One target in one run: its results counted, and the answer they give in plain sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct

from ..conformance.judging.judgement import Verdict
from ..conformance.judging.vocabulary import word
from ..conformance.results.records import Bias, TargetRecord
from ..reference import FORMATS, SPECIAL
from .picture import LevelPicture, pictures_of_levels
from .results import Kind
from .run import NO_TARGET, Run
from .tally import Tally


class TypeRow(Struct, frozen=True):
    """The results of one element type.

    ``passing_grade`` is the class that all but its wrong results meet, ``worst`` the largest |error| / radius of a
    pass, ``shift`` the mean signed error and ``scale`` its spread, both in units of the type's rounding; None where
    unknown. ``digits`` says what errors that do not average out leave of the type; empty where they do.
    """

    type: str
    tally: Tally
    grade: str
    passing_grade: str
    worst: float | None
    shift: float | None
    scale: float | None
    digits: str


@dataclass(frozen=True)
class Subject:
    """A target as one run saw it. ``number`` is its place on the page, ``info`` its entry in ``run.json``."""

    number: int
    name: str
    label: str
    run: Run
    info: TargetRecord

    @cached_property
    def kinds(self) -> frozenset[int]:
        """The kinds of the run's results that are this target's."""
        return frozenset(n for n, kind in enumerate(self.run.results.kinds) if kind.target == self.name)

    @cached_property
    def counts(self) -> list[tuple[Kind, int]]:
        """The results as (kind, how many) pairs."""
        results = self.run.results
        return [(results.kinds[kind], n) for kind, n in results.counts.items() if kind in self.kinds]

    @cached_property
    def group_counts(self) -> list[tuple[Kind, str, int]]:
        """The results as (kind, feature group, how many); a result counts in each of its groups."""
        results = self.run.results
        return [(results.kinds[kind], group, n) for kind, group, n in results.group_counts if kind in self.kinds]

    @cached_property
    def tally(self) -> Tally:
        tally = Tally()
        for kind, count in self.counts:
            tally.add(kind, count)
        return tally

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """The verdict on each case."""
        results = self.run.results
        return {results.case[row]: results.kinds[k].verdict for row, k in enumerate(results.kind_of) if k in self.kinds}

    @cached_property
    def types(self) -> list[TypeRow]:
        """One row per element type, in order of name."""
        results = self.run.results
        tallies: defaultdict[str, Tally] = defaultdict(Tally)
        ratios: dict[str, float] = {}
        for kind, count in self.counts:
            tallies[kind.type].add(kind, count)
        for number in self.kinds:
            kind, worst = results.kinds[number], results.worst_of_kind[number]
            if kind.verdict == "pass" and worst >= 0:
                ratios[kind.type] = max(ratios.get(kind.type, 0.0), worst)
        grades, passing, bias = self.info["grade"], self.info.get("passing_grade", {}), self.info["bias"]
        rows = []
        for name in sorted(tallies):
            drift = bias.get(name)
            rows.append(
                TypeRow(
                    name or "unnamed",
                    tallies[name],
                    grades.get(name, ""),
                    passing.get(name) or grades.get(name, ""),
                    ratios.get(name),
                    drift["shift"] if drift is not None else None,
                    drift["scale"] if drift is not None else None,
                    _digits(name, drift),
                )
            )
        return rows

    @cached_property
    def levels(self) -> list[LevelPicture]:
        """Pictures of how far quantized outputs are off."""
        return pictures_of_levels(self.info.get("levels", []))

    @property
    def operators(self) -> list[str]:
        """The operator versions that were run, lower versions first."""
        operators = {(kind.domain, kind.op, kind.version or 0, kind.operator) for kind, _ in self.counts}
        return [name for *_, name in sorted(operators)]

    @property
    def version(self) -> str:
        """The runtime's version, where the description gives one, and that of a provider that is a plug-in."""
        description = self.info["description"]
        version, provider = (_text(description.get(key, "")) for key in ("version", "provider_version"))
        return f"{version}, provider {provider}" if version and provider else version

    @property
    def diagnosed(self) -> str:
        """The share of failures with numbers that known faults explain, in a sentence."""
        told = [(kind, count) for kind, count in self.counts if word(kind.verdict).told]
        explained = sum(count for kind, count in told if kind.diagnosis)
        without = Counter[str]()
        for kind, count in told:
            if not kind.diagnosis:
                without[_without_fault(kind)] += count
        total = explained + without.total()
        if not total:
            return ""
        results = f"failing result{'' if total == 1 else 's'} with numbers to look at"
        ids = {name for kind, _ in told for name in kind.diagnosis}
        opening = f"{len(ids)} known {'fault explains' if len(ids) == 1 else 'faults together explain'}"
        if explained == total:
            return f"{opening} all {explained:,} {results}."
        none = "No known fault explains" if self._searched else "No fault that was tried explains"
        if without[_UNEXPLAINED] == total:
            return f"{none} the {total:,} {results}."
        nothing = "nothing" if self._searched else "nothing that was tried"
        given = {words: words.format(count, nothing=nothing) for words, count in without.items()}
        rest = "; ".join(given[words] for words in _WITHOUT_FAULT if words in given)
        first = f"{opening} {explained:,} of" if explained else none
        return f"{first} the {total:,} {results}; {rest}."

    @property
    def _searched(self) -> bool:
        """Tell whether all known faults were tried on what has no name."""
        open_ = (f for f in self.info["findings"] if not (f["fault"] or f["expected"]))
        unnamed = (f for f in open_ if word(f["verdict"]).told)
        return all(f.get("searched", True) for f in unnamed if f["verdict"] != Verdict.INACCURATE.value)

    @cached_property
    def holding(self) -> tuple[list[str], list[tuple[str, int, int]]]:
        """(feature groups where every judged case passed, (group, passing, judged) of the others, best first)."""
        tallies: defaultdict[str, Tally] = defaultdict(Tally)
        for kind, group, count in self.group_counts:
            tallies[group].add(kind, count)
        aside = {self._about(flag) for flag in SPECIAL}
        held = sorted(n for n, tally in tallies.items() if tally.passed and not tally.failed and n not in aside)
        others = [(name, tally.passed, tally.judged) for name, tally in tallies.items() if tally.failed]
        return held, sorted(others, key=lambda row: (-row[1] / row[2], row[0]))

    def _about(self, flag: str) -> str:
        """The feature group that results with a flag are about: the rarest that all of them have. Empty where there are
        none."""
        flagged = sum(count for kind, count in self.counts if flag in kind.flags)
        having, sizes = Counter[str](), Counter[str]()
        for kind, group, count in self.group_counts:
            sizes[group] += count
            having[group] += count if flag in kind.flags else 0
        shared = [group for group, count in having.items() if flagged and count == flagged]
        return min(shared, key=lambda group: (sizes[group], group), default="")


_UNEXPLAINED = "{nothing} explains the other {:,}"
_BY_CLASS = "{:,} within a wider accuracy class, which the finding names"
_LISTED = "{:,} in the list of known failures, with the reason"
_WITHOUT_FAULT = (_BY_CLASS, _LISTED, _UNEXPLAINED)


def _without_fault(kind: Kind) -> str:
    """The words for failing results that no fault explains."""
    if kind.verdict == Verdict.INACCURATE.value:
        return _BY_CLASS
    return _LISTED if kind.expected else _UNEXPLAINED


def subjects_of(runs: Sequence[Run]) -> list[Subject]:
    """Return every target of every run; its label names the run where two runs have a target of that name."""
    targets: list[tuple[Run, str, TargetRecord]] = []
    for run in runs:
        described = {info["name"]: info for info in run.info["targets"]}
        names = dict.fromkeys([*described, *(kind.target for kind in run.results.kinds)])
        targets += [(run, name, described.get(name, NO_TARGET)) for name in names]
    twice = {name for name, n in Counter(name for _, name, _ in targets).items() if n > 1}
    return [
        Subject(number, name, f"{name} in {run.name}" if name in twice else name, run, info)
        for number, (run, name, info) in enumerate(targets)
    ]


def _text(value: object) -> str:
    """A value of a description, which may be anything, as text."""
    return str(value) if isinstance(value, str | bool | int | float) else ""


def _digits(kind: str, drift: Bias | None) -> str:
    """The digits that a bias leaves of a type, in words."""
    left = drift.get("digits") if drift is not None else None
    return "" if left is None or kind not in FORMATS else f"{left:g} of {FORMATS[kind].precision} digits"

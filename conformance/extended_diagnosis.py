"""Which deviations of ExtendedLSTM explain a target's failing cases, all of them together.

As in :mod:`.diagnosis` mistakes are found one after the other, simplest case first, and every case is then explained by
the fewest of them that it needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..reference import EXTENDED_DEVIATIONS, ExtendedDeviation
from ..reference.extended_lstm import STATES, expect_extended
from ..reference.extended_mistakes import evidence_extended
from .evidence import Kept
from .extended_probe import ExtendedProbe, runs_of
from .extended_verdict import ExtendedRun
from .judgement import Judgement, Verdict
from .probe import Probe
from .process import Outcome
from .result import Result

__all__ = ["ExtendedSearch", "explain_extended"]

_DIAGNOSED = frozenset({Verdict.WRONG, Verdict.INACCURATE, Verdict.UNSTABLE})
_NEW = 4.0
"""Bits that must speak for a mistake before it is thought of. There are some fifty of them, and a case of two numbers
is explained by one or another by chance. For one that other cases have shown anything at all is enough."""

_AT_ONCE = 4
_JURY = 8

Mistakes = tuple[ExtendedDeviation, ...]


@dataclass(frozen=True)
class _Witness:
    case: str
    runs: tuple[tuple[ExtendedRun, NDArray[np.float32]], ...]
    topics: frozenset[str]
    size: tuple[float, int]

    @cached_property
    def right(self) -> list[NDArray[np.float64]]:
        """What Y must be, run by run."""
        with np.errstate(all="ignore"):
            return [expect_extended(run.node, Y).value for run, Y in self.runs]

    def evidence(self, mistakes: Mistakes) -> float | None:
        """What speaks for these mistakes, in bits; None where they do not explain the case."""
        most: float | None = None
        for state in STATES:
            told = [
                evidence_extended(mistakes, run.node, Y, right, state)
                for (run, Y), right in zip(self.runs, self.right, strict=True)
            ]
            if None not in told:
                most = max(most or 0.0, sum(bits for bits in told if bits is not None))
        return most


def explain_extended(
    results: Sequence[Result],
    probes: Mapping[str, Probe],
    kept: Kept,
    suspects: Iterable[str] = (),
    effort: int = 20_000,
) -> dict[str, tuple[str, ...]]:
    """For every failing case the ids of the deviations that explain it together; cases that nothing explains are left
    out. A forbidden model that ran is explained by not looking at what it breaks.

    suspects
        Patterns of ids of mistakes that the target is known for, which no case has to show first.
    effort
        How many times mistakes may be tried on a case, all in all.
    """
    found: dict[str, tuple[str, ...]] = {}
    witnesses = []
    for result in results:
        probe, held = probes.get(result.case), kept.get(result.case)
        if isinstance(probe, ExtendedProbe):
            if result.verdict is Verdict.ACCEPTED:
                found[result.case] = _accepting(probe, result.clause)
            elif held is not None and result.verdict in _DIAGNOSED:
                witnesses.append(_witness_of(probe, held[1][0]))
    ordered = sorted((w for w in witnesses if w.runs), key=lambda w: (w.size, w.case))
    search = ExtendedSearch(effort, suspects)
    # Of what comes too early for it more is known later.
    for explain in (search.explain, search.by_known):
        for witness in ordered:
            mistakes = explain(witness, ordered) if witness.case not in found else None
            if mistakes is not None:
                found[witness.case] = tuple(d.id for d in mistakes)
    return found


def _accepting(probe: ExtendedProbe, clause: str | None) -> tuple[str, ...]:
    return tuple(d.id for d in EXTENDED_DEVIATIONS.values() if d.accepts and d.clause(probe.op) == clause)


def _witness_of(probe: ExtendedProbe, outcome: Outcome) -> _Witness:
    pairs = [
        (run, outputs[0])
        for run, lists in zip(runs_of(probe.spec), outcome.outputs, strict=False)
        for outputs in lists
        if outputs[0] is not None and outputs[0].shape == run.shape
    ]
    return _Witness(probe.id, tuple(pairs), frozenset(probe.clauses), probe.size)


class ExtendedSearch:
    """The mistakes known so far, and the search for more.

    effort
        How many times mistakes may still be tried on a case.
    """

    def __init__(self, effort: int, suspects: Iterable[str] = ()) -> None:
        """`suspects` are patterns of ids of mistakes that are known from the start."""
        patterns = tuple(suspects)
        self.effort = effort
        self.known = [
            d for d in EXTENDED_DEVIATIONS.values() if d.change and any(fnmatchcase(d.id, p) for p in patterns)
        ]

    def diagnosis(self, probe: ExtendedProbe, judgement: Judgement, outcome: Outcome) -> tuple[str, ...]:
        """The ids of the deviations that explain one case together; none where it does not fail, or nothing does."""
        if judgement.verdict is Verdict.ACCEPTED:
            return _accepting(probe, judgement.clause)
        witness = _witness_of(probe, outcome) if judgement.verdict in _DIAGNOSED else None
        found = self.explain(witness, ()) if witness is not None and witness.runs else None
        return tuple(d.id for d in found or ())

    def explain(self, witness: _Witness, others: Sequence[_Witness] = ()) -> Mistakes | None:
        """The fewest mistakes that explain a case: of those known, or with one more that then is known too."""
        by_known = self.by_known(witness)
        if by_known is not None:
            return by_known
        sizes = range(min(_AT_ONCE - 1, len(self.known)) + 1)
        for beside in itertools.chain.from_iterable(map(self._sets, sizes)):
            more = [d for d in EXTENDED_DEVIATIONS.values() if d.change is not None and d not in self.known]
            choices = [c for d in more if self._holds(witness, c := _ordered((*beside, d)), _NEW)]
            if choices:
                chosen = choices[0] if len(choices) == 1 else self._most(choices, witness, others)
                self.known += [d for d in chosen if d not in self.known]
                return chosen
        return None

    def by_known(self, witness: _Witness, others: Sequence[_Witness] = ()) -> Mistakes | None:
        """The fewest of the mistakes known that explain a case; of as few those for which most speaks."""
        for size in range(1, min(_AT_ONCE, len(self.known)) + 1):
            told = {some: bits for some in self._sets(size) if (bits := self._evidence(witness, some)) > 0}
            if told:
                return max(told, key=lambda some: told[some])
        return None

    def _sets(self, size: int) -> Iterator[Mistakes]:
        """Sets of so many known mistakes."""
        return map(_ordered, itertools.combinations(self.known, size))

    def _evidence(self, witness: _Witness, mistakes: Mistakes) -> float:
        """What speaks for these mistakes, in bits; none where they do not explain the case."""
        if self.effort <= 0:
            return 0.0
        self.effort -= 1
        return witness.evidence(mistakes) or 0.0

    def _holds(self, witness: _Witness, mistakes: Mistakes, least: float = 0.0) -> bool:
        return self._evidence(witness, mistakes) > least

    def _most(self, choices: list[Mistakes], witness: _Witness, others: Sequence[_Witness]) -> Mistakes:
        """The choice that explains most of the cases that are most alike; what the shipped kernel is known to do, and
        then the first, of equals."""
        jury = [w for w in others if w is not witness]
        jury.sort(key=lambda w: (len(w.topics ^ witness.topics), w.size, w.case))
        votes = [sum(self._holds(w, c) for w in jury[:_JURY]) for c in choices]
        seen = [any(d.disagreements for d in c) for c in choices]
        return max(zip(votes, seen, range(0, -len(choices), -1), choices, strict=True), key=lambda v: v[:3])[3]


def _ordered(mistakes: Iterable[ExtendedDeviation]) -> Mistakes:
    """Mistakes in the order in which a computation meets their stages: that of the table."""
    order = list(EXTENDED_DEVIATIONS)
    return tuple(sorted(mistakes, key=lambda d: order.index(d.id)))

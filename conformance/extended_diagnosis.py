"""Which deviations of ExtendedLSTM explain a target's failing cases, all of them together.

As in :mod:`.diagnosis` mistakes are found one after the other, simplest case first, and every case is then explained by
the fewest of them that it needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..reference import EXTENDED_DEVIATIONS, ExtendedDeviation
from ..reference.extended_lstm import STATES
from ..reference.extended_mistakes import explains_extended
from .evidence import Kept
from .extended_probe import ExtendedProbe, runs_of
from .extended_verdict import ExtendedRun
from .judgement import Judgement, Verdict
from .probe import Probe
from .process import Outcome
from .result import Result

__all__ = ["ExtendedSearch", "explain_extended"]

_DIAGNOSED = frozenset({Verdict.WRONG, Verdict.INACCURATE, Verdict.UNSTABLE})
_AT_ONCE = 4
_JURY = 8

Mistakes = tuple[ExtendedDeviation, ...]


@dataclass(frozen=True)
class _Witness:
    case: str
    runs: tuple[tuple[ExtendedRun, NDArray[np.float32]], ...]
    topics: frozenset[str]
    size: tuple[float, int]

    def explained_by(self, mistakes: Mistakes) -> bool:
        return any(all(explains_extended(mistakes, r.node, Y, state=s) for r, Y in self.runs) for s in STATES)


def explain_extended(
    results: Sequence[Result], probes: Mapping[str, Probe], kept: Kept, effort: int = 20_000
) -> dict[str, tuple[str, ...]]:
    """For every failing case the ids of the deviations that explain it together; cases that nothing explains are left
    out. A forbidden model that ran is explained by not looking at what it breaks.

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
    search = ExtendedSearch(effort)
    for witness in ordered:
        mistakes = search.explain(witness, ordered)
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

    def __init__(self, effort: int) -> None:
        self.effort = effort
        self.known: list[ExtendedDeviation] = []

    def diagnosis(self, probe: ExtendedProbe, judgement: Judgement, outcome: Outcome) -> tuple[str, ...]:
        """The ids of the deviations that explain one case together; none where it does not fail, or nothing does."""
        if judgement.verdict is Verdict.ACCEPTED:
            return _accepting(probe, judgement.clause)
        witness = _witness_of(probe, outcome) if judgement.verdict in _DIAGNOSED else None
        found = self.explain(witness, ()) if witness is not None and witness.runs else None
        return tuple(d.id for d in found or ())

    def explain(self, witness: _Witness, others: Sequence[_Witness]) -> Mistakes | None:
        """The fewest mistakes that explain a case: of those known, or with one more that then is known too."""
        by_known = self._by_known(witness)
        if by_known is not None:
            return by_known
        for beside in self._subsets(_AT_ONCE - 1):
            more = [d for d in EXTENDED_DEVIATIONS.values() if d.change is not None and d not in self.known]
            choices = [c for d in more if self._holds(witness, c := _ordered((*beside, d)))]
            if choices:
                chosen = choices[0] if len(choices) == 1 else self._most(choices, witness, others)
                self.known += [d for d in chosen if d not in self.known]
                return chosen
        return None

    def _by_known(self, witness: _Witness) -> Mistakes | None:
        return next((s for s in self._subsets(_AT_ONCE) if s and self._holds(witness, s)), None)

    def _subsets(self, most: int) -> Iterable[Mistakes]:
        """Sets of known mistakes, smaller ones first."""
        sizes = range(min(most, len(self.known)) + 1)
        return (_ordered(s) for n in sizes for s in itertools.combinations(self.known, n))

    def _holds(self, witness: _Witness, mistakes: Mistakes) -> bool:
        if self.effort <= 0:
            return False
        self.effort -= 1
        return witness.explained_by(mistakes)

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

"""Which faults "X goes wrong when Y and Z" cases have shown on a target, of all that can show there, and which cases
would show the rest.

What counts is what is pinned of each case of the pool (:mod:`...cases.profiles.pool`), so that no run waits for a
measurement. All other cases of a profile count for nothing here, so that what is said is the least that was shown.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...cases.profiles.pool import Pooled
from .interactions import Faults, Score, faults_of, space_of

__all__ = ["MOST_MODELS", "OWED", "Cover", "Shares"]

OWED = {"pairs": 0.99, "twice": 0.97, "triples": 0.95}
"""Shares of the faults that can show on a target, which a run fills up to."""

MOST_MODELS = 100
"""Models of an operator that a run fills up with at most."""

_PAIR, _TWICE, _SHARED = 10, 4, 0.3  # what a case is worth: as when the pool was ordered (choose.py)

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Shares:
    """Of so many possible faults how many are shown: pairs (X, Y), those shown by two cases, triples (X, Y, Z)."""

    pairs: tuple[int, int]
    twice: tuple[int, int]
    triples: tuple[int, int]

    @classmethod
    def of(cls, score: Score) -> Shares:
        """Those of a score."""
        return cls(score.pairs, score.twice, score.triples)

    @property
    def reached(self) -> bool:
        """Whether a run need not go on."""
        return all(getattr(self, name)[0] >= share * getattr(self, name)[1] for name, share in OWED.items())


@dataclass(frozen=True)
class _Shown:
    """What a case shows, by places: the parts, and the contexts that it has, as a whole and in each direction."""

    whole: NDArray[np.intp]
    plain: NDArray[np.intp]
    halves: tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]


def _places(bits: int) -> NDArray[np.intp]:
    """The places of the bits that are set."""
    return np.array([k for k in range(bits.bit_length()) if bits >> k & 1], np.intp)


class Cover:
    """What cases of the pool of one operator show together.

    without
        What there is not, by places of contexts (:class:`.lacking.Lacking`).
    """

    def __init__(self, op: str, without: Collection[tuple[int, ...]] = ()) -> None:
        self.space = space_of(op)
        self.faults: Faults = faults_of(op, frozenset(without))
        self._pairs = np.zeros(self.faults.alone.shape, np.int32)
        of_half = self.space.of_half
        self._by_half = of_half[:, np.newaxis] | of_half
        self._open = self.faults.together & ~self._by_half
        self._open_half = self.faults.together & self._by_half
        self._known: dict[int, _Shown] = {}

    @cached_property
    def _possible(self) -> tuple[int, int]:
        return int(self.faults.alone.sum()), int(self.faults.together.sum())

    def _shown(self, case: Pooled) -> _Shown:
        key = id(case)
        if key not in self._known:
            held = [_places(bits) for bits in case.held]
            plain = held[0][~self.space.of_half[held[0]]]
            halves = tuple((_places(bits), own) for bits, own in zip(case.halves, held, strict=True))
            self._known[key] = _Shown(_places(case.whole), plain, halves)
        return self._known[key]

    def _pairs_of(self, case: Pooled) -> Mask:
        shown = self._shown(case)
        pairs = np.zeros(self._pairs.shape, bool)
        pairs[np.ix_(shown.whole, shown.plain)] = True
        for parts, contexts in shown.halves:
            own = contexts[self.space.of_half[contexts]]
            pairs[np.ix_(parts, own)] = True
        return pairs & self.faults.alone

    def add(self, case: Pooled) -> None:
        """Count a case that showed all that it can show: it ran, and passed."""
        shown = self._shown(case)
        self._pairs += self._pairs_of(case)
        self._open[np.ix_(shown.whole, shown.plain, shown.plain)] = False
        for parts, contexts in shown.halves:
            self._open_half[np.ix_(parts, contexts, contexts)] = False

    @property
    def shares(self) -> Shares:
        """How much of what is possible is shown so far."""
        pairs, triples = self._possible
        left = int(self._open.sum()) + int(self._open_half.sum())
        return Shares(
            (int((self._pairs > 0).sum()), pairs), (int((self._pairs > 1).sum()), pairs), (triples - left, triples)
        )

    def worth(self, case: Pooled) -> float:
        """What a case would add."""
        shown, pairs = self._shown(case), self._pairs_of(case)
        adds = float(self._open[np.ix_(shown.whole, shown.plain, shown.plain)].sum())
        adds += sum(float(self._open_half[np.ix_(parts, own, own)].sum()) for parts, own in shown.halves)
        adds += _PAIR * int((pairs & (self._pairs == 0)).sum()) + _TWICE * int((pairs & (self._pairs == 1)).sum())
        return adds

    def choose(self, pool: Sequence[Pooled], models: int, known: Iterable[tuple[str, int]] = ()) -> list[Pooled]:
        """Cases that would show what is owed, in so many models at most, greedily by what each adds for what its model
        costs; they are counted as if they had shown it.

        known
            Models that were compiled already, of which further cases cost next to nothing.
        """
        there, taken, left = set(known), set[int](), models
        value: Callable[[int], float] = lambda k: self.worth(pool[k]) / self._cost(pool[k], there)  # noqa: E731
        heap = [(-value(k), k) for k in range(len(pool))]
        heapq.heapify(heap)
        chosen = []
        while heap and not self.shares.reached:
            _, k = heapq.heappop(heap)
            case, new = pool[k], pool[k].model not in there
            cost = case.models if new else 0
            if k in taken or cost > left:
                continue
            now = -value(k)
            if heap and now > heap[0][0]:
                heapq.heappush(heap, (now, k))
                continue
            if now == 0:
                break
            taken.add(k)
            chosen.append(case)
            self.add(case)
            left -= cost
            if new:
                there.add(case.model)
                for other, each in enumerate(pool):  # what shares its model costs less from now on
                    if each.model == case.model and other not in taken:
                        heapq.heappush(heap, (-value(other), other))
        return chosen

    def _cost(self, case: Pooled, there: Collection[tuple[str, int]]) -> float:
        return _SHARED if case.model in there else float(case.models)

"""Which faults "X goes wrong when Y and Z" cases have shown on a target, of all that can show there, and which cases
would show the rest.

What counts is what is pinned of each case of the pool (:mod:`...cases.profiles.pool`), so that no run waits for a
measurement. All other cases of a profile count for nothing here, so that what is said is the least that was shown.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
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
    """What a case shows: the places of its parts as a whole and in each direction, and which pairs of contexts it has.

    whole, together
        Parts of the case as a whole, and (pairs of contexts,) about no direction that it has.
    halves
        For each direction parts, and (pairs of contexts,) about a direction that it has.
    pairs
        (parts, contexts): which faults of one context it shows.
    """

    whole: NDArray[np.intp]
    together: Mask
    halves: tuple[tuple[NDArray[np.intp], Mask], ...]
    pairs: Mask


def _places(bits: int) -> NDArray[np.intp]:
    """The places of the bits that are set."""
    return np.array([k for k in range(bits.bit_length()) if bits >> k & 1], np.intp)


def _both(held: Mask, pairs: tuple[NDArray[np.intp], NDArray[np.intp]]) -> Mask:
    """(pairs,): of which pairs both contexts are held."""
    return np.array(held[pairs[0]] & held[pairs[1]])


class Cover:
    """What cases of the pool of one operator show together.

    without
        What there is not, by places of contexts (:class:`.lacking.Lacking`).
    """

    def __init__(self, op: str, without: Collection[tuple[int, ...]] = ()) -> None:
        self.space = space_of(op)
        self.faults: Faults = faults_of(op, frozenset(without))
        self._pairs = np.zeros(self.faults.alone.shape, np.int32)
        # Of the pairs of contexts those alone that some part can go wrong with, a column each: what a case has of them
        # is one row of bits then, and whole rows are far cheaper to combine than cells picked one by one.
        first, second = np.nonzero(self.faults.together.any(axis=0))
        by_half = self.space.of_half[first] | self.space.of_half[second]
        self._whole = first[~by_half], second[~by_half]
        self._half = first[by_half], second[by_half]
        self._open = self.faults.together[:, self._whole[0], self._whole[1]]
        self._open_half = self.faults.together[:, self._half[0], self._half[1]]
        self._known: dict[str, _Shown] = {}
        self._shares: Shares | None = None

    def copy(self) -> Cover:
        """The same, that counts on by itself."""
        other = copy(self)
        other._pairs, other._open, other._open_half = self._pairs.copy(), self._open.copy(), self._open_half.copy()
        return other

    @cached_property
    def _possible(self) -> tuple[int, int]:
        return int(self.faults.alone.sum()), int(self.faults.together.sum())

    def _shown(self, case: Pooled) -> _Shown:
        if case.place not in self._known:
            self._known[case.place] = self._shown_by(case)
        return self._known[case.place]

    def _shown_by(self, case: Pooled) -> _Shown:
        of_half, whole = self.space.of_half, _places(case.whole)
        held = np.zeros((len(case.held), len(of_half)), bool)
        for row, bits in zip(held, case.held, strict=True):
            row[_places(bits)] = True
        plain = held[0] & ~of_half
        parts = [_places(bits) for bits in case.halves]
        pairs = np.zeros(self._pairs.shape, bool)
        pairs[whole] |= plain
        for own, contexts in zip(parts, held, strict=True):
            pairs[own] |= contexts & of_half
        halves = tuple((own, _both(row, self._half)) for own, row in zip(parts, held, strict=True))
        return _Shown(whole, _both(plain, self._whole), halves, pairs & self.faults.alone)

    def add(self, case: Pooled) -> None:
        """Count a case that showed all that it can show: it ran, and passed."""
        shown = self._shown(case)
        self._pairs += shown.pairs
        self._open[shown.whole] &= ~shown.together
        for parts, together in shown.halves:
            self._open_half[parts] &= ~together
        self._shares = None

    @property
    def shares(self) -> Shares:
        """How much of what is possible is shown so far."""
        if self._shares is None:
            pairs, triples = self._possible
            left = int(np.count_nonzero(self._open)) + int(np.count_nonzero(self._open_half))
            once, twice = (int(np.count_nonzero(self._pairs > times)) for times in (0, 1))
            self._shares = Shares((once, pairs), (twice, pairs), (triples - left, triples))
        return self._shares

    def worth(self, case: Pooled) -> float:
        """What a case would add."""
        shown = self._shown(case)
        adds = float(np.count_nonzero(self._open[shown.whole] & shown.together))
        adds += sum(float(np.count_nonzero(self._open_half[parts] & both)) for parts, both in shown.halves)
        before = self._pairs[shown.pairs]
        adds += _PAIR * int(np.count_nonzero(before == 0)) + _TWICE * int(np.count_nonzero(before == 1))
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

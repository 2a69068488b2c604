"""The faults "X goes wrong when Y and Z" that cases have shown on a target, of all that can show there, and which cases
would show the rest.

What counts is what is pinned of each case of the pool (:mod:`...cases.profiles.pool`), so that no run waits for a
measurement. All other cases of a profile count for nothing here, so that what is said is the least that was shown.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from functools import cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...cases.profiles.pool import Pooled
from ...reference import operator_of
from .interactions import Score, faults_of, space_of

OWED = {"pairs": 0.99, "twice": 0.97, "triples": 0.93}
"""Shares of the faults that can show on a target, which a run fills up to."""

MOST_MODELS = 100
"""Models of an operator that a run fills up with at most."""

_PAIR, _TWICE, _SHARED = 10, 4, 0.3  # what a case is worth: as when the pool was ordered (choose.py)

Mask = NDArray[np.bool_]


class Shares(Struct, frozen=True):
    """Counts of shown faults of those that are possible: pairs (X, Y), those shown by two cases, triples (X, Y, Z)."""

    pairs: tuple[int, int]
    twice: tuple[int, int]
    triples: tuple[int, int]

    @classmethod
    def of(cls, score: Score) -> Shares:
        """The shares of a score."""
        return cls(score.pairs, score.twice, score.triples)

    @property
    def reached(self) -> bool:
        """Tell whether a run need not go on."""
        return all(getattr(self, name)[0] >= share * getattr(self, name)[1] for name, share in OWED.items())


def masks_of(bits: Sequence[int], width: int) -> Mask:
    """(integers, width): which bits of each are set."""
    size = (width + 7) // 8
    packed = np.frombuffer(b"".join(each.to_bytes(size, "little") for each in bits), np.uint8)
    return np.unpackbits(packed.reshape(len(bits), size), axis=1, count=width, bitorder="little").astype(bool)


def _bits_of(masks: Mask) -> list[int]:
    """The integer of each row of masks."""
    packed = np.packbits(masks, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


class _ShownBits(NamedTuple):
    """The interactions that a case shows, as bits of integers, which are combined and counted in one go.

    pairs
        Faults of one context: bit k * contexts + c for part k and context c.
    triples
        Parts of the case as a whole with the pairs of contexts about no direction that it has, then for each direction
        parts with the pairs about one: bit c for pair c of :attr:`_Pinned.both`.
    """

    pairs: int
    triples: tuple[tuple[list[int], int], ...]


class _Pinned:
    """The interactions that an operator's pool shows where nothing is lacking, worked out once and for many at a time.

    both
        All pairs of contexts, the first and the second of each.
    """

    _AT_ONCE = 64  # cases: a megabyte, which stays near the processor

    def __init__(self, op: str) -> None:
        self._of_half = space_of(op).of_half
        self._parts = len(operator_of(op).parts())
        self.both = np.triu_indices(len(self._of_half), 1)
        self._by_half = self._of_half[self.both[0]] | self._of_half[self.both[1]]
        self._known: dict[str, _ShownBits] = {}

    def __getitem__(self, case: Pooled) -> _ShownBits:
        self.prepare([case])
        return self._known[case.place]

    def prepare(self, cases: Iterable[Pooled]) -> None:
        """Work out what these cases show, so far as it is not known."""
        left = [case for case in cases if case.place not in self._known]
        for start in range(0, len(left), self._AT_ONCE):
            some = left[start : start + self._AT_ONCE]
            self._known |= zip((case.place for case in some), self._worked_out(some), strict=True)

    def _worked_out(self, cases: Sequence[Pooled]) -> Iterator[_ShownBits]:
        contexts = len(self._of_half)
        whole = masks_of([case.whole for case in cases], self._parts)
        plain = masks_of([case.held[0] for case in cases], contexts) & ~self._of_half
        sources = [(whole, plain, self._together(plain))]
        for d in range(max(len(case.held) for case in cases)):  # a direction that is not there shows no part
            held = masks_of([case.held[d] if d < len(case.held) else 0 for case in cases], contexts)
            parts = masks_of([case.halves[d] if d < len(case.halves) else 0 for case in cases], self._parts)
            sources.append((parts, held & self._of_half, self._together(held) & self._by_half))
        pairs = np.zeros((len(cases), self._parts, contexts), bool)
        for parts, held, _ in sources:
            pairs |= parts[:, :, np.newaxis] & held[:, np.newaxis, :]
        of_pairs = _bits_of(pairs.reshape(len(cases), -1))
        of_triples = [
            zip([np.flatnonzero(row).tolist() for row in parts], _bits_of(together), strict=True)
            for parts, _, together in sources
        ]
        return (_ShownBits(*of_case) for of_case in zip(of_pairs, zip(*of_triples, strict=True), strict=True))

    def _together(self, held: Mask) -> Mask:
        """(cases, pairs): which pairs are held."""
        first, second = self.both
        return np.take(held, first, axis=1) & np.take(held, second, axis=1)  # in the order of rows, unlike [:, first]


_pinned = cache(_Pinned)


class Cover:
    """The interactions that cases of one operator's pool show together.

    without
        What there is not, by places of contexts (:class:`.lacking.Lacking`).
    """

    def __init__(self, op: str, without: Collection[tuple[int, ...]] = ()) -> None:
        faults = faults_of(op, frozenset(without))
        self._cases = _pinned(op)
        # What no case has shown so far, what at most one has, and of each part the pairs of contexts that none has.
        self._unshown = self._once = _bits_of(faults.alone.reshape(1, -1))[0]
        self._open = _bits_of(faults.together[:, self._cases.both[0], self._cases.both[1]])
        self._possible = self._unshown.bit_count(), sum(bits.bit_count() for bits in self._open)
        self._shares: Shares | None = None

    def copy(self) -> Cover:
        """The same, that counts on by itself."""
        other = copy(self)
        other._open = [*self._open]
        return other

    def add(self, *cases: Pooled) -> None:
        """Count cases that showed all that they can show: they ran, and passed."""
        self._cases.prepare(cases)
        for case in cases:
            shown = self._cases[case]
            self._once &= ~shown.pairs | self._unshown
            self._unshown &= ~shown.pairs
            for parts, together in shown.triples:
                for part in parts:
                    self._open[part] &= ~together
        self._shares = None

    @property
    def shares(self) -> Shares:
        """The share of what is possible that is shown so far."""
        if self._shares is None:
            pairs, triples = self._possible
            left = sum(bits.bit_count() for bits in self._open)
            once, twice = pairs - self._unshown.bit_count(), pairs - self._once.bit_count()
            self._shares = Shares((once, pairs), (twice, pairs), (triples - left, triples))
        return self._shares

    def worth(self, case: Pooled) -> float:
        """The interactions that a case would add."""
        shown, still = self._cases[case], self._open
        fresh = shown.pairs & self._unshown
        again = shown.pairs & self._once & ~self._unshown
        adds = 0
        for parts, together in shown.triples:
            if together:
                adds += sum([(still[part] & together).bit_count() for part in parts])
        return float(adds + _PAIR * fresh.bit_count() + _TWICE * again.bit_count())

    def choose(self, pool: Sequence[Pooled], models: int, known: Iterable[tuple[str, int]] = ()) -> list[Pooled]:
        """Cases that would show what is owed, in so many models at most, greedily by what each adds for what its model
        costs; they are counted as if they had shown it.

        known
            Models that were compiled already, of which further cases cost next to nothing.
        """
        self._cases.prepare(pool)
        there, taken, left = set(known), set[int](), models
        sharing: dict[tuple[str, int], list[int]] = {}
        for k, each in enumerate(pool):
            sharing.setdefault(each.model, []).append(k)
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
                for other in sharing[case.model]:  # what shares its model costs less from now on
                    if other not in taken:
                        heapq.heappush(heap, (-value(other), other))
        return chosen

    def _cost(self, case: Pooled, there: Collection[tuple[str, int]]) -> float:
        return _SHARED if case.model in there else float(case.models)

"""Dense cases, chosen by the faults that each is the first to show."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases import Spec
from onnxspec.conformance.proof.exposure import Shown
from onnxspec.conformance.proof.interactions import space_of

# What a case is worth: each triple, pair, and pair for the second time that it is the first to show. A second case of a
# model costs a device no compilation.
_PAIR, _TWICE, _SHARED = 10, 4, 0.3


@dataclass(frozen=True, eq=False)
class Candidate:
    """A case that may be chosen, and the faults that it shows: pairs as truth values, triples as bits."""

    place: tuple[str, int, int]
    spec: Spec
    shown: Mapping[str, Shown]
    pairs: NDArray[np.bool_]
    triples: NDArray[np.uint8]

    @property
    def model(self) -> tuple[str, int]:
        """Cases with the same one share a model."""
        return self.place[:2]

    @property
    def cost(self) -> int:
        """Models that must be compiled for it: without Y there is a companion with all outputs."""
        return space_of(self.spec.op).models(self.spec)


_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint16)


class Chooser:
    """Greedy choice: always what adds most, with what it has added so far. What a case adds only shrinks, so a case
    that still leads after it has been valued anew is the best one."""

    def __init__(self, pool: Sequence[Candidate]) -> None:
        """Begin with nothing chosen."""
        self.pool = pool
        self.counts = np.zeros(len(pool[0].pairs), np.int32)
        self.before = np.zeros_like(pool[0].triples)
        self.triples = self.before.copy()
        self.models: set[tuple[str, int]] = set()
        self.chosen: list[int] = []

    def worth(self, k: int) -> float:
        """The gain of a case for its cost."""
        case = self.pool[k]
        return self._adds(k) / (_SHARED if case.model in self.models else case.cost)

    def _adds(self, k: int) -> float:
        case = self.pool[k]
        adds = float(_ONES[case.triples & ~self.triples].sum())
        return (
            adds
            + _PAIR * int((case.pairs & (self.counts == 0)).sum())
            + _TWICE * int((case.pairs & (self.counts == 1)).sum())
        )

    def run(self, may: Callable[[Candidate], bool], models: int, cases: int) -> None:
        """Choose so many models and cases more at most, among those that may be chosen."""
        heap = [(-self.worth(k), k) for k in range(len(self.pool)) if k not in self.chosen and may(self.pool[k])]
        heapq.heapify(heap)
        new = 0
        while heap and cases:
            _, k = heapq.heappop(heap)
            if self.pool[k].model not in self.models and new + self.pool[k].cost > models:
                continue
            now = -self.worth(k)
            if heap and now > heap[0][0]:
                heapq.heappush(heap, (now, k))
                continue
            if now == 0:
                return
            if self.pool[k].model not in self.models:
                new += self.pool[k].cost
                self.models.add(self.pool[k].model)
                for other in range(len(self.pool)):  # what shares its model costs less from now on
                    shares = other != k and self.pool[other].model == self.pool[k].model
                    if shares and other not in self.chosen and may(self.pool[other]):
                        heapq.heappush(heap, (-self.worth(other), other))
            if k in self.chosen:
                continue
            self.choose(k)
            cases -= 1

    def choose(self, k: int) -> None:
        """Take a case."""
        self.chosen.append(k)
        self.models.add(self.pool[k].model)
        self.counts += self.pool[k].pairs
        self.triples |= self.pool[k].triples

    @property
    def cost(self) -> int:
        """Models of all that is chosen."""
        return sum({self.pool[k].model: self.pool[k].cost for k in self.chosen}.values())

    def exchange(self, may: Callable[[Candidate], bool], models: int) -> None:
        """Exchange cases that may be chosen, one for one, as long as all of them together gain by it: a greedy choice
        has cases that those which were chosen later make superfluous.

        models
            How many all chosen cases may have together.
        """
        some = [k for k in range(len(self.pool)) if may(self.pool[k])]
        shows = np.zeros(len(self.triples) * 8, np.int16)
        for k in self.chosen:
            shows += np.unpackbits(self.pool[k].triples)
        before = np.unpackbits(self.before)
        tried: set[int] = set()
        while True:
            left = [k for k in self.chosen if k not in tried and may(self.pool[k])]
            if not left:
                return
            single = np.packbits((shows == 1) & (before == 0))
            loss, worst = min((self._alone(k, single), k) for k in left)
            tried.add(worst)
            self._take(worst, shows, before)
            there, room = {self.pool[k].model for k in self.chosen}, models - self.cost
            gain, best = max(
                (self._adds(k), -k)
                for k in some
                if k not in self.chosen and (self.pool[k].model in there or self.pool[k].cost <= room)
            )
            if gain > loss:
                tried.clear()
            self._put(-best if gain > loss else worst, shows)

    def _alone(self, k: int, single: NDArray[np.uint8]) -> float:
        """The loss without a chosen case; `single` are the triples that one case shows."""
        case = self.pool[k]
        lost = float(_ONES[case.triples & single].sum())
        return (
            lost
            + _PAIR * int((case.pairs & (self.counts == 1)).sum())
            + _TWICE * int((case.pairs & (self.counts == 2)).sum())
        )

    def _take(self, k: int, shows: NDArray[np.int16], before: NDArray[np.uint8]) -> None:
        self.chosen.remove(k)
        self.counts -= self.pool[k].pairs
        shows -= np.unpackbits(self.pool[k].triples)
        self.triples = np.packbits((shows > 0) | (before > 0))

    def _put(self, k: int, shows: NDArray[np.int16]) -> None:
        self.choose(k)
        shows += np.unpackbits(self.pool[k].triples)

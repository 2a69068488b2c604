"""Choose the dense block: `python -m onnxspec.conformance.proof.choose` writes cases/profiles/pool.json.

Draws the pool, measures what each case shows, and orders it greedily by the faults that a case is the first to show,
level by level: each level's own space is covered before the next wider one adds to it. To be run, and the profiles to
be pinned again, when the space, the parts or the contexts are meant to change.
"""

from __future__ import annotations

import argparse
import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import Spec, family_of
from ...cases.profiles.pool import Pooled, pool_of
from ...cases.specs.family import PoolDesign, pooled_operators
from ...reference import operator_of
from .exposure import Shown, parts_shown
from .interactions import Tally, faults_of, shown_by, space_of
from .proof import spread

__all__ = ["Candidate", "chosen", "drawn", "main"]

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


def design_of(op: str) -> PoolDesign:
    """How the pool of an operator is drawn. Raises KeyError for one that has none."""
    design = family_of(op).pool_design(op)
    if design is None:
        raise KeyError(op)
    return design


def drawn(op: str) -> Iterator[tuple[tuple[str, int, int], Spec]]:
    """The places of an operator's pool, with their cases."""
    design = design_of(op)
    for level, count in design.drawn.items():
        for index in range(count):
            for number in range(design.siblings[level] + 1):
                spec = family_of(op).pooled(op, level, index, number)
                if spec is not None:
                    yield (level, index, number), spec


def candidates(op: str, measured: Sequence[tuple[tuple[str, int, int], Spec, Mapping[str, Shown]]]) -> list[Candidate]:
    """Measured cases with the faults that they show."""
    faults, tally = faults_of(op), Tally(op)
    alone, together = np.flatnonzero(faults.alone), np.flatnonzero(faults.together)
    made = []
    for place, spec, shown in measured:
        pairs, triples = tally.of(spec, shown)
        made.append(Candidate(place, spec, shown, pairs.ravel()[alone], np.packbits(triples.ravel()[together])))
    return made


_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint16)


class _Chooser:
    """Greedy choice: always what adds most, with what it has added so far. What a case adds only shrinks, so a case
    that still leads after it has been valued anew is the best one."""

    def __init__(self, pool: Sequence[Candidate]) -> None:
        self.pool = pool
        self.counts = np.zeros(len(pool[0].pairs), np.int32)
        self.before = np.zeros_like(pool[0].triples)
        self.triples = self.before.copy()
        self.models: set[tuple[str, int]] = set()
        self.chosen: list[int] = []

    def worth(self, k: int) -> float:
        """What a case adds for what it costs."""
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
            self.chosen.append(k)
            cases -= 1
            self.counts += self.pool[k].pairs
            self.triples |= self.pool[k].triples

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
            costs = {case.model: case.cost for k in self.chosen if (case := self.pool[k])}
            room = models - sum(costs.values())
            gain, best = max(
                (self._adds(k), -k)
                for k in some
                if k not in self.chosen and (self.pool[k].model in costs or self.pool[k].cost <= room)
            )
            if gain > loss:
                tried.clear()
            self._put(-best if gain > loss else worst, shows)

    def _alone(self, k: int, single: NDArray[np.uint8]) -> float:
        """What would be lost without a chosen case; `single` are the triples that one case shows."""
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
        self.chosen.append(k)
        self.counts += self.pool[k].pairs
        shows += np.unpackbits(self.pool[k].triples)
        self.triples |= self.pool[k].triples


def chosen(pool: Sequence[Candidate], design: PoolDesign) -> tuple[list[int], list[int], list[int]]:
    """Places in the pool: the dense block of core in order, those of them for smoke, and all others in order."""
    block = _Chooser(pool)
    for level, models in design.models.items():
        share = design.cases * models // sum(design.models.values())
        block.run(lambda case, level=level: case.place[0] == level, models, share)  # type: ignore[misc]
    quick, places = _Chooser(pool), {pool[k].place for k in block.chosen}
    quick.run(lambda case: case.place in places and case.cost == 1, design.quick, design.quick)
    rest = [k for k in range(len(pool)) if k not in block.chosen]
    return block.chosen, quick.chosen, rest


def written(op: str, pool: Sequence[Candidate]) -> dict[str, Any]:
    """The pool of an operator as pool.json has it."""
    parts = [part.id for part in operator_of(op).parts()]
    block, quick, rest = chosen(pool, design_of(op))

    def bits(case: Candidate, there: Callable[[Shown], bool]) -> str:
        return f"{sum(1 << k for k, id in enumerate(parts) if id in case.shown and there(case.shown[id])):x}"

    def row(case: Candidate) -> list[Any]:
        several = len(space_of(op).halves(case.spec))
        halves = range(several if several > 1 else 0)
        there = [sum(1 << k for k in np.flatnonzero(held).tolist()) for held in space_of(op).held(case.spec)]
        return [
            *case.place,
            case.spec.version,
            case.cost,
            ".".join(f"{contexts:x}" for contexts in there),
            bits(case, lambda shown: shown.whole),
            *(bits(case, lambda shown, d=d: shown.halves[d]) for d in halves),  # type: ignore[misc]
        ]

    return {
        "parts": parts,
        "pinned": len(block),
        "quick": [block.index(k) for k in quick],
        "cases": [row(pool[k]) for k in (*block, *rest)],
    }


Place = tuple[str, int, int]


def _measured(item: tuple[Place, Spec]) -> tuple[Place, Spec, Mapping[str, Shown]]:
    return (*item, parts_shown(item[1]))


def _all_measured(op: str, keep: bool, processes: int) -> list[tuple[Place, Spec, Mapping[str, Shown]]]:
    """The pool of an operator with what each case shows; of cases that are to be kept, as it is pinned."""
    parts = tuple(part.id for part in operator_of(op).parts())
    known: dict[Place, Pooled] = {}
    if keep and (pool := pool_of(op)).parts == parts:
        known = {(case.level, case.index, case.sibling): case for case in pool.cases}
    there = list(drawn(op))
    fresh = iter(list(spread(_measured, [item for item in there if item[0] not in known], processes)))
    return [(place, spec, shown_by(known[place], parts)) if place in known else next(fresh) for place, spec in there]


def main() -> None:
    """Write pool.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", "-j", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="measure cases that are new in the pool, and no others")
    parser.add_argument("--op", action="append", choices=pooled_operators(), help="only this operator's pool")
    asked = parser.parse_args()
    path = Path(str(resources.files("onnxspec.cases.profiles").joinpath("pool.json")))
    before = json.loads(path.read_text(encoding="utf-8"))
    held = {
        op: before[op]
        if asked.op and op not in asked.op
        else written(op, candidates(op, _all_measured(op, asked.keep and op in before, asked.processes)))
        for op in pooled_operators()
    }
    lines = [f"{json.dumps(op)}: {_lines(value)}" for op, value in held.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _lines(value: dict[str, Any]) -> str:
    """A row a line, so that a change shows as the rows that changed."""
    rows = ",\n".join(json.dumps(row) for row in value["cases"])
    head = ", ".join(f"{json.dumps(name)}: {json.dumps(value[name])}" for name in ("parts", "pinned", "quick"))
    return "{" + head + ', "cases": [\n' + rows + "\n]}"


if __name__ == "__main__":
    main()

"""Drawn cases that are worth being measured: those that are likely to show what none does so far.

To measure what a case shows takes a hundred times as long as to draw it. But which contexts it has is known at once,
and what its parts need in order to show is stated with them; where that is there, a part does show in most cases. So
of thousands of drawn cases those few are measured that would add most if all showed.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases import Spec, build_case
from onnxspec.conformance.proof.interactions import faults_of, space_of
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.reference import operator_of

_LEAST_JUDGED = {"float16": 0.5, "bfloat16": 0.25}
"""Share of a case's elements that must be judged where all is right, by type; the others judge nearly all. Sigmoid and
Tanh alone may be off by (4|f| + 4)u, in bfloat16 3 % of the signal, in float16 0.4 %: where both stand in all gates no
data reaches more than a third there, piecewise linear functions reach a half and more (docs/coverage.md)."""

Mask = NDArray[np.bool_]


def promising(op: str, specs: Sequence[Spec], shown: Mask, count: int) -> list[int]:
    """The places of so many cases, those first that would add most.

    shown
        (parts, contexts, contexts): the triples that other cases show, an upper triangle.

    What one of them may add, the next ones count as shown; when nothing is left, all that was open at first is open
    again: not all that may show does.
    """
    space, open_at_first = space_of(op), faults_of(op).together & ~shown
    # What is still open is sought among the pairs of contexts of some open triple alone.
    first, second = np.nonzero(open_at_first.any(axis=0))
    mixed = space.of_half[first] | space.of_half[second]
    wanted = open_at_first[:, first, second]
    cases = [_expected(op, spec, first, second, mixed) for spec in specs]
    left = wanted.copy()

    def adds(k: int) -> int:
        return sum(int(np.count_nonzero(left[parts] & pairs)) for parts, pairs in cases[k])

    heap = [(-adds(k), k) for k in range(len(specs))]
    heapq.heapify(heap)
    chosen: list[int] = []
    again: list[int] = []
    while len(chosen) < count and (heap or again):
        if not heap:
            left = wanted.copy()
            heap = [(-adds(k), k) for k in again]
            heapq.heapify(heap)
            again = []
        _, k = heapq.heappop(heap)
        now = -adds(k)
        if now == 0:
            again += [k, *(other for _, other in heap)]
            heap = []
            if (left == wanted).all():
                break
            continue
        if heap and now > heap[0][0]:
            heapq.heappush(heap, (now, k))
            continue
        chosen.append(k)
        for parts, pairs in cases[k]:
            left[parts] &= ~pairs
    return chosen


def telling(spec: Spec) -> bool:
    """Whether enough of a case's elements are judged where all is right. What is held to be wrong may be, too, where an
    error bound is wide; but lying within it shows nothing."""
    least = _LEAST_JUDGED.get(spec.type)
    if least is None:
        return True
    judgement = judge_staged(build_case(spec), lambda node, inputs: operator_of(spec.op).answer(node, inputs))
    return judgement.judged >= least * judgement.elements


def _expected(
    op: str, spec: Spec, first: NDArray[np.intp], second: NDArray[np.intp], mixed: Mask
) -> list[tuple[NDArray[np.intp], Mask]]:
    """What a case would show if every part that has what it needs did: parts as a whole with pairs of contexts about no
    direction, and for each direction those with pairs about one."""
    space, parts = space_of(op), operator_of(op).parts()
    held, rows = space.held(spec), space.halves(spec)
    wholes, halves = [], [[] for _ in rows]  # type: list[int], list[list[int]]
    for k, part in enumerate(parts):
        if any(all(need.holds(row) for need in space.needs(part.needs)) for row in rows):
            wholes.append(k)
        for d, row in enumerate(rows):
            if all(need.holds(row) for need in space.needs(part.needs, half=True)):
                halves[d].append(k)
    plain = held[0] & ~space.of_half
    expected = [(np.array(wholes, np.intp), plain[first] & plain[second] & ~mixed)]
    for d, own in enumerate(halves):
        expected.append((np.array(own, np.intp), held[d][first] & held[d][second] & mixed))
    return expected

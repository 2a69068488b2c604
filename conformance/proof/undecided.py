"""The undecided part of quantized cases: how many levels bounds leave open, and the faults that are lost by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...cases import Trial
from ...reference import operator_for


@dataclass(frozen=True)
class OpenLevels:
    """The numbers of a case by how many levels are right of each.

    bits
        Of the levels.
    counts
        Of numbers, by levels; 0 for those of which so many are that none shows anything.
    """

    op: str
    bits: int
    counts: Mapping[int, int]


@dataclass(frozen=True)
class MovedLevels:
    """A fault in a quantized case that returns other levels than a right implementation does."""

    fault: str
    op: str
    bits: int
    caught: bool


@dataclass(frozen=True)
class Undecided:
    """All of an operator's cases with levels of so many bits.

    numbers, one, two
        How many outputs hold, of how many one level alone is right, and of how many two.
    attempts, lost
        Faults in cases that change levels, and by fault how many of these are not caught: what they return may be
        right, as far as is known.
    """

    op: str
    bits: int
    numbers: int
    one: int
    two: int
    attempts: int
    lost: Mapping[str, int]


def levels_of(op: str, trial: Trial) -> OpenLevels:
    """The levels open to a right implementation's outputs, in the last run."""
    node, inputs = trial.node, trial.feeds[-1].inputs
    operator = operator_for(node)
    counts: Counter[int] = Counter()
    for each in operator.expect(node, inputs, operator.answer(node, inputs)):
        if each.measure is None or each.open is None or each.conventional:
            continue
        levels = (2 * np.rint(2 * each.open) / 2).astype(np.int64) + 1
        if each.weak is not None:
            levels = np.where(each.weak, 0, levels)
        if each.number.doubt is not None:
            levels = np.where(each.number.doubt, 0, levels)
        some = levels if each.about is None else levels[each.about]
        numbers, of_them = np.unique(some, return_counts=True)
        counts.update(dict(zip(numbers.tolist(), of_them.tolist(), strict=True)))
    return OpenLevels(op, node.bits, counts)


def undecided(cases: Iterable[OpenLevels], attempts: Iterable[MovedLevels]) -> Iterator[Undecided]:
    """Numbers that levels leave undecided, by operator and bits."""
    counts: dict[tuple[str, int], Counter[int]] = {}
    for case in cases:
        if case.counts:
            counts.setdefault((case.op, case.bits), Counter()).update(case.counts)
    tried = [*attempts]
    for (op, bits), own in sorted(counts.items()):
        here = [attempt for attempt in tried if (attempt.op, attempt.bits) == (op, bits)]
        lost = Counter(attempt.fault for attempt in here if not attempt.caught)
        yield Undecided(op, bits, own.total(), own[1], own[2], len(here), dict(lost.most_common()))

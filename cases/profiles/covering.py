"""Covering designs: few rows in which every combination of a few axes' values still occurs.

Own code rather than a library, because the rows are pinned: they must not change with a library's version.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

__all__ = ["Counter", "cover", "scatter"]

Value = TypeVar("Value", bound=Hashable)
Row = dict[str, Value]


class Counter:
    """Deterministic choices from a counter, the same on every platform and Python version (splitmix64)."""

    def __init__(self, seed: int) -> None:
        self.state = seed & (2**64 - 1)

    def below(self, bound: int) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        return ((z ^ (z >> 31)) >> 16) % bound


def cover(
    axes: Mapping[str, Sequence[Value]],
    settle: Callable[[Row[Value]], Row[Value]],
    *,
    strength: int = 2,
    seed: int = 0,
    candidates: int = 24,
) -> Iterator[Row[Value]]:
    """Rows in which every legal combination of `strength` axes' values occurs, greedily few.

    settle
        Makes a row legal by changing values that do not go with others; must be idempotent.
    candidates
        How many random rows compete for each place.

    A combination that none of the candidates made for it keeps through `settle` is taken to be illegal.
    """
    choose = Counter(seed)
    names = list(axes)
    groups = list(itertools.combinations(names, strength))
    # A dictionary is a set that keeps its order, so the rows do not depend on hash seeds.
    missing = dict.fromkeys((g, values) for g in groups for values in itertools.product(*(axes[n] for n in g)))
    while missing:
        wanted = next(iter(missing))
        best: Row[Value] = {}
        gain: list[tuple[tuple[str, ...], tuple[Value, ...]]] = []
        for _ in range(candidates):
            row = {n: axes[n][choose.below(len(axes[n]))] for n in names}
            row.update(zip(*wanted, strict=True))
            row = settle(row)
            covered = [c for g in groups if (c := (g, tuple(row[n] for n in g))) in missing]
            if len(covered) > len(gain):
                best, gain = row, covered
        # A combination that no candidate keeps is illegal.
        missing.pop(wanted, None)
        for combination in gain:
            missing.pop(combination, None)
        if gain:
            yield best


def scatter(
    axes: Mapping[str, Sequence[Value]], settle: Callable[[Row[Value]], Row[Value]], count: int, *, seed: int = 0
) -> Iterator[Row[Value]]:
    """`count` legal rows, every value drawn by itself; the same ones for the same seed."""
    choose = Counter(seed)
    for _ in range(count):
        yield settle({name: values[choose.below(len(values))] for name, values in axes.items()})

"""Covering designs: few rows in which every combination of a few axes' values still occurs.

Own code rather than a library, because the rows are pinned: they must not change with a library's version.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..axes.generator import FIRST, SECOND, STEP, bits_from, start_of

Value = TypeVar("Value", bound=Hashable)
Row = dict[str, Value]


class Counter:
    """Deterministic choices from a counter, the same on every platform and Python version (splitmix64)."""

    def __init__(self, seed: int) -> None:
        self.state = seed & (2**64 - 1)

    @classmethod
    def of(cls, key: str) -> Counter:
        """The choices that belong to a text."""
        return cls(start_of(key))

    def one_of(self, values: Sequence[Any]) -> Any:
        """One of them, each as often as it stands there."""
        return values[self.below(len(values))]

    def below(self, bound: int) -> int:
        """A number from 0 on, below the bound."""
        self.state = (self.state + STEP) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * FIRST) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * SECOND) & (2**64 - 1)
        return ((z ^ (z >> 31)) >> 16) % bound

    def below_each(self, bounds: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The numbers that :meth:`below` gives for these bounds, one after the other."""
        bits = bits_from(self.state, bounds.size)
        self.state = (self.state + bounds.size * STEP) & (2**64 - 1)
        numbers: NDArray[np.uint64] = (bits >> np.uint64(16)).reshape(bounds.shape) % bounds
        return numbers


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
    combinations = _Combinations(axes, strength)
    bounds = np.array([[len(values) for values in axes.values()]] * candidates, np.uint64)
    while (wanted := combinations.first_missing()) is not None:
        drawn = ({n: axes[n][k] for n, k in zip(axes, row, strict=True)} for row in choose.below_each(bounds).tolist())
        rows = [settle(row | wanted) for row in drawn]
        best, gain = combinations.missing_in(rows)
        combinations.strike_first()  # a combination that no candidate keeps is illegal
        combinations.strike(gain)
        if len(gain):
            yield rows[best]


class _Combinations(Generic[Value]):
    """The combinations of values that are still missing, numbered in the order of ``itertools.combinations`` of the
    axes and of ``itertools.product`` of their values. Looking up those of a row one by one took most of the time that
    profiles took."""

    def __init__(self, axes: Mapping[str, Sequence[Value]], strength: int) -> None:
        self._values = {name: list(dict.fromkeys(values)) for name, values in axes.items()}
        self._numbers = [{value: k for k, value in enumerate(values)} for values in self._values.values()]
        lengths = np.array([len(values) for values in self._values.values()])
        shape = (-1, strength)
        self._groups = np.array(list(itertools.combinations(range(len(lengths)), strength)), np.intp).reshape(shape)
        sizes = lengths[self._groups]
        # The number of a combination: where those of its axes begin, and then the last axis goes round fastest.
        after = np.cumprod(sizes[:, ::-1], axis=1)[:, ::-1]
        self._steps = np.concatenate([after[:, 1:], np.ones((len(sizes), 1), np.intp)], axis=1)
        ends = np.cumsum(after[:, 0]) if strength else np.arange(1, len(sizes) + 1)
        self._begins = ends - (after[:, 0] if strength else 1)
        # What the number of an axis's value adds to that of each combination: a product of floats, which BLAS makes.
        self._weights = np.zeros((len(lengths), len(sizes)))
        np.put_along_axis(self._weights.T, self._groups, self._steps, axis=1)
        self._missing = np.ones(int(ends[-1]) if len(ends) else 0, np.bool_)
        self._first = 0

    def first_missing(self) -> Row[Value] | None:
        """The first combination that no row has had, by axis; None where there is none."""
        ahead = self._missing[self._first :]
        if not len(ahead) or not ahead[step := int(ahead.argmax())]:
            return None
        self._first += step
        group = int(np.searchsorted(self._begins, self._first, side="right")) - 1
        left, names, row = self._first - int(self._begins[group]), list(self._values), {}
        for axis, size in zip(self._groups[group], self._steps[group], strict=True):
            place, left = divmod(left, int(size))
            row[names[axis]] = self._values[names[axis]][place]
        return row

    def missing_in(self, rows: Sequence[Row[Value]]) -> tuple[int, NDArray[np.intp]]:
        """The first of those rows that have most combinations that no row before has had, and these. Values that no
        axis has are in none."""
        known = list(zip(self._values, self._numbers, strict=True))
        numbers = np.array([[of.get(row[name], -1) for name, of in known] for row in rows], np.float64)
        places: NDArray[np.intp] = self._begins + (numbers @ self._weights).astype(np.intp)
        if (numbers < 0).any():
            there = (numbers[:, self._groups] >= 0).all(axis=2)
            missing = there & self._missing[np.where(there, places, 0)]
        else:
            missing = self._missing[places]
        best = int(missing.sum(axis=1).argmax())
        return best, places[best][missing[best]]

    def strike(self, places: NDArray[np.intp]) -> None:
        """These are not missing any more."""
        self._missing[places] = False

    def strike_first(self) -> None:
        """The first one is not missing any more."""
        self._missing[self._first] = False


def scatter(
    axes: Mapping[str, Sequence[Value]], settle: Callable[[Row[Value]], Row[Value]], count: int, *, seed: int = 0
) -> Iterator[Row[Value]]:
    """`count` legal rows, every value drawn by itself; the same ones for the same seed."""
    choose = Counter(seed)
    for _ in range(count):
        yield settle({name: choose.one_of(values) for name, values in axes.items()})

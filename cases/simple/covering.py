"""Pairwise covering arrays: rows in which each two values of different axes occur together at least once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..axes.generator import Counter

_CANDIDATES = 8
"""Number of candidate rows, of which the one that covers most is taken; more candidates save few rows."""

Pair = tuple[tuple[str, Hashable], tuple[str, Hashable]]


def covering_rows(
    axes: Mapping[str, Sequence[Any]], legal: Callable[[Mapping[str, Any]], Mapping[str, Any]], key: str
) -> Iterator[Mapping[str, Any]]:
    """Yield rows (axis to value), the same ones for the same key.

    legal
        Function from a row to the nearest legal row. Pairs that no legal row has are left out.
    """
    names = list(axes)
    left = {
        ((one, a), (other, b))
        for one, other in itertools.combinations(names, 2)
        for a in axes[one]
        for b in axes[other]
    }
    ordered = sorted(left, key=repr)
    choices = Counter.of(key)
    for pair in ordered:
        if pair not in left:
            continue
        rows = [legal(_filled(pair, axes, left, choices)) for _ in range(_CANDIDATES)]
        best = max(rows, key=lambda row: len(left & _pairs(row, names)))
        if pair not in _pairs(best, names):
            best = next((row for row in rows if pair in _pairs(row, names)), best)
        left.discard(pair)
        gained = left & _pairs(best, names)
        if gained or pair in _pairs(best, names):
            left -= gained
            yield best


def _filled(pair: Pair, axes: Mapping[str, Sequence[Any]], left: set[Pair], choices: Counter) -> dict[str, Any]:
    """Return a row that contains a pair; each other value covers the most of three random ones."""
    row: dict[str, Any] = dict(pair)
    ranks = {name: rank for rank, name in enumerate(axes)}
    for name in axes:
        if name not in row:
            candidates = dict.fromkeys(choices.one_of(axes[name]) for _ in range(3))
            row[name] = max(candidates, key=partial(_gain, row, name, left, ranks))
    return row


def _gain(row: Mapping[str, Any], name: str, left: set[Pair], ranks: Mapping[str, int], value: Any) -> int:
    return sum(_pair(name, value, other, present, ranks) in left for other, present in row.items())


def _pair(one: str, a: Hashable, other: str, b: Hashable, ranks: Mapping[str, int]) -> Pair:
    return ((one, a), (other, b)) if ranks[one] < ranks[other] else ((other, b), (one, a))


def _pairs(row: Mapping[str, Any], names: Sequence[str]) -> set[Pair]:
    return {((one, row[one]), (other, row[other])) for one, other in itertools.combinations(names, 2)}

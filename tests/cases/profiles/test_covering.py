"""Covering designs: every legal combination occurs, and the rows are those of the definition."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from onnxspec.cases.profiles import Counter, cover

AXES: dict[str, tuple[Any, ...]] = {"a": (0, 1, 2), "b": ("x", "y"), "c": (None, True), "d": (7,), "e": (0, 1, 2, 3)}


def settled(row: dict[str, Any]) -> dict[str, Any]:
    """b is y only where a is 2, and with e of 3 comes a value of c that no axis has."""
    row = {**row, "b": row["b"] if row["a"] == 2 else "x"}
    return {**row, "c": "other"} if row["e"] == 3 else row


def by_definition(axes: dict[str, tuple[Any, ...]], strength: int, seed: int, candidates: int) -> list[dict[str, Any]]:
    choose, names, rows = Counter(seed), list(axes), []
    groups = list(itertools.combinations(names, strength))
    missing = dict.fromkeys((g, values) for g in groups for values in itertools.product(*(axes[n] for n in g)))
    while missing:
        group, values = next(iter(missing))
        best: dict[str, Any] = {}
        gain: list[Any] = []
        for _ in range(candidates):
            row = {n: axes[n][choose.below(len(axes[n]))] for n in names}
            row = settled({**row, **dict(zip(group, values, strict=True))})
            covered = [c for g in groups if (c := (g, tuple(row[n] for n in g))) in missing]
            if len(covered) > len(gain):
                best, gain = row, covered
        for combination in ((group, values), *gain):
            missing.pop(combination, None)
        rows += [best] if gain else []
    return rows


@pytest.mark.parametrize("strength", [1, 2, 3, 5])
def test_rows_are_those_of_the_definition(strength: int) -> None:
    for seed in range(3):
        rows = list(cover(AXES, settled, strength=strength, seed=seed, candidates=4))
        assert rows == by_definition(AXES, strength, seed, 4)
        assert [list(row) for row in rows] == [list(AXES)] * len(rows)

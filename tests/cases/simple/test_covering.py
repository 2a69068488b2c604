"""Tests of covering products: any two values occur together, in few rows, the same ones everywhere."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from onnxspec.cases.simple.spec import covering_rows

AXES = {"a": (0, 1, 2), "b": ("x", "y"), "c": (True, False), "d": (1, 2, 3, 4)}


def as_it_is(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row


def pairs(rows: list[Mapping[str, Any]]) -> set[Any]:
    return {(one, row[one], other, row[other]) for row in rows for one, other in itertools.combinations(AXES, 2)}


def test_every_pair_of_values_is_there_in_few_rows() -> None:
    rows = [*covering_rows(AXES, as_it_is, "key")]
    every = {(p, a, q, b) for p, q in itertools.combinations(AXES, 2) for a in AXES[p] for b in AXES[q]}
    assert pairs(rows) == every
    assert len(rows) <= 16  # 12 at least, of 48
    assert rows == [*covering_rows(AXES, as_it_is, "key")]


def test_pairs_that_are_not_legal_are_left_out() -> None:
    def legal(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**row, "b": "x"} if row["a"] == 2 else row

    rows = [*covering_rows(AXES, legal, "key")]
    assert all(row["b"] == "x" for row in rows if row["a"] == 2)
    assert ("a", 1, "b", "y") in pairs(rows)

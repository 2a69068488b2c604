"""Tests of values without bounds: by a matrix library, and in one fixed order of addition for files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.directories.manifest import data_sets_of
from onnxspec.reference import evaluate, evaluate_in_order
from onnxspec.reference.numbers.plain import Plain

OPERATORS = ("LSTM", "GRU", "RNN")


@pytest.mark.parametrize("op", OPERATORS)
def test_both_ways_differ_by_roundings_alone(op: str) -> None:
    trial = build_case(CaseSpec(op, 14, "float64", T=5, N=3, I=33, H=40, bias=True)).trial
    inputs = trial.feeds[0].inputs
    in_order = evaluate_in_order(trial.node, inputs)
    for name, values in evaluate(trial.node, inputs).items():
        np.testing.assert_allclose(values, in_order[name], rtol=0, atol=1e-13)


@pytest.mark.parametrize("op", OPERATORS)
def test_no_matrix_library_has_part_in_what_is_written(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = build_case(CaseSpec(op, 14, "float64", T=3, N=2, I=4, H=5, bias=True)).trial
    written = data_sets_of(trial)

    def product(self: Plain, x: Any, weights: Any) -> Any:
        raise AssertionError("a product by a library")

    monkeypatch.setattr(Plain, "product", product)
    for data, again in zip(written, data_sets_of(trial), strict=True):
        assert {n: a.tobytes() for n, a in data.outputs.items()} == {n: a.tobytes() for n, a in again.outputs.items()}

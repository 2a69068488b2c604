"""Nodes of described operators in models: checked, and extracted to be run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxspec.conformance import check
from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.extraction.cases import cases_of_model
from onnxspec.reference import operator_names

from .nodes import model_of

pytestmark = pytest.mark.skipif(
    "CausalConvWithState" not in operator_names(), reason="the installed onnx lacks its schema"
)


def model(
    input: tuple[Any, ...] = ("N", 5, "L"),
    past: tuple[Any, ...] = ("N", 5, 3),
    bias: int = 5,
    weight: tuple[int, ...] = (5, 1, 4),
    domain: str | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    fields = {"domain": domain, "name": "conv"}
    node = helper.make_node("CausalConvWithState", ["x", "w", "b", "p"], ["y", "s"], **fields, **attributes)
    constants = {"w": np.ones(weight, np.float32), "b": np.ones(bias, np.float32)}
    return model_of([node], {"x": input, "p": past}, constants, 27, "ys", domains={domain: 1} if domain else {})


def test_a_right_node_has_nothing_wrong() -> None:
    assert check(model(activation="silu")) == []
    assert check(model(("N", 5, 0))) == []
    assert check(model(domain="com.microsoft", ndim=1, state_window=0, channels_last=0)) == []


def test_values_of_attributes_that_are_not_judged_are_no_problem() -> None:
    checked = check_model(model(domain="com.microsoft", state_window=2, past=(2, "N", 5, 3)))
    assert not checked.problems
    assert [unchecked.missing for unchecked in checked.unchecked] == ["state_window 2: only 0 is judged here"]


@pytest.mark.parametrize(
    ("change", "rule", "message"),
    [
        ({"past": ("N", 5, 4)}, "shapes", "dimension 2 is k - 1, so 3 (weight has k = 4), not 4"),
        ({"weight": (5, 2, 4)}, "shapes", "weight has shape (5, 2, 4): dimension 1 must be 1"),
        ({"bias": 6}, "shapes", "bias has shape (6,): dimension 0 is channels, so 5"),
        ({"past": ("N", 5)}, "shapes", "it must have 3 dimensions, [batch_size, channels, k - 1]"),
        ({"activation": "relu"}, "activation", "activation is 'relu', none of none, silu, swish"),
        ({"activation": 1}, "attributes", "attribute activation is INT, not STRING"),
    ],
)
def test_what_a_node_breaks_is_named(change: dict[str, Any], rule: str, message: str) -> None:
    (problem,) = check(model(**change))
    assert problem.rule == f"causalconvwithstate.{rule}"
    assert message in problem.message


def test_what_names_leave_open_is_not_checked_and_no_problem() -> None:
    checked = check_model(model(("N", "C", "L"), ("M", "C", "K")))
    assert not checked.problems
    assert all(not unchecked.internal_error for unchecked in checked.unchecked)


def test_a_node_is_taken_out_with_data_of_its_sizes(tmp_path: Path) -> None:
    onnx.save_model(model(activation="silu"), tmp_path / "model.onnx")
    (case,) = cases_of_model(tmp_path / "model.onnx", tmp_path / "cases", outputs=True)
    assert case.case, case.why
    taken = onnx.load_model(tmp_path / "cases" / case.case / "model.onnx")
    shapes = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*taken.graph.input, *taken.graph.output)
    }
    assert shapes == {
        "input": ["batch_size", 5, "length"],
        "past_state": ["batch_size", 5, 3],
        "output": ["batch_size", 5, "length"],
        "present_state": ["batch_size", 5, 3],
    }
    assert len([*(tmp_path / "cases" / case.case).glob("test_data_set_*/output_1.pb")]) == 3

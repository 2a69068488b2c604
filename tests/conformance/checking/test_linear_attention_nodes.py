"""Nodes of LinearAttention in models: checked, and extracted to be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from onnxspec.conformance import check
from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.extraction.cases import cases_of_model
from onnxspec.reference import operator_names

from .nodes import model_of

pytestmark = pytest.mark.skipif("LinearAttention" not in operator_names(), reason="the installed onnx lacks its schema")

SHAPES: Mapping[str, Sequence[Any]] = {
    "query": ("B", "T", 16),
    "key": ("B", "T", 8),
    "value": ("B", "T", 6),
    "past_state": ("B", 2, 4, 3),
    "decay": ("B", "T", 2),
    "beta": ("B", "T", 2),
}


def model(shapes: Mapping[str, Sequence[Any] | None] | None = None, **attributes: Any) -> onnx.ModelProto:
    """Return a node of 4 query heads and 2 key-value heads; an input of shape None is omitted."""
    given_shapes = {name: shape for name, shape in {**SHAPES, **(shapes or {})}.items() if shape is not None}
    kinds = {"past_state": attributes.pop("state", TensorProto.FLOAT)}
    attributes = {"q_num_heads": 4, "kv_num_heads": 2, **attributes}
    names = [name if name in given_shapes else "" for name in SHAPES]
    node = helper.make_node("LinearAttention", names, ["output", "present_state"], name="attention", **attributes)
    return model_of([node], given_shapes, {}, 27, ("output",), kinds)


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"state": TensorProto.FLOAT16},
        {"shapes": {"past_state": None}},
        {"shapes": {"decay": None}, "update_rule": "delta"},
        {"shapes": {"beta": ("B", "T", 1), "decay": ("B", "T", 8)}},
        {"shapes": {"query": ("B", "T", "W"), "key": ("B", "T", "K")}},
    ],
)
def test_a_right_node_has_nothing_wrong(right: dict[str, Any]) -> None:
    assert check(model(**right)) == []


@pytest.mark.parametrize(
    ("change", "rule", "message"),
    [
        ({"shapes": {"decay": None}}, "inputs", "input decay is missing, which update_rule 'gated_delta' needs"),
        ({"shapes": {"beta": None}, "update_rule": "delta"}, "inputs", "input beta is missing"),
        ({"shapes": {"decay": None}, "update_rule": "linear"}, "inputs", "input beta has no meaning"),
        ({"update_rule": "Gated"}, "update-rule", "update_rule is 'Gated'"),
        ({"kv_num_heads": None}, "attributes", "attribute kv_num_heads is missing"),
        ({"shapes": {"past_state": ("B", 2, 3, 4)}}, "shapes", "dimension 2 is d_k, so 4"),
        ({"shapes": {"beta": ("B", "T", 4)}}, "shapes", "beta has shape"),
        ({"shapes": {"decay": ("B", "T", 4)}}, "shapes", "decay has shape"),
        ({"shapes": {"key": ("B", "T", 7)}}, "shapes", "no multiple of 2"),
        ({"shapes": {"query": ("B", "T", 12)}, "q_num_heads": 3}, "heads", "3 is no multiple of kv_num_heads 2"),
    ],
)
def test_what_a_node_breaks_is_named(change: dict[str, Any], rule: str, message: str) -> None:
    problems = check(model(**change))
    assert {problem.rule for problem in problems} == {f"linearattention.{rule}"}
    assert any(message in problem.message for problem in problems)


def test_what_names_leave_open_is_not_checked_and_no_problem() -> None:
    names = {name: ("B", "T", name) for name in ("query", "key", "value", "decay", "beta")}
    checked = check_model(model({**names, "past_state": ("B", "H", "K", "V")}))
    assert not checked.problems
    assert all(not unchecked.internal_error for unchecked in checked.unchecked)


def test_a_node_is_taken_out_with_its_types(tmp_path: Path) -> None:
    onnx.save_model(model(state=TensorProto.FLOAT16), tmp_path / "model.onnx")
    (case,) = cases_of_model(tmp_path / "model.onnx", tmp_path / "cases", outputs=True)
    assert case.case, case.why
    graph = onnx.load_model(tmp_path / "cases" / case.case / "model.onnx").graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    assert types["past_state"] == types["present_state"] == TensorProto.FLOAT16
    assert types["query"] == types["output"] == TensorProto.FLOAT

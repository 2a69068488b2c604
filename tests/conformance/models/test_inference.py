"""Types behind described operators of other domains."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.models.content import read_content
from onnxspec.conformance.models.inference import main_scope
from onnxspec.reference import operator_names

from ..checking.nodes import model_of

pytestmark = pytest.mark.skipif(
    "LinearAttention" not in operator_names(), reason="the installed onnx lacks the operator's schema"
)

OWN = "com.microsoft"


def inferred(node: onnx.NodeProto, shapes: dict[str, Any], types: dict[str, int] | None = None) -> dict[str, Any]:
    """Return element type and shape of each output of a node."""
    scope = main_scope(read_content(model_of([node], shapes, {}, 21, (), types, {OWN: 1})))
    return {name: (scope.type_of(name).element, scope.type_of(name).shape) for name in node.output}


@pytest.mark.parametrize(
    ("attributes", "input", "past"),
    [({}, ("B", 8, "L"), ("B", 8, 6)), ({"channels_last": 1}, ("B", "L", 8), ("B", 6, 8))],
)
def test_a_convolution_keeps_its_input_and_its_state(attributes: Any, input: Any, past: Any) -> None:
    node = helper.make_node(
        "CausalConvWithState", ["x", "w", "", "p"], ["y", "s"], domain=OWN, dilation=2, **attributes
    )
    types = inferred(node, {"x": input, "w": (8, 1, 4), "p": past})
    assert types == {"y": (1, input), "s": (1, past)}


def test_heads_and_states_follow_from_attributes_and_inputs() -> None:
    names = ["q", "k", "v", "p", "g", "b"]
    node = helper.make_node("LinearAttention", names, ["o", "s"], domain=OWN, q_num_heads=2, kv_num_heads=4)
    shapes = {
        **{"q": ("B", "T", 16), "k": ("B", "T", 16), "v": ("B", "T", 12), "p": ("B", 4, 8, 3)},
        **{"g": ("B", "T", 4), "b": ("B", "T", 1)},
    }
    types = inferred(node, shapes, {"p": TensorProto.FLOAT16})
    assert types == {"o": (TensorProto.FLOAT, ("B", "T", 12)), "s": (TensorProto.FLOAT16, ("B", 4, 8, 3))}


def test_states_of_a_window_stay_unknown() -> None:
    node = helper.make_node("CausalConvWithState", ["x", "w"], ["y", "s"], domain=OWN, state_window=2)
    assert inferred(node, {"x": ("B", 8, "L"), "w": (8, 1, 4)})["s"] == (None, None)


def test_nodes_behind_such_a_node_are_checked_wholly() -> None:
    conv = helper.make_node("CausalConvWithState", ["x", "w"], ["y", "s"], domain=OWN)
    turned = helper.make_node("Transpose", ["y"], ["q"], perm=[0, 2, 1])
    attention = helper.make_node(
        "LinearAttention", ["q", "q", "v"], ["o", "t"], domain=OWN, q_num_heads=3, kv_num_heads=3, update_rule="linear"
    )
    shapes = {"x": ("B", 8, "L"), "w": (8, 1, 4), "v": ("B", "L", 6)}
    checked = check_model(model_of([conv, turned, attention], shapes, {}, 21, ("o",), domains={OWN: 1}))
    assert "dimension 2 of query is 8, which is no multiple of 3" in checked.problems[0].message

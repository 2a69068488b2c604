"""Nodes of operators with a description of their own: checked, extracted to be run, and followed by other nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxspec import check
from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.extraction.cases import cases_of_model
from onnxspec.conformance.models.content import read_content
from onnxspec.conformance.models.inference import main_scope
from onnxspec.reference import operator_names

from .nodes import I, N, model_of, recurrent, weights_of

needs_schemas = pytest.mark.skipif(
    "LinearAttention" not in operator_names(), reason="the installed onnx lacks the operators' schemas"
)
Model = Callable[..., onnx.ModelProto]
OWN = "com.microsoft"


def convolution(
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


SHAPES: Mapping[str, Sequence[Any]] = {
    "query": ("B", "T", 16),
    "key": ("B", "T", 8),
    "value": ("B", "T", 6),
    "past_state": ("B", 2, 4, 3),
    "decay": ("B", "T", 2),
    "beta": ("B", "T", 2),
}


def attention(state: int = TensorProto.FLOAT, attributes: Mapping[str, Any] = {}, **shapes: Any) -> onnx.ModelProto:
    """Return a node of 4 query heads and 2 key-value heads; an input of shape None is omitted."""
    shapes = {name: shape for name, shape in {**SHAPES, **shapes}.items() if shape is not None}
    attributes = {"q_num_heads": 4, "kv_num_heads": 2, **attributes}
    names = [name if name in shapes else "" for name in SHAPES]
    node = helper.make_node("LinearAttention", names, ["output", "present_state"], name="attention", **attributes)
    return model_of([node], shapes, {}, 27, ("output",), {"past_state": state})


@needs_schemas
@pytest.mark.parametrize(
    ("model", "right"),
    [
        (convolution, {"activation": "silu"}),
        (convolution, {"input": ("N", 5, 0)}),
        (convolution, {"domain": OWN, "ndim": 1, "state_window": 0, "channels_last": 0}),
        (attention, {}),
        (attention, {"state": TensorProto.FLOAT16}),
        (attention, {"past_state": None}),
        (attention, {"decay": None, "attributes": {"update_rule": "delta"}}),
        (attention, {"beta": ("B", "T", 1), "decay": ("B", "T", 8)}),
        (attention, {"query": ("B", "T", "W"), "key": ("B", "T", "K")}),
    ],
)
def test_a_right_node_has_nothing_wrong(model: Model, right: dict[str, Any]) -> None:
    assert check(model(**right)) == []


@needs_schemas
@pytest.mark.parametrize(
    ("model", "change", "rule", "message"),
    [
        (convolution, {"past": ("N", 5, 4)}, "shapes", "dimension 2 is k - 1, so 3 (weight has k = 4), not 4"),
        (convolution, {"weight": (5, 2, 4)}, "shapes", "weight has shape (5, 2, 4): dimension 1 must be 1"),
        (convolution, {"bias": 6}, "shapes", "bias has shape (6,): dimension 0 is channels, so 5"),
        (convolution, {"past": ("N", 5)}, "shapes", "it must have 3 dimensions, [batch_size, channels, k - 1]"),
        (convolution, {"activation": "relu"}, "activation", "activation is 'relu', none of none, silu, swish"),
        (convolution, {"activation": 1}, "attributes", "attribute activation is INT, not STRING"),
        (attention, {"decay": None}, "inputs", "input decay is missing, which update_rule 'gated_delta' needs"),
        (attention, {"beta": None, "attributes": {"update_rule": "delta"}}, "inputs", "input beta is missing"),
        (attention, {"decay": None, "attributes": {"update_rule": "linear"}}, "inputs", "input beta has no meaning"),
        (attention, {"attributes": {"update_rule": "Gated"}}, "update-rule", "update_rule is 'Gated'"),
        (attention, {"attributes": {"kv_num_heads": None}}, "attributes", "attribute kv_num_heads is missing"),
        (attention, {"past_state": ("B", 2, 3, 4)}, "shapes", "dimension 2 is d_k, so 4"),
        (attention, {"beta": ("B", "T", 4)}, "shapes", "beta has shape"),
        (attention, {"decay": ("B", "T", 4)}, "shapes", "decay has shape"),
        (attention, {"key": ("B", "T", 7)}, "shapes", "no multiple of 2"),
        (attention, {"query": ("B", "T", 12), "attributes": {"q_num_heads": 3}}, "heads",
         "3 is no multiple of kv_num_heads 2"),
    ],
)  # fmt: skip
def test_what_a_node_breaks_is_named(model: Model, change: dict[str, Any], rule: str, message: str) -> None:
    problems = check(model(**change))
    operator = model(**change).graph.node[0].op_type.lower()
    assert {problem.rule for problem in problems} == {f"{operator}.{rule}"}
    assert any(message in problem.message for problem in problems)


OPEN = {**{name: ("B", "T", name) for name in SHAPES}, "past_state": ("B", "H", "K", "V")}


@needs_schemas
@pytest.mark.parametrize("model", [convolution(("N", "C", "L"), ("M", "C", "K")), attention(**OPEN)])
def test_what_names_leave_open_is_not_checked_and_no_problem(model: onnx.ModelProto) -> None:
    checked = check_model(model)
    assert not checked.problems
    assert all(not unchecked.internal_error for unchecked in checked.unchecked)


@needs_schemas
def test_values_of_attributes_that_are_not_judged_are_no_problem() -> None:
    checked = check_model(convolution(domain=OWN, state_window=2, past=(2, "N", 5, 3)))
    assert not checked.problems
    assert [unchecked.missing for unchecked in checked.unchecked] == ["state_window 2: only 0 is judged here"]


FLOAT, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
SIZES = {name: [FLOAT, "batch_size", 5, "length"] for name in ("input", "output")}
SIZES |= {name: [FLOAT, "batch_size", 5, 3] for name in ("past_state", "present_state")}
TYPES = {"query": [FLOAT], "output": [FLOAT], "past_state": [FLOAT16], "present_state": [FLOAT16]}


@needs_schemas
@pytest.mark.parametrize(
    ("model", "expected"), [(convolution(activation="silu"), SIZES), (attention(state=FLOAT16), TYPES)]
)
def test_a_node_is_taken_out_with_its_sizes_and_types(model: onnx.ModelProto, expected: Any, tmp_path: Path) -> None:
    onnx.save_model(model, tmp_path / "model.onnx")
    (case,) = cases_of_model(tmp_path / "model.onnx", tmp_path / "cases", outputs=True)
    assert case.case, case.why
    graph = onnx.load_model(tmp_path / "cases" / case.case / "model.onnx").graph
    types = {value.name: value.type.tensor_type for value in (*graph.input, *graph.output)}
    for name, (element, *sizes) in expected.items():
        assert types[name].elem_type == element
        assert sizes in ([], [dim.dim_param or dim.dim_value for dim in types[name].shape.dim])
    assert len([*(tmp_path / "cases" / case.case).glob("test_data_set_*/output_1.pb")]) == 3


# Types and shapes behind nodes of a domain for which onnx infers none


def own(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, domain=OWN, **attributes)


@needs_schemas
@pytest.mark.parametrize(
    ("node", "shapes", "expected"),
    [
        (
            own("CausalConvWithState", ["x", "w", "", "p"], ["y", "s"], dilation=2),
            {"x": ("B", 8, "L"), "w": (8, 1, 4), "p": ("B", 8, 6)},
            {"y": (TensorProto.FLOAT, ("B", 8, "L")), "s": (TensorProto.FLOAT, ("B", 8, 6))},
        ),
        (
            own("CausalConvWithState", ["x", "w", "", "p"], ["y", "s"], dilation=2, channels_last=1),
            {"x": ("B", "L", 8), "w": (8, 1, 4), "p": ("B", 6, 8)},
            {"y": (TensorProto.FLOAT, ("B", "L", 8)), "s": (TensorProto.FLOAT, ("B", 6, 8))},
        ),
        (  # a window's states stay unknown
            own("CausalConvWithState", ["x", "w"], ["y", "s"], state_window=2),
            {"x": ("B", 8, "L"), "w": (8, 1, 4)},
            {"s": (None, None)},
        ),
        (
            own("LinearAttention", ["q", "k", "v", "p16", "g", "b"], ["o", "s"], q_num_heads=2, kv_num_heads=4),
            {"q": ("B", "T", 16), "k": ("B", "T", 16), "v": ("B", "T", 12), "p16": ("B", 4, 8, 3),
             "g": ("B", "T", 4), "b": ("B", "T", 1)},
            {"o": (TensorProto.FLOAT, ("B", "T", 12)), "s": (TensorProto.FLOAT16, ("B", 4, 8, 3))},
        ),
    ],
)  # fmt: skip
def test_outputs_follow_from_attributes_and_inputs(node: onnx.NodeProto, shapes: Any, expected: Any) -> None:
    model = model_of([node], shapes, {}, 21, (), {"p16": TensorProto.FLOAT16}, {OWN: 1})
    scope = main_scope(read_content(model))
    assert {name: (scope.type_of(name).element, scope.type_of(name).shape) for name in expected} == expected


@needs_schemas
def test_nodes_behind_such_a_node_are_checked_wholly() -> None:
    nodes = [
        own("CausalConvWithState", ["x", "w"], ["y", "s"]),
        helper.make_node("Transpose", ["y"], ["q"], perm=[0, 2, 1]),
        own("LinearAttention", ["q", "q", "v"], ["o", "t"], q_num_heads=3, kv_num_heads=3, update_rule="linear"),
    ]
    shapes = {"x": ("B", 8, "L"), "w": (8, 1, 4), "v": ("B", "L", 6)}
    checked = check_model(model_of(nodes, shapes, {}, 21, ("o",), domains={OWN: 1}))
    assert "dimension 2 of query is 8, which is no multiple of 3" in checked.problems[0].message


# DynamicQuantizeLSTM, in models that onnxruntime's own tool makes


def quantized(folder: Path, **options: Any) -> Path:
    """Return the path of a model with a bidirectional LSTM that quantize_dynamic has quantized."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    node = recurrent("LSTM", ("X", "W", "R", "B"), direction="bidirectional")
    onnx.save(model_of([node], {"X": ("steps", N, I)}, weights_of("LSTM", 2), 17), folder / "floating.onnx")
    if "weight_type" in options:
        options["weight_type"] = getattr(quantization.QuantType, options["weight_type"])
    path = folder / "quantized.onnx"
    quantization.quantize_dynamic(folder / "floating.onnx", path, op_types_to_quantize=["LSTM"], **options)
    return path


@pytest.mark.parametrize("weight_type", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_what_quantize_dynamic_makes_is_right_and_can_be_taken_out(
    tmp_path: Path, weight_type: str, per_channel: bool
) -> None:
    path = quantized(tmp_path, weight_type=weight_type, per_channel=per_channel)
    checked = check_model(path)
    assert [operator for _, operator in checked.nodes] == ["com.microsoft::DynamicQuantizeLSTM-1"]
    assert (checked.problems, checked.unchecked, checked.inconclusive) == ((), (), ())
    (node,) = cases_of_model(path, tmp_path / "cases")
    assert (node.operator, node.why) == ("com.microsoft::DynamicQuantizeLSTM-1", "")
    taken = onnx.load(tmp_path / "cases" / node.case / "model.onnx")
    assert taken.graph.node[0].domain == OWN


FORMAL = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
FORMAL += ("W_scale", "W_zero_point", "R_scale", "R_zero_point")


@pytest.mark.parametrize(
    ("name", "change", "rule", "message"),
    [
        ("R_zero_point", lambda a: a.astype(np.uint8), "types", "R_zero_point is uint8 while W is int8"),
        ("W_scale", lambda a: a.astype(np.float64), "types",
         "W_scale is float64, which com.microsoft::DynamicQuantizeLSTM-1 does not take"),
        ("W_scale", lambda a: np.tile(a, 2), "shapes", "W_scale has shape (4,)"),
        ("W", lambda a: a.swapaxes(1, 2), "shapes", "W has shape (2, 20, 3)"),
        ("W", lambda a: a.astype(np.float32), "types", "W is float32, not uint8 or int8"),
    ],
)  # fmt: skip
def test_what_breaks_the_document_of_dynamic_quantize_lstm_is_named(
    tmp_path: Path, name: str, change: Callable[[Any], Any], rule: str, message: str
) -> None:
    model = onnx.load(quantized(tmp_path))
    input_name = model.graph.node[0].input[FORMAL.index(name)]
    (tensor,) = [t for t in model.graph.initializer if t.name == input_name]
    tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), input_name))
    problems = check_model(model).problems
    assert f"dynamicquantizelstm.{rule}" in {problem.rule for problem in problems}
    assert any(message in problem.message for problem in problems), [p.message for p in problems]

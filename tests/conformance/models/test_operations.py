"""Operations on constants return the results of onnxruntime, form by form."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxspec.conformance.models.content import NotConstant, read_content
from onnxspec.conformance.models.folding import constant
from onnxspec.conformance.models.inference import main_scope

from ..checking.nodes import model_of

M = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
LEVELS = np.arange(12, dtype=np.uint8).reshape(3, 4)
V = np.array([5, -7, 9, -2], np.int64)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


Form = tuple[str, int, list[Any], dict[str, Any]]
"""Operator, opset, inputs, attributes."""

FORMS: list[Form] = [
    ("Identity", 13, [M], {}),
    ("Cast", 13, [M / 3], {"to": TensorProto.INT32}),
    ("Cast", 13, [V], {"to": TensorProto.FLOAT16}),
    ("Reshape", 13, [M, ints(0, -1)], {}),
    ("Reshape", 13, [M, ints(4, 6)], {}),
    ("Reshape", 14, [np.zeros((0, 3), np.float32), ints(3, 0)], {"allowzero": 1}),
    ("Squeeze", 11, [M[:1]], {"axes": [0]}),
    ("Squeeze", 13, [M[:1], ints(-3)], {}),
    ("Squeeze", 13, [M[:1, :1]], {}),
    ("Unsqueeze", 11, [M], {"axes": [0, 4]}),
    ("Unsqueeze", 13, [M, ints(1, -1)], {}),
    ("Flatten", 13, [M], {"axis": 2}),
    ("Flatten", 13, [M], {"axis": 0}),
    ("Flatten", 13, [M], {"axis": -1}),
    ("Transpose", 13, [M], {}),
    ("Transpose", 13, [M], {"perm": [1, 0, 2]}),
    ("Concat", 13, [M, M + 1], {"axis": -1}),
    ("Slice", 9, [M], {"starts": [0, -3], "ends": [1, -1], "axes": [0, 2]}),
    ("Slice", 13, [M, ints(1), ints(np.iinfo(np.int64).max), ints(1)], {}),
    ("Slice", 13, [M, ints(-1), ints(np.iinfo(np.int64).min), ints(2), ints(-1)], {}),
    ("Slice", 13, [M, ints(3), ints(0), ints(2), ints(-2)], {}),
    ("Slice", 13, [M, ints(0, 1), ints(2, 3)], {}),
    ("Gather", 13, [M, np.array(-1, np.int64)], {"axis": 1}),
    ("Gather", 13, [M, np.array([[0, 2], [1, 1]], np.int64)], {"axis": 2}),
    ("Split", 11, [M], {"axis": 2, "split": [1, 3]}),
    ("Split", 13, [M, ints(1, 3)], {"axis": 2}),
    ("Split", 13, [M], {"axis": 2}),
    ("Split", 18, [M], {"axis": 1, "num_outputs": 2}),
    ("Expand", 13, [M[:, :1], ints(3, 1)], {}),
    ("Tile", 13, [M, ints(1, 2, 1)], {}),
    ("Size", 13, [M], {}),
    ("ConstantOfShape", 13, [ints(2, 3)], {}),
    ("ConstantOfShape", 13, [ints(2)], {"value": numpy_helper.from_array(np.array([7], np.int64))}),
    ("Range", 13, [np.array(3, np.int64), np.array(11, np.int64), np.array(3, np.int64)], {}),
    ("Range", 13, [np.array(1, np.float32), np.array(-1, np.float32), np.array(-0.5, np.float32)], {}),
    ("Add", 13, [M, M[0, :1]], {}),
    ("Sub", 13, [V, ints(3)], {}),
    ("Mul", 13, [V, V], {}),
    ("Div", 13, [V, ints(2)], {}),
    ("Div", 13, [V, ints(-2)], {}),
    ("Div", 13, [M, M[0, 0]], {}),
    ("Mod", 13, [V, ints(3)], {}),
    ("Mod", 13, [V, ints(3)], {"fmod": 1}),
    ("Neg", 13, [V], {}),
    ("Abs", 13, [V], {}),
    ("Floor", 13, [M / 3], {}),
    ("Ceil", 13, [M / 3], {}),
    ("Min", 13, [V, ints(1), ints(-3)], {}),
    ("Max", 13, [V, ints(1)], {}),
    ("Equal", 13, [V, ints(9)], {}),
    ("Greater", 13, [V, ints(1)], {}),
    ("GreaterOrEqual", 16, [V, ints(5)], {}),
    ("Less", 13, [V, ints(1)], {}),
    ("LessOrEqual", 16, [V, ints(5)], {}),
    ("Not", 13, [V > 0], {}),
    ("And", 13, [V > 0, V > 6], {}),
    ("Or", 13, [V > 0, V > 6], {}),
    ("Where", 13, [V > 0, V, ints(0)], {}),
    ("ReduceProd", 13, [V], {"keepdims": 0}),
    ("ReduceProd", 18, [V.reshape(2, 2), ints(1)], {}),
    ("DequantizeLinear", 13, [np.arange(-3, 3, dtype=np.int8), np.float32(0.1), np.int8(2)], {}),
    ("DequantizeLinear", 13, [LEVELS, M[0, 0] / 9, np.arange(4, dtype=np.uint8)], {"axis": 1}),
    ("DequantizeLinear", 13, [np.arange(12, dtype=np.int8).reshape(3, 4), M[0, :, 0] / 9], {"axis": 0}),
    ("QuantizeLinear", 13, [np.array([-9, 0.05, 0.15, 0.25, 99], np.float32), np.float32(0.1), np.uint8(3)], {}),
    ("QuantizeLinear", 13, [M, np.float32([0.5, 0.25, 1, 2]), np.int8([0, 1, 2, 3])], {"axis": 2}),
]


def model_with(op: str, opset: int, inputs: list[Any], attributes: dict[str, Any], as_inputs: bool) -> bytes:
    arrays = {f"i{k}": np.asarray(array) for k, array in enumerate(inputs)}
    outputs = ["o0", "o1"] if op == "Split" else ["o0"]
    node = helper.make_node(op, [*arrays], outputs, **attributes)
    shapes = {name: array.shape for name, array in arrays.items()} if as_inputs else {}
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in arrays.items()}
    model = model_of([node], shapes, {} if as_inputs else arrays, opset, (), kinds)
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
    return model.SerializeToString()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form[0]}-{form[1]}")
def test_a_constant_is_what_onnxruntime_computes(form: Form) -> None:
    model = model_with(*form, as_inputs=True)
    fed = {f"i{k}": np.asarray(array) for k, array in enumerate(form[2])}
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, fed)
    scope = main_scope(read_content(model_with(*form, as_inputs=False)))
    for position, array in enumerate(expected):
        folded = constant(scope, f"o{position}")
        assert (folded.dtype, folded.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(folded, array)


BOMBS: list[Form] = [
    ("Expand", 13, [np.zeros(1, np.float32), ints(10**6, 10**6)], {}),
    ("ConstantOfShape", 13, [ints(10**6, 10**6)], {}),
    ("Tile", 13, [np.zeros(10, np.float32), ints(10**12)], {}),
    ("Range", 13, [np.array(0, np.int64), np.array(10**13, np.int64), np.array(1, np.int64)], {}),
    ("Add", 13, [np.zeros((10**5, 1), np.float32), np.zeros((1, 10**5), np.float32)], {}),
    ("Gather", 13, [np.zeros((1, 10**6), np.float32), np.zeros(10**6, np.int64)], {}),
]


BROKEN: list[Form] = [
    ("Reshape", 13, [M, ints(5, 5)], {}),
    ("Reshape", 13, [M], {}),
    ("Transpose", 13, [M], {"perm": [0, 0, 1]}),
    ("Gather", 13, [M, ints(9)], {}),
    ("Add", 13, [M, V.reshape(1, 1, 1, 4).astype(np.float32)[..., :3]], {}),
    ("Add", 6, [M, M], {"broadcast": 1}),
    ("Squeeze", 13, [M, ints(0)], {}),
    ("Concat", 13, [M, V.astype(np.float32)], {"axis": 0}),
    ("Relu", 13, [M], {}),
]


@pytest.mark.parametrize("form", [*BOMBS, *BROKEN], ids=lambda form: form[0])
def test_what_cannot_be_computed_or_would_fill_the_memory_is_no_constant(form: Form) -> None:
    scope = main_scope(read_content(model_with(*form, as_inputs=False)))
    with pytest.raises(
        NotConstant, match="more than the" if any(form is bomb for bomb in BOMBS) else "comes from|is computed by"
    ):
        constant(scope, "o0")

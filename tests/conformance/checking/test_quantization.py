"""Rules on quantization around a node: each has a model that breaks it, and models of real quantizers break none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.checking.problem import Level

from .nodes import H, I, N, T, assert_no_internal_error, model_of, recurrent, value, weights_of

Array = NDArray[Any]
ROWS = 4 * H

SCALES = {"X": 0.02, "W": 0.004, "R": 0.004, "B": 0.02 * 0.004, "initial_h": 0.008, "Y_h": 0.008}
"""Scales of a right model: the int32 bias has the product of the scales of X and W."""


def quantized(**changed: Array) -> onnx.ModelProto:
    """Return an LSTM whose tensors are all levels, its input and output states too; `changed` replaces constants."""
    constants: dict[str, Array] = {}
    nodes = []
    for name, scale in SCALES.items():
        constants[f"{name}_scale"] = np.array(scale, np.float32)
        constants[f"{name}_zero"] = np.zeros((), np.int32 if name == "B" else np.int8)
    for name, array in weights_of("LSTM").items():
        constants[name] = (array / SCALES[name]).astype(np.int32 if name == "B" else np.int8)
    constants |= changed
    held = ("X", "W", "R", "B", "initial_h")
    for name in held:
        nodes.append(helper.make_node("DequantizeLinear", [name, f"{name}_scale", f"{name}_zero"], [f"{name}_number"]))
    inputs = [f"{name}_number" for name in held[:4]] + ["", "initial_h_number"]
    nodes.append(recurrent("LSTM", inputs, outputs=("Y", "Y_h_number")))
    nodes += [helper.make_node("QuantizeLinear", ["Y_h_number", "Y_h_scale", "Y_h_zero"], ["Y_h"])]
    kinds = {"X": TensorProto.INT8, "initial_h": TensorProto.INT8}
    return model_of(nodes, {"X": (T, N, I), "initial_h": (1, N, H)}, constants, 21, ("Y", "Y_h"), kinds)


def along(model: onnx.ModelProto, name: str, axis: int) -> onnx.ModelProto:
    """Set the axis of a DequantizeLinear in the model."""
    node = next(n for n in model.graph.node if n.output[0] == f"{name}_number")
    node.attribute.append(helper.make_attribute("axis", axis))
    return model


def scales(name: str, count: int, **more: float) -> dict[str, Array]:
    dtype = np.int32 if name == "B" else np.int8
    numbers = np.linspace(1, 2, count) * SCALES[name]
    return {f"{name}_scale": numbers.astype(np.float32), f"{name}_zero": np.zeros(count, dtype)}


def one(number: float) -> Array:
    return np.array(number, np.float32)


BY_ROW = scales("W", ROWS)
OF_ROWS = np.concatenate([BY_ROW["W_scale"] * np.float32(0.02), np.full(ROWS, np.float32(0.008) * np.float32(0.004))])
BROKEN: dict[str, tuple[str, Callable[[], onnx.ModelProto], str]] = {
    "nan": ("scale", lambda: quantized(W_scale=one(np.nan)), "DequantizeLinear of W is nan"),
    "divided-by-0": ("scale", lambda: quantized(Y_h_scale=one(0)), "QuantizeLinear of Y_h is 0"),
    "all-0": ("scale-sign", lambda: quantized(R_scale=one(0)), "DequantizeLinear of R is 0"),
    "negative": ("scale-sign", lambda: quantized(W_scale=one(-0.25)), "is -0.25"),
    "zero-point": ("zero-point-type", lambda: quantized(X_zero=np.zeros((), np.uint8)), "uint8 for levels in int8"),
    "too-few": ("scale-count", lambda: quantized(**scales("W", ROWS // 4)), "5 scales for 20 channels along axis 1"),
    "unequal": ("scale-count", lambda: quantized(W_scale=BY_ROW["W_scale"]), f"{ROWS} scales and 1 zero points"),
    "no-axis": ("scale-count", lambda: along(quantized(**BY_ROW), "W", 3), "axis 3 of a tensor of 3 dimensions"),
    "columns": ("summed-axis", lambda: along(quantized(**scales("W", I)), "W", 2), "axis 2, input_size"),
    "units": ("summed-axis", lambda: along(quantized(**scales("R", H)), "R", -1), "axis 2, hidden_size"),
    "bias": ("bias-scale", lambda: quantized(B_scale=one(0.001)), "scales 8e-05 and 3.2e-05"),
    "bias-by-row": ("bias-scale", lambda: quantized(**BY_ROW), "scales 8e-05 to 0.00016 and 3.2e-05"),
    "state": ("state-levels", lambda: quantized(Y_h_scale=one(0.004)), "initial_h come in with scale 0.008"),
    "pair": ("pair", lambda: read_again(), "read with scale 0.01 and zero point 0"),
}  # fmt: skip


def read_again() -> onnx.ModelProto:
    model = quantized()
    model.graph.initializer.append(numpy_helper.from_array(one(0.01), "other"))
    model.graph.node.append(helper.make_node("DequantizeLinear", ["Y_h", "other", "Y_h_zero"], ["again"]))
    return model


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_by_its_rule(name: str) -> None:
    rule, model, message = BROKEN[name]
    problems = [problem for problem in check_model(model()).problems if problem.rule.startswith("model.")]
    assert {problem.rule for problem in problems} == {f"model.{rule}"}
    assert any(message in problem.message for problem in problems), problems
    assert all(problem.advice for problem in problems)
    broken = rule in ("scale", "zero-point-type", "scale-count")
    assert {problem.level for problem in problems} == {Level.ERROR if broken else Level.WARNING}


def test_what_is_right_is_not_complained_of() -> None:
    by_row = {**BY_ROW, "B_scale": OF_ROWS, "B_zero": np.zeros(2 * ROWS, np.int32)}
    direction = along(quantized(**{k: v[:1] for k, v in scales("W", 2).items()}), "W", 0)
    for model in (quantized(), quantized(**by_row), direction, quantized(B_scale=one(0.008 * 0.004))):
        checked = check_model(model)
        assert (checked.problems, checked.unchecked) == ((), ())


def test_a_scale_that_is_computed_is_not_checked() -> None:
    model = quantized()
    model.graph.input.append(value("X_scale_fed", ()))
    model.graph.node[0].input[1] = "X_scale_fed"
    (unchecked,) = check_model(model).unchecked
    assert (unchecked.rule, unchecked.missing[:38]) == ("model.scale", "the scale of the DequantizeLinear of X")


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
def test_models_of_a_real_quantizer(op: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    rnn = recurrent(op, ("X", "W", "R", "B", "", "h0"), outputs=("Y", "Y_h"))
    model = model_of([rnn], {"X": (T, N, I), "h0": (1, N, H)}, weights_of(op), 21, ("Y", "Y_h"))
    plain, static, dynamic = (tmp_path / f"{name}.onnx" for name in ("plain", "static", "dynamic"))
    onnx.save(model, plain)
    feeds = iter([{"X": np.ones((T, N, I), np.float32), "h0": np.full((1, N, H), -0.5, np.float32)}])

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc,name-defined]
        def get_next(self) -> Any:
            return next(feeds, None)

    with caplog.at_level(logging.ERROR):
        quantization.quantize_static(plain, static, Reader(), quantization.QuantFormat.QDQ, op_types_to_quantize=[op])
        quantization.quantize_dynamic(plain, dynamic)
    assert sum(node.op_type == "DequantizeLinear" for node in onnx.load(static).graph.node) == 7
    for path in (static, dynamic):
        checked = check_model(path)
        assert (len(checked.nodes), checked.problems, checked.unchecked) == (1, (), ()), path


def test_a_quantizing_node_without_an_output_and_extents_below_zero_break_nothing() -> None:
    for name in ("", "B", "W"):
        model = quantized(Y_h_scale=one(0.004))
        if name:
            next(tensor for tensor in model.graph.initializer if tensor.name == name).dims[1] = -3
        else:
            for node in model.graph.node:
                if node.op_type == "QuantizeLinear":
                    del node.output[:]
        assert_no_internal_error(model)

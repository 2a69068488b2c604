"""This project's own tests, which may ask onnxspec for one thing at a time."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper
from tiny_runtime import lstm

from onnxspec import assert_conforms

STEPS, BATCH, WIDTH, HIDDEN = 5, 2, 3, 4
SHAPES = {"X": (STEPS, BATCH, WIDTH), "W": (1, 4 * HIDDEN, WIDTH), "R": (1, 4 * HIDDEN, HIDDEN)}


def model() -> onnx.ModelProto:
    """One LSTM node."""
    node = helper.make_node("LSTM", list(SHAPES), ["Y"], hidden_size=HIDDEN)
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES.items()]
    output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, (STEPS, 1, BATCH, HIDDEN))
    opset = helper.make_opsetid("", 14)
    return helper.make_model(helper.make_graph([node], "one", inputs, [output]), opset_imports=[opset], ir_version=8)


def inputs() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def test_the_kernel_conforms() -> None:
    tensors = inputs()
    Y, _, _ = lstm(**tensors)
    assert_conforms(model(), {"Y": Y}, inputs=tensors)


def test_the_runtime_conforms(onnxspec_target) -> None:
    onnxspec_target.assert_conforms(model(), inputs())

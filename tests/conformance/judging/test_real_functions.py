"""The functions of a real runtime are within the standard class, gate by gate over their whole range of arguments.

Cases have moderate arguments; approximating kernels have their largest errors where functions bend or saturate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onnxspec import NotConforming, assert_conforms

# Coefficients for the functions that take some.
COEFFICIENTS: dict[str, dict[str, float]] = {
    "Affine": {"alpha": 1.3, "beta": 0.2},
    "Elu": {"alpha": 1.1},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.1},
    "ScaledTanh": {"alpha": 1.2, "beta": 0.7},
    "ThresholdedRelu": {"alpha": 0.5},
}
FUNCTIONS = ["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus", *COEFFICIENTS]
BLOCKS = {"RNN": 1, "GRU": 3, "LSTM": 4}

# (operator, functions, gate that is fed, biases): `*` stands for the tested function. Biases make the other gates pass
# it on: z of GRU is 0 or 1/2, f and o of LSTM are about 1.
PLACES: list[tuple[str, list[str], int, list[float]]] = [
    ("RNN", ["*"], 0, [0]),
    ("GRU", ["*", "Tanh"], 0, [0, 0, 0.5]),
    ("GRU", ["Sigmoid", "*"], 2, [-100, 0, 0]),
    ("GRU", ["Tanh", "*"], 2, [0, 0, 0]),
    ("LSTM", ["*", "Tanh", "Tanh"], 0, [0, 0, 0, 1]),
    ("LSTM", ["*", "Tanh", "Tanh"], 1, [1, 0, 0, 0.5]),
    ("LSTM", ["Sigmoid", "*", "Tanh"], 3, [30, 30, 0, 0]),
    ("LSTM", ["Sigmoid", "Affine", "*"], 3, [30, 30, 0, 0]),
]


def arguments() -> np.ndarray:
    """Return the arguments, one per row: all ranges that matter, and those where exponentials overflow."""
    random = np.random.default_rng(1)
    spans = ((-30, 30, 2000), (-1, 1, 800), (-23, -8, 800), (8, 23, 800), (-105, 105, 400))
    return np.concatenate([random.uniform(low, high, count) for low, high, count in spans]).astype(np.float32)


def model_of(op: str, functions: list[str], shapes: dict[str, tuple[int, ...]], outputs: list[str]) -> onnx.ModelProto:
    constants: dict[str, Any] = {
        f"activation_{name}": values
        for name in ("alpha", "beta")
        if (values := [c[name] for f in functions if name in (c := COEFFICIENTS.get(f, {}))])
    }
    node = helper.make_node(op, list(shapes), outputs, hidden_size=1, activations=functions, **constants)
    takes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    returns = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph([node], "function", takes, returns)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("op", "functions", "gate", "biases"), PLACES)
def test_every_function_is_right_at_every_gate(
    op: str, functions: list[str], gate: int, biases: list[float], function: str
):
    X, blocks = arguments()[np.newaxis, :, np.newaxis], BLOCKS[op]
    W, B = np.zeros((1, blocks, 1), np.float32), np.zeros((1, 2 * blocks), np.float32)
    W[0, gate], B[0, :blocks] = 1, biases
    inputs = {"X": X, "W": W, "R": np.zeros_like(W), "B": B}
    names = [function if name == "*" else name for name in functions]
    outputs = ["Y", "Y_h", *(["Y_c"] if op == "LSTM" else [])]
    model = model_of(op, names, {name: array.shape for name, array in inputs.items()}, outputs)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    returned = session.run(None, inputs)
    assert_conforms(model, returned, inputs=inputs)
    returned[0] = returned[0] + np.float32(2e-6) * (1 + np.abs(returned[0]))
    with pytest.raises(NotConforming):
        assert_conforms(model, returned, inputs=inputs)

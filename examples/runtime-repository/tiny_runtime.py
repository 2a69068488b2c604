"""A runtime that fits on a page: LSTM, forward, in NumPy. What it cannot do it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep

INPUTS = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
OUTPUTS = ("Y", "Y_h", "Y_c")
# Attributes that change nothing, with the values for which that is so.
HARMLESS = {"direction": (b"forward",), "layout": (0,), "input_forget": (0,)}


def lstm(
    X: np.ndarray,
    W: np.ndarray,
    R: np.ndarray,
    B: np.ndarray | None = None,
    initial_h: np.ndarray | None = None,
    initial_c: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Y, Y_h and Y_c of ONNX's LSTM with one direction and its default activations."""
    size = R.shape[-1]
    state = np.zeros((X.shape[1], size), X.dtype)
    bias = np.zeros(4 * size, X.dtype) if B is None else B[0, : 4 * size] + B[0, 4 * size :]
    h = state if initial_h is None else initial_h[0]
    c = state if initial_c is None else initial_c[0]
    steps = []
    for x in X:
        i, o, f, g = np.split(x @ W[0].T + h @ R[0].T + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    Y = np.stack(steps)[:, np.newaxis] if steps else np.zeros((0, size), X.dtype)
    return Y, h[np.newaxis], c[np.newaxis]


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), which does not overflow in this form."""
    half = x.dtype.type(0.5)
    result: np.ndarray = half * np.tanh(half * x) + half
    return result


class Prepared(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: onnx.ModelProto) -> None:
        (self.node,) = model.graph.node
        self.names = [value.name for value in model.graph.input]
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.outputs = [value.name for value in model.graph.output]

    def run(self, inputs: Sequence[np.ndarray], **kwargs: Any) -> tuple[np.ndarray, ...]:
        tensors = {**self.constants, **dict(zip(self.names, inputs, strict=False))}
        if tensors["X"].dtype.name not in ("float32", "float64"):
            raise NotImplementedError(f"type {tensors['X'].dtype.name}")
        given = {formal: tensors[name] for formal, name in zip(INPUTS, self.node.input, strict=False) if name}
        made = dict(zip(self.node.output, lstm(**given), strict=False))
        return tuple(made[name] for name in self.outputs)


class TinyRuntime(Backend):
    """What onnx calls a backend: the way in for test suites."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        (node,) = model.graph.node
        if node.op_type != "LSTM" or model.opset_import[0].version < 7:
            raise NotImplementedError(f"{node.op_type} of opset {model.opset_import[0].version}")
        if {value.name for value in model.graph.input} & {tensor.name for tensor in model.graph.initializer}:
            raise NotImplementedError("constants that may be fed")
        for attribute in node.attribute:
            value = helper.get_attribute_value(attribute)
            if attribute.name != "hidden_size" and value not in HARMLESS.get(attribute.name, ()):
                raise NotImplementedError(f"{attribute.name} = {value!r}")
        unknown = {name for name, given in zip(INPUTS, node.input, strict=False) if given} & {"sequence_lens", "P"}
        if unknown:
            raise NotImplementedError(f"input {', '.join(sorted(unknown))}")
        return Prepared(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"

"""Kernels of LSTM, GRU and RNN with known faults, as an adapter, to measure the value of names.

One plain kernel in NumPy, and twelve that differ from it in one to three faults, modelled on typical mistakes of device
kernels, converters and hand-vectorised code. They were written, and the faults of each listed in TRUTH, before their
author had read `reference/faults`. So they show the value of a diagnosis on code for which it was not tuned. Do not fit
the table of faults to them by name: a fault that it lacks here is lacking for other kernels, too.

Option ``kernel``: a key of TRUTH, or "plain" (default), which has no fault.

Tested: NumPy 1.26 and 2.3, onnx 1.17 and 1.23. Package: onnx.
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

#: Descriptions of the faults of each kernel, by their flags in the code below.
TRUTH: dict[str, dict[str, str]] = {
    "library-gru": {
        "always-linear": "GRU multiplies the reset gate in behind the matrix product whatever linear_before_reset says",
        "no-clip": "clip is not handed on to the library",
    },
    "unrolled": {
        "full-length": "sequence_lens is ignored: the graph is unrolled over all steps",
        "no-coupling": "input_forget is ignored",
    },
    "vector-tail": {
        "tail-bias": "units behind the last full group of four lack the recurrent bias",
    },
    "shared-second-direction": {
        "peepholes-of-first": "the second direction uses the peepholes of the first",
        "cell-of-first": "the second direction starts from the first direction's initial_c",
    },
    "converted-peepholes": {
        "peephole-order": "peepholes are read in the order input, forget, output",
        "old-cell-output": "the output gate's peephole sees the cell state of the step before",
    },
    "whole-flip": {
        "flip-padding": "a reversed direction begins at the last step of the tensor, not of the row",
        "last-of-reverse": "Y_h of a reversed direction is Y at the last step of the tensor",
    },
    "fast-math": {
        "rational-tanh": "tanh is x(27+x^2)/(27+9x^2), cut at 1",
        "half-sums": "float16 products are summed in float16",
    },
    "one-activation-list": {
        "first-activations": "both directions use the activations of the first",
        "no-alpha": "activation_alpha is ignored",
    },
    "batch-first": {
        "reshaped-initial": "with layout 1 initial_h and initial_c are reshaped where they must be transposed",
        "sorted-rows": "Y_h stays in the order of falling lengths, in which the library wants its rows",
    },
    "clip-behind": {
        "clip-behind": "clip is applied to what the activations of the gates return",
        "candidate-bias": "the last gate block gets no recurrent bias",
    },
    "row-blocks": {
        "block-length": "rows of a block of two run as long as the longest of the block",
        "stale-end": "Y behind the end of a row repeats its last value",
    },
    "single-precision": {
        "float64-in-float32": "float64 is computed in float32",
        "last-row-of-y": "Y_h is Y at the last step, whatever the lengths are",
        "swapped-bias": "the recurrent biases of the first two gate blocks are exchanged",
    },
}

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
TAKES_ALPHA = {
    "Affine": 1.0,
    "LeakyRelu": 0.01,
    "ThresholdedRelu": 1.0,
    "ScaledTanh": 1.0,
    "HardSigmoid": 0.2,
    "Elu": 1.0,
}
TAKES_BETA = {"Affine": 0.0, "ScaledTanh": 1.0, "HardSigmoid": 0.5}


class Adapter:
    """One of the kernels."""

    def __init__(self, options: dict[str, Any]) -> None:
        unknown = sorted(set(options) - {"kernel"})
        if unknown:
            raise ValueError(f"unknown option {unknown[0]!r}; known: kernel")
        self.kernel: str = options.get("kernel", "plain")
        if self.kernel != "plain" and self.kernel not in TRUTH:
            raise ValueError(f"no kernel {self.kernel!r}; there are plain, {', '.join(TRUTH)}")

    def describe(self) -> dict[str, Any]:
        """Return a description of the runtime, as JSON data."""
        return {
            "runtime": f"kernel-{self.kernel}",
            "version": "1",
            "provider": "",
            "device": "CPU",
            "platform": platform.platform(),
        }

    def prepare(self, model: bytes) -> Session:
        """Return a session of the single node of `model`; refuse all other models."""
        graph = onnx.load_model_from_string(model).graph
        if len(graph.node) != 1 or graph.node[0].op_type not in GATES or graph.node[0].domain not in ("", "ai.onnx"):
            raise NotImplementedError("only one node, LSTM, GRU or RNN, can be run")
        return Session(graph, frozenset(TRUTH.get(self.kernel, {})))


class Session:
    """One node, and its faults."""

    def __init__(self, graph: Any, faults: frozenset[str]) -> None:
        self.node = graph.node[0]
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.outputs = [value.name for value in graph.output]
        self.faults = faults

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        """Return the outputs in the graph's order."""
        values = {**self.constants, **feeds}
        inputs = [values[name] if name else None for name in self.node.input]
        if inputs[0].dtype not in (np.float16, np.float32, np.float64):
            raise NotImplementedError("only float16, float32 and float64")
        results = Layer(self.node, inputs, self.faults).run()
        by_name = dict(zip(self.node.output, results, strict=False))
        return [by_name[name] for name in self.outputs]


class Layer:
    """One run of one node."""

    def __init__(self, node: Any, inputs: list[Any], faults: frozenset[str]) -> None:
        self.faults = faults
        self.op = node.op_type
        self.attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        inputs = inputs + [None] * (8 - len(inputs))
        self.type = inputs[0].dtype
        wide = self.type if self.type != np.float16 else np.dtype(np.float32)
        if "float64-in-float32" in faults and self.type == np.float64:
            wide = np.dtype(np.float32)
        self.wide = wide
        self.half_sums = "half-sums" in faults and self.type == np.float16
        x, w, r, b, lengths, h, c, p = inputs
        self.batch_first = bool(self.attributes.get("layout", 0))
        if self.batch_first:
            x = x.transpose(1, 0, 2)
        self.steps, self.rows, _ = x.shape
        self.directions, _, self.size = r.shape
        self.x, self.w, self.r = (value.astype(wide) for value in (x, w, r))
        count = GATES[self.op]
        self.b = np.zeros((self.directions, 2 * count * self.size), wide) if b is None else b.astype(wide)
        self.p = np.zeros((self.directions, 3 * self.size), wide) if p is None else p.astype(wide)
        self.h, self.c = self._initial(h), self._initial(c)
        full = np.full(self.rows, self.steps, np.int64)
        self.lengths = full if lengths is None or "full-length" in faults else lengths.astype(np.int64)
        clip = self.attributes.get("clip", 0.0)
        self.clip = 0.0 if "no-clip" in faults else clip

    def _initial(self, state: Any) -> np.ndarray:
        """Return a state as [directions, rows, size]; zeros for None."""
        if state is None:
            return np.zeros((self.directions, self.rows, self.size), self.wide)
        state = state.astype(self.wide)
        if self.batch_first:
            if "reshaped-initial" in self.faults:
                return np.asarray(state.reshape(self.directions, self.rows, self.size))
            return np.asarray(state.transpose(1, 0, 2))
        return np.asarray(state)

    def run(self) -> list[np.ndarray]:
        """Return Y, Y_h and, for an LSTM, Y_c."""
        y = np.zeros((self.steps, self.directions, self.rows, self.size), self.wide)
        y_h = np.zeros((self.directions, self.rows, self.size), self.wide)
        y_c = np.zeros_like(y_h)
        direction = self.attributes.get("direction", b"forward").decode()
        for d in range(self.directions):
            backward = direction == "reverse" or d == 1
            y[:, d], y_h[d], y_c[d] = self._direction(d, backward)
            if "last-of-reverse" in self.faults and backward and self.steps:
                y_h[d] = y[-1, d]
            if "last-row-of-y" in self.faults and not backward and self.steps:
                y_h[d] = y[-1, d]
        if "sorted-rows" in self.faults:
            y_h = y_h[:, np.argsort(-self.lengths, kind="stable")]
        results = [y, y_h, y_c]
        if self.batch_first:
            results = [y.transpose(2, 0, 1, 3), y_h.transpose(1, 0, 2), y_c.transpose(1, 0, 2)]
        return [np.ascontiguousarray(value.astype(self.type)) for value in results]

    def _direction(self, d: int, backward: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        y = np.zeros((self.steps, self.rows, self.size), self.wide)
        h = self.h[d].copy()
        c = self.c[0 if "cell-of-first" in self.faults else d].copy()
        lengths = self.lengths.copy()
        if "block-length" in self.faults:
            for row in range(0, self.rows, 2):
                lengths[row : row + 2] = lengths[row : row + 2].max(initial=0)
        for step in range(self.steps):
            live = np.flatnonzero(step < lengths)
            if not len(live):
                break
            ends = np.full(self.rows, self.steps) if "flip-padding" in self.faults else lengths
            positions = ends[live] - 1 - step if backward else np.full(len(live), step)
            h[live], c[live] = self._cell(d, self.x[positions, live], h[live], c[live])
            y[positions, live] = h[live]
        if "stale-end" in self.faults:
            for row in range(self.rows):
                if 0 < lengths[row] < self.steps:
                    y[lengths[row] :, row] = y[lengths[row] - 1, row]
        return y, h, c

    def _cell(self, d: int, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        functions = self._functions(d)
        count, size = GATES[self.op], self.size
        bias = self.b[d].reshape(2, count, size).copy()
        if "tail-bias" in self.faults:
            bias[1, :, size - size % 4 :] = 0
        if "candidate-bias" in self.faults:
            bias[1, -1] = 0
        if "swapped-bias" in self.faults and count > 1:
            bias[1, [0, 1]] = bias[1, [1, 0]]
        w, r = self.w[d].reshape(count, size, -1), self.r[d].reshape(count, size, -1)
        before = [self._product(x, w[gate]) + bias[0, gate] for gate in range(count)]
        if self.op == "LSTM":
            before = [before[gate] + self._product(h, r[gate]) + bias[1, gate] for gate in range(count)]
            return self._lstm(functions, before, c, self.p[0 if "peepholes-of-first" in self.faults else d])
        if self.op == "RNN":
            (f,) = functions
            return self._gate(f, before[0] + self._product(h, r[0]) + bias[1, 0]), c
        f, g = functions
        update = self._gate(f, before[0] + self._product(h, r[0]) + bias[1, 0])
        reset = self._gate(f, before[1] + self._product(h, r[1]) + bias[1, 1])
        if self.attributes.get("linear_before_reset", 0) or "always-linear" in self.faults:
            candidate = self._gate(g, before[2] + reset * (self._product(h, r[2]) + bias[1, 2]))
        else:
            candidate = self._gate(g, before[2] + self._product(reset * h, r[2]) + bias[1, 2])
        return (1 - update) * candidate + update * h, c

    def _lstm(self, functions: list[Any], before: list[np.ndarray], c: np.ndarray, p: np.ndarray) -> Any:
        f, g, last = functions
        p_i, p_o, p_f = p.reshape(3, self.size)
        if "peephole-order" in self.faults:
            p_o, p_f = p_f, p_o
        i = self._gate(f, before[0] + p_i * c)
        if self.attributes.get("input_forget", 0) and "no-coupling" not in self.faults:
            forget = 1 - i
        else:
            forget = self._gate(f, before[2] + p_f * c)
        new = forget * c + i * self._gate(g, before[3])
        o = self._gate(f, before[1] + p_o * (c if "old-cell-output" in self.faults else new))
        return o * last(new), new

    def _product(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return left @ right.T; with `half_sums`, add the products one after the other in float16."""
        if not self.half_sums:
            return np.asarray(left @ right.T)
        left, right = left.astype(np.float16), right.astype(np.float16)
        total = np.zeros((left.shape[0], right.shape[0]), np.float16)
        for k in range(left.shape[1]):
            total = total + left[:, k : k + 1] * right[None, :, k]
        return total.astype(self.wide)

    def _gate(self, function: Any, value: np.ndarray) -> np.ndarray:
        if not self.clip:
            return np.asarray(function(value))
        if "clip-behind" in self.faults:
            return np.clip(function(value), -self.clip, self.clip)
        return np.asarray(function(np.clip(value, -self.clip, self.clip)))

    def _functions(self, d: int) -> list[Any]:
        count = len(FUNCTIONS[self.op])
        names = [name.decode() for name in self.attributes.get("activations", [])]
        names = names or FUNCTIONS[self.op] * self.directions
        alphas = list(self.attributes.get("activation_alpha", []))
        if "no-alpha" in self.faults:
            alphas = []
        betas = list(self.attributes.get("activation_beta", []))
        functions = []
        for name in names:
            name = next(
                (candidate for candidate in [*TAKES_ALPHA, "Softplus"] if candidate.lower() == name.lower()),
                name.title(),
            )
            alpha = TAKES_ALPHA.get(name, 0.0)
            if name in TAKES_ALPHA and alphas:
                alpha = alphas.pop(0)
            beta = TAKES_BETA.get(name, 0.0)
            if name in TAKES_BETA and betas:
                beta = betas.pop(0)
            functions.append(self._function(name, self.wide.type(alpha), self.wide.type(beta)))
        if "first-activations" in self.faults:
            d = 0
        return functions[d * count : (d + 1) * count]

    def _function(self, name: str, alpha: Any, beta: Any) -> Any:
        tanh = _rational if "rational-tanh" in self.faults else np.tanh
        functions = {
            "Sigmoid": lambda x: _sigmoid(x),
            "Tanh": tanh,
            "Relu": lambda x: np.maximum(x, 0),
            "Affine": lambda x: alpha * x + beta,
            "LeakyRelu": lambda x: np.where(x >= 0, x, alpha * x),
            "ThresholdedRelu": lambda x: np.where(x > alpha, x, 0),
            "ScaledTanh": lambda x: alpha * tanh(beta * x),
            "HardSigmoid": lambda x: np.clip(alpha * x + beta, 0, 1),
            "Elu": lambda x: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0))),
            "Softsign": lambda x: x / (1 + np.abs(x)),
            "Softplus": lambda x: np.logaddexp(x, self.wide.type(0)),
        }
        if name not in functions:
            raise ValueError(f"no activation {name}")
        return functions[name]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * np.tanh(0.5 * x) + 0.5, x.dtype)


def _rational(x: np.ndarray) -> np.ndarray:
    square = x * x
    return np.clip(x * (27 + square) / (27 + 9 * square), -1, 1).astype(x.dtype)

"""Three more kernels with known faults, in the style of device libraries: packed rows, one workspace, tiles of steps.

Like those of `kernels.py`, they were written, and the faults of each listed in TRUTH, before their author had read
`reference/faults`. They share no code with those kernels, so that a mistake in one kernel is not in all.

Option ``kernel``: a key of TRUTH, or "right" (default), which has no fault.

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
    "packed-rows": {
        "initial-unsorted": "rows are sorted by falling length, initial_h and initial_c are not",
        "merged-bias": "both biases are added up beforehand, the candidate's of a GRU with linear_before_reset too",
        "at-least-one": "a row of length 0 runs one step",
    },
    "one-workspace": {
        "state-left": "without initial_h the second direction begins where the first ended, in h and c",
        "g-for-h": "the activation behind the cell state of an LSTM is that of the candidate",
    },
    "tiles": {
        "hard-sigmoid": "Sigmoid is HardSigmoid with 0.2 and 0.5",
        "tile-restart": "every eighth step begins from initial_c again",
    },
}

STEPS_OF_A_TILE = 8

ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0, "hardsigmoid": 0.2, "elu": 1.0}
BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}
DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}


class Adapter:
    """One of the kernels."""

    def __init__(self, options: dict[str, Any]) -> None:
        unknown = sorted(set(options) - {"kernel"})
        if unknown:
            raise ValueError(f"unknown option {unknown[0]!r}; known: kernel")
        self.kernel: str = options.get("kernel", "right")
        if self.kernel != "right" and self.kernel not in TRUTH:
            raise ValueError(f"no kernel {self.kernel!r}; there are right, {', '.join(TRUTH)}")

    def describe(self) -> dict[str, Any]:
        """Return a description of the runtime, as JSON data."""
        runtime = f"device-{self.kernel}"
        return {"runtime": runtime, "version": "1", "provider": "", "device": "CPU", "platform": platform.platform()}

    def prepare(self, model: bytes) -> Session:
        """Return a session of the single node of `model`; refuse all other models."""
        graph = onnx.load_model_from_string(model).graph
        if len(graph.node) != 1 or graph.node[0].op_type not in DEFAULTS or graph.node[0].domain not in ("", "ai.onnx"):
            raise NotImplementedError("only one node, LSTM, GRU or RNN, can be run")
        return Session(graph, frozenset(TRUTH.get(self.kernel, {})))


class Session:
    """One node with its descriptor; weights are packed anew at each run, since they may be inputs."""

    def __init__(self, graph: Any, faults: frozenset[str]) -> None:
        node = graph.node[0]
        self.op, self.faults = node.op_type, faults
        self.inputs, self.outputs = list(node.input), list(node.output)
        self.wanted = [value.name for value in graph.output]
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self.direction = attributes.get("direction", b"forward").decode()
        self.layout = attributes.get("layout", 0)
        self.clip = attributes.get("clip", 0.0) or np.inf
        self.coupled = bool(attributes.get("input_forget", 0))
        self.linear = bool(attributes.get("linear_before_reset", 0))
        directions = 2 if self.direction == "bidirectional" else 1
        names = [n.decode().lower() for n in attributes.get("activations", [])] or DEFAULTS[self.op] * directions
        alphas, betas = (list(attributes.get(f"activation_{letter}", [])) for letter in ("alpha", "beta"))
        functions = []
        for name in names:
            alpha = alphas.pop(0) if name in ALPHA and alphas else ALPHA.get(name, 0.0)
            beta = betas.pop(0) if name in BETA and betas else BETA.get(name, 0.0)
            functions.append((name, alpha, beta))
        count = len(DEFAULTS[self.op])
        self.functions = [functions[d * count : (d + 1) * count] for d in range(directions)]

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        """Return the outputs in the graph's order."""
        values = {**self.constants, **feeds}
        arrays = [values[name] if name else None for name in self.inputs]
        x, w, r, b, lengths, h, c, p = arrays + [None] * (8 - len(arrays))
        dtype = x.dtype
        if dtype not in (np.float16, np.float32, np.float64):
            raise NotImplementedError("only float16, float32 and float64")
        wide = np.float32 if dtype == np.float16 else dtype

        def cast(value: Any) -> Any:
            return None if value is None else np.asarray(value, wide)

        x, w, r, b, h, c, p = map(cast, (x, w, r, b, h, c, p))
        if self.layout:
            x = x.swapaxes(0, 1)
            h, c = (None if state is None else state.swapaxes(0, 1) for state in (h, c))
        steps, rows = x.shape[:2]
        directions, _, size = r.shape
        lengths = np.full(rows, steps) if lengths is None else lengths.astype(np.int64)
        if "at-least-one" in self.faults and steps:
            lengths = np.maximum(lengths, 1)
        order = np.argsort(-lengths, kind="stable")
        back = np.argsort(order, kind="stable")
        y = np.zeros((steps, directions, rows, size), wide)
        last = np.zeros((2, directions, rows, size), wide)
        workspace = np.zeros((2, rows, size), wide)
        for d in range(directions):
            for slot, state in enumerate((h, c)):
                if state is not None:
                    workspace[slot] = state[d] if "initial-unsorted" in self.faults else state[d][order]
                elif d == 0 or "state-left" not in self.faults or h is not None:
                    workspace[slot] = 0
            first_cell = workspace[1].copy()
            backward = d == 1 or self.direction == "reverse"
            plan = Plan(self, d, w[d], r[d], b if b is None else b[d], p if p is None else p[d])
            for step in range(steps):
                batch = int(np.count_nonzero(lengths > step))  # rows are sorted by length, so the first ones are active
                if not batch:
                    break
                at = (lengths[order][:batch] - 1 - step) if backward else np.full(batch, step)
                if "tile-restart" in self.faults and step and step % STEPS_OF_A_TILE == 0:
                    workspace[1, :batch] = first_cell[:batch]
                new_states = plan.step(x[at, order[:batch]], workspace[0, :batch], workspace[1, :batch])
                workspace[0, :batch], workspace[1, :batch] = new_states
                y[at, d, order[:batch]] = new_states[0]
            last[:, d] = workspace[:, back]
        results = [y, last[0], last[1]]
        if self.layout:
            results = [y.transpose(2, 0, 1, 3), last[0].swapaxes(0, 1), last[1].swapaxes(0, 1)]
        by_name = {name: np.ascontiguousarray(each, dtype) for name, each in zip(self.outputs, results, strict=False)}
        return [by_name[name] for name in self.wanted]


class Plan:
    """Computation of one direction in a step: all gates in one product, as [rows, gates * size]."""

    def __init__(self, session: Session, d: int, w: Any, r: Any, b: Any, p: Any) -> None:
        self.session, self.functions, self.faults = session, session.functions[d], session.faults
        self.w, self.r, self.size = w.T, r.T, r.shape[1]
        b = np.zeros(2 * w.shape[0], w.dtype) if b is None else b
        self.wb, self.rb = np.split(b, 2)
        if "merged-bias" in self.faults:
            self.wb, self.rb = self.wb + self.rb, np.zeros_like(self.rb)
        self.p = np.split(np.zeros(3 * self.size, w.dtype) if p is None else p, 3)

    def step(self, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
        from_x = x @ self.w + self.wb
        if self.session.op == "GRU":
            return self.gru(from_x, h), c
        gates = np.split(from_x + h @ self.r + self.rb, self.w.shape[1] // self.size, axis=1)
        if self.session.op == "RNN":
            return self.activate(0, gates[0]), c
        i, o, f, candidate = gates
        i = self.activate(0, i + self.p[0] * c)
        f = 1 - i if self.session.coupled else self.activate(0, f + self.p[2] * c)
        c = f * c + i * self.activate(1, candidate)
        o = self.activate(0, o + self.p[1] * c)
        return o * self.function(1 if "g-for-h" in self.faults else 2, c), c

    def gru(self, from_x: Any, h: Any) -> Any:
        n = self.size
        from_h = h @ self.r[:, : 2 * n] + self.rb[: 2 * n]
        z = self.activate(0, from_x[:, :n] + from_h[:, :n])
        reset = self.activate(0, from_x[:, n : 2 * n] + from_h[:, n:])
        if self.session.linear:
            inner = reset * (h @ self.r[:, 2 * n :] + self.rb[2 * n :])
        else:
            inner = (reset * h) @ self.r[:, 2 * n :] + self.rb[2 * n :]
        return (1 - z) * self.activate(1, from_x[:, 2 * n :] + inner) + z * h

    def activate(self, which: int, value: Any) -> Any:
        """Return an activation of a gate, after the clip."""
        return self.function(which, np.clip(value, -self.session.clip, self.session.clip))

    def function(self, which: int, x: Any) -> Any:
        name, alpha, beta = self.functions[which]
        a, b = x.dtype.type(alpha), x.dtype.type(beta)
        match name:
            case "sigmoid" if "hard-sigmoid" in self.faults:
                return np.clip(x * x.dtype.type(0.2) + x.dtype.type(0.5), 0, 1)
            case "sigmoid":
                return np.exp(-np.logaddexp(x.dtype.type(0), -x))
            case "tanh":
                return np.tanh(x)
            case "relu":
                return np.maximum(x, 0)
            case "affine":
                return a * x + b
            case "leakyrelu":
                return np.where(x < 0, a * x, x)
            case "thresholdedrelu":
                return np.where(x > a, x, 0)
            case "scaledtanh":
                return a * np.tanh(b * x)
            case "hardsigmoid":
                return np.clip(a * x + b, 0, 1)
            case "elu":
                return np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x)
            case "softsign":
                return x / (1 + np.abs(x))
            case "softplus":
                return np.logaddexp(x, x.dtype.type(0))
        raise ValueError(f"no activation {name}")

"""Right kernels of quantized LSTM, GRU and RNN, in integers: none of them may be accused.

    onnxspec run --profile quantized --targets-file benchmarks/kernels/targets.toml \\
        --target integers --target integers-requantized

They multiply levels as published integer kernels do (Jacob et al., "Quantization and Training of Neural Networks for
Efficient Integer-Arithmetic-Only Inference", 2018, equation 7): with levels a and b, and zero points p and q,

    sum (a - p)(b - q) = sum ab - q sum a - p sum b + n p q

where all but the first sum is known ahead or costs one addition a term. A product of scales makes a number of that;
gates and the cell are float32. They were written by somebody of this project, from that paper and the documents of the
operators, who had read neither the judge of quantized nodes nor how their cases are made.

Option ``state``: ``float`` (default), or ``levels``: then what goes into the next step is the level that Y shows.

Tested: NumPy 1.26 and 2.3, onnx 1.17 and 1.23. Package: onnx.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

OPTION_DEFAULTS: dict[str, Any] = {"state": "float"}
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
FUNCTIONS = {
    "sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), None, None),
    "tanh": (lambda x, a, b: np.tanh(x), None, None),
    "relu": (lambda x, a, b: np.maximum(x, 0), None, None),
    "softplus": (lambda x, a, b: np.logaddexp(x, np.float32(0)), None, None),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), None, None),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: np.where(x < 0, a * x, x), 0.01, None),
    "thresholdedrelu": (lambda x, a, b: np.where(x >= a, x, 0), 1.0, None),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x), 1.0, None),
}
"""By name in lower case: the function, and what alpha and beta are where the lists have none for it. None: it takes
none."""


class Adapter:
    def __init__(self, options: dict[str, Any]) -> None:
        self.state = options["state"]

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": f"integer kernel, state: {self.state}",
            "version": "1",
            "provider": "",
            "numpy": np.__version__,
            "python": platform.python_version(),
        }

    def prepare(self, model: bytes) -> Session:
        return Session(onnx.load_model_from_string(model).graph, self.state == "levels")


def functions(op: str, attributes: dict[str, Any]) -> list[Any]:
    """The functions of all directions; each takes the next alpha and beta of the lists, if it has such."""
    directions = 2 if attributes.get("direction", b"") == b"bidirectional" else 1
    names = [name.decode() for name in attributes.get("activations", ())] or list(USUAL[op]) * directions
    alphas, betas = (iter(attributes.get(f"activation_{name}", ())) for name in ("alpha", "beta"))
    made = []
    for name in names:
        function, alpha, beta = FUNCTIONS[name.lower()]
        a = None if alpha is None else np.float32(next(alphas, alpha))
        b = None if beta is None else np.float32(next(betas, beta))
        made.append(lambda x, function=function, a=a, b=b: function(x, a, b).astype(np.float32))
    return made


@dataclass
class Tensor:
    """Numbers, or levels with what they stand for: `scale` and `zero` broadcast against them."""

    array: Any
    scale: Any = None
    zero: Any = 0

    @property
    def numbers(self) -> Any:
        if self.scale is None:
            return self.array
        return ((self.array.astype(np.int64) - self.zero) * self.scale.astype(np.float64)).astype(np.float32)

    def __getitem__(self, index: Any) -> Tensor:
        if self.scale is None:
            return Tensor(self.array[index])
        scale, zero = (np.broadcast_to(part, self.array.shape)[index] for part in (self.scale, self.zero))
        return Tensor(self.array[index], scale, zero)


class Session:
    def __init__(self, graph: Any, requantizes: bool) -> None:
        self.graph, self.requantizes = graph, requantizes
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.makers = {name: node for node in graph.node for name in node.output}
        (self.node,) = (node for node in graph.node if node.op_type in GATES)
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}
        for other in graph.node:
            if other is not self.node and other.op_type not in ("DequantizeLinear", "QuantizeLinear"):
                raise NotImplementedError(f"{other.op_type} beside the node")
        self.functions = functions(self.node.op_type, self.attributes)

    def run(self, feeds: dict[str, Any]) -> list[Any]:
        values = {**self.constants, **feeds}
        names = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
        inputs = {n: self.tensor(source, values) for n, source in zip(names, self.node.input, strict=False) if source}
        outputs = dict(zip(("Y", "Y_h", "Y_c"), self.node.output, strict=False))
        shown = self.codec(outputs.get("Y"), values)
        requantized = shown if self.requantizes else None
        computed = compute(self.node.op_type, self.attributes, self.functions, inputs, requantized)
        by_name = {name: computed[formal] for formal, name in outputs.items() if name}
        return [self.output(value.name, by_name, values) for value in self.graph.output]

    def tensor(self, name: str, values: dict[str, Any]) -> Tensor:
        if name in values:
            return Tensor(values[name])
        node = self.makers[name]
        assert node.op_type == "DequantizeLinear"
        levels = values[node.input[0]]
        scale, zero = self.parameters(node, values, levels.ndim)
        return Tensor(levels, scale, zero)

    def parameters(self, node: Any, values: dict[str, Any], dimensions: int) -> tuple[Any, Any]:
        scale = values[node.input[1]]
        zero = values[node.input[2]].astype(np.int64) if len(node.input) > 2 and node.input[2] else np.zeros_like(scale)
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
        if scale.ndim:
            shape = [1] * dimensions
            shape[axis] = -1
            scale, zero = scale.reshape(shape), zero.reshape(shape)
        return scale, zero.astype(np.int64)

    def codec(self, name: str | None, values: dict[str, Any]) -> Any:
        """From numbers of an output to its levels, as a tensor; None where nothing quantizes it."""
        node = next((n for n in self.graph.node if n.op_type == "QuantizeLinear" and n.input[0] == name), None)
        if not name or node is None:
            return None

        def quantized(numbers: Any) -> Tensor:
            scale, zero = self.parameters(node, values, numbers.ndim)
            type = values[node.input[2]].dtype if len(node.input) > 2 and node.input[2] else np.dtype(np.uint8)
            ends = np.iinfo(type)
            levels = np.rint(numbers / scale).astype(np.int64) + zero
            return Tensor(np.clip(levels, ends.min, ends.max).astype(type), scale, zero)

        return quantized

    def output(self, name: str, computed: dict[str, Any], values: dict[str, Any]) -> Any:
        if name in computed:
            return computed[name]
        source = self.makers[name].input[0]
        return self.codec(source, values)(computed[source]).array


def product(x: Tensor, w: Tensor) -> Any:
    """x (N, K) times the transposed w (G, K), in float32."""
    if x.scale is None or w.scale is None:
        return x.numbers @ w.numbers.T
    a, b = x.array.astype(np.int64), w.array.astype(np.int64)
    p = np.broadcast_to(x.zero, a.shape)[:, :1]
    q = np.broadcast_to(w.zero, b.shape)[:, :1].T
    total = a @ b.T - q * a.sum(1, keepdims=True) - p * b.sum(1) + a.shape[1] * p * q
    scale = np.broadcast_to(x.scale, a.shape)[:, :1].astype(np.float64)
    return (total * (scale * np.broadcast_to(w.scale, b.shape)[:, :1].T)).astype(np.float32)


def compute(
    op: str, attributes: dict[str, Any], functions: list[Any], inputs: dict[str, Tensor], quantized: Any
) -> dict[str, Any]:
    """All outputs. `quantized`: from Ht to the levels that go into the next step, where some do."""
    X, R = inputs["X"], inputs["R"]
    batch_first = attributes.get("layout", 0) == 1
    N, T = X.array.shape[:2] if batch_first else X.array.shape[1::-1]
    direction = attributes.get("direction", b"forward").decode().lower()
    reversed_ones = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    H, D = R.array.shape[2], len(reversed_ones)
    lengths = inputs["sequence_lens"].array if "sequence_lens" in inputs else np.full(N, T)
    Y = np.zeros((T, D, N, H), np.float32)
    last = {name: np.zeros((D, N, H), np.float32) for name in ("Y_h", "Y_c")}
    for d, backwards in enumerate(reversed_ones):
        own = functions[d * len(USUAL[op]) : (d + 1) * len(USUAL[op])]
        step = Step(op, attributes, own, inputs, d, H)
        states = [np.zeros((N, H), np.float32), np.zeros((N, H), np.float32)]
        for k, name in enumerate(("initial_h", "initial_c")):
            if name in inputs:
                states[k] = (inputs[name][:, d] if batch_first else inputs[name][d]).numbers.copy()
        h, c = states
        fed = Tensor(h)
        for k in range(int(lengths.max(initial=0))):
            at = np.where(k < lengths, lengths - 1 - k if backwards else k, 0)
            rows = np.arange(N)
            new_h, new_c = step(X[rows, at] if batch_first else X[at, rows], fed, c)
            there = (k < lengths)[:, np.newaxis]
            h, c = np.where(there, new_h, h), np.where(there, new_c, c)
            Y[at[k < lengths], d, rows[k < lengths]] = h[k < lengths]
            fed = Tensor(h) if quantized is None else quantized(h)
        last["Y_h"][d], last["Y_c"][d] = h, c
    if batch_first:
        return {"Y": Y.transpose(2, 0, 1, 3), **{name: state.swapaxes(0, 1) for name, state in last.items()}}
    return {"Y": Y, **last}


class Step:
    """One step of one direction."""

    def __init__(
        self, op: str, attributes: dict[str, Any], functions: list[Any], inputs: dict[str, Tensor], d: int, H: int
    ) -> None:
        self.functions = functions
        self.op, self.H, self.w, self.r = op, H, inputs["W"][d], inputs["R"][d]
        rows = GATES[op] * H
        bias = inputs["B"][d].numbers if "B" in inputs else np.zeros(2 * rows, np.float32)
        self.wb, self.rb = bias[:rows], bias[rows:]
        peepholes = inputs["P"][d].numbers if "P" in inputs else np.zeros(3 * H, np.float32)
        self.p = np.split(peepholes, 3)
        self.clip = np.float32(attributes.get("clip", 0) or np.inf)
        self.coupled = attributes.get("input_forget", 0)
        self.linear = attributes.get("linear_before_reset", 0)

    def f(self, x: Any) -> Any:
        return self.functions[0](np.clip(x, -self.clip, self.clip))

    def g(self, x: Any) -> Any:
        return self.functions[1](np.clip(x, -self.clip, self.clip))

    def h(self, x: Any) -> Any:
        return self.functions[2](np.clip(x, -self.clip, self.clip))

    def __call__(self, x: Tensor, h: Tensor, c: Any) -> tuple[Any, Any]:
        n, ahead = self.H, product(x, self.w) + self.wb
        if self.op == "GRU":
            both = product(h, self.r[: 2 * n]) + self.rb[: 2 * n]
            z, reset = self.f(ahead[:, :n] + both[:, :n]), self.f(ahead[:, n : 2 * n] + both[:, n:])
            own, bias = self.r[2 * n :], self.rb[2 * n :]
            inner = reset * (product(h, own) + bias) if self.linear else product(Tensor(reset * h.numbers), own) + bias
            return (1 - z) * self.g(ahead[:, 2 * n :] + inner) + z * h.numbers, c
        sums = ahead + product(h, self.r) + self.rb
        if self.op == "RNN":
            return self.f(sums), c
        i, o, f, candidate = np.split(sums, 4, axis=1)
        i = self.f(i + self.p[0] * c)
        f = 1 - i if self.coupled else self.f(f + self.p[2] * c)
        c = f * c + i * self.g(candidate)
        return self.f(o + self.p[1] * c) * self.h(c), c

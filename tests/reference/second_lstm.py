"""A second derivation of LSTM: scalar loops at 50 digits, written from the operator's document alone.

It exists to accuse the reference, so it shares no code with it and no style either: no matrices, no broadcasting, no
scan. Every element is one Python loop over mpmath numbers, and each loop body is a line of the document. It is slow and
meant for sizes of a few units. It checks nothing: callers pass legal configurations.

Where the document leaves a choice, :class:`Choices` names it; the defaults are those the suite takes by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

DIGITS = 50

# "Default values are the same as of corresponding ONNX operators." An attribute of type FLOAT is a binary32 number, so
# the defaults printed as 0.01 and 0.2 are the binary32 numbers nearest to them. Affine and ScaledTanh have no
# corresponding operator any more; the experimental Affine had 1 and 0, ScaledTanh none: 1 and 1
# make it Tanh.
DEFAULT_ALPHA = {
    "Affine": 1.0,
    "LeakyRelu": float(np.float32(0.01)),
    "ThresholdedRelu": 1.0,
    "ScaledTanh": 1.0,
    "HardSigmoid": float(np.float32(0.2)),
    "Elu": 1.0,
}
DEFAULT_BETA = {"Affine": 0.0, "ScaledTanh": 1.0, "HardSigmoid": 0.5}
ACTIVATIONS = (
    "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
    "Softsign", "Softplus",
)  # fmt: skip


@dataclass(frozen=True)
class Choices:
    """What the document of LSTM leaves open.

    Attributes:
        clip_cell_output: whether ``clip`` bounds the argument of h as it bounds those of f and g.
        clip_zero_is_off: whether a threshold of 0 means no clip; otherwise it makes every argument 0.
        coupled_keeps: with ``input_forget``, the gate that is computed ("i" or "f"); the other is 1 minus it.
        alpha_per_user: whether only an activation that uses an alpha (beta) takes the next one; otherwise each
            activation takes the next of both lists, whether it uses it or not.
        defaults_of_the_lost: whether Affine is x and ScaledTanh is Tanh where no alpha and beta are given; otherwise
            what is not given is 0. No operator of these names is left to take defaults from.
        threshold_passes: the value of ThresholdedRelu at x == alpha: x as LSTM prints it, or 0 as the operator has it.
        empty_keeps_state: whether a sequence of length 0 ends in its initial state; otherwise in zeros.
        transpose_r: whether R is transposed in the equations: LSTM-1 prints ``Ht-1*Ri``, later ones ``Ht-1*(Ri^T)``.
    """

    clip_cell_output: bool = True
    clip_zero_is_off: bool = True
    coupled_keeps: str = "i"
    alpha_per_user: bool = True
    defaults_of_the_lost: bool = True
    threshold_passes: bool = True
    empty_keeps_state: bool = True
    transpose_r: bool = True


@dataclass(frozen=True)
class Activation:
    """One activation with the alpha and beta it was given."""

    name: str
    alpha: Any
    beta: Any
    threshold_passes: bool

    def __call__(self, x: Any) -> Any:
        """The activation's value at x, an mpmath number."""
        alpha, beta = self.alpha, self.beta
        if self.name == "Relu":
            return x if x > 0 else mpmath.mpf(0)
        if self.name == "Tanh":
            return mpmath.tanh(x)
        if self.name == "Sigmoid":
            return 1 / (1 + mpmath.exp(-x))
        if self.name == "Affine":
            return alpha * x + beta
        if self.name == "LeakyRelu":
            return x if x >= 0 else alpha * x
        if self.name == "ThresholdedRelu":
            return x if x > alpha or (x == alpha and self.threshold_passes) else mpmath.mpf(0)
        if self.name == "ScaledTanh":
            return alpha * mpmath.tanh(beta * x)
        if self.name == "HardSigmoid":
            line = alpha * x + beta
            return mpmath.mpf(0) if line < 0 else mpmath.mpf(1) if line > 1 else line
        if self.name == "Elu":
            return x if x >= 0 else alpha * mpmath.expm1(x)
        if self.name == "Softsign":
            return x / (1 + abs(x))
        if self.name == "Softplus":
            return mpmath.log1p(mpmath.exp(x))
        raise ValueError(f"no activation of LSTM: {self.name!r}")


def second_lstm(
    attributes: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]], choices: Choices | None = None
) -> dict[str, NDArray[np.float64]]:
    """LSTM by its document, at 50 digits, rounded once to float64 at the end.

    Args:
        attributes: those of the node, by name; FLOAT attributes are rounded to binary32, as a node stores them.
        inputs: by formal name; "X", "W" and "R" at least, an absent optional input is a missing key. Any float type.
        choices: the readings to follow.

    Returns:
        "Y", "Y_h" and "Y_c" in the shapes the layout asks for. Past a sequence's length Y is 0; a sequence of length 0
        ends as ``choices`` say.
    """
    with mpmath.workdps(DIGITS):
        return _second_lstm(attributes, inputs, choices or Choices())


@dataclass(frozen=True)
class Parameters:
    """W, R, B and P of one direction, read one number at a time."""

    w: NDArray[Any]
    r: NDArray[Any]
    b: NDArray[Any] | None
    p: NDArray[Any] | None
    direction: int
    transpose_r: bool

    def argument(self, gate: str, unit: int, xt: Sequence[Any], hidden: Sequence[Any]) -> Any:
        """``Xt*(W^T) + Ht-1*(R^T) + Wb + Rb`` of one unit of a gate: W[iofc], R[iofc], B = [Wb[iofc], Rb[iofc]]."""
        size, d = len(hidden), self.direction
        block = "iofc".index(gate) * size
        total = mpmath.mpf(0)
        for k, value in enumerate(xt):
            total += value * self.w[d, block + unit, k]
        for k, value in enumerate(hidden):
            total += value * (self.r[d, block + unit, k] if self.transpose_r else self.r[d, block + k, unit])
        if self.b is not None:
            total += self.b[d, block + unit] + self.b[d, 4 * size + block + unit]
        return total

    def peephole(self, gate: str, unit: int, state: Sequence[Any]) -> Any:
        """``P (.) C`` of one unit of a gate: P[iof]."""
        if self.p is None:
            return mpmath.mpf(0)
        return self.p[self.direction, "iof".index(gate) * len(state) + unit] * state[unit]


def _second_lstm(
    attributes: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]], choices: Choices
) -> dict[str, NDArray[np.float64]]:
    direction = attributes.get("direction", "forward")
    batch_first = attributes.get("layout", 0) == 1
    directions = 2 if direction == "bidirectional" else 1
    hidden_size = inputs["R"].shape[2]
    if batch_first:
        batch_size, seq_length, input_size = inputs["X"].shape
    else:
        seq_length, batch_size, input_size = inputs["X"].shape
    functions = _functions(attributes, directions, choices)
    x, h0, c0 = _exact(inputs["X"]), _optional(inputs, "initial_h"), _optional(inputs, "initial_c")

    y = np.zeros((seq_length, directions, batch_size, hidden_size))
    y_h = np.zeros((directions, batch_size, hidden_size))
    y_c = np.zeros((directions, batch_size, hidden_size))
    for d in range(directions):
        parameters = Parameters(
            _exact(inputs["W"]),
            _exact(inputs["R"]),
            _optional(inputs, "B"),
            _optional(inputs, "P"),
            d,
            choices.transpose_r,
        )
        backwards = direction == "reverse" or d == 1
        for n in range(batch_size):
            length = int(inputs["sequence_lens"][n]) if "sequence_lens" in inputs else seq_length
            start = (n, d) if batch_first else (d, n)
            hidden = [mpmath.mpf(0) if h0 is None else h0[(*start, unit)] for unit in range(hidden_size)]
            cell = [mpmath.mpf(0) if c0 is None else c0[(*start, unit)] for unit in range(hidden_size)]
            if length == 0 and not choices.empty_keeps_state:
                hidden = cell = [mpmath.mpf(0)] * hidden_size
            for t in reversed(range(length)) if backwards else range(length):
                xt = [x[(n, t, k) if batch_first else (t, n, k)] for k in range(input_size)]
                hidden, cell = _step(parameters, functions[3 * d : 3 * d + 3], attributes, choices, xt, hidden, cell)
                for unit in range(hidden_size):
                    y[t, d, n, unit] = float(hidden[unit])
            for unit in range(hidden_size):
                y_h[d, n, unit], y_c[d, n, unit] = float(hidden[unit]), float(cell[unit])
    if batch_first:
        return {"Y": y.transpose(2, 0, 1, 3), "Y_h": y_h.transpose(1, 0, 2), "Y_c": y_c.transpose(1, 0, 2)}
    return {"Y": y, "Y_h": y_h, "Y_c": y_c}


def _step(
    parameters: Parameters,
    functions: Sequence[Activation],
    attributes: Mapping[str, Any],
    choices: Choices,
    xt: Sequence[Any],
    hidden: Sequence[Any],
    cell: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Ht and Ct of one sequence in one direction, from Xt, Ht-1 and Ct-1."""

    def bounded(value: Any) -> Any:
        return _clip(value, attributes, choices)

    f, g, h = functions
    units = range(len(hidden))
    i_gate, f_gate, candidate = [], [], []
    for unit in units:
        it = f(bounded(parameters.argument("i", unit, xt, hidden) + parameters.peephole("i", unit, cell)))
        ft = f(bounded(parameters.argument("f", unit, xt, hidden) + parameters.peephole("f", unit, cell)))
        if attributes.get("input_forget", 0) == 1:
            if choices.coupled_keeps == "i":
                ft = 1 - it
            else:
                it = 1 - ft
        i_gate.append(it)
        f_gate.append(ft)
        candidate.append(g(bounded(parameters.argument("c", unit, xt, hidden))))
    new_cell = [f_gate[unit] * cell[unit] + i_gate[unit] * candidate[unit] for unit in units]
    new_hidden = []
    for unit in units:
        ot = f(bounded(parameters.argument("o", unit, xt, hidden) + parameters.peephole("o", unit, new_cell)))
        shown = bounded(new_cell[unit]) if choices.clip_cell_output else new_cell[unit]
        new_hidden.append(ot * h(shown))
    return new_hidden, new_cell


def _functions(attributes: Mapping[str, Any], directions: int, choices: Choices) -> list[Activation]:
    """f, g, h of each direction, with their alpha and beta."""
    names: Sequence[str] = attributes.get("activations", ("Sigmoid", "Tanh", "Tanh") * directions)
    alphas = [float(np.float32(value)) for value in attributes.get("activation_alpha", ())]
    betas = [float(np.float32(value)) for value in attributes.get("activation_beta", ())]

    def take(name: str, given: list[float], defaults: Mapping[str, float]) -> Any:
        """The alpha (beta) of an activation: the next one given, or its default, or None where it has none."""
        value = defaults.get(name)
        if given and (value is not None or not choices.alpha_per_user):
            value = given.pop(0)
        elif name in ("Affine", "ScaledTanh") and not choices.defaults_of_the_lost:
            value = 0.0
        return None if value is None else mpmath.mpf(value)

    return [
        Activation(name, take(name, alphas, DEFAULT_ALPHA), take(name, betas, DEFAULT_BETA), choices.threshold_passes)
        for name in names
    ]


def _clip(value: Any, attributes: Mapping[str, Any], choices: Choices) -> Any:
    if "clip" not in attributes:
        return value
    threshold = mpmath.mpf(float(np.float32(attributes["clip"])))
    if threshold == 0 and choices.clip_zero_is_off:
        return value
    return -threshold if value < -threshold else threshold if value > threshold else value


def _optional(inputs: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any] | None:
    return _exact(inputs[name]) if name in inputs else None


def _exact(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers as mpmath numbers: every float type in use converts to float64 without rounding."""
    exact = np.empty(array.shape, dtype=object)
    for index in np.ndindex(*array.shape):
        exact[index] = mpmath.mpf(float(array[index]))
    return exact

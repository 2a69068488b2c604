"""A second derivation of LSTM, GRU and RNN: scalar loops at 50 digits, written from the operators' documents alone.

Its purpose is to find errors of the reference, so it shares neither code nor style with it: no matrices, no
broadcasting, no scan. Every element is one Python loop over mpmath numbers, and each loop body is a line of a document.
It is slow, meant for sizes of a few units, and checks nothing: callers pass legal configurations. Where a document
leaves a choice, :class:`Choices` names it; the defaults are those of the suite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True)
class Choices:
    """Choices that the documents leave open.

    Attributes:
        clip_cell_output: whether ``clip`` bounds the argument of h as it bounds those of f and g. clip_zero_is_off:
        whether a threshold of 0 means no clip; otherwise it makes every argument 0. coupled_keeps: with
        ``input_forget``, the gate that is computed ("i" or "f"); the other is 1 minus it. alpha_per_user: whether only
        an activation that uses an alpha (beta) takes the next one; otherwise each activation takes the next of both
        lists, whether it uses it or not. defaults_of_the_lost: whether Affine is x and ScaledTanh is Tanh without alpha
        and beta; otherwise a missing coefficient is 0. No operator of these names exists any more whose defaults would
        apply. threshold_passes: the value of ThresholdedRelu at x == alpha: x as printed here, or 0 as the operator has
        it. empty_keeps_state: whether a sequence of length 0 ends in its initial state; otherwise in zeros.
        transpose_r: whether R is transposed in the equations: version 1 prints ``Ht-1*Ri``, later ones ``Ht-1*(Ri^T)``;
        GRU-3 prints it like GRU-1.
    """

    clip_cell_output: bool = True
    clip_zero_is_off: bool = True
    coupled_keeps: str = "i"
    alpha_per_user: bool = True
    defaults_of_the_lost: bool = True
    threshold_passes: bool = True
    empty_keeps_state: bool = True
    transpose_r: bool = True


ZERO, ONE = mpmath.mpf(0), mpmath.mpf(1)

# f(x, alpha, beta) of mpmath numbers.
FORMULAS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Relu": lambda x, alpha, beta: x if x > 0 else ZERO,
    "Tanh": lambda x, alpha, beta: mpmath.tanh(x),
    "Sigmoid": lambda x, alpha, beta: 1 / (1 + mpmath.exp(-x)),
    "Affine": lambda x, alpha, beta: alpha * x + beta,
    "LeakyRelu": lambda x, alpha, beta: x if x >= 0 else alpha * x,
    "ThresholdedRelu": lambda x, alpha, beta: x if x >= alpha else ZERO,
    "ScaledTanh": lambda x, alpha, beta: alpha * mpmath.tanh(beta * x),
    "HardSigmoid": lambda x, alpha, beta: max(ZERO, min(ONE, alpha * x + beta)),
    "Elu": lambda x, alpha, beta: x if x >= 0 else alpha * mpmath.expm1(x),
    "Softsign": lambda x, alpha, beta: x / (1 + abs(x)),
    "Softplus": lambda x, alpha, beta: mpmath.log1p(mpmath.exp(x)),
}
ACTIVATIONS = tuple(FORMULAS)


@dataclass(frozen=True)
class Activation:
    """Activation with its alpha and beta."""

    name: str
    alpha: Any
    beta: Any
    threshold_passes: bool

    def __call__(self, x: Any) -> Any:
        """Return the activation's value at x, an mpmath number."""
        if self.name == "ThresholdedRelu" and x == self.alpha and not self.threshold_passes:
            return ZERO
        return FORMULAS[self.name](x, self.alpha, self.beta)


def functions(
    attributes: Mapping[str, Any], usual: Sequence[str], choices: Choices, *, says_defaults: bool = True
) -> list[list[Activation]]:
    """Return the functions of each direction, with their alpha and beta.

    Args:
        attributes: those of the node. usual: the functions of one direction where the node names none. choices: the
        interpretations to follow. says_defaults: whether the document defines an alpha or beta that the node does not
        have.
    """
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    names: Sequence[str] = attributes.get("activations", list(usual) * count)
    alphas = [float(np.float32(value)) for value in attributes.get("activation_alpha", ())]
    betas = [float(np.float32(value)) for value in attributes.get("activation_beta", ())]

    def take(name: str, given: list[float], defaults: Mapping[str, float]) -> Any:
        """Return the alpha (beta) of an activation: the next one in the list, or its default, or None without one."""
        value = defaults.get(name)
        if given and (value is not None or not choices.alpha_per_user):
            value = given.pop(0)
        elif not choices.defaults_of_the_lost and (name in ("Affine", "ScaledTanh") or not says_defaults):
            value = 0.0
        return None if value is None else mpmath.mpf(value)

    activations = [
        Activation(name, take(name, alphas, DEFAULT_ALPHA), take(name, betas, DEFAULT_BETA), choices.threshold_passes)
        for name in names
    ]
    return [activations[d * len(usual) : (d + 1) * len(usual)] for d in range(count)]


def exact(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers as mpmath numbers: every float type in use converts to float64 without rounding."""
    return np.vectorize(lambda number: mpmath.mpf(float(number)), otypes=[object])(array)


def optional(inputs: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any] | None:
    """Return an input as mpmath numbers, or None if it is absent."""
    return exact(inputs[name]) if name in inputs else None


@dataclass(frozen=True)
class Parameters:
    """W, R, B and P of a node, read one number at a time; blocks of W, R and of both halves of B are those of `gates`.

    `d` is a direction everywhere.
    """

    gates: str
    size: int
    w: NDArray[Any]
    r: NDArray[Any]
    b: NDArray[Any] | None
    p: NDArray[Any] | None
    transpose_r: bool

    def row(self, gate: str, unit: int) -> int:
        return self.gates.index(gate) * self.size + unit

    def from_x(self, d: int, gate: str, unit: int, xt: Sequence[Any]) -> Any:
        """Return Xt*(W^T) of one unit of a gate."""
        return sum(value * self.w[d, self.row(gate, unit), k] for k, value in enumerate(xt))

    def from_h(self, d: int, gate: str, unit: int, hidden: Sequence[Any]) -> Any:
        """Return Ht-1*(R^T) of one unit of a gate."""
        places = [(unit, k) if self.transpose_r else (k, unit) for k in range(self.size)]
        return sum(value * self.r[d, self.row(gate, i), j] for value, (i, j) in zip(hidden, places, strict=True))

    def bias(self, d: int, half: str, gate: str, unit: int) -> Any:
        """Return Wb or Rb of one unit of a gate: B is [Wb, Rb]."""
        if self.b is None:
            return ZERO
        return self.b[d, (len(self.gates) * self.size if half == "R" else 0) + self.row(gate, unit)]

    def argument(self, d: int, gate: str, unit: int, xt: Sequence[Any], hidden: Sequence[Any]) -> Any:
        """Return Xt*(W^T) + Ht-1*(R^T) + Wb + Rb of one unit of a gate."""
        products = self.from_x(d, gate, unit, xt) + self.from_h(d, gate, unit, hidden)
        return products + self.bias(d, "W", gate, unit) + self.bias(d, "R", gate, unit)

    def peephole(self, d: int, gate: str, unit: int, state: Sequence[Any]) -> Any:
        """Return P (.) C of one unit of a gate: P[iof]."""
        if self.p is None:
            return ZERO
        return self.p[d, "iof".index(gate) * self.size + unit] * state[unit]


# Function from Xt and the states before a step, in direction d, to the states after it; the first state is the hidden
# one.
Step = Callable[[int, Sequence[Any], list[list[Any]]], list[list[Any]]]


def through_time(
    attributes: Mapping[str, Any],
    inputs: Mapping[str, NDArray[Any]],
    choices: Choices,
    states: Sequence[str],
    step: Step,
) -> dict[str, NDArray[np.float64]]:
    """Return the results of every sequence in every direction, computed step by step.

    Returns:
        "Y" and "Y_" with each state's name, in the shapes the layout asks for. Past a sequence's length Y is 0; a
        sequence of length 0 ends as ``choices`` say.
    """
    direction = attributes.get("direction", "forward")
    batch_first = attributes.get("layout", 0) == 1
    directions = 2 if direction == "bidirectional" else 1
    first, second, input_size = inputs["X"].shape
    seq_length, batch_size = (second, first) if batch_first else (first, second)
    units = range(inputs["R"].shape[2])
    x, initial = exact(inputs["X"]), {name: optional(inputs, f"initial_{name}") for name in states}
    y = np.zeros((seq_length, directions, batch_size, len(units)))
    last = {name: np.zeros((directions, batch_size, len(units))) for name in states}
    for d, n in np.ndindex(directions, batch_size):
        length = int(inputs["sequence_lens"][n]) if "sequence_lens" in inputs else seq_length
        row = (n, d) if batch_first else (d, n)
        now = []
        for name in states:
            first_state = initial[name]
            zero = first_state is None or (length == 0 and not choices.empty_keeps_state)
            now.append([ZERO if zero else first_state[(*row, unit)] for unit in units])
        for t in reversed(range(length)) if direction == "reverse" or d == 1 else range(length):
            now = step(d, [x[(n, t, k) if batch_first else (t, n, k)] for k in range(input_size)], now)
            y[t, d, n] = [float(value) for value in now[0]]
        for name, values in zip(states, now, strict=True):
            last[name][d, n] = [float(value) for value in values]
    if batch_first:
        return {"Y": y.transpose(2, 0, 1, 3), **{f"Y_{name}": last[name].transpose(1, 0, 2) for name in states}}
    return {"Y": y, **{f"Y_{name}": last[name] for name in states}}


@dataclass(frozen=True)
class Node:
    """Node with its parameters and the functions of each direction."""

    attributes: Mapping[str, Any]
    choices: Choices
    parameters: Parameters
    functions: list[list[Activation]]

    def clipped(self, value: Any) -> Any:
        """Return the argument of an activation, within the threshold of ``clip`` if there is one."""
        if "clip" not in self.attributes:
            return value
        threshold = mpmath.mpf(float(np.float32(self.attributes["clip"])))
        if threshold == 0 and self.choices.clip_zero_is_off:
            return value
        return -threshold if value < -threshold else threshold if value > threshold else value


def lstm_step(node: Node, d: int, xt: Sequence[Any], states: list[list[Any]]) -> list[list[Any]]:
    """Return Ht and Ct of one sequence in one direction, from Xt, Ht-1 and Ct-1."""
    (f, g, h), p, bounded = node.functions[d], node.parameters, node.clipped
    hidden, cell = states
    units = range(p.size)
    new_cell, new_hidden = [], []
    for unit in units:
        it = f(bounded(p.argument(d, "i", unit, xt, hidden) + p.peephole(d, "i", unit, cell)))
        ft = f(bounded(p.argument(d, "f", unit, xt, hidden) + p.peephole(d, "f", unit, cell)))
        if node.attributes.get("input_forget", 0) == 1:
            if node.choices.coupled_keeps == "i":
                ft = 1 - it
            else:
                it = 1 - ft
        ct = g(bounded(p.argument(d, "c", unit, xt, hidden)))
        new_cell.append(ft * cell[unit] + it * ct)
    for unit in units:
        ot = f(bounded(p.argument(d, "o", unit, xt, hidden) + p.peephole(d, "o", unit, new_cell)))
        shown = bounded(new_cell[unit]) if node.choices.clip_cell_output else new_cell[unit]
        new_hidden.append(ot * h(shown))
    return [new_hidden, new_cell]


def gru_step(node: Node, d: int, xt: Sequence[Any], states: list[list[Any]]) -> list[list[Any]]:
    """Return Ht of one sequence in one direction, from Xt and Ht-1."""
    (f, g), p, bounded = node.functions[d], node.parameters, node.clipped
    (before,) = states
    units = range(p.size)
    zt, rt = ([f(bounded(p.argument(d, gate, unit, xt, before))) for unit in units] for gate in "zr")
    after = []
    for unit in units:
        wbh, rbh = p.bias(d, "W", "h", unit), p.bias(d, "R", "h", unit)
        if node.attributes.get("linear_before_reset", 0) != 0:
            inner = rt[unit] * (p.from_h(d, "h", unit, before) + rbh) + wbh
        else:
            inner = p.from_h(d, "h", unit, [rt[k] * before[k] for k in units]) + rbh + wbh
        ht = g(bounded(p.from_x(d, "h", unit, xt) + inner))
        after.append((1 - zt[unit]) * ht + zt[unit] * before[unit])
    return [after]


def rnn_step(node: Node, d: int, xt: Sequence[Any], states: list[list[Any]]) -> list[list[Any]]:
    """Return Ht of one sequence in one direction, from Xt and Ht-1."""
    ((f,), (before,)), p = (node.functions[d], states), node.parameters
    return [[f(node.clipped(p.argument(d, "i", unit, xt, before))) for unit in range(p.size)]]


@dataclass(frozen=True)
class Equations:
    """Order of blocks in W, R and B, default functions of a direction, states, and the step."""

    gates: str
    functions: tuple[str, ...]
    states: str
    step: Callable[..., list[list[Any]]]

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("Y", *(f"Y_{state}" for state in self.states))


OPERATORS = {
    "LSTM": Equations("iofc", ("Sigmoid", "Tanh", "Tanh"), "hc", lstm_step),
    "GRU": Equations("zrh", ("Sigmoid", "Tanh"), "h", gru_step),
    "RNN": Equations("i", ("Tanh",), "h", rnn_step),
}


def second(
    op: str,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, NDArray[Any]],
    choices: Choices | None = None,
    *,
    says_defaults: bool = True,
) -> dict[str, NDArray[np.float64]]:
    """Return an operator's outputs by its document, computed at 50 digits and rounded once to float64 at the end.

    Args:
        op: LSTM, GRU or RNN. attributes: those of the node, by name; FLOAT attributes are rounded to binary32, as a
        node stores them. inputs: by formal name; "X", "W" and "R" at least, an absent optional input is a missing key.
        Any float type. choices: the interpretations to follow. says_defaults: whether the document has the sentence
        "Default values are the same as of corresponding ONNX operators", which GRU-1 lacks.

    Returns:
        All outputs in the shapes the layout asks for. Past a sequence's length Y is 0; a sequence of length 0 ends as
        ``choices`` say.
    """
    choices = choices or Choices()
    of = OPERATORS[op]
    with mpmath.workdps(DIGITS):
        w, r, b, p = exact(inputs["W"]), exact(inputs["R"]), optional(inputs, "B"), optional(inputs, "P")
        parameters = Parameters(of.gates, inputs["R"].shape[2], w, r, b, p, choices.transpose_r)
        chosen = functions(attributes, of.functions, choices, says_defaults=says_defaults)
        node = Node(attributes, choices, parameters, chosen)
        return through_time(attributes, inputs, choices, of.states, partial(of.step, node))

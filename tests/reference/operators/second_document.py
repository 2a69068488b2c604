"""Common parts of the second derivations of LSTM, GRU and RNN: functions, time, interpretations.

No code is shared with the reference. The derivation is scalar loops over mpmath numbers and checks nothing: callers
pass legal configurations. Where a document leaves a choice, :class:`Choices` names it; the defaults are those of the
suite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


@dataclass(frozen=True)
class Activation:
    """Activation with its alpha and beta."""

    name: str
    alpha: Any
    beta: Any
    threshold_passes: bool

    def __call__(self, x: Any) -> Any:
        """Return the activation's value at x, an mpmath number."""
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
        raise ValueError(f"no activation of the documents: {self.name!r}")


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


def clipped(value: Any, attributes: Mapping[str, Any], choices: Choices) -> Any:
    """Return the argument of an activation, within the threshold of ``clip`` if there is one."""
    if "clip" not in attributes:
        return value
    threshold = mpmath.mpf(float(np.float32(attributes["clip"])))
    if threshold == 0 and choices.clip_zero_is_off:
        return value
    return -threshold if value < -threshold else threshold if value > threshold else value


def exact(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers as mpmath numbers: every float type in use converts to float64 without rounding."""
    numbers = np.empty(array.shape, dtype=object)
    for index in np.ndindex(*array.shape):
        numbers[index] = mpmath.mpf(float(array[index]))
    return numbers


def optional(inputs: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any] | None:
    """Return an input as mpmath numbers, or None if it is absent."""
    return exact(inputs[name]) if name in inputs else None


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
    hidden_size = inputs["R"].shape[2]
    if batch_first:
        batch_size, seq_length, input_size = inputs["X"].shape
    else:
        seq_length, batch_size, input_size = inputs["X"].shape
    x, initial = exact(inputs["X"]), {name: optional(inputs, f"initial_{name}") for name in states}
    y = np.zeros((seq_length, directions, batch_size, hidden_size))
    last = {name: np.zeros((directions, batch_size, hidden_size)) for name in states}
    for d in range(directions):
        backwards = direction == "reverse" or d == 1
        for n in range(batch_size):
            length = int(inputs["sequence_lens"][n]) if "sequence_lens" in inputs else seq_length
            row = (n, d) if batch_first else (d, n)
            now = []
            for name in states:
                first_state = initial[name]
                zero = first_state is None or (length == 0 and not choices.empty_keeps_state)
                now.append([mpmath.mpf(0) if zero else first_state[(*row, unit)] for unit in range(hidden_size)])
            for t in reversed(range(length)) if backwards else range(length):
                xt = [x[(n, t, k) if batch_first else (t, n, k)] for k in range(input_size)]
                now = step(d, xt, now)
                for unit in range(hidden_size):
                    y[t, d, n, unit] = float(now[0][unit])
            for name, values in zip(states, now, strict=True):
                for unit in range(hidden_size):
                    last[name][d, n, unit] = float(values[unit])
    if batch_first:
        return {"Y": y.transpose(2, 0, 1, 3), **{f"Y_{name}": last[name].transpose(1, 0, 2) for name in states}}
    return {"Y": y, **{f"Y_{name}": last[name] for name in states}}

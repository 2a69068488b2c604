"""Faults of the eleven activation functions themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...numbers.activations import Activation
from ...recurrent.computation import Computation
from ..alterations import revalued, with_functions
from ..fault import ALL_BUT_BFLOAT16, WIDE, Array, fault

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

Value = Callable[[Array, float, float], Array]


def with_function(c: Computation, name: str, value: Value) -> Computation:
    """Return the computation with another value(x, alpha, beta) of the function of that name."""

    def change(function: Activation, position: int, d: int) -> Activation:
        return revalued(function, value) if function.name == name else function

    return with_functions(c, change)


def _function(id: str, words: str, value: Value, **fields: Any) -> None:
    """Register another value(x, alpha, beta) of a function; `words` begins with its name, and `id` with the clause's
    topic."""
    name, clause = words.split()[0], id.partition(".")[0]
    fault(id, f"functions.{clause}", words, lambda c: with_function(c, name, value), **fields)


def _with_tanh(c: Computation, tanh: Callable[[Array], Array]) -> Computation:
    """Return the computation with another tanh, in ScaledTanh too."""
    scaled = with_function(c, "ScaledTanh", lambda x, alpha, beta: np.asarray(alpha * tanh(beta * x)))
    return with_function(scaled, "Tanh", lambda x, alpha, beta: tanh(x))


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * np.tanh(0.5 * x) + 0.5)


def _with_sigmoid(c: Computation, sigmoid: Callable[[Array], Array]) -> Computation:
    return with_function(c, "Sigmoid", lambda x, alpha, beta: sigmoid(x))


def _largest_exponent(c: Computation) -> float:
    """Return the largest x for which e^x is finite in the type of the tensors."""
    return float(np.log(c.configuration.format.largest))


_function("relu.capped-at-six", "Relu goes no higher than 6.", lambda x, alpha, beta: np.clip(x, 0.0, 6.0))
_function("relu.absolute", "Relu of a negative number is its absolute value instead of zero.",
    lambda x, alpha, beta: np.abs(x))
fault("tanh.overflow", "functions.saturation", "Tanh of large numbers is NaN: e^2x overflows above and below the line.",
    lambda c: with_function(
        c, "Tanh", lambda x, alpha, beta: np.where(2 * x > _largest_exponent(c), np.nan, np.tanh(x))
    ))
_function("tanh.hard", "Tanh is piecewise linear: x itself, bounded to 1 and -1.",
    lambda x, alpha, beta: np.clip(x, -1.0, 1.0), types=ALL_BUT_BFLOAT16)
fault("tanh.clamped-at-{}", "functions.tanh",
    "Tanh, in ScaledTanh too, takes no argument beyond {0}: it stays at what it is there.",
    lambda c, most: _with_tanh(c, lambda x: np.tanh(np.clip(x, -most, most))), types=WIDE,
    numbers=(3, 8, 6, 5, 4, 3.5, 2.5, 2))
fault("tanh.one-beyond-{}", "functions.tanh",
    "Tanh, in ScaledTanh too, is 1 beyond {0} and -1 below -{0}.",
    lambda c, most: _with_tanh(c, lambda x: np.where(np.abs(x) > most, np.sign(x), np.tanh(x))), types=WIDE,
    numbers=(3, 6, 5, 4, 3.5, 2.5, 2))
fault("sigmoid.clamped-at-{}", "functions.sigmoid",
    "Sigmoid takes no argument beyond {0}: it stays at what it is there.",
    lambda c, most: _with_sigmoid(c, lambda x: _sigmoid(np.clip(x, -most, most))), types=WIDE,
    numbers=(4, 10, 8, 6, 5, 3, 2))
fault("sigmoid.saturates-at-{}", "functions.sigmoid",
    "Sigmoid is 1 beyond {0} and 0 below -{0}.",
    lambda c, most: _with_sigmoid(c, lambda x: np.where(np.abs(x) > most, (x > 0).astype(np.float64), _sigmoid(x))),
    types=WIDE, numbers=(4, 10, 8, 6, 5, 3, 2.5))
fault("sigmoid.overflow", "functions.saturation",
    "Sigmoid of large numbers is NaN: e^x overflows above and below the line.",
    lambda c: _with_sigmoid(c, lambda x: np.where(x > _largest_exponent(c), np.nan, _sigmoid(x))))
_function("sigmoid.hard", "Sigmoid is piecewise linear, HardSigmoid in truth.",
    lambda x, alpha, beta: np.clip(0.2 * x + 0.5, 0.0, 1.0), types=ALL_BUT_BFLOAT16)
_function("affine.no-beta", "Affine leaves beta out.", lambda x, alpha, beta: alpha * x, types=ALL_BUT_BFLOAT16)
_function("affine.swapped", "Affine takes alpha for beta and beta for alpha.", lambda x, alpha, beta: beta * x + alpha)
_function("leaky-relu.maximum",
    "LeakyRelu is the larger one of x and alpha*x, which is another function where alpha is above 1.",
    lambda x, alpha, beta: np.maximum(x, alpha * x))
_function("leaky-relu.other-side", "LeakyRelu multiplies positive numbers by alpha instead of negative ones.",
    lambda x, alpha, beta: np.where(x >= 0, alpha * x, x))
_function("thresholded-relu.shifted", "ThresholdedRelu gives x - alpha above its threshold.",
    lambda x, alpha, beta: np.where(x >= alpha, x - alpha, 0.0), types=ALL_BUT_BFLOAT16)
_function("thresholded-relu.alpha-below", "ThresholdedRelu gives alpha below its threshold instead of zero.",
    lambda x, alpha, beta: np.maximum(x, alpha))
_function("scaled-tanh.swapped", "ScaledTanh takes alpha for beta and beta for alpha.",
    lambda x, alpha, beta: beta * np.tanh(alpha * x), types=ALL_BUT_BFLOAT16)
_function("scaled-tanh.no-alpha", "ScaledTanh leaves alpha out.",
    lambda x, alpha, beta: np.tanh(beta * x), types=ALL_BUT_BFLOAT16)
_function("hard-sigmoid.no-upper", "HardSigmoid goes above 1.",
    lambda x, alpha, beta: np.maximum(alpha * x + beta, 0.0))
_function("hard-sigmoid.no-lower", "HardSigmoid goes below 0.",
    lambda x, alpha, beta: np.minimum(alpha * x + beta, 1.0))
_function("hard-sigmoid.argument-clamped",
    "HardSigmoid bounds its argument to 2.5 and -2.5 instead of its result, which suits its default coefficients.",
    lambda x, alpha, beta: alpha * np.clip(x, -2.5, 2.5) + beta)
_function("hard-sigmoid.sixth", "HardSigmoid is relu6(x + 3) / 6, whatever alpha and beta are.",
    lambda x, alpha, beta: np.clip(x / 6 + 0.5, 0.0, 1.0))
_function("elu.no-alpha", "Elu leaves alpha out.",
    lambda x, alpha, beta: np.where(x >= 0, x, np.expm1(np.minimum(x, 0.0))), types=ALL_BUT_BFLOAT16)
_function("elu.alpha-both-sides", "Elu multiplies positive numbers by alpha too.",
    lambda x, alpha, beta: np.where(x >= 0, alpha * x, alpha * np.expm1(np.minimum(x, 0.0))))
_function("elu.minus-alpha", "Elu is e^x - alpha below zero instead of alpha*(e^x - 1).",
    lambda x, alpha, beta: np.where(x >= 0, x, np.exp(np.minimum(x, 0.0)) - alpha), types=ALL_BUT_BFLOAT16)
_function("softsign.squared", "Softsign is x / (1 + x^2).",
    lambda x, alpha, beta: x / (1 + x * x), types=ALL_BUT_BFLOAT16)
_function("softsign.no-absolute", "Softsign is x / (1 + x), without the absolute value below the line.",
    lambda x, alpha, beta: x / (1 + x))
_function("softplus.early-identity",
    "Softplus is x itself above zero: what is to keep e^x from overflowing begins far too early.",
    lambda x, alpha, beta: np.where(x > 0, x, np.log1p(np.exp(np.minimum(x, 0.0)))), types=ALL_BUT_BFLOAT16)


def _softplus(x: Array) -> Array:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


# e^-20 is less than half a unit of 20 in the other types, so there it is not a fault.
_function("softplus.linear-above-20", "Softplus is x itself above 20, as PyTorch has it.",
    lambda x, alpha, beta: np.where(x > 20, x, _softplus(x)), types=("float64",))
fault("tanh.clamped-above-{}", "functions.tanh",
    "Tanh, in ScaledTanh too, takes no argument above {0}: it stays at what it is there.",
    lambda c, most: _with_tanh(c, lambda x: np.tanh(np.minimum(x, most))), proved=False, types=WIDE,
    numbers=(9, 8, 6, 5, 4, 3))
fault("tanh.clamped-below-{}", "functions.tanh",
    "Tanh, in ScaledTanh too, takes no argument below -{0}: it stays at what it is there.",
    lambda c, most: _with_tanh(c, lambda x: np.tanh(np.maximum(x, -most))), proved=False, types=WIDE,
    numbers=(9, 8, 6, 5, 4, 3))
fault("tanh.overflow-below", "functions.saturation",
    "Tanh, in ScaledTanh too, is NaN far below zero: e^-2x overflows above and below the line.",
    lambda c: _with_tanh(c, lambda x: np.where(-2 * x > _largest_exponent(c), np.nan, np.tanh(x))), proved=False)
_function("softplus.base-two", "Softplus takes the logarithm to base 2.",
    lambda x, alpha, beta: np.asarray(_softplus(x) / np.log(2)), types=ALL_BUT_BFLOAT16)

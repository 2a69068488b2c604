"""Faults of the eleven activation functions themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.activations import Activation
from ...recurrent.computation import Computation
from ..alterations import revalued, with_functions
from ..fault import ALL_BUT_BFLOAT16, VARIANTS, WIDE, Alteration, Compute, Outputs, family, fault

__all__: list[str] = []

Array = NDArray[Any]
Value = Callable[[Array, float, float], Array]


def _with(c: Computation, name: str, value: Value) -> Computation:
    """The computation with another value of the function of that name."""

    def change(function: Activation, position: int, d: int) -> Activation:
        return revalued(function, value) if function.name == name else function

    return with_functions(c, change)


def _negative(x: Array, alpha: float) -> Array:
    """Elu's part below zero."""
    return alpha * np.expm1(np.minimum(x, 0.0))


@fault("relu.capped-at-six", clause="functions.relu")
def relu_capped(compute: Compute, c: Computation) -> Outputs:
    """Relu goes no higher than 6."""
    return compute(_with(c, "Relu", lambda x, alpha, beta: np.clip(x, 0.0, 6.0)))


@fault("relu.absolute", clause="functions.relu")
def relu_absolute(compute: Compute, c: Computation) -> Outputs:
    """Relu of a negative number is its absolute value instead of zero."""
    return compute(_with(c, "Relu", lambda x, alpha, beta: np.abs(x)))


@fault("tanh.overflow", clause="functions.saturation")
def tanh_overflows(compute: Compute, c: Computation) -> Outputs:
    """Tanh of large numbers is NaN: e^2x overflows above and below the line."""
    largest = np.log(c.configuration.format.largest)

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.where(2 * x > largest, np.nan, np.tanh(x))

    return compute(_with(c, "Tanh", value))


@fault("tanh.hard", clause="functions.tanh", types=ALL_BUT_BFLOAT16)
def tanh_hard(compute: Compute, c: Computation) -> Outputs:
    """Tanh is piecewise linear: x itself, bounded to 1 and -1."""
    return compute(_with(c, "Tanh", lambda x, alpha, beta: np.clip(x, -1.0, 1.0)))


@family("tanh.clamped-at-{}", 3, 8, 6, 5, 4, 3.5, 2.5, 2, clause="functions.tanh", types=WIDE)
def tanh_clamped(most: float) -> Alteration:
    """Tanh, in ScaledTanh too, takes no argument beyond {0}: it stays at what it is there."""
    return lambda c: _with_tanh(c, lambda x: np.tanh(np.clip(x, -most, most)))


@family("tanh.one-beyond-{}", 3, 6, 5, 4, 3.5, 2.5, 2, clause="functions.tanh", types=WIDE)
def tanh_one_beyond(most: float) -> Alteration:
    """Tanh, in ScaledTanh too, is 1 beyond {0} and -1 below -{0}."""
    return lambda c: _with_tanh(c, lambda x: np.where(np.abs(x) > most, np.sign(x), np.tanh(x)))


def _with_tanh(c: Computation, tanh: Callable[[Array], Array]) -> Computation:
    """The computation with another tanh, which ScaledTanh is made of too."""
    scaled = _with(c, "ScaledTanh", lambda x, alpha, beta: np.asarray(alpha * tanh(beta * x)))
    return _with(scaled, "Tanh", lambda x, alpha, beta: tanh(x))


@family("sigmoid.clamped-at-{}", 4, 10, 8, 6, 5, 3, 2, clause="functions.sigmoid", types=WIDE)
def sigmoid_clamped(most: float) -> Alteration:
    """Sigmoid takes no argument beyond {0}: it stays at what it is there."""
    return lambda c: _with(c, "Sigmoid", lambda x, alpha, beta: 0.5 * np.tanh(0.5 * np.clip(x, -most, most)) + 0.5)


@family("sigmoid.saturates-at-{}", 4, 10, 8, 6, 5, 3, 2.5, clause="functions.sigmoid", types=WIDE)
def sigmoid_saturates(most: float) -> Alteration:
    """Sigmoid is 1 beyond {0} and 0 below -{0}."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.where(np.abs(x) > most, (x > 0).astype(np.float64), 0.5 * np.tanh(0.5 * x) + 0.5)

    return lambda c: _with(c, "Sigmoid", value)


@fault("sigmoid.overflow", clause="functions.saturation")
def sigmoid_overflows(compute: Compute, c: Computation) -> Outputs:
    """Sigmoid of large numbers is NaN: e^x overflows above and below the line."""
    largest = np.log(c.configuration.format.largest)

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.where(x > largest, np.nan, 0.5 * np.tanh(0.5 * x) + 0.5)

    return compute(_with(c, "Sigmoid", value))


@fault("sigmoid.hard", clause="functions.sigmoid", types=ALL_BUT_BFLOAT16)
def sigmoid_hard(compute: Compute, c: Computation) -> Outputs:
    """Sigmoid is piecewise linear, HardSigmoid in truth."""
    return compute(_with(c, "Sigmoid", lambda x, alpha, beta: np.clip(0.2 * x + 0.5, 0.0, 1.0)))


@fault("affine.no-beta", clause="functions.affine", types=ALL_BUT_BFLOAT16)
def affine_without_beta(compute: Compute, c: Computation) -> Outputs:
    """Affine leaves beta out."""
    return compute(_with(c, "Affine", lambda x, alpha, beta: alpha * x))


@fault("affine.swapped", clause="functions.affine")
def affine_swapped(compute: Compute, c: Computation) -> Outputs:
    """Affine takes alpha for beta and beta for alpha."""
    return compute(_with(c, "Affine", lambda x, alpha, beta: beta * x + alpha))


@fault("leaky-relu.maximum", clause="functions.leaky-relu")
def leaky_relu_maximum(compute: Compute, c: Computation) -> Outputs:
    """LeakyRelu is the larger one of x and alpha*x, which is another function where alpha is above 1."""
    return compute(_with(c, "LeakyRelu", lambda x, alpha, beta: np.maximum(x, alpha * x)))


@fault("leaky-relu.other-side", clause="functions.leaky-relu")
def leaky_relu_other_side(compute: Compute, c: Computation) -> Outputs:
    """LeakyRelu multiplies positive numbers by alpha instead of negative ones."""
    return compute(_with(c, "LeakyRelu", lambda x, alpha, beta: np.where(x >= 0, alpha * x, x)))


@fault("thresholded-relu.shifted", clause="functions.thresholded-relu", types=ALL_BUT_BFLOAT16)
def thresholded_relu_shifted(compute: Compute, c: Computation) -> Outputs:
    """ThresholdedRelu gives x - alpha above its threshold."""
    return compute(_with(c, "ThresholdedRelu", lambda x, alpha, beta: np.where(x >= alpha, x - alpha, 0.0)))


@fault("thresholded-relu.alpha-below", clause="functions.thresholded-relu")
def thresholded_relu_below(compute: Compute, c: Computation) -> Outputs:
    """ThresholdedRelu gives alpha below its threshold instead of zero."""
    return compute(_with(c, "ThresholdedRelu", lambda x, alpha, beta: np.maximum(x, alpha)))


@fault("scaled-tanh.swapped", clause="functions.scaled-tanh", types=ALL_BUT_BFLOAT16)
def scaled_tanh_swapped(compute: Compute, c: Computation) -> Outputs:
    """ScaledTanh takes alpha for beta and beta for alpha."""
    return compute(_with(c, "ScaledTanh", lambda x, alpha, beta: beta * np.tanh(alpha * x)))


@fault("scaled-tanh.no-alpha", clause="functions.scaled-tanh", types=ALL_BUT_BFLOAT16)
def scaled_tanh_without_alpha(compute: Compute, c: Computation) -> Outputs:
    """ScaledTanh leaves alpha out."""
    return compute(_with(c, "ScaledTanh", lambda x, alpha, beta: np.tanh(beta * x)))


@fault("hard-sigmoid.no-upper", clause="functions.hard-sigmoid")
def hard_sigmoid_without_upper(compute: Compute, c: Computation) -> Outputs:
    """HardSigmoid goes above 1."""
    return compute(_with(c, "HardSigmoid", lambda x, alpha, beta: np.maximum(alpha * x + beta, 0.0)))


@fault("hard-sigmoid.no-lower", clause="functions.hard-sigmoid")
def hard_sigmoid_without_lower(compute: Compute, c: Computation) -> Outputs:
    """HardSigmoid goes below 0."""
    return compute(_with(c, "HardSigmoid", lambda x, alpha, beta: np.minimum(alpha * x + beta, 1.0)))


@fault("hard-sigmoid.argument-clamped", clause="functions.hard-sigmoid")
def hard_sigmoid_argument(compute: Compute, c: Computation) -> Outputs:
    """HardSigmoid bounds its argument to 2.5 and -2.5 instead of its result, which suits its default coefficients."""
    return compute(_with(c, "HardSigmoid", lambda x, alpha, beta: alpha * np.clip(x, -2.5, 2.5) + beta))


@fault("hard-sigmoid.sixth", clause="functions.hard-sigmoid")
def hard_sigmoid_sixth(compute: Compute, c: Computation) -> Outputs:
    """HardSigmoid is relu6(x + 3) / 6, whatever alpha and beta are."""
    return compute(_with(c, "HardSigmoid", lambda x, alpha, beta: np.clip(x / 6 + 0.5, 0.0, 1.0)))


@fault("elu.no-alpha", clause="functions.elu", types=ALL_BUT_BFLOAT16)
def elu_without_alpha(compute: Compute, c: Computation) -> Outputs:
    """Elu leaves alpha out."""
    return compute(_with(c, "Elu", lambda x, alpha, beta: np.where(x >= 0, x, _negative(x, 1.0))))


@fault("elu.alpha-both-sides", clause="functions.elu")
def elu_alpha_on_both_sides(compute: Compute, c: Computation) -> Outputs:
    """Elu multiplies positive numbers by alpha too."""
    return compute(_with(c, "Elu", lambda x, alpha, beta: np.where(x >= 0, alpha * x, _negative(x, alpha))))


@fault("elu.minus-alpha", clause="functions.elu", types=ALL_BUT_BFLOAT16)
def elu_minus_alpha(compute: Compute, c: Computation) -> Outputs:
    """Elu is e^x - alpha below zero instead of alpha*(e^x - 1)."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.where(x >= 0, x, np.exp(np.minimum(x, 0.0)) - alpha)

    return compute(_with(c, "Elu", value))


@fault("softsign.squared", clause="functions.softsign", types=ALL_BUT_BFLOAT16)
def softsign_squared(compute: Compute, c: Computation) -> Outputs:
    """Softsign is x / (1 + x^2)."""
    return compute(_with(c, "Softsign", lambda x, alpha, beta: x / (1 + x * x)))


@fault("softsign.no-absolute", clause="functions.softsign")
def softsign_without_absolute(compute: Compute, c: Computation) -> Outputs:
    """Softsign is x / (1 + x), without the absolute value below the line."""
    return compute(_with(c, "Softsign", lambda x, alpha, beta: x / (1 + x)))


@fault("softplus.early-identity", clause="functions.softplus", types=ALL_BUT_BFLOAT16)
def softplus_early_identity(compute: Compute, c: Computation) -> Outputs:
    """Softplus is x itself above zero: what is to keep e^x from overflowing begins far too early."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.where(x > 0, x, np.log1p(np.exp(np.minimum(x, 0.0))))

    return compute(_with(c, "Softplus", value))


# e^-20 is less than half a unit of 20 in the other types: there it is no fault.
@fault("softplus.linear-above-20", clause="functions.softplus", types=("float64",))
def softplus_linear_above_20(compute: Compute, c: Computation) -> Outputs:
    """Softplus is x itself above 20, as PyTorch has it."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.where(x > 20, x, np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))

    return compute(_with(c, "Softplus", value))


@family("tanh.clamped-above-{}", 9, 8, 6, 5, 4, 3, proved=False, clause="functions.tanh", types=WIDE)
def tanh_clamped_above(most: float) -> Alteration:
    """Tanh, in ScaledTanh too, takes no argument above {0}: it stays at what it is there."""
    return lambda c: _with_tanh(c, lambda x: np.tanh(np.minimum(x, most)))


@family("tanh.clamped-below-{}", 9, 8, 6, 5, 4, 3, proved=False, clause="functions.tanh", types=WIDE)
def tanh_clamped_below(most: float) -> Alteration:
    """Tanh, in ScaledTanh too, takes no argument below -{0}: it stays at what it is there."""
    return lambda c: _with_tanh(c, lambda x: np.tanh(np.maximum(x, -most)))


@fault("tanh.overflow-below", clause="functions.saturation", table=VARIANTS)
def tanh_overflows_below(compute: Compute, c: Computation) -> Outputs:
    """Tanh, in ScaledTanh too, is NaN far below zero: e^-2x overflows above and below the line."""
    largest = np.log(c.configuration.format.largest)
    return compute(_with_tanh(c, lambda x: np.where(-2 * x > largest, np.nan, np.tanh(x))))


@fault("softplus.base-two", clause="functions.softplus", types=ALL_BUT_BFLOAT16)
def softplus_base_two(compute: Compute, c: Computation) -> Outputs:
    """Softplus takes the logarithm to base 2."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.asarray((np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))) / np.log(2))

    return compute(_with(c, "Softplus", value))

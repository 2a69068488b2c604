"""Activation functions of conforming kernels: the documents' formulas and alternatives.

Each evaluation maps (activation, argument in the work format, tensor format) to a result in the work format. All of
them stay within the activation envelope of the standard class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numbers.accuracy import Format
from ..numbers.activations import Activation

Array = NDArray[Any]
Evaluation = Callable[[Activation, Array, Format], Array]


def _exact(activation: Activation, x: Array, form: Format) -> Array:
    """Return the function, rounded once."""
    return activation(x.astype(np.float64)).astype(x.dtype)


def _formulas(activation: Activation, x: Array) -> dict[str, Callable[[], Array]]:
    """Evaluate the documents' formulas, with every operation and coefficient rounded to the work format."""
    kind = x.dtype.type
    a, b, one = kind(activation.alpha.value), kind(activation.beta.value), kind(1)
    return {
        "Tanh": lambda: np.tanh(x),
        "Sigmoid": lambda: one / (one + np.exp(-x)),
        "Affine": lambda: a * x + b,
        "LeakyRelu": lambda: np.where(x >= 0, x, a * x),
        "ThresholdedRelu": lambda: activation.kind.value(x, a, b),
        "ScaledTanh": lambda: a * np.tanh(b * x),
        "HardSigmoid": lambda: np.minimum(np.maximum(a * x + b, kind(0)), one),
        "Elu": lambda: np.where(x >= 0, x, a * (np.exp(x) - one)),
        "Softsign": lambda: x / (one + np.abs(x)),
        "Softplus": lambda: np.log(one + np.exp(x)),
    }


def _formula(activation: Activation, x: Array, form: Format) -> Array:
    formula = _formulas(activation, x).get(activation.name)
    return formula().astype(x.dtype) if formula else _exact(activation, x, form)


def _logistic(activation: Activation, x: Array, form: Format) -> Array:
    """Evaluate Tanh as 2 sigmoid(2x) - 1. It cancels near zero, where the envelope is absolute."""
    one, two = x.dtype.type(1), x.dtype.type(2)
    if activation.name == "Tanh":
        return np.asarray(two * (one / (one + np.exp(-(two * x)))) - one)
    return _formula(activation, x, form)


def _noise(x: Array) -> NDArray[np.float64]:
    """Return numbers in [-1, 1) with mean zero that depend on every bit of x: the finalizer of splitmix64."""
    with np.errstate(over="ignore"):
        z = x.astype(np.float64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1


def _off(activation: Activation, x: Array, form: Format, noise: NDArray[np.float64]) -> Array:
    """Evaluate primitives with an error of `noise` times three quarters of the standard envelope, plus roundings."""
    kind = x.dtype.type
    unit = 3 * form.unit * noise

    def primitive(exact: NDArray[np.float64]) -> Array:
        off: Array = exact + unit * (np.abs(exact) + 1)
        return off.astype(x.dtype)

    a, b, wide = kind(activation.alpha.value), kind(activation.beta.value), x.astype(np.float64)
    if activation.name in ("Tanh", "Sigmoid"):
        return primitive(activation(wide))
    if activation.name == "ScaledTanh":
        return np.asarray(a * primitive(np.tanh((b * x).astype(np.float64))))
    if activation.name == "Elu":
        return np.asarray(np.where(x >= 0, x, a * (primitive(np.exp(np.minimum(wide, 0))) - kind(1))))
    if activation.name == "Softplus":
        return primitive(np.log((kind(1) + primitive(np.exp(wide))).astype(np.float64)))
    return _formula(activation, x, form)


def _loose(activation: Activation, x: Array, form: Format) -> Array:
    return _off(activation, x, form, _noise(x))


def _edge(activation: Activation, x: Array, form: Format) -> Array:
    return _off(activation, x, form, np.where(_noise(x) < 0, -1.0, 1.0))


def _beside(x: Array, gaps: int, noise: Array) -> Array:
    """Return numbers moved by `gaps` neighbours in their format, to the side of the sign of `noise`; non-finite ones
    stay."""
    towards = np.where(noise < 0, -np.inf, np.inf).astype(x.dtype)
    moved = x
    for _ in range(gaps):
        moved = np.nextafter(moved, towards)
    return np.where(np.isfinite(moved), moved, x)


def _faithful(exact: NDArray[np.float64], x: Array) -> Array:
    """Return exact numbers rounded to a neighbour in the format of x, not always the nearer one: an error below 1
    ulp."""
    nearest: Array = exact.astype(x.dtype)
    if x.dtype.itemsize == 8:  # the oracle's own exp is only known to be a neighbour
        return nearest
    above = nearest.astype(np.float64) > exact
    other = np.nextafter(nearest, np.where(above, -np.inf, np.inf).astype(x.dtype))
    beyond = (nearest.astype(np.float64) == exact) | ~np.isfinite(other)
    return np.where(beyond | (_noise(x) < 0), nearest, other)


# Division and exp as in OpenCL's full profile, WGSL and SPIR-V: a quotient within 2.5 ulp, e^x within a few ulp.
# The rounding of a quotient is half an ulp, so two more ulps are 2.5.


def _by_division(activation: Activation, x: Array, form: Format, divided: Callable[[Array, Array], Array]) -> Array:
    """Evaluate the documents' formulas with a given division and an e^x within 1 ulp."""
    one = x.dtype.type(1)
    if activation.name in ("Tanh", "Sigmoid"):
        # Use the side where e^x is small: the quotient neither overflows nor has a subnormal reciprocal.
        power = -2 if activation.name == "Tanh" else -1
        small = _faithful(np.exp(power * np.abs(x.astype(np.float64))), x)
        above = one - small if activation.name == "Tanh" else np.where(x >= 0, one, small)
        quotient = divided(above.astype(x.dtype), one + small)
        return np.asarray(quotient * np.sign(x) if activation.name == "Tanh" else quotient)
    if activation.name == "Softsign":
        return np.asarray(divided(x, one + np.abs(x)))
    return _formula(activation, x, form)


def _divided(activation: Activation, x: Array, form: Format) -> Array:
    """Evaluate with quotients that are 2.5 ulp off."""
    return _by_division(activation, x, form, lambda above, below: _beside(above / below, 2, _noise(x)))


def _reciprocal(activation: Activation, x: Array, form: Format) -> Array:
    """Evaluate quotients as products with a reciprocal that is 2.5 ulp off."""
    one = x.dtype.type(1)
    return _by_division(activation, x, form, lambda above, below: above * _beside(one / below, 2, _noise(x)))


EVALUATIONS: dict[str, Evaluation] = {
    "exact": _exact,
    "formula": _formula,
    "logistic": _logistic,
    "loose": _loose,
    "edge": _edge,
    "divided": _divided,
    "reciprocal": _reciprocal,
}

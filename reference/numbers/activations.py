"""Activation functions of the recurrent operators, eleven in all, and their errors.

Each function has its value in float64, the points where it is not monotone, and a bound on the error of a conforming
kernel. Names and equations: the operators' documents, section "Activation functions".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .accuracy import ORACLE_ACTIVATION, ORACLE_UNIT, Budget

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coefficient:
    """An alpha or a beta: its value, and the radius of a conforming kernel's copy."""

    value: float
    radius: float = 0.0

    @staticmethod
    def of(value: float) -> Coefficient:
        """Return a default as documents print it. 0.01 has no exact float32: kernels may hold either neighbour."""
        single = float(np.float32(value))
        return Coefficient(single, abs(single - value))


@dataclass(frozen=True)
class ActivationKind:
    """Activation function of the documents' list.

    value(x, alpha, beta)
        The function, on float64 arrays.
    cost(low, high, image, alpha, beta, budget)
        Bound on a conforming kernel's own error, for exact input in [low, high] whose image is within +-image; alpha
        and beta are Coefficients.
    corners(alpha)
        (position, value) pairs that belong to the image of an interval around `position`, for functions that are not
        monotone or not continuous.
    slope, curvature
        For smooth functions: |f'| as a function of f's value and a factor of at least 1; and a bound on |f''|. They
        bound the image of an interval without two more evaluations.
    overflows
        Whether the document's formula has an intermediate (e^x) that overflows before its result does.
    """

    name: str
    uses_alpha: bool
    uses_beta: bool
    value: Callable[[Array, float, float], Array]
    cost: Callable[..., Array]
    default_alpha: float | None = None
    default_beta: float | None = None
    corners: Callable[[float], tuple[tuple[float, float], ...]] = lambda alpha: ()
    slope: Callable[[NDArray[Any], float], NDArray[Any]] | None = None
    curvature: float = 0.0
    overflows: bool = False


def _tanh(x: Array, alpha: float, beta: float) -> Array:
    return np.tanh(x)


def _sigmoid(x: Array, alpha: float, beta: float) -> Array:
    # 1/(1 + e^-x) without overflow; absolute error at most 2 * 2^-53, plus the relative error of tanh.
    half: Array = np.tanh(0.5 * x)
    half *= 0.5
    half += 0.5
    return half


def _relu(x: Array, alpha: float, beta: float) -> Array:
    return np.maximum(x, 0.0)


def _affine(x: Array, alpha: float, beta: float) -> Array:
    return alpha * x + beta


def _leaky_relu(x: Array, alpha: float, beta: float) -> Array:
    return np.where(x >= 0, x, alpha * x)


def _thresholded_relu(x: Array, alpha: float, beta: float) -> Array:
    return np.where(x >= alpha, x, np.zeros_like(x))


def _scaled_tanh(x: Array, alpha: float, beta: float) -> Array:
    return alpha * np.tanh(beta * x)


def _hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    return np.minimum(np.maximum(alpha * x + beta, 0.0), 1.0)


def _elu(x: Array, alpha: float, beta: float) -> Array:
    return np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0.0)))


def _softsign(x: Array, alpha: float, beta: float) -> Array:
    signed: Array = x / (1 + np.abs(x))
    return signed


def _softplus(x: Array, alpha: float, beta: float) -> Array:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


# Costs. u is one storage rounding (the oracle's own included); F is a bound on |f|, X one on |x|.
#
# A quotient may have a relative error of du (`division` of the class). Softsign's formula is a quotient, and its cost
# includes this. Sigmoid and Tanh are quotients too, but they are primitives, as is the tanh of ScaledTanh: (4|f| + 4)u
# covers both formulas with d = 6 and e^x within 1 ulp, which is 2u.
#   Sigmoid, x > 0: 1/(1 + e) = f. The sum is off by u + 2u e/(1 + e), and 1 times a reciprocal by 5u: f(8 - 2f)u, less
#   than (4f + 4)u since 2f^2 - 4f + 4 > 0. For x < 0 it is e times the reciprocal: f(9 + 2f)u, f at most 1/2.
#   Tanh, x > 0: (1 - e)/(1 + e) = f with e = e^-2x, so e/(1 + e) = (1 - f)/2. The difference is off by u(1 - e) + 2ue,
#   the sum by u(1 + e) + 2ue: 6f + 2f + f(1 - f) + (1 - f) = 1 + 8f - f^2, at most 4f + 4 since (f - 1)(f - 3) >= 0.


def _reach(low: Array, high: Array) -> Array:
    return np.maximum(np.abs(low), np.abs(high))


def _primitive(magnitude: Array, w: Budget) -> Array:
    """Return (a|f| + b)u, plus a flushed subnormal result and the oracle's own error."""
    return (w.a * w.unit + ORACLE_ACTIVATION) * magnitude + (w.b * w.unit + 2 * ORACLE_UNIT + w.least_normal)


def _primitive_cost(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    return _primitive(image, w)


def _free(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    # Selecting one of two numbers does not round.
    return np.zeros_like(image)


def _rounded(error: Array, magnitude: Array, w: Budget) -> Array:
    """Return the error after one more rounding of a number of at most `magnitude` with error `error`."""
    return error + w.unit * (magnitude + error) + w.floor


def _affine_cost(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    # The product is rounded, then the sum; each coefficient may be a rounded copy. HardSigmoid clamps afterwards, which
    # never increases an error; the rounding of the sum is that of the unclamped one.
    reach = _reach(low, high)
    product = _rounded(reach * alpha.radius, reach * abs(alpha.value), w)
    return _rounded(product + beta.radius, reach * abs(alpha.value) + abs(beta.value), w)


def _unclamped_cost(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    # alpha*x may leave the range where alpha*x + beta would not; HardSigmoid's clamp brings that back.
    product = _reach(low, high) * (abs(alpha.value) + alpha.radius)
    return np.where(product < w.largest, _affine_cost(low, high, image, alpha, beta, w), np.inf)


def _leaky_relu_cost(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    below = np.maximum(-low, 0.0)
    return below * (alpha.radius + w.unit * (abs(alpha.value) + alpha.radius)) + w.floor


def _thresholded_relu_cost(
    low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget
) -> Array:
    # Near the threshold both x and 0 are right if the kernel's copy of alpha is not exact.
    near = (low <= alpha.value + alpha.radius) & (high >= alpha.value - alpha.radius)
    return np.where(near, _reach(low, high) if alpha.radius else 0.0, 0.0)


def _scaled_tanh_cost(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    # beta*x is rounded and beta may be a copy; |tanh'| <= 1 bounds the effect, at most tanh's whole height. The
    # primitive is tanh: alpha multiplies its error, and the product is rounded once more.
    reach = _reach(low, high)
    moved = np.minimum(_rounded(reach * beta.radius, reach * abs(beta.value), w), 2.0)
    tanh = np.minimum(image / abs(alpha.value), 1.0) if alpha.value else np.zeros_like(image)
    off = moved + _primitive(np.minimum(tanh + moved, 1.0), w)
    return _rounded((abs(alpha.value) + alpha.radius) * off + alpha.radius * tanh, abs(alpha.value) * tanh, w)


def _elu_cost(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    # For x < 0: e^x within (a e^x + b)u, minus 1 (one rounding), times alpha (one rounding, maybe of a copy of alpha).
    depth = -np.expm1(np.minimum(low, 0.0))
    off = _rounded(_primitive(np.exp(np.minimum(high, 0.0)), w), depth, w)
    cost = _rounded((abs(alpha.value) + alpha.radius) * off + alpha.radius * depth, abs(alpha.value) * depth, w)
    return np.where(low < 0, cost, 0.0)


def _softsign_cost(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    # The denominator is rounded, the quotient is within its own envelope, and stored: (1 + u)(1 + du) / (1 - u); a
    # subnormal quotient costs d floors.
    off = ((1 + w.unit) * (1 + w.division * w.unit) / (1 - w.unit) - 1) * image + (1 + w.division) * w.floor
    # A reciprocal of 1 + |x| that is subnormal or zero loses digits, or all of them, before it is multiplied by x.
    reach = _reach(low, high)
    return off + np.where(reach >= 1 / w.least_normal - 1, np.minimum(reach * w.division * w.floor, image), 0.0)


def _softplus_cost(low: Array, high: Array, image: Array, alpha: Coefficient, beta: Coefficient, w: Budget) -> Array:
    # log(1 + e^x): log divides the error of e^x and the rounding of the sum by 1 + e^x:
    # ((a e^x + b)u + u(1 + e^x)) / (1 + e^x) <= (max(a, b) + 1)u, and 1 + 8u for the terms in u squared (max(a, b) is
    # 8 at most); then log's own envelope.
    return (max(w.a, w.b) + 1) * w.unit * (1 + 8 * w.unit) + _primitive(image, w)


ACTIVATIONS: dict[str, ActivationKind] = {
    k.name: k
    for k in (
        ActivationKind("Relu", False, False, _relu, _free),
        # tanh' = 1 - tanh^2, and |tanh''| is 4/(3 sqrt 3) at most; s' = s(1 - s), and |s''| is 1/(6 sqrt 3) at most.
        # The clamps keep slopes nonnegative where rounding moves the value beyond its range.
        ActivationKind(
            "Tanh",
            False,
            False,
            _tanh,
            _primitive_cost,
            slope=lambda f, one: np.maximum(one - f * f, 0.0),
            curvature=0.76981,
        ),
        ActivationKind(
            "Sigmoid",
            False,
            False,
            _sigmoid,
            _primitive_cost,
            slope=lambda f, one: np.maximum(f * (one - f), 0.0),
            curvature=0.09623,
        ),
        # Affine and ScaledTanh have no defaults in ONNX any more: see the interpretation `defaults`.
        ActivationKind("Affine", True, True, _affine, _unclamped_cost),
        ActivationKind(
            "LeakyRelu", True, False, _leaky_relu, _leaky_relu_cost, 0.01, corners=lambda alpha: ((0.0, 0.0),)
        ),
        ActivationKind(
            "ThresholdedRelu",
            True,
            False,
            _thresholded_relu,
            _thresholded_relu_cost,
            1.0,
            corners=lambda alpha: ((alpha, alpha), (alpha, 0.0)),
        ),
        ActivationKind("ScaledTanh", True, True, _scaled_tanh, _scaled_tanh_cost),
        ActivationKind("HardSigmoid", True, True, _hard_sigmoid, _affine_cost, 0.2, 0.5),
        ActivationKind("Elu", True, False, _elu, _elu_cost, 1.0, corners=lambda alpha: ((0.0, 0.0),)),
        ActivationKind("Softsign", False, False, _softsign, _softsign_cost),
        ActivationKind("Softplus", False, False, _softplus, _softplus_cost, overflows=True),
    )
}


# The interpretation of ThresholdedRelu in which x == alpha gives 0.
THRESHOLDED_RELU_ABOVE = replace(
    ACTIVATIONS["ThresholdedRelu"], value=lambda x, alpha, beta: np.where(x > alpha, x, np.zeros_like(x))
)


@dataclass(frozen=True)
class Activation:
    """An activation function with its coefficients."""

    kind: ActivationKind
    alpha: Coefficient = Coefficient(0.0)
    beta: Coefficient = Coefficient(0.0)

    @property
    def name(self) -> str:
        return self.kind.name

    def __call__(self, x: Array) -> Array:
        """Return the function's value on a float64 array of any shape."""
        return self.kind.value(x, self.alpha.value, self.beta.value)

    def widen(self, w: Budget) -> Activation:
        """Return the function with coefficients that a kernel of this budget may have rounded."""
        unit = w.coefficient_unit
        if not unit or not (self.kind.uses_alpha or self.kind.uses_beta):
            return self
        alpha, beta = (
            Coefficient(c.value, c.radius + (unit * abs(c.value) + w.floor if c.value else 0.0))
            for c in (self.alpha, self.beta)
        )
        return Activation(self.kind, alpha, beta)

    def interval_image(self, low: Array, value: Array, high: Array, w: Budget) -> tuple[Array, Array]:
        """Return value and radius on [low, high], from the interval's image and a conforming kernel's error."""
        if self.kind.slope is not None:
            return self.slope_image(value, np.maximum(high - value, value - low), w)
        first, centre, last = self(low), self(value), self(high)
        bottom = np.minimum(np.minimum(first, last), centre)
        top = np.maximum(np.maximum(first, last), centre)
        for position, corner in self.kind.corners(self.alpha.value):
            inside = (low <= position) & (position <= high)
            if inside.any():
                bottom = np.where(inside, np.minimum(bottom, corner), bottom)
                top = np.where(inside, np.maximum(top, corner), top)
        radius = np.maximum(top - centre, centre - bottom)
        radius += self.kind.cost(low, high, np.maximum(np.abs(bottom), np.abs(top)), self.alpha, self.beta, w)
        return centre, radius

    def slope_image(self, value: Array, reach: Array, w: Budget) -> tuple[Array, Array]:
        """Return value and radius, as :meth:`interval_image`, of a smooth function on [value - reach, value + reach].

        By Taylor: |f(x + d) - f(x)| <= d (|f'(x)| + d max|f''|/2), here without the half. Functions with a slope differ
        from any of their values by at most 1, or 2 for tanh, so no bound needs to be greater.
        """
        assert self.kind.slope is not None
        centre = self(value)
        # 2^-50 covers the error of the slope for a value that is itself rounded.
        size, one = (centre, 1.0) if reach.dtype == centre.dtype else (centre.astype(reach.dtype), _ONE_IN_SINGLE)
        radius = self.kind.slope(size, one)
        radius += self.kind.curvature * reach + 2.0**-50
        radius *= reach
        size = np.abs(size, out=size if size is not centre else None)
        if radius.max(initial=0.0) > 1:
            np.minimum(radius, 1 + size, out=radius)
        size += radius
        radius += self.kind.cost(value, value, np.minimum(size, 1.0, out=size), self.alpha, self.beta, w)
        return centre, radius


_ONE_IN_SINGLE = 1 + 2.0**-22
"""Replacement of 1 in slopes of values rounded to float32. There 1 - f^2 has an error of 2^-23 and f (1 - f) one of
2^-22 f, all roundings included."""


def kind_named(name: str) -> ActivationKind | None:
    """Return the function of that name in any letter case (interpretation `letter-case`), or None."""
    return _BY_LOWER_CASE.get(name.lower()) if isinstance(name, str) else None


_BY_LOWER_CASE: dict[str, ActivationKind] = {name.lower(): kind for name, kind in ACTIVATIONS.items()}

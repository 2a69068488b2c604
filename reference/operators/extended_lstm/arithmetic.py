"""Arithmetics of ExtendedLSTM: those of any recurrent operator, with products of levels.

There are three kinds to declare. None comes from the document, whose summary says bfloat16 and whose attributes say
uint16:

``fixed-point``
    Levels are multiplied as integers, scale products are held in mantissas of 15 bits or more, pre-activations in 24
    fractional bits; gates and states in float32.
``float32``
    Dequantized numbers in float32, as with QDQ nodes around an LSTM.
``bfloat16``
    The same with operands and stored numbers in bfloat16, sums in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.accuracy import budget
from ...numbers.affine import Affine
from ...numbers.bounded import Bounded, Sum
from ...numbers.bounding import Bounding
from ...numbers.plain import Ordered

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Operand:
    """A factor of products: a quantized tensor, or states.

    value
        The numbers that its levels represent.
    radius
        One scale where the level is undecided, because the quotient is near a tie; else zero.
    affine
        Its quantization; None for a state that is not quantized.
    known
        Whether the levels are those that the target has. If not, only the value is known.
    """

    value: Array
    radius: Array
    affine: Affine | None
    known: bool = True

    @property
    def scale(self) -> float:
        """The scale; zero where there is no quantization."""
        return 0.0 if self.affine is None else self.affine.scale

    @property
    def centre(self) -> int:
        """The zero point minus 32768."""
        return 0 if self.affine is None else self.affine.zero_point - MIDDLE

    @property
    def centred(self) -> Array:
        """Levels minus 32768: the factors of fixed-point arithmetic. Zero where there is no quantization."""
        if self.affine is None:
            return np.zeros_like(self.value)
        return self.affine.levels(self.value).astype(np.float64) - MIDDLE

    def __getitem__(self, index: Any) -> Operand:
        return replace(self, value=self.value[index], radius=self.radius[index])

    def followed_by(self, rest: Operand) -> Operand:
        """Return the operand followed by another one along the first axis."""
        value, radius = (np.concatenate(pair) for pair in ((self.value, rest.value), (self.radius, rest.radius)))
        return replace(self, value=value, radius=radius)

    def started(self, number: float | Array) -> Operand:
        """Return the states with another first state."""
        value = self.value.copy()
        value[:1] = number
        return replace(self, value=value)


MIDDLE = 32768
"""The level that fixed-point arithmetic takes for zero."""


def saturated(y: Affine, hidden: Array) -> Array:
    """Return Ht limited to the range of levels, not yet rounded to a level."""
    return np.clip(hidden, y.least, y.greatest)


ARITHMETICS = {"fixed-point": "standard", "float32": "standard", "bfloat16": "bf16-storage"}
"""The kinds of arithmetic, and the accuracy class (for float32 tensors) that has the roundings of their floats."""

STATES = ("quantized", "as-computed")
"""The state that goes into the next step where Y is quantized: Y itself, or Ht before quantization."""

# Relative error of a mantissa of 15 bits or more: half a unit, of at least 2^14 units.
_MANTISSA = 2.0**-15
# Error of one rounding to 24 fractional bits, half a unit; each of the five terms of a pre-activation has one.
_FRACTION = 2.0**-25
_TERMS = 5
_UNIT = 2.0**-24


class Requantized(Ordered):
    """Plain numbers, with Ht rounded by `y` before the next step."""

    def __init__(self, y: Affine | None) -> None:
        self._y = y

    def feedback(self, hidden: Array) -> Array:
        return hidden if self._y is None else self._y.rounded(hidden)


class Leveled(Bounding):
    """Bounded numbers with products of levels: X, W, R and states are :class:`Operand`.

    kind, fed_back
        A key of ARITHMETICS and a member of STATES; ValueError for others.
    y
        Quantization of Y; None where Y is not quantized.
    state
        Change that an implementation makes to the states before all steps.
    """

    def __init__(self, kind: str, y: Affine | None, fed_back: str, state: Callable[[Operand], Operand]) -> None:
        if kind not in ARITHMETICS or fed_back not in STATES:
            raise ValueError(
                f"arithmetic is one of {', '.join(ARITHMETICS)} and state of {', '.join(STATES)}, "
                f"not {kind}, {fed_back}"
            )
        super().__init__(budget(ARITHMETICS[kind], "float32"))
        self._y, self._fed_back, self._state = y, fed_back, state
        self._fixed, self._wide = kind == "fixed-point", kind != "bfloat16"

    def exact(self, value: Array) -> Bounded:
        """Return numbers without error."""
        return Bounded(value, np.zeros_like(value), self.budget)

    def bias(self, b: Operand) -> Bounded:
        """Return a bias with the error that it has in sums."""
        rounding = _FRACTION if self._fixed else 0.0
        return Bounded(b.value, b.radius + self.budget.unit * np.abs(b.value) + rounding, self.budget)

    def weights(self, matrix: Any) -> Any:
        """Return an operand for :meth:`product`."""
        return matrix

    def reported_state(self, value: Array) -> Any:
        """Return the state that a target reported, as input of the next step."""
        y = self._y
        if y is None:
            # No quantization: the state may be stored with more precision than the reported one.
            return Operand(value, super().reported_state(value).radius, None)
        number = y.rounded(value)
        operand = Operand(number, np.zeros_like(number), y)
        if not self._wide:
            # Narrow floats may report a rounded copy of the stored level.
            operand = replace(operand, radius=self.budget.unit * np.abs(operand.value))
        if self._fed_back == "quantized":
            return operand
        # Any number that quantizes to the level. End levels reach out to 1, which no state exceeds.
        radius = operand.radius
        low, high = number - radius - y.scale / 2, number + radius + y.scale / 2
        low = np.where(number - radius <= y.least, np.minimum(-1.0, low), low)
        high = np.where(number + radius >= y.greatest, np.maximum(1.0, high), high)
        return replace(operand, value=(low + high) / 2, radius=(high - low) / 2)

    def concatenate(self, numbers: Sequence[Any], axis: int = 0) -> Any:
        """Return numbers joined along an axis; for operands, the state before the first step and the reported
        states."""
        if not isinstance(numbers[-1], Operand):
            return super().concatenate(numbers, axis)
        initial, reported = numbers
        return self._state(self._started(initial.value).followed_by(reported))

    def _started(self, initial: Array) -> Operand:
        start: Operand = self.reported_state(initial)
        if self._y is not None and self._fed_back == "as-computed":
            return replace(start, value=initial, radius=np.zeros_like(initial))
        return start

    def feedback(self, hidden: Bounded) -> Any:
        """Return Ht of a free run as input of the next step."""
        return self._computed(hidden, self.quantized(hidden, saturated))

    def _computed(self, hidden: Bounded, shown: Bounded) -> Operand:
        """Return the state that goes into the next step, from Ht and the number reported for it."""
        y, unit = self._y, self.budget.unit
        if y is None:
            radius = hidden.radius + unit * np.abs(hidden.value)
            return Operand(hidden.value, radius, None)
        if self._fed_back == "as-computed":
            value, radius = hidden.value, hidden.radius + unit * np.abs(hidden.value)
        else:
            # The reported level is at most half a level from the reported number.
            value = y.rounded(shown.value)
            radius = shown.radius + np.abs(shown.value - value)
        return Operand(value, radius, y, known=False)

    def quantized(self, hidden: Bounded, number: Callable[[Affine, Array], Array]) -> Bounded:
        """Return Y as a target reports it for Ht: quantized by `number` where y_scale is given."""
        y = self._y
        if y is None:
            return hidden
        value = number(y, hidden.value)
        radius = hidden.radius + y.scale / 2
        if self._fixed:
            # Rounding to 24 fractional bits, with an error of a whole unit where the sign is lost; then a mantissa of
            # 16 bits to get the level.
            radius = radius + 2 * _FRACTION + _MANTISSA / 2 * np.abs(hidden.value)
        else:
            # The quotient by y_scale, in float32.
            radius = radius + 2 * _UNIT * np.abs(hidden.value)
        radius = radius + _UNIT * np.abs(value) + _UNIT * y.scale
        return replace(hidden, value=value, radius=radius, proportion=None)

    def product(self, x: Any, weights: Any) -> Sum:
        """Return x (T, N, K) times the transposed weights (4H, K): (T, N, 4H)."""
        if isinstance(x, Bounded):  # the state before the first step of a free run
            x = self._computed(x, x)
        product = super().product(Bounded(x.value, x.radius, self.budget), super().weights(weights.value))
        error = product.error
        if weights.radius.any():
            error = error + (np.abs(x.value) + x.radius) @ weights.radius.T
        if not self._fixed or x.scale == 0:
            # Dequantizing to float32 rounds each operand; so does storing a state that is not quantized.
            return product.with_error(error + 2 * _UNIT * (1 + _UNIT) * product.magnitude)
        return self._fixed_point(x, weights, product, error)

    def _fixed_point(self, x: Operand, w: Operand, product: Sum, error: Array) -> Sum:
        """Return the product in fixed point.

        With a and b the levels minus 32768, and p and q the zero points minus 32768:

            sum (a - p)(b - q) = sum ab - q sum a - p sum b + n p q

        Each part is exact as an integer. It is multiplied by a scale product that a mantissa holds, with an error of
        2^-15 of the part's size. Before that the first part may lose bits to fit: half of 2^ceil(log2 n) products of
        units. Every part is rounded to 24 fractional bits.
        """
        unit, terms = x.scale * w.scale, x.value.shape[-1]
        parts = np.abs(x.centred @ w.centred.T)
        if w.centre:
            parts = parts + abs(w.centre) * np.abs(x.centred.sum(-1, keepdims=True))
        if x.centre:
            parts = parts + abs(x.centre) * np.abs(w.centred.sum(-1))
        parts = parts + terms * abs(x.centre * w.centre)
        lost = 0.5 * 2.0 ** math.ceil(math.log2(terms)) * unit if terms > 1 else 0.5 * unit
        radius = error + _MANTISSA * unit * parts + lost + _TERMS / 2 * _FRACTION
        if not x.known:
            # The same errors for levels that are off by the radius, and by half a level where states are not levels.
            levels = x.radius / x.scale + 0.5
            parts = levels @ np.abs(w.centred).T + abs(w.centre) * levels.sum(-1, keepdims=True)
            radius = radius + _MANTISSA * x.scale * w.scale * parts
        # The sum itself is exact, so it counts as one term for roundings of sums.
        fixed = np.stack((radius, product.spread, product.spread))
        return Sum(product.value, fixed, 1, product.groups, product.budget, product.doubt)

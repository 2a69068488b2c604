"""The arithmetics of ExtendedLSTM: those of any recurrent operator, with levels where they multiply.

Three kinds are declared, none by the document, whose summary says bfloat16 and whose attributes say uint16:

``fixed-point``
    Levels are multiplied as integers, scale products held in mantissas of 15 bits or more, pre-activations in 24
    fractional bits; gates and states in float32.
``float32``
    Dequantized numbers in float32, as by QDQ nodes around an LSTM.
``bfloat16``
    The same with operands and stored numbers in bfloat16, sums in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.accuracy import budget
from ...numbers.affine import Affine
from ...numbers.bounded import Bounded, Sum
from ...numbers.bounding import Bounding
from ...numbers.plain import Ordered
from .stages import Operand, saturated

Array = NDArray[np.float64]

ARITHMETICS = {"fixed-point": "standard", "float32": "standard", "bfloat16": "bf16-storage"}
"""The declared kinds of arithmetic, and the accuracy class (for float32 tensors) whose roundings their floats have."""

STATES = ("quantized", "as-computed")
"""The part of a quantized Y that goes into the next step: Y itself, or Ht before that."""

# The cost of one mantissa of 15 bits or more: rounded by half a unit, it is 2^14 units at least.
_MANTISSA = 2.0**-15
# One rounding to 24 fractional bits, by half a unit; the five terms of a pre-activation have one each.
_FRACTION = 2.0**-25
_TERMS = 5
_UNIT = 2.0**-24


class Requantized(Ordered):
    """Plain numbers; Ht goes into the next step as `y` rounds it."""

    def __init__(self, y: Affine | None) -> None:
        self._y = y

    def feedback(self, hidden: Array) -> Array:
        return hidden if self._y is None else self._y.rounded(hidden)


class Leveled(Bounding):
    """Bounded numbers of which products are those of levels: X, W, R and states are :class:`.stages.Operand`.

    kind, fed_back
        Of ARITHMETICS and STATES; ValueError for what is in neither.
    y
        How Y is quantized; None where it is not.
    state
        What an implementation makes of the states before all steps.
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
        """Return a bias as it takes part in sums."""
        rounding = _FRACTION if self._fixed else 0.0
        return Bounded(b.value, b.radius + self.budget.unit * np.abs(b.value) + rounding, self.budget)

    def weights(self, matrix: Any) -> Any:
        """Return an operand for :meth:`product`."""
        return matrix

    def reported_state(self, value: Array) -> Any:
        """Return the state that a target reported, as it goes into the next step."""
        y = self._y
        if y is None:
            # No quantization: the state may be held wider than it is shown.
            return Operand(value, super().reported_state(value).radius, np.zeros_like(value), 0, 0.0)
        operand = Operand.from_levels(y, y.levels(value))
        if not self._wide:
            # Narrow floats may show a rounded copy of the level that is held.
            operand = replace(operand, radius=self.budget.unit * np.abs(operand.value))
        if self._fed_back == "quantized":
            return operand
        # Anything that quantizes to the level; from the ends on to 1, which no state exceeds.
        number, radius = operand.value, operand.radius
        low, high = number - radius - y.scale / 2, number + radius + y.scale / 2
        low = np.where(number - radius <= y.least, np.minimum(-1.0, low), low)
        high = np.where(number + radius >= y.greatest, np.maximum(1.0, high), high)
        return replace(operand, value=(low + high) / 2, radius=(high - low) / 2)

    def concatenate(self, numbers: Sequence[Any], axis: int = 0) -> Any:
        """Return numbers joined along an axis; of operands the state before the first step, and those that were
        reported."""
        if not isinstance(numbers[-1], Operand):
            return super().concatenate(numbers, axis)
        initial, reported = numbers
        return self._state(self._started(initial.value).followed_by(reported))

    def before(self, initial: Array, reported: Array) -> Operand:
        """Return the states before all steps, from the first one and those that were reported."""
        return self._state(self._started(initial).followed_by(self.reported_state(reported)))

    def _started(self, initial: Array) -> Operand:
        start: Operand = self.reported_state(initial)
        if self._y is not None and self._fed_back == "as-computed":
            return replace(start, value=initial, radius=np.zeros_like(initial))
        return start

    def feedback(self, hidden: Bounded) -> Any:
        """Ht of a free run as it goes into the next step."""
        return self._computed(hidden, self.quantized(hidden, saturated))

    def _computed(self, hidden: Bounded, shown: Bounded) -> Operand:
        """Return the state that goes into the next step, from Ht and what is shown for it."""
        y, unit = self._y, self.budget.unit
        if y is None:
            radius = hidden.radius + unit * np.abs(hidden.value)
            return Operand(hidden.value, radius, np.zeros_like(hidden.value), 0, 0.0)
        if self._fed_back == "as-computed":
            value, radius = hidden.value, hidden.radius + unit * np.abs(hidden.value)
        else:
            # The level that is shown: half of one at most from the number that is.
            value = y.rounded(shown.value)
            radius = shown.radius + np.abs(shown.value - value)
        levels = Operand.from_levels(y, y.levels(value), known=False)
        return replace(levels, value=value, radius=radius)

    def quantized(self, hidden: Bounded, number: Callable[[Affine, Array], Array]) -> Bounded:
        """Y as a target shows it for Ht: quantized where y_scale is given, `number` of it."""
        y = self._y
        if y is None:
            return hidden
        value = number(y, hidden.value)
        radius = hidden.radius + y.scale / 2
        if self._fixed:
            # To 24 fractional bits, off by a whole unit where the sign is lost, and by a mantissa of 16 bits to a
            # level.
            radius = radius + 2 * _FRACTION + _MANTISSA / 2 * np.abs(hidden.value)
        else:
            # The quotient by y_scale, in float32.
            radius = radius + 2 * _UNIT * np.abs(hidden.value)
        radius = radius + _UNIT * np.abs(value) + _UNIT * y.scale
        return replace(hidden, value=value, radius=radius, proportion=None)

    def product(self, x: Any, weights: Any) -> Sum:
        """x (T, N, K) times the transposed weights (4H, K): (T, N, 4H)."""
        if isinstance(x, Bounded):  # the state before the first step of a free run
            x = self._computed(x, x)
        product = super().product(Bounded(x.value, x.radius, self.budget), super().weights(weights.value))
        error = product.error
        if weights.radius.any():
            error = error + (np.abs(x.value) + x.radius) @ weights.radius.T
        if not self._fixed or x.scale == 0:
            # Dequantizing to float32 rounds each operand; so does holding a state that nothing quantizes.
            return product.with_error(error + 2 * _UNIT * (1 + _UNIT) * product.magnitude)
        return self._fixed_point(x, weights, product, error)

    def _fixed_point(self, x: Operand, w: Operand, product: Sum, error: Array) -> Sum:
        """Return the product in fixed point. With levels a and b less 32768, and zero points p and q likewise,

            sum (a - p)(b - q) = sum ab - q sum a - p sum b + n p q

        each part is exact as an integer, and multiplied with a scale product that a mantissa holds: 2^-15 of each
        part's size. Before that the first part may lose bits to fit: half of 2^ceil(log2 n) products of units. Every
        part is rounded to 24 fractional bits.
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
            # It costs for levels that are off by the radius and, where states are no levels at all, by half of one.
            levels = x.radius / x.scale + 0.5
            parts = levels @ np.abs(w.centred).T + abs(w.centre) * levels.sum(-1, keepdims=True)
            radius = radius + _MANTISSA * x.scale * w.scale * parts
        # The sum itself is exact: one term, as far as roundings of a sum go.
        fixed = np.stack((radius, product.spread, product.spread))
        return Sum(product.value, fixed, 1, product.groups, product.budget, product.doubt)

"""Arithmetic that proves that no conforming implementation rounds a number.

A format with enough digits holds a number m * 2^e exactly. Let all terms of a sum be multiples of 2^e whose absolute
values add up to no more than 2^(p + e). Then every partial sum in every order is such a number too. So a format of p
digits rounds nothing: neither the sum, nor parts of it that are stored. Dyadic data with piecewise-linear activations
keeps this property for some steps. A number for which it does not hold raises AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from onnxspec.reference import Format
from onnxspec.reference.numbers.activations import Activation

Array = NDArray[np.float64]

# Activations that compute only a product, a sum and a choice.
LINEAR = frozenset({"Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "HardSigmoid"})

# The place of the last digit of zero, which is a multiple of every number.
_NOWHERE = 1 << 12


def _last_digit(x: Array) -> NDArray[np.int64]:
    """Return the exponent of the last binary digit of each number."""
    fraction, exponent = np.frexp(x)
    digits = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    _, lowest = np.frexp((digits & -digits).astype(np.float64))  # one place above the lowest digit
    return np.where(digits == 0, _NOWHERE, exponent.astype(np.int64) + (lowest - 54))


class Dyadic(Struct, frozen=True):
    """Sums whose terms are not yet added.

    magnitude, digit
        The sum of the terms' absolute values, and the exponent of their last digit.
    """

    value: Array
    magnitude: Array
    digit: NDArray[np.int64]
    form: Format

    @staticmethod
    def of(value: Array, form: Format) -> Dyadic:
        """Return numbers that the format holds exactly."""
        return Dyadic(value, np.abs(value), _last_digit(value), form).settled()

    def settled(self) -> Dyadic:
        """Return the sum as a number, of which no partial sum needs more digits than the format has."""
        last = np.clip(self.digit, -2000, 1000 - self.form.precision).astype(np.float64)
        assert (self.magnitude <= np.exp2(self.form.precision + last)).all()
        assert (self.magnitude <= self.form.largest).all()
        assert (self.digit >= np.log2(self.form.least_subnormal)).all()
        return Dyadic(self.value, np.abs(self.value), _last_digit(self.value), self.form)

    def __getitem__(self, index: Any) -> Dyadic:
        return _each(lambda array: array[index], self)

    def __len__(self) -> int:
        return len(self.value)

    def __add__(self, other: Dyadic) -> Dyadic:
        if not isinstance(other, Dyadic):  # an input that is absent takes part in its own way
            return NotImplemented
        digit = np.minimum(self.digit, other.digit)
        return Dyadic(self.value + other.value, self.magnitude + other.magnitude, digit, self.form)

    def __mul__(self, other: Dyadic) -> Dyadic:
        if not isinstance(other, Dyadic):
            return NotImplemented
        # The magnitudes are those of the sums multiplied out: a kernel may do that, and then round each product.
        value = self.settled().value * other.settled().value
        digit = np.minimum(self.digit + other.digit, _NOWHERE)
        return Dyadic(value, self.magnitude * other.magnitude, digit, self.form)

    def __rsub__(self, number: float) -> Dyadic:
        return (Dyadic.of(np.asarray(number), self.form) + -self.settled()).settled()

    def __neg__(self) -> Dyadic:
        return Dyadic(-self.value, self.magnitude, self.digit, self.form)


def _each(change: Callable[..., NDArray[Any]], *numbers: Dyadic) -> Dyadic:
    """Return the numbers whose arrays are `change` of those of `numbers`."""
    parts = (change(*(getattr(n, name) for n in numbers)) for name in ("value", "magnitude", "digit"))
    return Dyadic(*parts, numbers[0].form)


class Proving:
    """Arithmetic of proofs, for one tensor type."""

    def __init__(self, form: Format) -> None:
        self.form = form

    def exact(self, value: Array) -> Dyadic:
        return Dyadic.of(value, self.form)

    def carry_state(self, state: Dyadic) -> Dyadic:
        return state.settled()

    feedback = carry_state

    def weights(self, matrix: Array) -> Dyadic:
        return self.exact(matrix.T)

    def product(self, x: Dyadic, weights: Dyadic) -> Dyadic:
        """Return x (..., columns) times the transposed weight matrix: (..., rows), with all terms of each sum."""
        x = x.settled()
        digit = np.minimum((x.digit[..., np.newaxis] + weights.digit).min(axis=-2), _NOWHERE)
        return Dyadic(x.value @ weights.value, np.abs(x.value) @ np.abs(weights.value), digit, self.form)

    def activate(self, activation: Activation, argument: Dyadic, clip: float | None) -> Dyadic:
        assert activation.name in LINEAR
        assert activation.alpha.radius == activation.beta.radius == 0
        x = argument.settled().value if clip is None else np.clip(argument.settled().value, -clip, clip)
        if activation.name != "Relu":
            self.exact(np.asarray(activation.alpha.value))  # a rounded threshold would be another one
        if activation.name in ("Affine", "HardSigmoid", "LeakyRelu"):
            (self.exact(activation.alpha.value * x) + self.exact(np.asarray(activation.beta.value))).settled()
        return self.exact(activation(x))

    def concatenate(self, numbers: Sequence[Dyadic], axis: int = 0) -> Dyadic:
        return _each(lambda *arrays: np.concatenate(arrays, axis), *numbers)

    def stack(self, steps: Sequence[Dyadic]) -> Dyadic:
        return self.concatenate([step[np.newaxis] for step in steps])

    def interpolation(self, share: Dyadic, new: Dyadic, old: Dyadic) -> Dyadic:
        """Return (1 - z) * h + z * H, exact in every form that kernels compute."""
        z, h, H = share.settled(), new.settled(), old.settled()
        rest = 1.0 - z
        for way in (
            h + (z * (H + -h).settled()).settled(),
            H + (rest * (h + -H).settled()).settled(),
            (h + (z * -h).settled()).settled() + (z * H).settled(),
            (H + (rest * -H).settled()).settled() + (rest * h).settled(),
        ):
            way.settled()
        return ((rest * h).settled() + (z * H).settled()).settled()

    def recurrence(self, factor: Dyadic, term: Dyadic, start: Dyadic) -> Dyadic:
        """Return all C_t = factor_t * C_(t-1) + term_t, t along the first axis."""
        steps = []
        for t in range(len(term)):
            start = (factor[t] * start + term[t].settled()).settled()
            steps.append(start)
        return self.stack(steps)

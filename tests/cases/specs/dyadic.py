"""Proofs that no conforming implementation rounds a number.

A format with enough digits holds a number m * 2^e exactly. Let all terms of a sum be multiples of 2^e whose absolute
values add up to no more than 2^(p + e). Then every partial sum in every order is such a number too. So a format of p
digits rounds nothing: neither the sum, nor parts of it that are stored. Dyadic data with piecewise-linear activations
keeps this property for some steps; as long as it does, the tolerance is zero.
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
Mask = NDArray[np.bool_]

# Activations that compute only a product, a sum and a choice.
LINEAR = frozenset({"Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "HardSigmoid"})

# The place of the last digit of zero, which is a multiple of every number.
_NOWHERE = 1 << 12


def provable(activations: tuple[tuple[Activation, ...], ...]) -> bool:
    """Return whether all functions are piecewise linear with exact coefficients."""
    functions = [f for fs in activations for f in fs]
    exact = all(f.alpha.radius == 0 and f.beta.radius == 0 for f in functions)
    return exact and all(f.name in LINEAR for f in functions)


def _last_digit(x: Array) -> NDArray[np.int64]:
    """Return the exponent of the last binary digit of each number that is finite and not zero."""
    fraction, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    digits = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    _, lowest = np.frexp((digits & -digits).astype(np.float64))  # one place above the lowest digit
    return np.where(digits == 0, _NOWHERE, exponent.astype(np.int64) + (lowest - 54))


def _fits(magnitude: Array, digit: NDArray[np.int64], form: Format) -> Mask:
    """Return the elements where a format has enough digits for every partial sum of terms.

    The absolute values of the terms add up to `magnitude`, and their last digit is at `digit`.
    """
    last = np.maximum(digit, -2000).astype(np.float64)
    fits = magnitude <= np.exp2(np.minimum(form.precision + last, 1000.0))
    within: Mask = (magnitude <= form.largest) & (digit >= np.log2(form.least_subnormal))
    return within & fits


class Dyadic(Struct, frozen=True):
    """Sums whose terms are not yet added, with the proof that they are exact.

    value
        NaN where a conforming implementation may round.
    magnitude, digit
        The sum of the terms' absolute values, and the exponent of their last digit.
    """

    value: Array
    magnitude: Array
    digit: NDArray[np.int64]
    form: Format

    @staticmethod
    def of(value: Array, form: Format) -> Dyadic:
        """Return numbers, exact where the format has the digits for them."""
        return Dyadic(value, np.abs(value), _last_digit(value), form).settled()

    @property
    def exact(self) -> Mask:
        """Where every conforming implementation holds exactly this value."""
        return np.isfinite(self.value)

    def settled(self) -> Dyadic:
        """Return the sum as a number, exact where no partial sum needs more digits than the format has."""
        value = np.where(_fits(self.magnitude, self.digit, self.form), self.value, np.nan)
        return Dyadic(value, np.abs(value), _last_digit(value), self.form)

    def __getitem__(self, index: Any) -> Dyadic:
        return _each(lambda array: array[index], self)

    def __len__(self) -> int:
        return len(self.value)

    def transpose(self, *axes: int) -> Dyadic:
        return _each(lambda array: array.transpose(*axes), self)

    def __add__(self, other: Dyadic) -> Dyadic:
        if not isinstance(other, Dyadic):  # an input that is absent takes part in its own way
            return NotImplemented
        digit = np.minimum(self.digit, other.digit)
        return Dyadic(self.value + other.value, self.magnitude + other.magnitude, digit, self.form)

    def __mul__(self, other: Dyadic) -> Dyadic:
        if not isinstance(other, Dyadic):  # an input that is absent takes part in its own way
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

    def feedback(self, hidden: Dyadic) -> Dyadic:
        """Return the hidden state as the next step of a free run uses it."""
        return self.carry_state(hidden)

    def carry_state(self, state: Dyadic) -> Dyadic:
        return state.settled()

    def weights(self, matrix: Array) -> Dyadic:
        return self.exact(matrix.T)

    def product(self, x: Dyadic, weights: Dyadic) -> Dyadic:
        """Return x (..., columns) times the transposed weight matrix: (..., rows).

        The proof takes all terms of each sum at once.
        """
        x = x.settled()
        digit = np.minimum((x.digit[..., np.newaxis] + weights.digit).min(axis=-2), _NOWHERE)
        return Dyadic(x.value @ weights.value, np.abs(x.value) @ np.abs(weights.value), digit, self.form)

    def activate(self, activation: Activation, argument: Dyadic, clip: float | None) -> Dyadic:
        x = argument.settled()
        if clip is not None:
            x = self.exact(np.clip(x.value, -clip, clip))
        scaled = self.exact(activation.alpha.value * x.value)
        if activation.name == "LeakyRelu":
            return self.where(x.value >= 0, x, scaled)
        # Relu and ThresholdedRelu choose between numbers; no other functions are exact. If the format does not hold the
        # threshold, its rounded copy is another threshold.
        exact = x.exact & (activation.name in LINEAR)
        if activation.name in ("Affine", "HardSigmoid"):
            exact = (scaled + self.exact(np.asarray(activation.beta.value))).settled().exact
        elif activation.name == "ThresholdedRelu":
            exact = exact & self.exact(np.asarray(activation.alpha.value)).exact
        return self.exact(np.where(exact, activation(x.value), np.nan))

    def concatenate(self, numbers: Sequence[Dyadic], axis: int = 0) -> Dyadic:
        return _each(lambda *arrays: np.concatenate(arrays, axis), *numbers)

    def stack(self, steps: Sequence[Dyadic]) -> Dyadic:
        return self.concatenate([step[np.newaxis] for step in steps])

    def where(self, mask: Mask, number: Dyadic, otherwise: Dyadic) -> Dyadic:
        return _each(lambda array, other: np.where(mask, array, other), number, otherwise)

    def interpolation(self, share: Dyadic, new: Dyadic, old: Dyadic) -> Dyadic:
        """Return (1 - z) * h + z * H, exact where every form that kernels compute is exact."""
        z, h, H = share.settled(), new.settled(), old.settled()
        rest = 1.0 - z
        ways = (
            (rest * h).settled() + (z * H).settled(),
            h + (z * (H + -h).settled()).settled(),
            H + (rest * (h + -H).settled()).settled(),
            (h + (z * -h).settled()).settled() + (z * H).settled(),
            (H + (rest * -H).settled()).settled() + (rest * h).settled(),
        )
        exact = np.logical_and.reduce([way.settled().exact for way in ways])
        return self.exact(np.where(exact, ways[0].value, np.nan))

    def recurrence(self, factor: Dyadic, term: Dyadic, start: Dyadic) -> Dyadic:
        """Return all C_t = factor_t * C_(t-1) + term_t, t along the first axis."""
        steps = []
        for t in range(len(term)):
            start = (factor[t] * start + term[t].settled()).settled()
            steps.append(start)
        return self.stack(steps)

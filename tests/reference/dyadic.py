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
    """Numbers, or sums whose terms are not yet added, with the proof that they are exact.

    exact
        Where every conforming implementation holds exactly this value.
    magnitude, digit
        Of a sum: the sum of its terms' absolute values, and the exponent of their last digit.
    single
        Whether these are numbers, exact as far as the format has the digits for them; `settled` returns them unchanged.
    """

    value: Array
    exact: Mask
    magnitude: Array
    digit: NDArray[np.int64]
    form: Format
    single: bool = False

    @staticmethod
    def of(value: Array, exact: Mask, form: Format) -> Dyadic:
        """Return single numbers, exact where `exact` says so and the format has the digits for them."""
        magnitude, digit = np.abs(value), _last_digit(value)
        exact = exact & np.isfinite(value) & _fits(magnitude, digit, form)
        return Dyadic(value, exact, magnitude, digit, form, True)

    def settled(self) -> Dyadic:
        """Return the sum as a number, exact where no partial sum needs more digits than the format has."""
        if self.single:
            return self
        exact = self.exact & _fits(self.magnitude, self.digit, self.form)
        return Dyadic(self.value, exact, np.abs(self.value), _last_digit(self.value), self.form, True)

    def __getitem__(self, index: Any) -> Dyadic:
        return self._each(lambda array: array[index])

    def _each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Dyadic:
        value, exact = change(self.value), change(self.exact)
        return Dyadic(value, exact, change(self.magnitude), change(self.digit), self.form, self.single)

    def __len__(self) -> int:
        return len(self.value)

    def transpose(self, *axes: int) -> Dyadic:
        return self._each(lambda array: array.transpose(*axes))

    def __add__(self, other: Dyadic) -> Dyadic:
        if not isinstance(other, Dyadic):
            return NotImplemented
        return Dyadic(
            self.value + other.value,
            self.exact & other.exact,
            self.magnitude + other.magnitude,
            np.minimum(self.digit, other.digit),
            self.form,
        )

    def __mul__(self, other: Dyadic) -> Dyadic:
        if not isinstance(other, Dyadic):
            return NotImplemented
        first, second = self.settled(), other.settled()
        value = first.value * second.value
        # Also valid if a kernel multiplies the sum out: it then rounds product by product.
        return Dyadic(
            value,
            first.exact & second.exact & np.isfinite(value),
            self.magnitude * other.magnitude,
            np.minimum(self.digit + other.digit, _NOWHERE),
            self.form,
        )

    def __rsub__(self, number: float) -> Dyadic:
        one = Dyadic.of(np.asarray(number), np.asarray(True), self.form)
        return (one + -self.settled()).settled()

    def __neg__(self) -> Dyadic:
        return Dyadic(-self.value, self.exact, self.magnitude, self.digit, self.form, self.single)


class Proving:
    """Arithmetic of proofs, for one tensor type."""

    def __init__(self, form: Format) -> None:
        self.form = form

    def exact(self, value: Array) -> Dyadic:
        return Dyadic.of(value, np.ones(value.shape, bool), self.form)

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
        digit = (x.digit[..., np.newaxis] + weights.digit).min(axis=-2)
        whole = x.exact.all(axis=-1, keepdims=True) & weights.exact.all(axis=0)
        value, magnitude = x.value @ weights.value, np.abs(x.value) @ np.abs(weights.value)
        return Dyadic(value, whole & np.isfinite(magnitude), magnitude, np.minimum(digit, _NOWHERE), self.form)

    def activate(self, activation: Activation, argument: Dyadic, clip: float | None) -> Dyadic:
        x = argument.settled()
        if clip is not None:
            x = Dyadic.of(np.clip(x.value, -clip, clip), x.exact, self.form)
        if activation.name == "LeakyRelu":
            scaled = Dyadic.of(activation.alpha.value * x.value, x.exact, self.form)
            return self.where(x.value >= 0, x, scaled)
        if activation.name in ("Affine", "HardSigmoid"):
            product = Dyadic.of(activation.alpha.value * x.value, x.exact, self.form)
            whole = (product + self.exact(np.asarray(activation.beta.value))).settled()
            return Dyadic.of(activation(x.value), whole.exact, self.form)
        # Relu and ThresholdedRelu choose between numbers; no other functions are exact. If the format does not hold the
        # threshold, its rounded copy is another threshold.
        chosen = x.exact & (activation.name in LINEAR)
        if activation.name == "ThresholdedRelu":
            chosen = chosen & self.exact(np.asarray(activation.alpha.value)).exact
        return Dyadic.of(activation(x.value), chosen, self.form)

    def concatenate(self, numbers: Sequence[Dyadic], axis: int = 0) -> Dyadic:
        return Dyadic(
            np.concatenate([n.value for n in numbers], axis),
            np.concatenate([n.exact for n in numbers], axis),
            np.concatenate([n.magnitude for n in numbers], axis),
            np.concatenate([n.digit for n in numbers], axis),
            self.form,
            all(n.single for n in numbers),
        )

    def stack(self, steps: Sequence[Dyadic]) -> Dyadic:
        return self.concatenate([step[np.newaxis] for step in steps])

    def where(self, mask: Mask, number: Dyadic, otherwise: Dyadic) -> Dyadic:
        return Dyadic(
            np.where(mask, number.value, otherwise.value),
            np.where(mask, number.exact, otherwise.exact),
            np.where(mask, number.magnitude, otherwise.magnitude),
            np.where(mask, number.digit, otherwise.digit),
            self.form,
            number.single and otherwise.single,
        )

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
        proofs = [way.settled() for way in ways]
        return Dyadic.of(proofs[0].value, np.logical_and.reduce([proof.exact for proof in proofs]), self.form)

    def recurrence(self, factor: Dyadic, term: Dyadic, start: Dyadic) -> Dyadic:
        """Return all C_t = factor_t * C_(t-1) + term_t, t along the first axis."""
        steps = []
        for t in range(len(term)):
            start = (factor[t] * start + term[t].settled()).settled()
            steps.append(start)
        return self.stack(steps)

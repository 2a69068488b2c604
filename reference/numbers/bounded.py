"""Numbers with error bounds.

A :class:`Bounded` is a float64 array of values, each with a *radius*: every conforming implementation of the class in
the :class:`~.accuracy.Budget` holds a number within that radius. A :class:`Sum` is a sum whose terms an implementation
may add in any order; it becomes a Bounded when an operation needs its value. If a conforming implementation may hold
any number (overflow inside a sum, inf - inf, NaN), the element is undefined: the mask ``doubt`` marks it, and its value
and radius are finite numbers without meaning. So a radius is never NaN.

The cells do not depend on this module: ``+``, ``*`` and activations are the same operations as for plain arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .accuracy import ORACLE_UNIT, Budget

Array = NDArray[np.float64]
Radii: TypeAlias = NDArray[Any]
Mask: TypeAlias = "NDArray[np.bool_] | None"


def either(first: Mask, second: Mask) -> Mask:
    """Return the union of two masks of undefined elements."""
    return second if first is None else first if second is None else first | second


def size_like(radius: Radii, value: Array) -> Radii:
    """Return |value| in the type of a radius."""
    if radius.dtype == value.dtype:
        return np.abs(value)
    size: Radii = value.astype(radius.dtype)
    np.abs(size, out=size)
    return size


def _aligned(parts: Radii, dimensions: int) -> Radii:
    """Return the parts of a sum reshaped to `dimensions` axes: a bias has fewer axes than its sum."""
    missing = dimensions - parts.ndim
    return parts if missing <= 0 else parts.reshape(len(parts), *(1,) * missing, *parts.shape[1:])


def _spread(doubt: Mask, value: Array) -> Mask:
    """Return the mask broadcast to every element: a bias has fewer axes than its sum."""
    return doubt if doubt is None or doubt.shape == value.shape else np.broadcast_to(doubt, value.shape)


# The radius itself is computed in float64, each operation with a relative error of 2^-53. Chains of operations are far
# shorter than 2^20, so this factor, applied once where a radius is used, covers them.
RADIUS_SLACK = 1 + 2.0**20 * ORACLE_UNIT


# Bounded and Sum are not frozen: a case makes hundreds of them, and frozen fields would double the cost. No code writes
# to a field.
@dataclass(slots=True, eq=False)
class Bounded:
    """Values with radii, elementwise; shapes broadcast as in NumPy."""

    value: Array
    radius: Radii
    budget: Budget
    doubt: Mask = None
    # If radius is share * |value| + rest, with share and rest constant along the last axis: (..., 1) each. A product
    # then does not multiply the radius by the weights again.
    proportion: tuple[Array, Array] | None = None

    @staticmethod
    def in_range(value: Array, radius: Radii, doubt: Mask, reach: Radii, budget: Budget) -> Bounded:
        """Return a number whose elements are undefined where `reach` may have left the class's range; their value and
        radius are zero."""
        if reach.size and not reach.max() < budget.largest:
            beyond = ~(reach < budget.largest)
            value, radius = np.where(beyond, 0.0, value), np.where(beyond, 0.0, radius)
            doubt = either(doubt, beyond)
        return Bounded(value, radius, budget, _spread(doubt, value))

    def __getitem__(self, index: Any) -> Bounded:
        doubt = None if self.doubt is None else self.doubt[index]
        proportion = None
        if self.proportion is not None and (index is None or isinstance(index, slice)):
            # A new first axis, or a slice of the first axis: the proportion still holds.
            share, rest = self.proportion
            proportion = share[index], rest[index]
        return Bounded(self.value[index], self.radius[index], self.budget, doubt, proportion)

    def transpose(self, *axes: int) -> Bounded:
        """Return the number with its axes permuted, as NumPy does."""
        doubt = None if self.doubt is None else self.doubt.transpose(*axes)
        return Bounded(self.value.transpose(*axes), self.radius.transpose(*axes), self.budget, doubt)

    def __mul__(self, other: Bounded | Sum) -> Any:
        if isinstance(other, Sum):
            return other.scaled(self)
        # (v + r)(w + s) = vw + |v|s + r(|w| + s) and one rounding.
        value = self.value * other.value
        radius = size_like(self.radius, self.value) * other.radius
        radius += self.radius * (size_like(other.radius, other.value) + other.radius)
        return self._rounded(value, radius, either(self.doubt, other.doubt))

    def __add__(self, other: Bounded | Sum) -> Any:
        if isinstance(other, Sum):
            return other + self
        doubt = either(self.doubt, other.doubt)
        return self._rounded(self.value + other.value, self.radius + other.radius, doubt)

    def __rsub__(self, number: float) -> Bounded:
        return self._rounded(number - self.value, self.radius.copy(), self.doubt)

    def _rounded(self, value: Array, radius: Radii, doubt: Mask) -> Bounded:
        """Return the number after one storage rounding; elements that may have left the range are undefined."""
        w = self.budget
        magnitude = size_like(radius, value)
        magnitude += radius
        radius += w.unit * magnitude
        radius += w.floor
        return Bounded.in_range(value, radius, doubt, magnitude, w)


class Sum:
    """Sum of groups (matrix products, biases, peepholes) that may be added in any order, and partly stored.

    value
        The sum.
    parts
        (3, ...): error, magnitude and spread. They are in one array because a cell splits and adds sums gate by gate,
        and three small arrays cost three times as much as one.
    error
        Error from the terms' own radii.
    magnitude
        Sum of the absolute values of all terms; ``terms`` is the number of terms of an element.
    spread
        Sum of the absolute values of the groups; ``groups`` is their number. Every partial sum of whole groups lies
        within the spread.
    """

    __slots__ = ("budget", "doubt", "groups", "parts", "terms", "value")

    def __init__(self, value: Array, parts: Radii, terms: int, groups: int, budget: Budget, doubt: Mask = None) -> None:
        self.value, self.parts, self.terms, self.groups = value, parts, terms, groups
        self.budget, self.doubt = budget, doubt

    @staticmethod
    def of(number: Bounded) -> Sum:
        """Return a number as a sum of one group."""
        parts = np.empty((3, *number.value.shape), number.radius.dtype)
        parts[0], parts[1:] = number.radius, np.abs(number.value)
        return Sum(number.value, parts, 1, 1, number.budget, number.doubt)

    @property
    def error(self) -> Radii:
        part: Radii = self.parts[0]
        return part

    @property
    def magnitude(self) -> Radii:
        part: Radii = self.parts[1]
        return part

    @property
    def spread(self) -> Radii:
        part: Radii = self.parts[2]
        return part

    def __getitem__(self, index: Any) -> Sum:
        doubt = None if self.doubt is None else self.doubt[index]
        part_index = (slice(None), *index) if isinstance(index, tuple) else (slice(None), index)
        return Sum(self.value[index], self.parts[part_index], self.terms, self.groups, self.budget, doubt)

    def __add__(self, other: Sum | Bounded) -> Sum:
        if isinstance(other, Bounded):
            other = Sum.of(other)
        elif not isinstance(other, Sum):
            return NotImplemented
        value = self.value + other.value
        parts = _aligned(self.parts, other.parts.ndim) + _aligned(other.parts, self.parts.ndim)
        doubt = either(self.doubt, other.doubt)
        doubt = doubt if doubt is None else _spread(doubt, value)
        return Sum(value, parts, self.terms + other.terms, self.groups + other.groups, self.budget, doubt)

    def __iadd__(self, other: Sum | Bounded) -> Sum:
        """Add in place, for a sum that no other object shares."""
        value = self.value
        if not isinstance(other, Bounded) or other.doubt is not None:
            return self + other
        if value.shape[max(0, value.ndim - other.value.ndim) :] != other.value.shape:
            return self + other
        value += other.value
        if np.count_nonzero(other.radius):
            self.parts[0] += other.radius
        self.parts[1:] += size_like(self.parts, other.value)
        return Sum(value, self.parts, self.terms + 1, self.groups + 1, self.budget, self.doubt)

    def __len__(self) -> int:
        return len(self.value)

    def with_error(self, error: Radii) -> Sum:
        """Return the sum with another error of its terms."""
        parts = self.parts.copy()
        parts[0] = error
        return Sum(self.value, parts, self.terms, self.groups, self.budget, self.doubt)

    def scaled(self, factor: Bounded) -> Sum:
        """Return factor * sum, multiplied out or not: kernels may store each group, multiply it, and store the product.

        With groups g_k' for g_k and r' for r: sum(r' g_k') - r sum(g_k) = r sum(g_k' - g_k) + (r' - r) sum(g_k'). The
        first term is at most |r| times the radius of the settled sum. Each product is rounded once more.
        """
        w, number = self.budget, self.settled()
        size, number_size = size_like(factor.radius, factor.value), size_like(number.radius, number.value)
        spread = (size + factor.radius) * (self.spread + number.radius)
        error = size * number.radius + factor.radius * (number_size + number.radius)
        error += w.unit * spread + self.groups * w.floor
        value = factor.value * number.value
        doubt = _spread(either(factor.doubt, number.doubt), value)
        parts = np.stack(np.broadcast_arrays(error, spread, spread))
        return Sum(value, parts, self.groups, self.groups, w, doubt)

    def settled(self) -> Bounded:
        """Return the sum as a number.

        Any order of n terms costs gamma_n of the sum of their absolute values in the accumulator. Kernels also store
        each group once, and each partial sum of whole groups. That is 2m - 1 roundings for m groups: those of the
        groups cost u * spread together, and the m - 1 others at most u * spread each.
        """
        w = self.budget
        gamma = w.gamma(self.terms)
        if gamma == np.inf:
            zero = np.zeros_like(self.value)
            return Bounded(zero, zero.copy(), w, np.ones(self.value.shape, bool))
        error, magnitude, spread = self.parts
        radius = gamma * magnitude
        radius += error
        reach = magnitude + radius
        radius += (self.groups * w.unit) * (spread + radius)
        # Underflow adds one floor for each rounding; a term has two, in a product and in a sum.
        radius += 2 * self.terms * w.accumulator_floor + 2 * self.groups * w.floor
        return Bounded.in_range(self.value, radius, self.doubt, reach, w)

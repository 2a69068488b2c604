"""Arithmetic of bounded numbers: products, sums and activations with error bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from .accuracy import ORACLE_UNIT, Budget
from .activations import Activation
from .bounded import Array, Bounded, Mask, Radii, Sum, either, size_like

Radius: TypeAlias = type[np.float64] | type[np.float32]
"""Type of radii. Float32 is for large cases, because it halves the memory traffic."""

# Number of multiplications of a product above which float32 is worth its conversions.
LEAST_SINGLE = 1 << 20


# Radii in float32: every operation has a relative error of at most 2^-24, and chains of them, from a product to a
# state, are shorter than 128 operations. A radius that passes from step to step has an additional share for each step:
# four roundings of the growth, one of its product, one of the sum.
_SINGLE_SLACK = 1 + 2.0**-17
_EACH_STEP = {np.dtype(np.float64): 1.0, np.dtype(np.float32): 1 + 2.0**-21}


def in_double(number: Bounded, budget: Budget) -> Bounded:
    """Return a number with float32 radii as a number with float64 radii, with the class's own bounds.

    Each operation loses numbers below float32's range, up to 2^-149, without compensation. So such radii are only for
    products and sums of functions with an error of at least 2^-52 (``activations._primitive``): no radius is then below
    2^-104. The loss in a sum, up to 2^-149 n times weights of 2^50, enters a function.
    """
    return replace(number, radius=number.radius.astype(np.float64) * _SINGLE_SLACK, budget=budget)


class Weights(Struct, frozen=True, dict=True):
    """Weight matrix (rows, columns), prepared once for many products.

    transposed, absolute, sums
        W^T, |W|^T, and the sums of |W| along columns.
    doubt
        Rows with numbers that are not finite, or too large for the class's operands.
    single
        Whether |W| may be multiplied in float32.
    """

    transposed: Array
    absolute: Array
    doubt: Mask
    sums: Array
    single: bool

    @property
    def columns(self) -> int:
        return int(self.transposed.shape[0])

    @cached_property
    def narrow(self) -> NDArray[np.float32]:
        """|W|^T in float32."""
        return self.absolute.astype(np.float32)


class Bounding:
    """Arithmetic of numbers with error bounds in one accuracy class."""

    def __init__(self, budget: Budget, *, radii: Radius = np.float64) -> None:
        """Prepare bounds in a class.

        radii
            Type of radii and their terms. Float32 radii need :func:`in_double`, and expect overflow a little earlier,
            by more than their roundings.
        """
        self.budget, self._radii = budget, radii
        self._largest = budget.largest
        if radii is np.float32:
            self.budget = replace(budget, largest=budget.largest * (1 - 2.0**-10))

    def _clean(self, value: Array, largest: float) -> tuple[Array, Mask]:
        """Return numbers with a mask of those that are not finite or too large for the class's operands; these become
        0."""
        if not value.size or np.abs(value).max() <= largest:
            return value, None
        doubt = ~(np.abs(value) <= largest)
        return np.where(doubt, 0.0, value), doubt

    def exact(self, value: Array) -> Bounded:
        """Return a tensor of the case: exact, unless a flushing target changes it."""
        w = self.budget
        value, doubt = self._clean(value, self._largest)
        # A class that stores in a narrower format than the tensors' type rounds inputs when it reads them.
        narrower = w.unit > 2 * w.tensor.unit + 2 * ORACLE_UNIT
        if narrower or w.input_floor:
            size = np.abs(value)
            radius = w.unit * size + w.floor if narrower else np.zeros(value.shape)
            if w.input_floor:
                radius = np.where(size < w.input_floor, np.maximum(size, radius), radius)
            return Bounded(value, radius, w, doubt)
        none = np.zeros((*value.shape[:-1], 1))
        return Bounded(value, np.zeros(value.shape), w, doubt, (none, none))

    def reported_state(self, value: Array) -> Bounded:
        """Return a state that a target reported, with an error of one storage rounding.

        The target may store the state with more precision than it returns. With v' = v(1 + d), |d| <= u: |v - v'| <=
        u|v'|/(1 - u) <= u(1 + 2u)|v'|.
        """
        w = self.budget
        # The largest number may represent any greater one: a saturating target may continue with the unsaturated state.
        value, doubt = self._clean(value, float(np.nextafter(w.tensor.largest, 0.0)))
        share, rest = w.unit * (1 + 2 * w.unit), max(w.floor, w.input_floor)
        line = (*value.shape[:-1], 1)
        radius: Radii = np.abs(value).astype(self._radii, copy=False)
        radius = radius * share
        radius += rest
        return Bounded(value, radius, w, doubt, (np.full(line, share), np.full(line, rest)))

    def feedback(self, hidden: Bounded) -> Bounded:
        """Return the hidden state for the next step of a free run."""
        return self.carry_state(hidden)

    def carry_state(self, state: Bounded) -> Bounded:
        """Return a state for the next step. Its storage rounding is already in the product or sum."""
        return state

    def weights(self, matrix: Array) -> Weights:
        """Prepare a weight matrix (rows, columns) for :meth:`product`."""
        transposed = np.ascontiguousarray(matrix.T)
        absolute = np.abs(transposed)
        largest, rows_in_doubt = float(absolute.max(initial=0.0)), None
        if not largest <= (most := min(self.budget.tensor.largest, self.budget.operand_largest)):
            transposed, doubt = self._clean(transposed, most)
            rows_in_doubt, absolute = np.any(doubt, axis=0), np.abs(transposed)
            largest = float(absolute.max())
        single = self.budget.tensor.precision <= 24 and 2.0**-50 < largest < 2.0**50
        return Weights(transposed, absolute, rows_in_doubt, absolute.sum(axis=0), single)

    def product(self, x: Bounded, weights: Weights) -> Sum:
        """Return x (..., columns) times the transposed weight matrix: (..., rows)."""
        w = self.budget
        size = np.abs(x.value)
        shape = (*x.value.shape[:-1], weights.transposed.shape[1])
        value, parts = np.empty(shape), np.empty((3, *shape), self._radii)
        error, magnitude, spread = parts
        _times(x.value, weights.transposed, value)
        self._magnitude(size, weights, magnitude)
        if spread.dtype == value.dtype:
            np.abs(value, out=spread)
        else:
            spread[...] = value
            np.abs(spread, out=spread)
        # Each operand may be rounded first: |xw| (2o + o^2), or o_min if it is tiny. Flushing may remove whole weights.
        rounded, grown = w.operand_unit * (2 + w.operand_unit), (1 + w.operand_unit) ** 2
        if x.proportion is not None:
            share, rest = x.proportion
            share = (rounded + grown * share).astype(self._radii, copy=False)
            if np.count_nonzero(share):
                np.multiply(magnitude, share, out=error)
            else:
                error.fill(0.0)
            rest = (grown * rest).astype(self._radii, copy=False)
            if np.count_nonzero(rest):
                error += rest * weights.sums.astype(self._radii, copy=False)
        else:
            np.multiply(magnitude, rounded, out=error)
            if x.radius.any():
                off = np.empty_like(error)
                if self._radii is np.float32:
                    self._magnitude(x.radius, weights, off)
                else:
                    _times(x.radius, weights.absolute, off)
                error += grown * off
        lost = max(w.operand_floor, w.input_floor)
        if lost:
            error += lost * (size + x.radius + lost).sum(axis=-1, keepdims=True)
            error += lost * weights.sums
        doubt = x.doubt
        if w.operand_largest < w.tensor.largest and size.size and size.max() > w.operand_largest:
            doubt = either(doubt, size > w.operand_largest)
        if doubt is not None:
            doubt = np.broadcast_to(doubt.any(axis=-1, keepdims=True), value.shape)
        if weights.doubt is not None:
            doubt = np.broadcast_to(weights.doubt, value.shape) if doubt is None else doubt | weights.doubt
        return Sum(value, parts, weights.columns, 1, w, doubt)

    def _magnitude(self, size: Radii, weights: Weights, total: Radii) -> None:
        """Write |x| @ |W|, rounded upwards, into `total`.

        Large products are computed in float32, which is enough for a bound: n terms cost gamma_n there, at most n*2^-23
        for n up to 2^22. If the largest operand is outside 2^-50 ... 2^50, they are computed in float64.
        """
        worth_it = size.size * weights.transposed.shape[1] >= LEAST_SINGLE and weights.single
        if not worth_it or not 2.0**-50 < size.max() < 2.0**50:
            wide = total.dtype == np.float64
            total[...] = _times(size, weights.absolute, total if wide else np.empty(total.shape))
            return
        target = total if total.dtype == np.float32 else np.empty(total.shape, np.float32)
        narrow = _times(size.astype(np.float32, copy=False), weights.narrow, target)
        np.multiply(narrow, 1 + (weights.columns + 2) * 2.0**-23, out=total, dtype=total.dtype)
        if total is not target:
            # Underflow: at most 2^-149 of an operand or product, times at most 2^50.
            total += weights.columns * 2.0**-64

    def activate(self, activation: Activation, argument: Sum | Bounded, clip: float | None) -> Bounded:
        """Return the activation of an argument, clipped first if `clip` is a threshold."""
        number = argument.settled() if isinstance(argument, Sum) else argument
        w = self.budget
        if clip is None and activation.kind.slope is not None:
            # Value and radius are far within the range of any class.
            return Bounded(*activation.slope_image(number.value, number.radius, w), w, number.doubt)
        low, value, high = number.value - number.radius, number.value, number.value + number.radius
        if clip is not None:
            # A narrower kernel's threshold may be a rounded copy, so either end may be a little farther out.
            off = w.coefficient_unit * clip + w.floor if w.coefficient_unit else 0.0
            value = _between(value, -clip, clip)
            low = _between(low, -clip - off, clip - off)
            high = _between(high, -clip + off, clip + off)
        value, radius = activation.widen(w).interval_image(low, value, high, w)
        doubt = number.doubt
        if activation.kind.overflows and high.size:
            # e^x itself overflows in kernels that use the document's formula.
            beyond = high >= np.log(w.largest)
            doubt = either(doubt, beyond) if beyond.any() else doubt
        reach = np.abs(value) + radius
        if w.coefficient_unit and not max(abs(activation.alpha.value), abs(activation.beta.value)) < w.largest:
            reach = np.full_like(reach, np.inf)  # a copy of a coefficient may have become infinite
        return Bounded.in_range(value, radius, doubt, reach, w)

    def concatenate(self, numbers: Sequence[Bounded], axis: int = 0) -> Bounded:
        """Join numbers along an axis; a single number is returned unchanged."""
        if len(numbers) == 1:
            return numbers[0]
        doubt: Mask = None
        if any(n.doubt is not None for n in numbers):
            parts = [np.zeros(n.value.shape, bool) if n.doubt is None else n.doubt for n in numbers]
            doubt = np.concatenate(parts, axis)
        value = np.concatenate([n.value for n in numbers], axis)
        radius = np.concatenate([n.radius for n in numbers], axis, dtype=self._radii)
        shares = [n.proportion for n in numbers if n.proportion is not None]
        proportion = None
        if len(shares) == len(numbers):
            share, rest = (np.concatenate([s[k] for s in shares], axis) for k in (0, 1))
            proportion = share, rest
        return Bounded(value, radius, self.budget, doubt, proportion)

    def stack(self, steps: Sequence[Bounded]) -> Bounded:
        """Join numbers of equal shape along a new first axis."""
        return self.concatenate([step[np.newaxis] for step in steps])

    def where(self, mask: NDArray[np.bool_], number: Bounded, otherwise: Bounded) -> Bounded:
        """Return `number` where the mask is true, elsewhere `otherwise`."""
        doubt: Mask = None
        if number.doubt is not None or otherwise.doubt is not None:
            none = np.zeros((), bool)
            doubt = np.where(
                mask,
                none if number.doubt is None else number.doubt,
                none if otherwise.doubt is None else otherwise.doubt,
            )
        value = np.where(mask, number.value, otherwise.value)
        return Bounded(value, np.where(mask, number.radius, otherwise.radius), self.budget, doubt)

    def interpolation(self, share: Bounded, new: Bounded, old: Bounded) -> Bounded:
        """Return (1 - z) * h + z * H, in any formula that a kernel may use.

        The effect of the operands' radii does not depend on the formula, for
            F(z', h', H') - F(z, h, H) = (z' - z)(H' - h') + (1 - z)(h' - h) + z(H' - H).
        The roundings do. In units of u and to first order they are, in addition to |F| for the last sum,
            (1 - z) * h + z * H            2|1-z||h| + |z||H|
            h + z * (H - h)                2|z||H - h|
            H + (1 - z) * (h - H)          3|1-z||h - H|
            h - z * h + z * H              |z||h| + |1-z||h| + |z||H|
            H - (1 - z) * H + (1 - z) * h  2|1-z|(|H| + |h|) + |z||H|
        so (3|1-z| + 2|z|)(|h| + |H|) + |F| is enough for all of them, and for the oracle's own. A kernel may also
        evaluate 1 - z as an activation of its own, Sigmoid(-x): then a|1-z| replaces the rounding of 1 - z, while
        the b of its envelope is that of z, which the radius of z already contains.
        """
        w = self.budget
        left = 1.0 - share.value
        rest, z = size_like(share.radius, left) + share.radius, size_like(share.radius, share.value) + share.radius
        h, H = size_like(new.radius, new.value) + new.radius, size_like(old.radius, old.value) + old.radius
        with np.errstate(over="ignore", invalid="ignore"):
            value = left * new.value + share.value * old.value
            radius = share.radius * (h + H) + rest * new.radius + z * old.radius
            # Second order: at most three other roundings have already changed the number that a rounding acts on.
            roundings = ((2 + max(1.0, w.a)) * rest + 2 * z) * (h + H) + size_like(radius, value)
            radius += w.unit * (roundings + radius) * (1 + w.unit) ** 3
            # Underflow of 1 - z and of H - h, which are then multiplied, of two products and of two sums.
            radius += (4 + h + H + rest + z) * w.floor
            reach = np.maximum(h + H, (rest + z) * (h + H)) + radius
        doubt = either(either(share.doubt, new.doubt), old.doubt)
        return Bounded.in_range(value, radius, doubt, reach, w)

    def recurrence(self, factor: Bounded, term: Bounded, start: Bounded) -> Bounded:
        """Return all C_t = factor_t * C_(t-1) + term_t, with t along the first axis: `*` and `+` of :class:`Bounded` in
        bulk.

        The values are scanned first. Then every part of the radius except |f|r_(t-1) is known for all steps at once.
        With A = |f| + r_f, p = |f C| and q = r_f|C|, a product has the error A r + q, rounded by u(p + A r + q). The
        sum has that error plus r_term, rounded by u(|C_t| + that). So r_t = (1 + u)^2 A r_(t-1) + k_t.
        """
        w = self.budget
        with np.errstate(over="ignore", invalid="ignore"):
            values = _scan(factor.value, term.value, start.value)
            before = np.concatenate((start.value[np.newaxis], values[:-1])) if len(values) else values
            size, growth = size_like(term.radius, before), size_like(term.radius, factor.value)
            product = growth * size
            known = factor.radius * size
            known += w.unit * (product + known) + w.floor + term.radius
            size = size_like(known, values)
            known += w.unit * (size + known) + w.floor
            growth += factor.radius
            growth *= (1 + w.unit) ** 2 * _EACH_STEP[growth.dtype]
            radii = _scan(growth, known, start.radius)
            reach = np.maximum(size, product, out=size)
            reach += radii
        number = Bounded.in_range(values, radii, either(factor.doubt, term.doubt), reach, w)
        if number.doubt is None and start.doubt is None:
            return number
        doubt = np.zeros(values.shape, bool) if number.doubt is None else number.doubt.copy()
        if start.doubt is not None and len(doubt):
            doubt[0] |= start.doubt
        return replace(number, doubt=np.logical_or.accumulate(doubt, axis=0))


def _between(value: Array, low: float, high: float) -> Array:
    """Return np.clip(value, low, high); np.clip itself is three times slower for small arrays."""
    result = np.maximum(value, low)
    return np.minimum(result, high, out=result)


def _scan(factor: Radii, term: Radii, start: Radii) -> Radii:
    """Return all s_t = factor_t * s_(t-1) + term_t."""
    out = np.empty_like(term)
    for t in range(len(out)):
        start = np.multiply(factor[t], start, out=out[t])
        start += term[t]
    return out


def _times(x: NDArray[Any], matrix: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
    """Write x (..., K) @ matrix (K, G) into the contiguous `out` (..., G), and return it.

    One two-dimensional product is many times faster than one for each leading index.
    """
    rows = math.prod(x.shape[:-1])
    np.matmul(x.reshape(rows, x.shape[-1]), matrix, out=out.reshape(rows, matrix.shape[1]))
    return out

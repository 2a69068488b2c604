"""Arithmetic of the shipped kernel, as far as faults need it: 16-bit mantissas, shifts, and saturated terms."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...recurrent.cell import ZERO as ABSENT
from ...recurrent.rnn import Direction
from .arithmetic import Operand

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

NO_POWER = -(2**31)
"""The int that x86 converts infinity and NaN to."""


def _power_shift(count: int) -> int:
    """Return ``1 << count`` as a C int on x86, which takes any count modulo 32; 31 gives -2^31."""
    return ((1 << (count % 32)) + 2**31) % 2**32 - 2**31


def _ceil_log2(x: float) -> int | None:
    """Return the least integer e with |x| <= 2^e; None where there is none: 0, infinity and NaN.

    The kernel calls log2. The error of log2 is too small to matter, because its arguments have at most 41 bits.
    """
    if x == 0 or not math.isfinite(x):
        return None
    mantissa, exponent = math.frexp(abs(x))
    return exponent - 1 if mantissa == 0.5 else exponent


def _int16(x: float) -> int:
    """Return x rounded half away from zero, with the kernel's errors.

    The sign is that of the integer part, so numbers between -1 and -1/2 become 0 instead of -1. The limits are those of
    17 bits, so numbers between 16 and 17 bits wrap around instead of saturating.
    """
    if math.isnan(x):
        return 0  # NaN as int is -2^31, which is 0 modulo 2^16
    bounded = int(min(max(x + 0.5 if x > -1 else x - 0.5, -(2**16)), 2**16 - 1))
    return (bounded + 2**15) % 2**16 - 2**15


def shifted(x: Integers, count: int) -> Integers:
    """Return x / 2^count, rounded half away from zero and saturated to int32.

    The added half is a C int: for count 32 it is -2^31, for greater counts it is too small by 2^32.
    """
    half = 0 if count == 0 else _power_shift(count - 1)
    size = (np.abs(x) + half) >> (count % 64)
    return np.clip(np.where(x < 0, -size, size), -(2**31), 2**31 - 1)


class Factor(Struct, frozen=True):
    """A number as a 16-bit mantissa and a power of two: number = mantissa * 2^-power.

    The mantissa's size is in (2^14, 2^15] and stored in int16. There 2^15, the mantissa of every power of two, becomes
    -2^15: its sign is lost. If the power is outside 0 ... 30, a C int cannot be shifted by it, and the mantissa is
    garbage.
    """

    mantissa: int
    power: int

    @classmethod
    def of(cls, x: float) -> Factor:
        """Return the kernel's form of a number."""
        exponent = _ceil_log2(x)
        power = NO_POWER if exponent is None else 15 - exponent
        return cls(_int16(_power_shift(power) * float(x)), power)

    def times(self, x: Integers, already: int = 0) -> Integers:
        """Return integers multiplied by the number.

        `already` is the power of two by which they were divided before. The shift count is held in 8 bits.
        """
        return shifted(x * self.mantissa, (self.power - already) % 256)


ZERO = Factor(0, NO_POWER)
"""Factor for 0 as the kernel stores it: it adds nothing, although its logarithm is undefined."""


_ONE = 2.0**24
BOUND = 128.0
"""The bound of pre-activations and of their terms."""


def _parts(x: Operand, w: Operand) -> tuple[Array, Array, Array]:
    """Return the exact parts of a product: sum ab and -q sum a in units of the scales, and the part that is equal in
    all steps, as a number."""
    unit, terms = x.scale * w.scale, x.value.shape[-1]
    products = x.centred @ w.centred.T
    tilt = -w.centre * x.centred.sum(-1, keepdims=True)
    constant = (terms * x.centre * w.centre - x.centre * w.centred.sum(-1)) * unit
    return products, tilt, constant


def _kind(factor: Factor, terms: int = 0) -> str:
    """Return how a 16-bit mantissa holds a factor: ``right``, ``sign`` (lost), ``small`` or ``large``."""
    if factor == ZERO:
        return "right"
    if factor.power == NO_POWER:
        return "large"
    if factor.power > 30:
        return "small"
    if factor.power - terms < 0:
        return "large"
    return "sign" if factor.mantissa == -(2**15) else "right"


def _products(of: Direction) -> Iterator[tuple[Operand, Operand, float, int]]:
    """Yield the factors of the two products, with the product of their scales in fixed point and log2 of the number of
    terms."""
    for x, w in ((of.X, of.W), (of.before, of.R)):
        unit = float(np.float64(np.float32(x.scale) * np.float32(w.scale)) * _ONE)
        yield x, w, unit, max(int(np.ceil(np.log2(max(x.value.shape[-1], 1)))), 0)


def by_factors(kind: str, of: Direction, total: Array) -> Array:
    """Return the error of products with factors of that kind."""
    off = np.zeros_like(total)
    for x, w, unit, terms in _products(of):
        if not x.scale or not x.value.size:
            continue
        products, tilt, _ = _parts(x, w)
        exact, factor = x.scale * w.scale, Factor.of(unit)
        if _kind(factor, terms) == kind:
            levels = np.rint(products).astype(np.int64)
            scaled = factor.times(shifted(levels, terms), terms)
            off += scaled / _ONE - products * exact
        if w.centre:
            slope = Factor.of(unit * w.centre)
            # For a negative factor, the lost sign is the correct one.
            if _kind(slope) == kind and not (kind == "sign" and w.centre < 0):
                scaled = slope.times(np.rint(tilt / -w.centre).astype(np.int64))
                off += -scaled / _ONE - tilt * exact
    return off


def saturated_terms(of: Direction, total: Array) -> Array:
    """Return the error of pre-activations whose terms saturate, each by itself."""
    off, constant = np.zeros_like(total), sum(b.value for b in (of.Wb, of.Rb) if b is not ABSENT)
    for x, w, unit, terms in _products(of):
        products, tilt, fixed = _parts(x, w)
        kinds = _kind(Factor.of(unit), terms), _kind(Factor.of(unit * w.centre)) if w.centre else "right"
        for part, kind in zip((products, tilt), kinds, strict=True):
            if kind != "right" and not (kind == "sign" and w.centre < 0 and part is tilt):
                continue  # other faults with their own bounds
            number = part * (x.scale * w.scale)
            off = off + np.clip(number, -BOUND, BOUND) - number
        constant = constant + fixed
    return np.asarray(off + np.clip(constant, -BOUND, BOUND) - constant)

"""Fixed-point arithmetic of AMD Quark 0.13's CPU kernel, as far as its known faults need it.

The kernel multiplies integers by a 16-bit mantissa and shifts the product. Both go wrong for some numbers: the faults
``extended.scales.*`` and ``extended.pre-activation.*`` compute what they then return (``src/lstm/cpu/lstm.h``).
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Integers = NDArray[np.int64]

INT32 = (-(2**31), 2**31 - 1)
# The kernel's bounds for 16-bit results are those of 17 bits: what lies between wraps around instead of saturating.
INT17 = (-(2**16), 2**16 - 1)
# The int that an infinite or undefined number is converted to on x86.
NO_POWER = -(2**31)


def _as_int32(value: int) -> int:
    """An integer modulo 2^32, as int32."""
    return (value + 2**31) % 2**32 - 2**31


def power_shift(count: int) -> int:
    """``1 << count`` of C's int where count is any int: x86 takes it modulo 32, and 31 gives -2^31."""
    return _as_int32(1 << (count % 32))


def ceil_log2(x: float) -> int | None:
    """The least integer e with |x| <= 2^e; None where there is none, at 0, infinity and NaN.

    The kernel asks log2, whose error is too small to matter: nothing it asks about has more than 41 bits.
    """
    if x == 0 or not math.isfinite(x):
        return None
    mantissa, exponent = math.frexp(abs(x))
    return exponent - 1 if mantissa == 0.5 else exponent


def _int_of(x: NDArray[np.float64]) -> Integers:
    """float64 to int32 (given as int64) as x86 converts: towards zero, and -2^31 where that has no int32."""
    inside = np.abs(x) < 2.0**31
    converted: Integers = np.where(inside, np.where(inside, x, 0).astype(np.int64), -(2**31))
    return converted


def rounded(x: NDArray[np.float64] | float, least: int, most: int) -> Integers:
    """Rounded half away from zero and saturated; but the sign is that of the integer part, so that what lies between
    -1 and -1/2 becomes 0 and not -1."""
    x = np.asarray(x, np.float64)
    rounded = np.where(x > -1, x + 0.5, x - 0.5)
    saturated: Integers = np.where(rounded < least, least, np.where(rounded > most, most, _int_of(rounded)))
    return saturated


def _int16(x: Integers) -> Integers:
    """Integers modulo 2^16, as int16 (given as int64)."""
    wrapped: Integers = (x + 2**15) % 2**16 - 2**15
    return wrapped


def shifted(x: Integers, count: int, bounds: tuple[int, int]) -> Integers:
    """x / 2^count, rounded half away from zero and saturated, into x itself.

    The half is a C int: where count is 32 it is -2^31, where it is more it is too small by 2^32.
    """
    half = 0 if count == 0 else power_shift(count - 1)
    negative = x < 0
    np.abs(x, out=x)
    x += half
    x >>= count % 64
    np.negative(x, out=x, where=negative)
    return np.clip(x, *bounds, out=x)


class Factor(Struct, frozen=True):
    """A number as a 16-bit mantissa and a power of two: number = mantissa * 2^-power.

    The mantissa's size is in (2^14, 2^15] and kept in int16, where 2^15, which every power of two has, becomes -2^15:
    its sign is lost. Outside 0 ... 30 the power is one that a C int cannot be shifted by, and the mantissa garbage.
    """

    mantissa: int
    power: int

    @classmethod
    def of(cls, x: float) -> Factor:
        """The kernel's form of a number."""
        exponent = ceil_log2(x)
        power = NO_POWER if exponent is None else 15 - exponent
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.float64(power_shift(power)) * np.float64(x)
        return cls(int(_int16(rounded(scaled, *INT17))), power)

    def times(self, x: Integers, already: int = 0) -> Integers:
        """Integers multiplied by the number, into x itself; `already` is the power of two they were divided by before.
        The count of the shift is held in 8 bits."""
        x *= self.mantissa
        return shifted(x, (self.power - already) % 256, INT32)


ZERO = Factor(0, NO_POWER)
"""The logarithm of 0 as it is stored: it adds nothing, though its logarithm is undefined."""

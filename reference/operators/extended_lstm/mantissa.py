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

NO_POWER = -(2**31)
"""The int that an infinite or undefined number is converted to on x86."""


def _power_shift(count: int) -> int:
    """``1 << count`` of C's int where count is any int: x86 takes it modulo 32, and 31 gives -2^31."""
    return ((1 << (count % 32)) + 2**31) % 2**32 - 2**31


def _ceil_log2(x: float) -> int | None:
    """Return the least integer e with |x| <= 2^e; None where there is none, at 0, infinity and NaN.

    The kernel asks log2, whose error is too small to matter: nothing it asks about has more than 41 bits.
    """
    if x == 0 or not math.isfinite(x):
        return None
    mantissa, exponent = math.frexp(abs(x))
    return exponent - 1 if mantissa == 0.5 else exponent


def _int16(x: float) -> int:
    """Rounded half away from zero, but with the sign of the integer part, so that what lies between -1 and -1/2 becomes
    0 and not -1. The bounds are those of 17 bits: what lies between wraps around instead of saturating."""
    if math.isnan(x):
        return 0  # its int, -2^31, modulo 2^16
    bounded = int(min(max(x + 0.5 if x > -1 else x - 0.5, -(2**16)), 2**16 - 1))
    return (bounded + 2**15) % 2**16 - 2**15


def shifted(x: Integers, count: int) -> Integers:
    """x / 2^count, rounded half away from zero and saturated to int32.

    The half is a C int: where count is 32 it is -2^31, where it is more it is too small by 2^32.
    """
    half = 0 if count == 0 else _power_shift(count - 1)
    size = (np.abs(x) + half) >> (count % 64)
    return np.clip(np.where(x < 0, -size, size), -(2**31), 2**31 - 1)


class Factor(Struct, frozen=True):
    """A number as a 16-bit mantissa and a power of two: number = mantissa * 2^-power.

    The mantissa's size is in (2^14, 2^15] and kept in int16, where 2^15, which every power of two has, becomes -2^15:
    its sign is lost. Outside 0 ... 30 the power is one that a C int cannot be shifted by, and the mantissa garbage.
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
        """Integers multiplied by the number; `already` is the power of two they were divided by before. The count of
        the shift is held in 8 bits."""
        return shifted(x * self.mantissa, (self.power - already) % 256)


ZERO = Factor(0, NO_POWER)
"""The logarithm of 0 as it is stored: it adds nothing, though its logarithm is undefined."""

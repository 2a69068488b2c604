"""Fixed-point arithmetic of AMD Quark 0.13's CPU kernel, as far as its known faults need it.

The kernel multiplies integers by a 16-bit mantissa and shifts the product. Both operations are wrong for some numbers.
The faults ``extended.scales.*`` and ``extended.pre-activation.*`` compute the results of these errors
(``src/lstm/cpu/lstm.h``).
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

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

"""tanh of single precision as C libraries compute it, bit for bit.

Kernels of fixed or single precision call the C library's ``tanhf``, whose last bit no standard fixes. Two functions are
in use on Linux:

``fdlibm``
    glibc up to 2.40 (and most other libraries): the quotient of Sun's fdlibm, from ``expm1f``, every operation rounded
    to float32. Off by up to 2.2 units in the last place.
``nearest``
    glibc from 2.41 on (CORE-MATH): the nearest float32.

Both are given here as functions of whole arrays. Equality with the library is measured by the tests, over every
exponent and sign, on the machine they run on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Single: TypeAlias = "NDArray[np.float32]"
Tanhf = Callable[[Single], Single]

_ONE, _TWO, _HALF, _THREE, _SIX = (np.float32(v) for v in (1, 2, 0.5, 3, 6))
# ln 2 in two parts, the first so short that its multiples are exact, and 1/ln 2.
_LN2_HIGH = np.float32(float.fromhex("0x1.62e3p-1"))
_LN2_LOW = np.float32(float.fromhex("0x1.2fefa2p-17"))
_PER_LN2 = np.float32(float.fromhex("0x1.715476p+0"))
# fdlibm's minimax polynomial in x^2/2 for the even part of x (e^x + 1) / (e^x - 1), highest coefficient first.
_EVEN_PART = tuple(
    np.float32(float.fromhex(c))
    for c in ("-0x1.afdb76p-23", "0x1.0cfca8p-18", "-0x1.4ce19ap-14", "0x1.a01a02p-10", "-0x1.111112p-5")
)
# From here on every tanh is 1: 2 e^(-2x) is less than half of 2^-24.
_ONE_FROM = np.float32(10)

# expm1 of a reduced argument d with e^x = 2^k e^r is (_START[k] + d) * _POWER[k] + _END[k], k counted from _LEAST:
# fdlibm adds 1 - 2^-k before scaling, but for k < -1 adds 1 before and takes it away after.
_LEAST = -3
_K = np.arange(_LEAST, 32)
_POWER = np.ldexp(np.float32(1), _K)
_START = np.where(_K < -1, 1, 1 - np.ldexp(1.0, -_K)).astype(np.float32)
_END = np.where(_K < -1, np.float32(-1), np.float32(0))


def fdlibm(x: Single) -> Single:
    """tanh of a float32 array as fdlibm's float functions compute it.

    tanh|x| is -t/(t+2) with t = expm1(-2|x|) below 1, and 1 - 2/(t+2) with t = expm1(2|x|) from 1 on.
    """
    size = np.fmin(np.abs(x), _ONE_FROM)  # NaN too is cut, and put back at the end
    small = size < _ONE
    argument = np.where(small, -_TWO, _TWO)
    argument *= size
    # argument = k ln 2 + r, |r| <= ln 2 / 2, r = reduced + correction
    turns = argument * _PER_LN2
    k = np.rint(turns, out=turns)
    reduced = argument - k * _LN2_HIGH
    low = k * _LN2_LOW
    high = reduced.copy()
    reduced -= low
    high -= reduced
    high -= low
    correction = high
    half = reduced * _HALF
    square = reduced * half
    even = square * _EVEN_PART[0]
    for coefficient in _EVEN_PART[1:]:
        even += coefficient
        even *= square
    even += _ONE
    t = np.subtract(_THREE, half * even)
    even -= t
    np.multiply(t, reduced, out=t)
    np.subtract(_SIX, t, out=t)
    even /= t
    even *= square
    even -= correction
    even *= reduced
    even -= correction
    even -= square
    reduced -= even
    k -= _LEAST
    index = k.astype(np.intp)
    t = _START[index]
    t += reduced
    t *= _POWER[index]
    t += _END[index]
    fraction = np.where(small, -t, _TWO)
    t += _TWO
    fraction /= t
    np.subtract(_ONE, fraction, out=fraction, where=~small)
    unknown = np.isnan(x)
    if unknown.any():
        fraction[unknown] = np.nan
    return np.copysign(fraction, x)


def nearest(x: Single) -> Single:
    """The float32 nearest to tanh: float64's is near enough to decide but for arguments that no float32 is."""
    return np.tanh(x.astype(np.float64)).astype(np.float32)


TANHF: dict[str, Tanhf] = {"fdlibm": fdlibm, "nearest": nearest}
"""The functions in use, by name."""

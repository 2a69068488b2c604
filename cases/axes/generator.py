"""Numbers for tensors: dyadic rationals from a counter-based generator, the same bytes on every platform.

Element k of a tensor is a function of (key, k) in 64-bit integer arithmetic (the finalizer of splitmix64, applied to a
counter). It is cut to the precision of the tensor's type and scaled by a power of two. No floating-point operation
rounds on the way, and no generator of a library takes part. Keys name the operator, the tensor, the seed and the run,
so a new tensor changes no number of another one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def start_of(key: str) -> int:
    """Return the 64-bit number at which a key's counter starts."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little")


def bits_of(key: str, count: int) -> NDArray[np.uint64]:
    """Return `count` numbers of 64 random bits, from the counter of a key."""
    # Arrays of integers wrap around without a warning.
    z = _counted(count) + np.uint64(start_of(key))
    shifted = z >> _30
    z ^= shifted
    z *= _FACTORS[0]
    z ^= np.right_shift(z, _27, out=shifted)
    z *= _FACTORS[1]
    z ^= np.right_shift(z, _31, out=shifted)
    return z


# Module constants: to create them in the function took a seventh of the time to draw a small tensor.
_30, _27, _31, _1, _63 = map(np.uint64, (30, 27, 31, 1, 63))
STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The step of splitmix64's counter, and the factors of its finalizer."""

_FACTORS = np.uint64(FIRST), np.uint64(SECOND)


def _counted(count: int) -> NDArray[np.uint64]:
    """Return the first multiples of splitmix64's step, from one on."""
    if count <= len(_FIRST):
        return _FIRST[:count]
    return np.arange(1, count + 1, dtype=np.uint64) * np.uint64(STEP)


_FIRST = np.arange(1, 4097, dtype=np.uint64) * np.uint64(STEP)


def integers(key: str, count: int, low: int, high: int) -> NDArray[np.int64]:
    """Return `count` integers in [low, high]; the bias of the remainder does not matter here."""
    return (bits_of(key, count) >> np.uint64(16)).astype(np.int64) % (high - low + 1) + low


def uniform(key: str, shape: tuple[int, ...], precision: int, exponent: int) -> Array:
    """Return numbers m * 2^(exponent - precision) with odd m, |m| < 2^precision.

    They are dense in (-2^exponent, 2^exponent), never 0, and each uses all digits of the format.
    """
    bits = bits_of(key, math.prod(shape))
    m = bits >> np.uint64(64 - precision)
    m |= _1
    numbers = m.view(np.int64).astype(np.float64)  # below 2^53; unsigned takes twice the time
    numbers *= 2.0 ** (exponent - precision)  # exact: a power of two, far from the ends of float64
    bits <<= _63  # the last ones are the signs
    numbers.view(np.uint64)[...] |= bits
    return numbers.reshape(shape)


def gain(columns: int) -> int:
    """Return the exponent of weights that makes sums of `columns` products about 1: that of 2 / sqrt(columns).

    It is computed in whole numbers. The last digit of a logarithm differs between platforms, and would decide where the
    exponent lies halfway: at 2, 8, 32, 128, ... There it is the even one; at 8 it is the odd one, as was pinned once.
    """
    exponent = max(columns.bit_length() - 2, 0) // 2
    halfway = columns & (columns - 1) == 0 and columns.bit_length() % 2 == 0
    return -(exponent - 1 if halfway and exponent % 2 and columns > 8 else exponent)


class Counter:
    """Deterministic choices from a counter, the same on every platform and Python version (splitmix64)."""

    def __init__(self, seed: int) -> None:
        self.state = seed & (2**64 - 1)

    @classmethod
    def of(cls, key: str) -> Counter:
        """Return the choices whose counter starts from a text."""
        return cls(start_of(key))

    def one_of(self, values: Sequence[Any]) -> Any:
        """Return one of the values, each as often as it is listed."""
        return values[self.below(len(values))]

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""
        self.state = (self.state + STEP) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * FIRST) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * SECOND) & (2**64 - 1)
        return ((z ^ (z >> 31)) >> 16) % bound

"""Parts of emitted scripts that are the same in all of them.

The functions here go into scripts as they stand, so they need nothing but the standard library and NumPy.
"""

from __future__ import annotations

import base64
import hashlib
import zlib

import numpy as np


def drawn(key: str, shape: tuple[int, ...], precision: int, exponent: int) -> np.ndarray:
    """Dense dyadic rationals from a counter-based generator (the finalizer of splitmix64): the same bits everywhere."""
    start = np.uint64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        z = start + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    size = np.ldexp(((z >> np.uint64(64 - precision)) | np.uint64(1)).astype(np.float64), exponent - precision)
    return np.where((z & np.uint64(1)).astype(bool), -size, size).reshape(shape)


def unpacked(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """float64 numbers from their compressed bytes: first all first bytes, then all second ones, ..."""
    planes = np.frombuffer(zlib.decompress(base64.b85decode(text)), np.uint8).reshape(8, -1)
    return np.frombuffer(planes.T.tobytes(), "<f8").reshape(shape)


def bits(array: np.ndarray) -> np.ndarray:
    """bfloat16 as its bits: the upper half of a float32."""
    return (array.view(np.uint32) >> 16).astype(np.uint16) if array.dtype == np.float32 else array


def numbers(array: np.ndarray) -> np.ndarray:
    """A tensor in float64, bits of bfloat16 included."""
    wide: np.ndarray = (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array
    return wide.astype(np.float64)


def ratios(got: np.ndarray, value: np.ndarray, radius: np.ndarray, largest: float) -> np.ndarray:
    """|error| / radius of every element; -1 where nothing can be said. Beyond the type's range infinity is right."""
    with np.errstate(all="ignore"):
        ratio: np.ndarray = np.abs(got - value) / radius
        beyond = (np.abs(value) + radius >= largest) & (np.abs(got) >= largest) & (np.sign(got) == np.sign(value))
    ratio[~np.isfinite(got)] = np.inf
    ratio[(got == value) | beyond] = 0
    ratio[np.isinf(radius)] = -1
    return ratio

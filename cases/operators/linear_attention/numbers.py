"""Numbers of LinearAttention's inputs: kinds of decays, betas and keys, and small integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...axes.generator import integers, uniform
from .spec import LinearAttentionSpec

Array = NDArray[Any]

_PRECISION = {"float32": 24, "float16": 11, "bfloat16": 8}


def _mixed(drawn: Array) -> Array:
    """Return zeros, with -90 for one element in eight."""
    return np.where(np.abs(drawn) < 1 / 8, -90.0, 0.0)


DECAYS: Mapping[str, Callable[[Array], Array]] = {
    "mild": lambda drawn: -np.abs(drawn) / 8,
    "strong": lambda drawn: -np.abs(drawn) * 4,
    "mamba": lambda drawn: -(drawn**4) * 8,
    "zero": np.zeros_like,
    "positive": lambda drawn: np.abs(drawn) / 32,
    "sixty": lambda drawn: np.where(drawn > 0.5, -60.0, -np.abs(drawn)),
    "mixed": _mixed,
}
"""Kinds of decays, as functions of numbers between -1 and 1.

``mamba`` is a power, near 0 and far from it as in Mamba. ``sixty`` erases half of the state. ``mixed`` has steps that
erase all of the state between steps that keep it.
"""

BETAS: Mapping[str, Callable[[Array], Array]] = {
    "unit": np.abs,
    "zero": np.zeros_like,
    "one": np.ones_like,
    "two": lambda drawn: np.abs(drawn) * 2,
    "negative": lambda drawn: drawn,
}
"""Kinds of betas, as functions of numbers between -1 and 1; ``two`` reaches 2 and ``negative`` reaches -1."""


def draw(spec: LinearAttentionSpec, name: str, shape: tuple[int, ...], key: str) -> Array:
    """Return the numbers of an input in float64, the same ones for the same key."""
    if spec.numbers == "integers":
        return _integers(spec, name, shape, key)
    drawn = uniform(key, shape, _PRECISION[spec.type_of(name)], 0)
    if name == "key":
        heads = drawn.reshape(*shape[:2], spec.k_num_heads, spec.d_k)
        return _key_heads(heads, spec.keys, key).reshape(shape)
    if name == "decay":
        return DECAYS[spec.decays](drawn)
    return BETAS[spec.betas](drawn) if name == "beta" else drawn


def _key_heads(drawn: Array, kind: str, key: str) -> Array:
    """Return keys (B, T, H, d_k) of a kind, from numbers between -1 and 1."""
    if kind == "one-hot":
        d_k, count = drawn.shape[3], int(np.prod(drawn.shape[:3]))
        positions = integers(f"{key}/places", count, 0, max(d_k - 1, 0)).reshape(drawn.shape[:3])
        signs = np.sign(drawn[..., :1])
        hot: Array = (np.arange(d_k) == positions[..., np.newaxis]) * signs
        return hot
    if kind == "free":
        return drawn
    if kind == "alike":
        drawn = drawn / 4 + np.where(np.arange(drawn.shape[3]) % 2, -1.0, 1.0)
    elif kind == "positive":
        drawn = np.abs(drawn)
    squares = np.zeros(drawn.shape[:3])
    for square in np.moveaxis(drawn * drawn, 3, 0):  # sequential sum: the same digits on every machine
        squares += square
    return drawn / np.sqrt(squares)[..., np.newaxis]


def _integers(spec: LinearAttentionSpec, name: str, shape: tuple[int, ...], key: str) -> Array:
    """Return small integers; for a delta rule, keys with one entry 1 or -1, and betas 0, 1 and 2."""
    count = int(np.prod(shape))
    if name == "beta":
        return integers(key, count, 0, 2).reshape(shape).astype(np.float64)
    if name == "key" and spec.delta:
        drawn = uniform(key, (*shape[:2], spec.k_num_heads, spec.d_k), 24, 0)
        return _key_heads(drawn, "one-hot", key).reshape(shape)
    most = 1 if name == "key" else 2
    return integers(key, count, -most, most).reshape(shape).astype(np.float64)

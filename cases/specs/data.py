"""The numbers of a case: dyadic rationals from a counter-based generator, the same bytes on every platform.

Element k of a tensor is a function of (seed, tensor name, k) in 64-bit integer arithmetic (the finalizer of splitmix64,
applied to a counter), cut to the precision of the tensor's type and scaled by a power of two. No floating-point
operation rounds on the way, and no generator of a library takes part.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import CELLS, FORMATS
from .spec import CaseSpec

__all__ = ["inputs_of", "uniform"]

Array = NDArray[Any]


def _bits(key: str, count: int) -> NDArray[np.uint64]:
    """`count` numbers of 64 random bits."""
    start = np.uint64(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little"))
    # Arrays of integers wrap around without a warning.
    z = _counted(count) + start
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _counted(count: int) -> NDArray[np.uint64]:
    """The first multiples of splitmix64's step, from one on."""
    if count <= len(_FIRST):
        return _FIRST[:count]
    return np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


_FIRST = np.arange(1, 4097, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def _integers(key: str, count: int, low: int, high: int) -> NDArray[np.int64]:
    """`count` integers in [low, high]; the bias of the remainder does not matter here."""
    return (_bits(key, count) >> np.uint64(16)).astype(np.int64) % (high - low + 1) + low


def uniform(key: str, shape: tuple[int, ...], precision: int, exponent: int) -> Array:
    """Numbers m * 2^(exponent - precision) with odd m, |m| < 2^precision: dense in (-2^exponent, 2^exponent), never 0,
    each using all digits of the format."""
    bits = _bits(key, math.prod(shape))
    numbers = ((bits >> np.uint64(64 - precision)) | np.uint64(1)).astype(np.float64)
    numbers *= 2.0 ** (exponent - precision)  # exact: a power of two, far from the ends of float64
    np.negative(numbers, out=numbers, where=(bits & np.uint64(1)).astype(bool))
    return numbers.reshape(shape)


def _gain(columns: int) -> int:
    """Exponent of weights that makes sums of `columns` products about as large as one: that of 2 / sqrt(columns).

    In whole numbers, since the last digit of a logarithm, which is not the same everywhere, would decide where the
    exponent lies halfway: at 2, 8, 32, 128, ... There it is the even one; at 8 it is the odd one, as was pinned once.
    """
    exponent = max(columns.bit_length() - 2, 0) // 2
    halfway = columns & (columns - 1) == 0 and columns.bit_length() % 2 == 0
    return -(exponent - 1 if halfway and exponent % 2 and columns > 8 else exponent)


# Exponents of X and of states, added to the usual ones. Weights stay as they are, so that cases share a model.
_MAGNITUDES: dict[str, tuple[int, int]] = {
    "dense": (0, 0),
    "heavy": (0, 0),
    "small": (-6, -6),
    "large": (4, 2),
    "huge": (10, 0),
}


@lru_cache(maxsize=64)
def _constant(key: str, shape: tuple[int, ...], precision: int, exponent: int, type: str) -> Array:
    """A tensor of weights, which many cases share."""
    return uniform(key, shape, precision, exponent).astype(FORMATS[type].dtype)


@lru_cache(maxsize=256)  # cases are built that far ahead of their results, which ask again
def inputs_of(spec: CaseSpec, run: int = 0) -> Mapping[str, Array]:
    """The inputs of a case by formal name, those that it has, in its types. The arrays cannot be written to.

    run
        0 for the case's own inputs; other numbers for what its session runs before.

    ``data`` of the spec is one of: ``dense``; ``small``, ``large``, ``huge`` (magnitudes; the last saturates
    every activation, on both sides); ``heavy`` (W and R are four times as large: some of their numbers are
    beyond 1 and sums are steep); ``exact`` (few digits: every
    intermediate of piecewise-linear activations is representable); ``nan-row``, ``inf-row`` (one row of X is spoilt:
    the others must not notice); ``nan-padding`` (what lies past the lengths is NaN); ``one-sign`` (X and W
    positive: a sum loses digits as it grows); ``numerics`` (one step from given
    states, where every digit counts).
    """
    T, N = spec.T, spec.N
    if run and spec.reruns == "sizes":
        T, N = T + 2, N + 1
    if run and spec.reruns == "growing":
        T, N = max(T - 2, 1), max(N - 1, 1)
    cell = CELLS[spec.op]
    D, G, I, H = spec.directions, len(cell.gates), spec.I, spec.H
    form = FORMATS[spec.type]
    precision = form.precision
    if spec.data == "exact":  # the fewer digits the data has, the more operations pass before the format's are used up
        precision = 3 if form.precision >= 24 else 2
    of_x, of_states = _MAGNITUDES.get(spec.data, (0, 0))

    def tensor(name: str, shape: tuple[int, ...], exponent: int, constant: bool = True) -> Array:
        if constant:
            return _constant(f"{spec.op}/{name}/{spec.weights_seed}", shape, precision, exponent, spec.type)
        return uniform(f"{spec.op}/{name}/{spec.seed}/{run}", shape, precision, exponent).astype(form.dtype)

    heavy = 2 if spec.data == "heavy" else 0
    state = (D, N, H) if spec.layout == 0 else (N, D, H)
    inputs = {
        "X": tensor("X", (T, N, I) if spec.layout == 0 else (N, T, I), of_x, constant=False),
        "W": tensor("W", (D, G * H, I), _gain(I) + heavy),
        "R": tensor("R", (D, G * H, H), _gain(H) + heavy),
    }
    if spec.bias:
        inputs["B"] = tensor("B", (D, 2 * G * H), -1)
    lengths = _lengths(spec, T, N, run)
    if lengths is not None:
        inputs["sequence_lens"] = lengths
    for name in ("h", *cell.inner):
        if spec.initial in ("all", name):
            inputs[f"initial_{name}"] = tensor(f"initial_{name}", state, of_states, constant=False)
    if spec.peepholes:
        inputs["P"] = tensor("P", (D, len(cell.peepholes) * H), 0)
    if spec.data == "one-sign":
        inputs |= {name: np.abs(inputs[name]) for name in ("X", "W")}
    _spoil(spec, inputs, T, N)
    for array in inputs.values():
        array.setflags(write=False)
    return MappingProxyType(inputs)


def _lengths(spec: CaseSpec, T: int, N: int, run: int) -> NDArray[np.int32] | None:
    if spec.lengths == "absent":
        return None
    lengths = np.full(N, T, np.int64)
    if spec.lengths == "short":
        lengths[:] = max(T - 1, 0)
    elif spec.lengths in ("ragged", "empty") and N and T:
        lengths = _integers(f"lengths/{spec.seed}/{run}", N, 1, max(T - 1, 1))
        # Unsorted: the longest row is neither first nor last where there are enough rows.
        lengths[N // 2] = T
        if N > 1:
            lengths[0] = min(lengths[0], max(T - 1, 1))
        if spec.lengths == "empty":
            lengths[-1] = 0
            if N > 2:
                lengths[0] = 1
    return lengths.astype(np.int32)


def _spoil(spec: CaseSpec, inputs: dict[str, Array], T: int, N: int) -> None:
    X = inputs["X"] if spec.layout == 0 else inputs["X"].swapaxes(0, 1)
    if spec.data == "nan-row":
        X[T // 2, N // 2, 0] = np.nan
    elif spec.data == "inf-row":
        X[T // 2, N // 2, 0] = np.inf
    elif spec.data == "nan-padding":
        for row, length in enumerate(inputs["sequence_lens"]):
            X[length:, row] = np.nan

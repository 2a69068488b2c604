"""Arithmetic of plain float64 arrays: values without radii."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .activations import Activation

Array = NDArray[np.float64]


class Joining:
    """Common operations of arithmetics whose numbers are plain arrays."""

    def concatenate(self, numbers: Sequence[NDArray[Any]], axis: int = 0) -> NDArray[Any]:
        return np.concatenate(numbers, axis)

    def stack(self, steps: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.stack(steps)

    def where(self, mask: NDArray[np.bool_], number: NDArray[Any], otherwise: NDArray[Any]) -> NDArray[Any]:
        return np.where(mask, number, otherwise)


class Plain(Joining):
    """Operations of :class:`.bounding.Bounding` on plain numbers. Infinities and NaN follow IEEE 754."""

    def exact(self, value: Array) -> Array:
        return value

    def reported_state(self, value: Array) -> Array:
        return value

    def feedback(self, hidden: Array) -> Array:
        """Return the hidden state for the next step of a free run."""
        return self.carry_state(hidden)

    def carry_state(self, state: Array) -> Array:
        return state

    def weights(self, matrix: Array) -> Array:
        return np.ascontiguousarray(matrix.T)

    def product(self, x: Array, weights: Array) -> Array:
        """Return x (..., columns) times the transposed weight matrix: (..., rows)."""
        if len(x) == 1:  # one step needs no reshaping
            return x @ weights
        return (x.reshape(-1, x.shape[-1]) @ weights).reshape(*x.shape[:-1], weights.shape[1])

    def activate(self, activation: Activation, argument: Array, clip: float | None) -> Array:
        return activation(argument if clip is None else np.clip(argument, -clip, clip))

    def interpolation(self, share: Array, new: Array, old: Array) -> Array:
        """Return (1 - share) * new + share * old."""
        result: Array = (1.0 - share) * new + share * old
        return result

    def recurrence(self, factor: Array, term: Array, start: Array) -> Any:
        """Return all C_t = factor_t * C_(t-1) + term_t, t along the first axis."""
        states = np.empty_like(term)
        for t in range(len(term)):
            start = np.multiply(factor[t], start, out=states[t])
            start += term[t]
        return states


class Ordered(Plain):
    """Plain arithmetic whose products are the same on every machine, for numbers that are written to files."""

    def product(self, x: Array, weights: Array) -> Array:
        """Return x (..., columns) times the transposed weight matrix; see :func:`ordered_product`."""
        return ordered_product(x, weights)


def ordered_product(x: Array, weights: Array) -> Array:
    """Return x (..., K) times weights (K, G); the K products of each sum are added from first to last, each rounded.

    A library's matrix product has its own order, which depends on the processor and the number of threads.
    """
    total = np.zeros((*x.shape[:-1], weights.shape[1]))
    if total.size < _FEW:
        for k in range(len(weights)):
            total += x[..., k, None] * weights[k]
        return total
    # The same sums, faster: contiguous operands and a reused buffer stay in cache.
    columns, term = np.ascontiguousarray(np.moveaxis(x, -1, 0))[..., None], np.empty_like(total)
    for column, row in zip(columns, np.ascontiguousarray(weights), strict=True):
        np.multiply(column, row, out=term)
        total += term
    return total


_FEW = 1024
"""Number of sums below which rearranging the factors costs more than it saves."""

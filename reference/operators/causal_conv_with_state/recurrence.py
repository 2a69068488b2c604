"""Equations of CausalConvWithState, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.accuracy import ORACLE_ACTIVATION, ORACLE_UNIT, Budget, budget
from ...numbers.bounded import Bounded, Sum
from ...numbers.bounding import Bounding
from ..described import Described, Outputs

Array = NDArray[np.float64]


def silu(x: Array) -> Array:
    """Return x times sigmoid(x)."""
    product: Array = x * (0.5 * np.tanh(0.5 * x) + 0.5)
    return np.where(x < -30, x * np.exp(np.minimum(x, 0.0)), product)  # below -30, 1 + tanh has lost its digits


def dilation_of(c: Described) -> int:
    """Return the distance between adjacent weights, in positions."""
    return int(c.attributes.get("dilation", 1))


def lag_of(c: Described) -> int:
    """Return the number of earlier positions that an output depends on: the length of the state."""
    return (int(c.inputs["weight"].shape[2]) - 1) * dilation_of(c)


def channels_first(c: Described, array: Array) -> Array:
    """Return numbers in the node's layout as (batch_size, channels, positions), or back: the swap is its own
    inverse."""
    return array.swapaxes(1, 2) if c.layout == 1 else array


def padded(c: Described) -> Array:
    """Return past_state (or zeros) followed by input: (batch_size, channels, lag + length)."""
    x, past = c.wide("input"), c.wide("past_state")
    assert x is not None
    x = channels_first(c, x)
    past = np.zeros((*x.shape[:2], lag_of(c))) if past is None else channels_first(c, past)
    return np.concatenate([past, x], axis=2)


def sums(c: Described, numbers: Array) -> Array:
    """Return the convolution of padded `numbers` with weight, plus bias."""
    weight, bias = c.wide("weight"), c.wide("bias")
    assert weight is not None
    total = np.zeros((*numbers.shape[:2], numbers.shape[2] - lag_of(c)))
    for j in range(weight.shape[2]):  # sequential sum: the same digits on every machine
        total += taken(c, numbers, j) * weight[:, :, j].reshape(1, -1, 1)
    return total if bias is None else total + bias.reshape(1, -1, 1)


def taken(c: Described, numbers: NDArray[Any], j: int) -> NDArray[Any]:
    """Return the padded numbers that weight `j` is multiplied with, for each position."""
    start = j * dilation_of(c)
    part: NDArray[Any] = numbers[:, :, start : start + numbers.shape[2] - lag_of(c)]
    return part


def activated(c: Described, total: Array) -> Array:
    """Return the activation function of sums."""
    return total if c.attributes["activation"] == "none" else silu(total)


def present_state(c: Described, numbers: Array) -> Array:
    """Return the last positions of padded numbers: the new state."""
    return numbers[:, :, numbers.shape[2] - lag_of(c) :]


def convolved(c: Described) -> Outputs:
    """Return output and present_state, in the node's layout."""
    numbers = padded(c)
    outputs = {"output": activated(c, sums(c, numbers)), "present_state": present_state(c, numbers)}
    return {name: channels_first(c, array) for name, array in outputs.items()}


_STEEPEST = 1.1
"""Upper bound of |silu'|, whose maximum is 1.0998."""


def radii(c: Described, outputs: Outputs, accuracy: str) -> Outputs:
    """Return how far a correct implementation may be from each number; infinity where it may overflow."""
    allowed = budget(accuracy, c.format.name)
    total = _sum(c, Bounding(allowed).exact(padded(c)), allowed)
    stored = total.settled()
    radius = stored.radius if stored.doubt is None else np.where(stored.doubt, np.inf, stored.radius)
    if c.attributes["activation"] != "none":
        radius = silu_radius(stored.value, radius, allowed)
    state = Bounding(allowed).exact(present_state(c, padded(c)))
    copied = np.broadcast_to(state.radius, state.value.shape)
    copied = copied if state.doubt is None else np.where(state.doubt, np.inf, copied)
    return {"output": channels_first(c, radius), "present_state": channels_first(c, copied)}


def _sum(c: Described, numbers: Bounded, w: Budget) -> Sum:
    """Return the sum of k products and bias, whose terms may be added in any order."""
    weight, bias = c.wide("weight"), c.wide("bias")
    assert weight is not None
    k = weight.shape[2]
    shape = (*numbers.value.shape[:2], numbers.value.shape[2] - lag_of(c))
    value, magnitude, error = (np.zeros(shape) for _ in range(3))
    lost = max(w.operand_floor, w.input_floor)
    undefined = np.zeros(value.shape, bool)
    for j in range(k):
        x, factor = taken(c, numbers.value, j), weight[:, :, j].reshape(1, -1, 1)
        size, factor_size = np.abs(x), np.abs(factor)
        value += x * factor
        magnitude += size * factor_size
        # Each operand may be rounded first, or flushed; the radius of x has the error of a narrower storage.
        error += size * factor_size * w.operand_unit * (2 + w.operand_unit) + lost * (size + factor_size + lost)
        radius = taken(c, numbers.radius, j)
        error += radius * factor_size * (1 + w.operand_unit) ** 2
        error += (size + radius) * factor_size * max(w.unit - w.tensor.unit - 2 * ORACLE_UNIT, 0.0)
        undefined |= ~((size <= w.operand_largest) & (factor_size <= w.operand_largest))
        if numbers.doubt is not None:
            undefined |= taken(c, numbers.doubt, j)
    total = Sum(value, np.stack([error, magnitude, np.abs(value)]), k, 1, w, undefined if undefined.any() else None)
    if bias is None:
        return total
    return total + Bounding(w).exact(np.broadcast_to(bias.reshape(1, -1, 1), value.shape).copy())


def silu_radius(x: Array, radius: Array, w: Budget) -> Array:
    """Return the radius of x * sigmoid(x), for an x with error `radius`.

    A kernel may multiply x by a sigmoid with error (a s + b)u, at least 8su, and round the product. Or it divides x by
    1 + e with e = exp(-x): the error of e is 2ue, of the sum u(1 + e), of the quotient 6u, together at most 9su |x|.
    """
    size = np.abs(x) + radius
    sigmoid = 1 / (1 + np.exp(-np.minimum(x + radius, 700.0)))
    primitive = (w.a * w.unit + ORACLE_ACTIVATION) * sigmoid + w.b * w.unit + 2 * ORACLE_UNIT + w.least_normal
    off = _STEEPEST * radius + size * (primitive + w.unit * sigmoid) + (1 + w.division) * w.floor
    return np.where(np.isfinite(radius), off, np.inf)

"""The equations of CausalConvWithState, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..described import Described, Outputs

Array = NDArray[np.float64]


def silu(x: Array) -> Array:
    """Return x times sigmoid(x)."""
    product: Array = x * (0.5 * np.tanh(0.5 * x) + 0.5)
    return np.where(x < -30, x * np.exp(np.minimum(x, 0.0)), product)  # where 1 + tanh has lost its digits


def padded(c: Described) -> Array:
    """Return past_state, or zeros in its place, and input: (batch_size, channels, k - 1 + length)."""
    x, past = c.wide("input"), c.wide("past_state")
    assert x is not None
    if past is None:
        past = np.zeros((*x.shape[:2], c.inputs["weight"].shape[2] - 1))
    return np.concatenate([past, x], axis=2)


def windows(numbers: Array, width: int) -> Any:
    """Return the `width` numbers up to each position, the last axis."""
    return np.lib.stride_tricks.sliding_window_view(numbers, width, axis=2)


def sums(c: Described, numbers: Array) -> Array:
    """Return the convolution of `numbers` with weight, and bias."""
    weight, bias = c.wide("weight"), c.wide("bias")
    assert weight is not None
    k = weight.shape[2]
    # One product after the other: the same digits on every machine.
    length = numbers.shape[2] - k + 1
    total: Array = sum(
        (numbers[:, :, j : j + length] * weight[:, :, j].reshape(1, -1, 1) for j in range(k)),
        np.zeros((*numbers.shape[:2], length)),
    )
    return total if bias is None else total + bias.reshape(1, -1, 1)


def activated(c: Described, total: Array) -> Array:
    """Return the activation of sums."""
    return total if c.attributes["activation"] == "none" else silu(total)


def present_state(c: Described, numbers: Array) -> Array:
    """Return the last k - 1 positions."""
    k = c.inputs["weight"].shape[2]
    return numbers[:, :, numbers.shape[2] - (k - 1) :]


def convolved(c: Described) -> Outputs:
    """Return output and present_state."""
    numbers = padded(c)
    return {"output": activated(c, sums(c, numbers)), "present_state": present_state(c, numbers)}

"""Equations of CausalConvWithState, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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

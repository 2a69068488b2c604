"""Faults of DynamicQuantizeLSTM's levels, scales, zero points and ranges; its other faults are those of LSTM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...faults.alterations import configured, merged, with_inputs
from ...faults.fault import UNINITIALIZED, Array, Compute, Outputs, fault, fault_of_run
from ...recurrent.computation import Computation

# Rows: id, clause, words, then the change.
# fmt: off

_of = partial(fault, operators=("DynamicQuantizeLSTM",), types=("float32",))


def _weights(c: Computation, change: Callable[[Array, Array, Array], Array], names: str = "WR") -> Computation:
    """Return the computation with recomputed weights, by `change`, a function of (levels, scale, zero point). The axes
    are direction, column and channel."""
    changed = {}
    for name in names:
        parts = (c.inputs[f"{name}_{part}"] for part in ("scale", "zero_point"))
        scale, zero = (part.reshape(len(part), 1, -1) for part in parts)
        levels = np.rint(c.inputs[name].swapaxes(1, 2) / scale) + zero
        changed[name] = change(levels, scale, zero).swapaxes(1, 2)
    return with_inputs(c, **changed)


def _ranges(c: Computation, **changed: Any) -> Computation:
    """Return the computation with other ranges, or other levels of a range; as it is where nothing is quantized."""
    operands: Any = c.configuration.operands
    if operands is None:
        return c
    return configured(c, operands=replace(operands, **changed))


_of("weights.zero-points-ignored", "weights", "Takes the zero points of the weights for zero.",
    lambda c: _weights(c, lambda levels, scale, zero: levels * scale))
_of("weights.zero-points-of-the-other-direction", "weights",
    "Uses the forward direction's zero points for both directions.",
    lambda c: _weights(c, lambda levels, scale, zero: (levels - zero[:1]) * scale))
_of("weights.scales-of-the-other-direction", "weights", "Uses the forward direction's scales for both directions.",
    lambda c: _weights(c, lambda levels, scale, zero: (levels - zero) * scale[:1]))
_of("weights.scale-of-w-for-r", "weights", "Uses W's scales for R too.",
    lambda c: _weights(
        c, lambda levels, scale, zero: (levels - zero) * c.inputs["W_scale"].reshape(len(zero), 1, -1), "R"
    ))
_of("weights.first-channel", "weights.channels", "Uses the first channel's scale for all channels.",
    lambda c: _weights(c, lambda levels, scale, zero: (levels - zero) * scale[..., :1]))
_of("weights.next-channel", "weights.channels", "Uses each channel's scale for the channel before it.",
    lambda c: _weights(c, lambda levels, scale, zero: (levels - zero) * np.roll(scale, -1, axis=-1)))


@fault_of_run("weights.zero-points-out-of-bounds", "weights.channels",
    "Reads the second direction's zero points past their end, where its scales, one for each channel, would be.",
    operators=("DynamicQuantizeLSTM",), types=("float32",))
def zero_points_out_of_bounds(compute: Compute, c: Computation) -> Outputs:
    mixed = [n for n in "WR" if c.inputs[f"{n}_scale"].ndim == 2 and c.inputs[f"{n}_zero_point"].ndim == 1]
    right = compute(c)
    if not mixed or len(c.configuration.directions) < 2:
        return right
    unknown = {name: np.full(array.shape, UNINITIALIZED) for name, array in right.items()}
    return merged(c, right, unknown, [1])


_of("weights.other-sign", "weights.signs", "Takes levels of 128 and more, of weights and of zero points, for 256 less.",
    lambda c: _weights(c, lambda levels, scale, zero: ((levels + 128) % 256 - (zero + 128) % 256) * scale))


@_of("weights.not-transposed", "weights.layout", "Reads W and R as LSTM's lie in memory, with a row for each channel.")
def not_transposed(c: Computation) -> Computation:
    shape = len(c.inputs["W"]), c.inputs["W"].shape[1], -1
    return _weights(c, lambda w, scale, zero: ((w - zero) * scale).reshape(shape).swapaxes(1, 2))


_of("dynamic.half-up", "dynamic-quantization.nearest", "Rounds half a level up instead of to even.",
    lambda c: _ranges(c, nearest=lambda quotient: np.floor(quotient + 0.5)))
_of("dynamic.truncated", "dynamic-quantization.nearest", "Cuts quotients off towards zero instead of rounding them.",
    lambda c: _ranges(c, nearest=np.trunc))
_of("dynamic.range-without-zero", "dynamic-quantization.zero", "Takes ranges that do not reach to zero as they are.",
    lambda c: _ranges(c, with_zero=False))
_of("dynamic.not-quantized", "dynamic-quantization", "Multiplies X and Ht-1 as they are, not quantized.",
    lambda c: configured(c, operands=None))
_of("dynamic.states-not-quantized", "dynamic-quantization", "Multiplies Ht-1 as it is, not quantized.",
    lambda c: _ranges(c, states=""))
_of("dynamic.range-of-first-step", "dynamic-quantization", "Takes the range of the first step for all of X.",
    lambda c: _ranges(c, inputs="first"))
_of("dynamic.state-range-of-2-parts", "dynamic-quantization",
    "Quantizes Ht-1 by two ranges, each of half the batch, as two threads divide it.",
    lambda c: _ranges(c, states="batch", block=lambda rows: -(-rows // 2)))

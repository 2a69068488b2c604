"""Faults of clip: what it bounds, where, and on which side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.activations import Activation
from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ...recurrent.rnn import CELLS
from ..alterations import (
    Unfinished,
    configured,
    merged,
    revalued,
    with_equations,
    with_functions,
    with_inputs,
    with_steps,
)
from ..alterations import clipped as bounded
from ..fault import ALL_BUT_BFLOAT16, Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]

# Thresholds to which other frameworks clip cell states when nobody asks them to.
USUAL_CLIP = 50.0


def _threshold(c: Computation) -> float | None:
    return next((clip for clip in c.configuration.clips if clip is not None), None)


def _unclipped(c: Computation) -> Computation:
    return configured(c, clips=(None,) * len(c.configuration.clips))


def _around(c: Computation, change: Callable[[Activation, Array, float, float], Array]) -> Computation:
    """The computation with change(function, x, clip, d) in place of each function of the clipped argument."""
    clips = c.configuration.clips

    def changed(function: Activation, position: int, d: int) -> Activation:
        clip = clips[position]
        if clip is None:
            return function
        return revalued(function, lambda x, alpha, beta: change(function, x, clip, d))

    return _unclipped(with_functions(c, changed))


@fault("clip.ignored", clause="clip")
def clip_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores clip."""
    return compute(_unclipped(c))


@fault("clip.upper-only", clause="clip")
def clip_upper_only(compute: Compute, c: Computation) -> Outputs:
    """Bounds arguments from above only."""
    return compute(_around(c, lambda function, x, clip, d: function(np.minimum(x, clip))))


@fault("clip.lower-only", clause="clip")
def clip_lower_only(compute: Compute, c: Computation) -> Outputs:
    """Bounds arguments from below only."""
    return compute(_around(c, lambda function, x, clip, d: function(np.maximum(x, -clip))))


@fault("clip.from-zero", clause="clip")
def clip_from_zero(compute: Compute, c: Computation) -> Outputs:
    """Bounds arguments to between 0 and clip."""
    return compute(_around(c, lambda function, x, clip, d: function(np.clip(x, 0.0, clip))))


@fault("clip.after-activation", clause="clip")
def clip_after_activation(compute: Compute, c: Computation) -> Outputs:
    """Bounds what activations give instead of what they are given."""
    return compute(_around(c, lambda function, x, clip, d: np.clip(function(x), -clip, clip)))


@fault("clip.forward-only", clause="clip")
def clip_forward_only(compute: Compute, c: Computation) -> Outputs:
    """Bounds nothing in the backward direction."""
    return compute(_around(c, lambda function, x, clip, d: function(x if d else np.clip(x, -clip, clip))))


@fault("clip.single-step-ignored", clause="clip")
def clip_ignored_of_one_step(compute: Compute, c: Computation) -> Outputs:
    """Bounds nothing in sequences of one step, which have a way of their own."""
    return compute(_unclipped(c) if c.configuration.T == 1 else c)


@fault("clip.half", clause="clip", types=ALL_BUT_BFLOAT16)
def clip_half(compute: Compute, c: Computation) -> Outputs:
    """Takes clip for the width of the range and bounds arguments to half of it on either side."""
    return compute(_around(c, lambda function, x, clip, d: function(np.clip(x, -clip / 2, clip / 2))))


@fault("clip.gates-only", clause="clip", operators=tuple(op for op, cell in CELLS.items() if len(cell.gates) > 1))
def clip_gates_only(compute: Compute, c: Computation) -> Outputs:
    """Bounds the gates' arguments, but not that of g."""
    first, _, *rest = c.configuration.clips
    return compute(configured(c, clips=(first, None, *rest)))


@fault("clip.on-hidden", clause="clip")
def clip_on_hidden(compute: Compute, c: Computation) -> Outputs:
    """Bounds the hidden state that is carried on instead of the arguments of activations."""
    threshold, cell = _threshold(c), c.configuration.cell
    if threshold is None:
        return compute(c)

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        hidden, *rest = cell.equations(p, XW, HR, H, *inner)
        return (bounded(p, hidden, threshold), *rest)

    return compute(_unclipped(with_equations(c, equations)))


@fault("clip.on-input", clause="clip")
def clip_on_input(compute: Compute, c: Computation) -> Outputs:
    """Bounds X instead of the arguments of activations."""
    threshold = _threshold(c)
    if threshold is None:
        return compute(c)
    return compute(_unclipped(with_steps(c, lambda X: np.clip(X, -threshold, threshold))))


@fault("clip.default-fifty", clause="clip", types=ALL_BUT_BFLOAT16)
def clip_by_default(compute: Compute, c: Computation) -> Outputs:
    """Without clip bounds arguments to 50 and -50 all the same."""
    if "clip" in compute.attributes or _threshold(c) is not None:
        return compute(c)
    return compute(configured(c, clips=(USUAL_CLIP,) * len(c.configuration.clips)))


class _Owed(Unfinished):
    """A sum that owes its biases: they are added when it is handed to an activation, after clip has bounded it."""

    def __init__(self, number: Number, bias: Array) -> None:
        self.number, self.bias = number, bias

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, place: Any) -> _Owed:
        units = isinstance(place, tuple) and place and place[0] is Ellipsis
        return _Owed(self.number[place], self.bias[place] if units else self.bias)

    def __add__(self, other: Number) -> _Owed:
        return _Owed(self.number + other, self.bias)

    __radd__ = __add__

    def __mul__(self, other: Number) -> _Owed:
        return _Owed(self.number * other, self.bias)  # whatever is done before, the bias comes last

    __rmul__ = __mul__

    def clipped(self, p: Parameters, threshold: float) -> _Owed:
        return _Owed(bounded(p, self.number, threshold), self.bias)


@fault("clip.before-bias", clause="clip", types=ALL_BUT_BFLOAT16)
def clip_before_bias(compute: Compute, c: Computation) -> Outputs:
    """Bounds the sums before the biases are added to them."""
    threshold, B, k = _threshold(c), c.inputs.get("B"), c.configuration
    if threshold is None or B is None or k.linear_before_reset:
        return compute(c)
    half = len(k.cell.gates) * k.H

    def of_direction(d: int) -> Computation:
        bias = B[d, :half] + B[d, half:]

        def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
            def late(function: Callable[[Number], Number], clip: float | None) -> Callable[[Number], Number]:
                def apply(number: Number) -> Number:
                    if isinstance(number, _Owed):
                        return function(bounded(p, number.number, threshold) + p.arithmetic.exact(number.bias))
                    return function(number if clip is None else bounded(p, number, clip))

                return apply

            functions = tuple(late(f, clip) for f, clip in zip(p.functions, k.clips, strict=True))
            owing = Gates(_Owed(XW.number, bias), XW.blocks)
            return k.cell.equations(replace(p, functions=functions), owing, HR, H, *inner)

        return _unclipped(with_equations(with_inputs(c, B=None), equations))

    outputs = compute(of_direction(0))
    for d in range(1, len(k.directions)):
        outputs = merged(c, outputs, compute(of_direction(d)), [d])
    return outputs

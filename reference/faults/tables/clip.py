"""Faults of clip: the clipped quantity, its place, and the side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

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
    with_hidden_state,
    with_inputs,
    with_steps,
)
from ..alterations import clipped as bounded
from ..fault import ALL_BUT_BFLOAT16, Array, Compute, Outputs, fault, fault_of_run

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

# Thresholds to which other frameworks clip cell states by default.
USUAL_CLIP = 50.0


def _threshold(c: Computation) -> float | None:
    return next((clip for clip in c.configuration.clips if clip is not None), None)


def _unclipped(c: Computation) -> Computation:
    return configured(c, clips=(None,) * len(c.configuration.clips))


def _around(c: Computation, change: Callable[[Activation, Array, float, float], Array]) -> Computation:
    """Return the computation with change(function, x, clip, d) in place of each function of a clipped argument."""
    clips = c.configuration.clips

    def changed(function: Activation, position: int, d: int) -> Activation:
        clip = clips[position]
        if clip is None:
            return function
        return revalued(function, lambda x, alpha, beta: change(function, x, clip, d))

    return _unclipped(with_functions(c, changed))


fault("clip.ignored", "clip", "Ignores clip.", _unclipped)
fault("clip.upper-only", "clip", "Bounds arguments from above only.",
    lambda c: _around(c, lambda function, x, clip, d: function(np.minimum(x, clip))))
fault("clip.lower-only", "clip", "Bounds arguments from below only.",
    lambda c: _around(c, lambda function, x, clip, d: function(np.maximum(x, -clip))))
fault("clip.from-zero", "clip", "Bounds arguments to between 0 and clip.",
    lambda c: _around(c, lambda function, x, clip, d: function(np.clip(x, 0.0, clip))))
fault("clip.after-activation", "clip", "Bounds what activations give instead of what they are given.",
    lambda c: _around(c, lambda function, x, clip, d: np.clip(function(x), -clip, clip)))
fault("clip.forward-only", "clip", "Bounds nothing in the backward direction.",
    lambda c: _around(c, lambda function, x, clip, d: function(x if d else np.clip(x, -clip, clip))))
fault("clip.single-step-ignored", "clip", "Bounds nothing in sequences of one step, which have a way of their own.",
    lambda c: _unclipped(c) if c.configuration.T == 1 else c)
fault("clip.half", "clip", "Takes clip for the width of the range and bounds arguments to half of it on either side.",
    lambda c: _around(c, lambda function, x, clip, d: function(np.clip(x, -clip / 2, clip / 2))),
    types=ALL_BUT_BFLOAT16)
fault("clip.gates-only", "clip", "Bounds the gates' arguments, but not that of g.",
    lambda c: configured(c, clips=(c.configuration.clips[0], None, *c.configuration.clips[2:])),
    operators=tuple(op for op, cell in CELLS.items() if len(cell.gates) > 1))


@fault("clip.on-hidden", "clip", "Bounds the hidden state that is carried on instead of the arguments of activations.")
def clip_on_hidden(c: Computation) -> Computation:
    threshold = _threshold(c)
    return c if threshold is None else _unclipped(with_hidden_state(c, lambda p, h: bounded(p, h, threshold)))


@fault("clip.on-input", "clip", "Bounds X instead of the arguments of activations.")
def clip_on_input(c: Computation) -> Computation:
    threshold = _threshold(c)
    return c if threshold is None else _unclipped(with_steps(c, lambda X: np.clip(X, -threshold, threshold)))


@fault_of_run("clip.default-fifty", "clip", "Without clip bounds arguments to 50 and -50 all the same.",
    types=ALL_BUT_BFLOAT16)
def clip_by_default(compute: Compute, c: Computation) -> Outputs:
    clipped = "clip" in compute.attributes or _threshold(c) is not None
    return compute(c if clipped else configured(c, clips=(USUAL_CLIP,) * len(c.configuration.clips)))


class _Owed(Unfinished):
    """Sum whose biases are added after clip, when it is passed to an activation."""

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
        return _Owed(self.number * other, self.bias)  # the bias is always added last

    __rmul__ = __mul__

    def clipped(self, p: Parameters, threshold: float) -> _Owed:
        return _Owed(bounded(p, self.number, threshold), self.bias)


@fault_of_run("clip.before-bias", "clip", "Bounds the sums before the biases are added to them.",
    types=ALL_BUT_BFLOAT16)
def clip_before_bias(compute: Compute, c: Computation) -> Outputs:
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

"""Faults of clip, and of blocks: units that a kernel processes together, in memory that it reads and writes at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...numbers.activations import Activation
from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ...recurrent.rnn import CELLS
from ..alterations import (
    WithoutBias,
    clipped,
    configured,
    merged,
    revalued,
    rounded_state,
    sums_over,
    threshold_of,
    unclipped,
    with_clip,
    with_equations,
    with_functions,
    with_hidden_state,
    with_inputs,
    with_recurrent_state,
    with_steps,
)
from ..fault import ALL_BUT_BFLOAT16, Array, Compute, Outputs, fault, fault_of_run

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

@fault("blocks.units-in-place-by-{}", "equations",
    "Writes Ht over Ht-1 in blocks of {0} units: later ones multiply R by what earlier ones have become.",
    types=ALL_BUT_BFLOAT16, layer="operands", numbers=(8, 32, 16, 4))
def units_in_place(c: Computation, block: int) -> Computation:
    units, cell = c.configuration.H, c.configuration.cell
    if units <= block:
        return c

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        return one_by_one(by_blocks, p, XW, HR, H, *inner)

    def by_blocks(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        states = cell.equations(p, XW, HR, H, *inner)
        for first in range(block, units, block):
            before, after = np.arange(units) < first, np.arange(units) >= first
            mixed = p.arithmetic.where(before, states[0], H)
            later = cell.equations(p, XW, sums_over(p, mixed, HR), H, *inner)
            states = tuple(p.arithmetic.where(after, new, old) for new, old in zip(later, states, strict=True))
        return states

    return with_equations(c, equations)


def one_by_one(step: Callable[..., States], p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Return the states after every step of equations that are run step by step."""
    taken: list[States] = []
    for t in range(len(XW.number)):
        steps = slice(t, t + 1)
        states = step(replace(p, t=p.t + t), XW[steps], HR[steps], H[steps], *inner)
        inner = tuple(p.arithmetic.carry_state(state[-1]) for state in states[1:])
        taken.append(states)
    return tuple(p.arithmetic.concatenate(list(parts)) for parts in zip(*taken, strict=True))


def _first_zero(state: Array, block: int) -> Array:
    """Return a state with zeros for the whole blocks of units whose first unit is zero."""
    units = state.shape[-1]
    first = np.arange(units) // block * block
    return np.where((state[..., first] == 0) & (first + block <= units), 0.0, state)


fault("blocks.skipped-by-first-zero-of-{}", "equations",
    "Leaves {0} units out of the product with R where the state of the first of them is zero.",
    lambda c, block: with_recurrent_state(c, lambda state: rounded_state(state, lambda x: _first_zero(x, block))),
    layer="operands", numbers=(4, 16, 8))


fault("blocks.state-bounded", "equations",
    "Bounds Ht-1 to between -1 and 1 before it is multiplied by R, and there alone.",
    lambda c: with_equations(c, lambda p, XW, HR, H, *inner: c.configuration.cell.equations(
        p, XW, sums_over(p, clipped(p, H, 1.0), HR), H, *inner
    )), types=ALL_BUT_BFLOAT16, layer="operands")


# Thresholds to which other frameworks clip cell states by default.
USUAL_CLIP = 50.0


def _around(c: Computation, change: Callable[[Activation, Array, float, float], Array]) -> Computation:
    """Return the computation with change(function, x, clip, d) in place of each function of a clipped argument."""
    clips = c.configuration.clips

    def changed(function: Activation, position: int, d: int) -> Activation:
        clip = clips[position]
        if clip is None:
            return function
        return revalued(function, lambda x, alpha, beta: change(function, x, clip, d))

    return unclipped(with_functions(c, changed))


fault("clip.ignored", "clip", "Ignores clip.", unclipped)
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
    lambda c: unclipped(c) if c.configuration.T == 1 else c)
fault("clip.half", "clip", "Takes clip for the width of the range and bounds arguments to half of it on either side.",
    lambda c: _around(c, lambda function, x, clip, d: function(np.clip(x, -clip / 2, clip / 2))),
    types=ALL_BUT_BFLOAT16)
fault("clip.gates-only", "clip", "Bounds the gates' arguments, but not that of g.",
    lambda c: configured(c, clips=(c.configuration.clips[0], None, *c.configuration.clips[2:])),
    operators=tuple(op for op, cell in CELLS.items() if len(cell.gates) > 1))


fault("clip.on-hidden", "clip", "Bounds the hidden state that is carried on instead of the arguments of activations.",
    with_clip(lambda c, clip: unclipped(with_hidden_state(c, lambda p, h: clipped(p, h, clip)))))
fault("clip.on-input", "clip", "Bounds X instead of the arguments of activations.",
    with_clip(lambda c, clip: unclipped(with_steps(c, lambda X: np.clip(X, -clip, clip)))))


@fault_of_run("clip.default-fifty", "clip", "Without clip bounds arguments to 50 and -50 all the same.",
    types=ALL_BUT_BFLOAT16)
def clip_by_default(compute: Compute, c: Computation) -> Outputs:
    is_clipped = "clip" in compute.attributes or threshold_of(c) is not None
    return compute(c if is_clipped else configured(c, clips=(USUAL_CLIP,) * len(c.configuration.clips)))


@fault_of_run("clip.before-bias", "clip", "Bounds the sums before the biases are added to them.",
    types=ALL_BUT_BFLOAT16)
def clip_before_bias(compute: Compute, c: Computation) -> Outputs:
    threshold, B, k = threshold_of(c), c.inputs.get("B"), c.configuration
    if threshold is None or B is None or k.linear_before_reset:
        return compute(c)
    half = len(k.cell.gates) * k.H

    def of_direction(d: int) -> Computation:
        bias = B[d, :half] + B[d, half:]

        def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
            def late(function: Callable[[Number], Number], clip: float | None) -> Callable[[Number], Number]:
                def apply(number: Number) -> Number:
                    if isinstance(number, WithoutBias):
                        return function(clipped(p, number.number, threshold) + p.arithmetic.exact(number.bias))
                    return function(number if clip is None else clipped(p, number, clip))

                return apply

            functions = tuple(late(f, clip) for f, clip in zip(p.functions, k.clips, strict=True))
            owing = Gates(WithoutBias(XW.number, bias), XW.blocks)
            return k.cell.equations(replace(p, functions=functions), owing, HR, H, *inner)

        return unclipped(with_equations(with_inputs(c, B=None), equations))

    outputs = compute(of_direction(0))
    for d in range(1, len(k.directions)):
        outputs = merged(c, outputs, compute(of_direction(d)), [d])
    return outputs

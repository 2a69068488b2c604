"""Faults of LSTM kernels: gates, peepholes, the cell state, coupled gates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.alterations import (
    clipped,
    configured,
    reordered,
    rounded_state,
    settled,
    with_equations,
    with_inputs,
    with_tensors,
)
from ...faults.fault import ALL_BUT_BFLOAT16, VARIANTS, WIDE, Alteration, Compute, Outputs, family, fault
from ...kernels.kernel import rounded
from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ...recurrent.rnn import input_and_forget, output
from ..equations import equations, gate_orders

Array = NDArray[Any]
LSTM = ("LSTM",)

# One step: from parameters, both sums, Ht-1 and Ct-1 to Ht and Ct.
Step = Callable[[Parameters, Gates, Gates, Number, Number], tuple[Number, Number]]


def _stepped(c: Computation, step: Step) -> Computation:
    """The computation with other equations of one step."""

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        (C,) = inner
        hidden, cells = [], []
        for t in range(len(XW.number)):
            h, C = step(p, XW[t], HR[t], H[t], C)
            hidden.append(h)
            cells.append(C)
        return p.arithmetic.stack(hidden), p.arithmetic.stack(cells)

    return with_equations(c, equations)


step = partial(equations, put=_stepped, operators=LSTM)


def gates(p: Parameters, S: Gates, C: Number) -> tuple[Number, Number, Number]:
    """Return it, ft and ct from Ct-1."""
    return (*input_and_forget(p, S, C), p.g(S.c))


def _carrying(c: Computation, change: Callable[[Parameters, Number], Number]) -> Computation:
    """The computation with another Ct carried on to the next step, once Ht was computed from the right one."""

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        S = XW + HR
        i, f, candidate = gates(p, S, C)
        C = f * C + i * candidate
        return output(p, S, C), change(p, C)

    return _stepped(c, step)


gate_orders(
    "LSTM",
    {
        "ifoc": "Reads the gate blocks of W, R and B in the order i, f, o, c.",
        "ifco": "Reads the gate blocks of W, R and B in the order i, f, c, o, as PyTorch and cuDNN hold them.",
        "icfo": "Reads the gate blocks of W, R and B in the order i, c, f, o, as TensorFlow's LSTMCell holds them.",
        "fico": "Reads the gate blocks of W, R and B in the order f, i, c, o, as OpenVINO holds them.",
        "oifc": "Takes the gate blocks of i and o for each other in W, R and B.",
        "foic": "Takes the gate blocks of i and f for each other in W, R and B.",
        "iocf": "Takes the gate blocks of f and c for each other in W, R and B.",
    },
)


@fault("lstm.bias.forget-plus-one", clause="bias", operators=LSTM)
def forget_bias(compute: Compute, c: Computation) -> Outputs:
    """Adds 1 to the forget gate's argument, as frameworks do that train with such a bias."""

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i, f, candidate = gates(p, XW + HR, C)
        if p.coupled is None:
            f = p.f(XW.f + HR.f + p.P["f"] * C + p.arithmetic.exact(np.ones(c.configuration.H)))
        C = f * C + i * candidate
        return output(p, XW + HR, C), C

    return compute(_stepped(c, step))


# Initial states.


@fault("lstm.initial-c.ignored", clause="initial-states", operators=LSTM)
def initial_c_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores initial_c."""
    return compute(with_inputs(c, initial_c=None))


@fault("lstm.initial-states.swapped", clause="initial-states", operators=LSTM)
def initial_states_swapped(compute: Compute, c: Computation) -> Outputs:
    """Takes initial_h for initial_c, and the other way round."""
    return compute(with_inputs(c, initial_h=c.inputs.get("initial_c"), initial_c=c.inputs.get("initial_h")))


@fault("lstm.initial-c.only-with-h", clause="initial-states", operators=LSTM)
def initial_c_only_with_h(compute: Compute, c: Computation) -> Outputs:
    """Ignores initial_c where initial_h is not there too."""
    return compute(c if "initial_h" in c.inputs else with_inputs(c, initial_c=None))


@fault("lstm.initial-h.only-with-c", clause="initial-states", operators=LSTM)
def initial_h_only_with_c(compute: Compute, c: Computation) -> Outputs:
    """Ignores initial_h where initial_c is not there too."""
    return compute(c if "initial_c" in c.inputs else with_inputs(c, initial_h=None))


@fault("lstm.initial-c.default-from-h", clause="initial-states.default", operators=LSTM)
def initial_c_from_h(compute: Compute, c: Computation) -> Outputs:
    """Without initial_c starts the cell state from initial_h."""
    return compute(c if "initial_c" in c.inputs else with_inputs(c, initial_c=c.inputs.get("initial_h")))


# Peepholes.


@fault("lstm.peepholes.ignored", clause="peepholes", operators=LSTM)
def peepholes_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores P."""
    return compute(with_inputs(c, P=None))


@fault("lstm.peepholes.shared-directions", clause="peepholes", operators=LSTM)
def peepholes_shared(compute: Compute, c: Computation) -> Outputs:
    """Runs the backward direction with the forward direction's P."""
    return compute(with_tensors(c, "P", lambda P: np.repeat(P[:1], len(P), axis=0)))


@fault("lstm.peepholes.ifo", clause="peepholes.order", operators=LSTM)
def peepholes_ifo(compute: Compute, c: Computation) -> Outputs:
    """Reads the blocks of P in the order i, f, o."""
    return compute(with_tensors(c, "P", lambda P: reordered(c, P, "ifo", "iof")))


@fault("lstm.peepholes.first-for-all", clause="peepholes.order", operators=LSTM)
def first_peephole_for_all(compute: Compute, c: Computation) -> Outputs:
    """Gives all gates the input gate's peephole."""
    return compute(with_tensors(c, "P", lambda P: np.tile(P[:, : c.configuration.H], (1, 3))))


@fault("lstm.peepholes.output-ignored", clause="peepholes.output", operators=LSTM)
def output_peephole_ignored(compute: Compute, c: Computation) -> Outputs:
    """Leaves the output gate's peephole out."""
    H = c.configuration.H
    mask = np.repeat([1.0, 0.0, 1.0], H)
    return compute(with_tensors(c, "P", lambda P: P * mask))


@step("lstm.peepholes.output-from-previous-cell", clause="peepholes.output")
def peephole_from_previous_cell(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Lets the output gate's peephole look at Ct-1 instead of Ct."""
    i, f, candidate = gates(p, XW + HR, C)
    o = p.f(XW.o + HR.o + p.P["o"] * C)
    C = f * C + i * candidate
    return o * p.h(C), C


@fault("lstm.peepholes.output-after-clip", clause="clip", operators=LSTM, types=ALL_BUT_BFLOAT16)
def output_peephole_after_clip(compute: Compute, c: Computation) -> Outputs:
    """Bounds the output gate's sum by clip before its peephole is added, and then once more."""
    threshold = c.configuration.clips[0]
    if threshold is None or c.inputs.get("P") is None:
        return compute(c)

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i, f, candidate = gates(p, XW + HR, C)
        C = f * C + i * candidate
        o = p.f(clipped(p, XW.o + HR.o, threshold) + p.P["o"] * C)
        return o * p.h(C), C

    return compute(_stepped(c, step))


@step("lstm.peepholes.on-hidden", clause="peepholes")
def peepholes_on_hidden(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Lets the peepholes of the input and forget gates look at Ht-1 instead of Ct-1."""
    i, f, candidate = gates(p, XW + HR, H)
    C = f * C + i * candidate
    return output(p, XW + HR, C), C


# Cell state and output.


@step("lstm.cell.gates-swapped", clause="equations.cell")
def cell_gates_swapped(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Multiplies Ct-1 by the input gate and what is new by the forget gate."""
    i, f, candidate = gates(p, XW + HR, C)
    C = i * C + f * candidate
    return output(p, XW + HR, C), C


@step("lstm.cell.ungated-input", clause="equations.cell")
def cell_input_ungated(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Adds what is new to the cell state without the input gate."""
    _, f, candidate = gates(p, XW + HR, C)
    C = f * C + candidate
    return output(p, XW + HR, C), C


@step("lstm.hidden.no-h", clause="equations.hidden")
def hidden_without_h(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Multiplies the output gate by Ct itself instead of h(Ct)."""
    i, f, candidate = gates(p, XW + HR, C)
    C = f * C + i * candidate
    return p.f(XW.o + HR.o + p.P["o"] * C) * C, C


@step("lstm.hidden.from-previous-cell", clause="equations.hidden")
def hidden_from_previous_cell(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Computes Ht from Ct-1."""
    i, f, candidate = gates(p, XW + HR, C)
    before, C = C, f * C + i * candidate
    return p.f(XW.o + HR.o + p.P["o"] * C) * p.h(before), C


@step("lstm.hidden.ungated", clause="equations.hidden")
def hidden_ungated(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Leaves the output gate out: Ht is h(Ct)."""
    i, f, candidate = gates(p, XW + HR, C)
    C = f * C + i * candidate
    return p.h(C), C


@fault("lstm.activations.g-and-h-swapped", clause="activations.order", operators=LSTM)
def g_and_h_swapped(compute: Compute, c: Computation) -> Outputs:
    """Takes the function of the cell's input for that of its output, and the other way round."""
    return compute(configured(c, activations=tuple((f, h, g) for f, g, h in c.configuration.activations)))


@fault("lstm.activations.h-by-g", clause="activations.order", operators=LSTM)
def h_by_g(compute: Compute, c: Computation) -> Outputs:
    """Applies the function of the cell's input to its output too."""
    return compute(configured(c, activations=tuple((f, g, g) for f, g, _ in c.configuration.activations)))


@step("lstm.activations.output-gate-by-g", clause="activations.order")
def output_gate_by_g(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Applies g instead of f to the output gate."""
    i, f, candidate = gates(p, XW + HR, C)
    C = f * C + i * candidate
    return p.g(XW.o + HR.o + p.P["o"] * C) * p.h(C), C


# Clip.


@fault("lstm.clip.on-cell-state", clause="clip", operators=LSTM)
def clip_on_cell_state(compute: Compute, c: Computation) -> Outputs:
    """Bounds the cell state that is carried on instead of the arguments of activations."""
    threshold = c.configuration.clips[0]
    if threshold is None:
        return compute(c)

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i, f, candidate = gates(p, XW + HR, C)
        C = clipped(p, f * C + i * candidate, threshold)
        return output(p, XW + HR, C), C

    return compute(configured(_stepped(c, step), clips=(None,) * len(c.configuration.clips)))


@fault("lstm.clip.output-only", clause="clip", operators=LSTM, table=VARIANTS)
def clip_output_only(compute: Compute, c: Computation) -> Outputs:
    """Bounds the argument of h by clip, but not those of the gates and of g."""
    *_, last = c.configuration.clips
    return compute(configured(c, clips=(None, None, last)))


@fault("lstm.clip.on-carried-cell", clause="clip", operators=LSTM, table=VARIANTS)
def clip_on_carried_cell(compute: Compute, c: Computation) -> Outputs:
    """Bounds the cell state that is carried on by clip, besides the arguments of activations."""
    threshold = c.configuration.clips[0]
    if threshold is None:
        return compute(c)

    return compute(_carrying(c, lambda p, C: clipped(p, C, threshold)))


@fault("lstm.clip.before-peephole", clause="clip", operators=LSTM)
def clip_before_peephole(compute: Compute, c: Computation) -> Outputs:
    """Bounds the sums before the peepholes are added to them."""
    threshold = c.configuration.clips[0]
    if threshold is None or "P" not in c.inputs:
        return compute(c)

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i = p.f(clipped(p, XW.i + HR.i, threshold) + p.P["i"] * C)
        f = p.f(clipped(p, XW.f + HR.f, threshold) + p.P["f"] * C)
        i, f = (i, 1.0 - i) if p.coupled == "input" else (1.0 - f, f) if p.coupled else (i, f)
        C = f * C + i * p.g(clipped(p, XW.c + HR.c, threshold))
        o = p.f(clipped(p, XW.o + HR.o, threshold) + p.P["o"] * C)
        last = c.configuration.clips[-1]
        return o * p.h(C if last is None else clipped(p, C, last)), C

    return compute(configured(_stepped(c, step), clips=(None,) * len(c.configuration.clips)))


# Coupled gates.


@fault("lstm.input-forget.ignored", clause="input-forget", operators=LSTM)
def input_forget_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores input_forget."""
    return compute(configured(c, coupled=None))


@fault("lstm.input-forget.always", clause="input-forget.default", operators=LSTM)
def input_forget_always(compute: Compute, c: Computation) -> Outputs:
    """Couples the input and forget gates even where nobody asks for it."""
    return compute(configured(c, coupled=c.configuration.coupled or "input"))


@fault("lstm.input-forget.equal", clause="input-forget", operators=LSTM)
def input_forget_equal(compute: Compute, c: Computation) -> Outputs:
    """With input_forget takes the input gate for the forget gate instead of what it lacks to one."""
    if c.configuration.coupled is None:
        return compute(c)

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i = p.f(XW.i + HR.i + p.P["i"] * C)
        C = i * C + i * p.g(XW.c + HR.c)
        return output(p, XW + HR, C), C

    return compute(_stepped(c, step))


@fault("lstm.input-forget.no-peephole", clause="input-forget", operators=LSTM, types=ALL_BUT_BFLOAT16)
def input_forget_without_peephole(compute: Compute, c: Computation) -> Outputs:
    """With input_forget leaves the coupled gates' peephole out."""
    if c.configuration.coupled is None:
        return compute(c)
    mask = np.repeat([0.0, 1.0, 0.0], c.configuration.H)
    return compute(with_tensors(c, "P", lambda P: P * mask))


# For Sigmoid 1 - f(x) is f(-x).
@fault("lstm.input-forget.by-negation", clause="input-forget", operators=LSTM, types=WIDE, layer="operands")
def input_forget_by_negation(compute: Compute, c: Computation) -> Outputs:
    """With input_forget computes the forget gate as f(-x) instead of 1 - f(x), which is the same for Sigmoid."""
    if c.configuration.coupled is None:
        return compute(c)
    held, other = ("i", "f") if c.configuration.coupled == "input" else ("f", "i")

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        S = XW + HR
        argument = settled(getattr(S, held) + p.P[held] * C)
        by_letter = {held: p.f(argument), other: p.f(0.0 - argument)}
        C = by_letter["f"] * C + by_letter["i"] * p.g(S.c)
        return output(p, S, C), C

    return compute(_stepped(c, step))


# The cell state.


@fault("lstm.cell.held-narrower", clause="equations.cell", operators=LSTM, types=WIDE, structural=False)
def cell_held_narrower(compute: Compute, c: Computation) -> Outputs:
    """Holds the cell state from step to step in the next narrower type: float64 in float32, float32 in float16."""
    narrow = {"float64": "float32", "float32": "float16"}.get(c.configuration.format.name)
    if narrow is None:
        return compute(c)

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        S = XW + HR
        i, f, new = gates(p, S, C)
        C = rounded_state(f * C + i * new, lambda x: rounded(x, narrow))
        return output(p, S, C), C

    return compute(_stepped(c, step))


@family(
    "lstm.cell.carried-in-{}", "float32", "float16", "bfloat16", proved=False,
    clause="equations.cell", operators=LSTM, types=WIDE, structural=False,
)  # fmt: skip
def cell_carried_in(narrow: str) -> Alteration:
    """Carries the cell state from step to step in {0}, once the output was computed from it."""

    def changed(c: Computation) -> Computation:
        if c.configuration.format.name == narrow:
            return c
        return _carrying(c, lambda p, C: rounded_state(C, lambda x: rounded(x, narrow)))

    return changed


@step("lstm.cell.twice", clause="equations.cell", types=ALL_BUT_BFLOAT16)
def cell_twice(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    """Updates the cell state twice a step, by the same gates."""
    S = XW + HR
    i, f, new = gates(p, S, C)
    C = f * (f * C + i * new) + i * new
    return output(p, S, C), C


# Outputs.


@fault("lstm.outputs.cell-is-hidden", clause="outputs.last-cell", operators=LSTM)
def cell_is_hidden(compute: Compute, c: Computation) -> Outputs:
    """Gives Y_h for Y_c."""
    outputs = compute(c)
    return {**outputs, "Y_c": outputs["Y_h"]}


@fault("lstm.outputs.states-swapped", clause="outputs.last-cell", operators=LSTM)
def states_swapped(compute: Compute, c: Computation) -> Outputs:
    """Gives Y_c for Y_h, and the other way round."""
    outputs = compute(c)
    return {**outputs, "Y_h": outputs["Y_c"], "Y_c": outputs["Y_h"]}


@fault("lstm.outputs.cell-activated", clause="outputs.last-cell", operators=LSTM)
def cell_activated(compute: Compute, c: Computation) -> Outputs:
    """Gives h of the last cell state for Y_c."""
    outputs = compute(c)
    functions = [fs[-1] for fs in c.configuration.activations]
    batch_first = c.configuration.layout == 1
    states = outputs["Y_c"].swapaxes(0, 1) if batch_first else outputs["Y_c"]
    shown = np.stack([function(states[d]) for d, function in enumerate(functions)])
    return {**outputs, "Y_c": shown.swapaxes(0, 1) if batch_first else shown}


@fault("lstm.drift.forget-gate", clause="equations.cell", operators=LSTM, structural=False, drifts=True, bounded=False)
def forget_gate_drifts(compute: Compute, c: Computation) -> Outputs:
    """The forget gate is 12 units too small at every step, too little to show in any one of them."""
    share = 1 - 12 * c.configuration.format.unit

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i, f, candidate = gates(p, XW + HR, C)
        C = f * share * C + i * candidate
        return output(p, XW + HR, C), C

    return compute(_stepped(c, step))

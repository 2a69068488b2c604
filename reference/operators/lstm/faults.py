"""Faults of LSTM kernels: gates, peepholes, the cell state, coupled gates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...faults.alterations import (
    by_equations,
    clipped,
    configured,
    first_of,
    for_units,
    gate_orders,
    reordered,
    rounded_state,
    settled,
    turned,
    unclipped,
    with_clip,
    with_equations,
    with_inputs,
    with_tensors,
)
from ...faults.fault import ALL_BUT_BFLOAT16, WIDE, Compute, Outputs, fault, fault_of_run
from ...kernels.kernel import rounded
from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ...recurrent.rnn import input_and_forget, output

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

LSTM = ("LSTM",)

# One step: from parameters, both sums, Ht-1 and Ct-1 to Ht and Ct.
Step = Callable[[Parameters, Gates, Gates, Number, Number], tuple[Number, Number]]

# From parameters, it, ft, ct and Ct-1 to Ct.
Cell = Callable[[Parameters, Number, Number, Number, Number], Number]

# From parameters, the sums of all gates, Ct-1 and Ct to Ht.
Hidden = Callable[[Parameters, Gates, Number, Number], Number]


def _stepped(c: Computation, step: Step) -> Computation:
    """Return the computation with other equations of one step."""

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        (C,) = inner
        hidden, cells = [], []
        for t in range(len(XW.number)):
            h, C = step(p, XW[t], HR[t], H[t], C)
            hidden.append(h)
            cells.append(C)
        return p.arithmetic.stack(hidden), p.arithmetic.stack(cells)

    return with_equations(c, equations)


def gates(p: Parameters, S: Gates, C: Number) -> tuple[Number, Number, Number]:
    """Return it, ft and ct, computed from Ct-1."""
    return (*input_and_forget(p, S, C), p.g(S.c))


def _output(p: Parameters, S: Gates, before: Number, C: Number) -> Number:
    return output(p, S, C)


def _changed(
    c: Computation,
    cell: Cell = lambda p, i, f, new, C: f * C + i * new,
    hidden: Hidden = _output,
    carried: Callable[[Parameters, Number], Number] = lambda p, C: C,
) -> Computation:
    """Return the computation with another equation of Ct, of Ht, or of the Ct that is passed to the next step."""

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        S = XW + HR
        before, C = C, cell(p, *gates(p, S, C), C)
        return hidden(p, S, before, C), carried(p, C)

    return _stepped(c, step)


lstm = partial(fault, operators=LSTM)
lstm_run = partial(fault_of_run, operators=LSTM)
step = partial(fault, made=by_equations(_stepped), operators=LSTM)
cell = partial(fault, made=by_equations(lambda c, cell: _changed(c, cell=cell)), operators=LSTM)
hidden = partial(fault, made=by_equations(lambda c, hidden: _changed(c, hidden=hidden)), operators=LSTM)


def _output_gate(p: Parameters, S: Gates, C: Number) -> Number:
    return p.f(S.o + p.P["o"] * C)


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


@lstm("lstm.bias.forget-plus-one", "bias",
    "Adds 1 to the forget gate's argument, as frameworks do that train with such a bias.")
def forget_bias(c: Computation) -> Computation:
    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i, f, new = gates(p, XW + HR, C)
        if p.coupled is None:
            f = p.f(XW.f + HR.f + p.P["f"] * C + for_units(c, p, 1.0))
        C = f * C + i * new
        return output(p, XW + HR, C), C

    return _stepped(c, step)


lstm("lstm.initial-c.ignored", "initial-states", "Ignores initial_c.", lambda c: with_inputs(c, initial_c=None))
lstm("lstm.initial-states.swapped", "initial-states", "Takes initial_h for initial_c, and the other way round.",
    lambda c: with_inputs(c, initial_h=c.inputs.get("initial_c"), initial_c=c.inputs.get("initial_h")))
lstm("lstm.initial-c.only-with-h", "initial-states", "Ignores initial_c where initial_h is not there too.",
    lambda c: c if "initial_h" in c.inputs else with_inputs(c, initial_c=None))
lstm("lstm.initial-h.only-with-c", "initial-states", "Ignores initial_h where initial_c is not there too.",
    lambda c: c if "initial_c" in c.inputs else with_inputs(c, initial_h=None))
lstm("lstm.initial-c.default-from-h", "initial-states.default",
    "Without initial_c starts the cell state from initial_h.",
    lambda c: c if "initial_c" in c.inputs else with_inputs(c, initial_c=c.inputs.get("initial_h")))


# Peepholes.


def _masked(c: Computation, i: float, o: float, f: float) -> Computation:
    """Return the computation with each gate's peephole multiplied by a number."""
    return with_tensors(c, "P", lambda P: P * np.repeat([i, o, f], c.configuration.H))


lstm("lstm.peepholes.ignored", "peepholes", "Ignores P.", lambda c: with_inputs(c, P=None))
lstm("lstm.peepholes.shared-directions", "peepholes", "Runs the backward direction with the forward direction's P.",
    lambda c: with_tensors(c, "P", first_of))
lstm("lstm.peepholes.ifo", "peepholes.order", "Reads the blocks of P in the order i, f, o.",
    lambda c: with_tensors(c, "P", lambda P: reordered(c, P, "ifo", "iof")))
lstm("lstm.peepholes.first-for-all", "peepholes.order", "Gives all gates the input gate's peephole.",
    lambda c: with_tensors(c, "P", lambda P: np.tile(P[:, : c.configuration.H], (1, 3))))
lstm("lstm.peepholes.output-ignored", "peepholes.output", "Leaves the output gate's peephole out.",
    lambda c: _masked(c, 1.0, 0.0, 1.0))
hidden("lstm.peepholes.output-from-previous-cell", "peepholes.output",
    "Lets the output gate's peephole look at Ct-1 instead of Ct.",
    lambda p, S, before, C: _output_gate(p, S, before) * p.h(C))


lstm("lstm.peepholes.output-after-clip", "clip",
    "Bounds the output gate's sum by clip before its peephole is added, and then once more.",
    with_clip(lambda c, clip: c if "P" not in c.inputs else _changed(
        c, hidden=lambda p, S, before, C: p.f(clipped(p, S.o, clip) + p.P["o"] * C) * p.h(C)
    )), types=ALL_BUT_BFLOAT16)


@step("lstm.peepholes.on-hidden", "peepholes",
    "Lets the peepholes of the input and forget gates look at Ht-1 instead of Ct-1.")
def peepholes_on_hidden(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
    i, f, new = gates(p, XW + HR, H)
    C = f * C + i * new
    return output(p, XW + HR, C), C


# Cell state and output.

cell("lstm.cell.gates-swapped", "equations.cell",
    "Multiplies Ct-1 by the input gate and what is new by the forget gate.",
    lambda p, i, f, new, C: i * C + f * new)
cell("lstm.cell.ungated-input", "equations.cell", "Adds what is new to the cell state without the input gate.",
    lambda p, i, f, new, C: f * C + new)
hidden("lstm.hidden.no-h", "equations.hidden", "Multiplies the output gate by Ct itself instead of h(Ct).",
    lambda p, S, before, C: _output_gate(p, S, C) * C)
hidden("lstm.hidden.from-previous-cell", "equations.hidden", "Computes Ht from Ct-1.",
    lambda p, S, before, C: _output_gate(p, S, C) * p.h(before))
hidden("lstm.hidden.ungated", "equations.hidden", "Leaves the output gate out: Ht is h(Ct).",
    lambda p, S, before, C: p.h(C))
lstm("lstm.activations.g-and-h-swapped", "activations.order",
    "Takes the function of the cell's input for that of its output, and the other way round.",
    lambda c: configured(c, activations=tuple((f, h, g) for f, g, h in c.configuration.activations)))
lstm("lstm.activations.h-by-g", "activations.order", "Applies the function of the cell's input to its output too.",
    lambda c: configured(c, activations=tuple((f, g, g) for f, g, _ in c.configuration.activations)))
hidden("lstm.activations.output-gate-by-g", "activations.order", "Applies g instead of f to the output gate.",
    lambda p, S, before, C: p.g(S.o + p.P["o"] * C) * p.h(C))


# Clip.


def _with_cell_clipped(c: Computation, clip: float) -> Computation:
    return _changed(c, lambda p, i, f, new, C: clipped(p, f * C + i * new, clip))


lstm("lstm.clip.on-cell-state", "clip",
    "Bounds the cell state that is carried on instead of the arguments of activations.",
    with_clip(lambda c, clip: unclipped(_with_cell_clipped(c, clip))))
lstm("lstm.clip.output-only", "clip", "Bounds the argument of h by clip, but not those of the gates and of g.",
    lambda c: configured(c, clips=(None, None, c.configuration.clips[-1])), proved=False)

lstm("lstm.clip.on-carried-cell", "clip",
    "Bounds the cell state that is carried on by clip, besides the arguments of activations.",
    with_clip(lambda c, clip: _changed(c, carried=lambda p, C: clipped(p, C, clip))), proved=False)
lstm("lstm.clip.cell-in-place", "clip",
    "Bounds the cell state in place by clip, before the output gate's peephole, besides the arguments of activations.",
    with_clip(_with_cell_clipped), types=ALL_BUT_BFLOAT16)


def _clipped_before_peephole(c: Computation, threshold: float) -> Computation:
    if "P" not in c.inputs:
        return c

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i = p.f(clipped(p, XW.i + HR.i, threshold) + p.P["i"] * C)
        f = p.f(clipped(p, XW.f + HR.f, threshold) + p.P["f"] * C)
        i, f = (i, 1.0 - i) if p.coupled == "input" else (1.0 - f, f) if p.coupled else (i, f)
        C = f * C + i * p.g(clipped(p, XW.c + HR.c, threshold))
        o = p.f(clipped(p, XW.o + HR.o, threshold) + p.P["o"] * C)
        last = c.configuration.clips[-1]
        return o * p.h(C if last is None else clipped(p, C, last)), C

    return unclipped(_stepped(c, step))


lstm("lstm.clip.before-peephole", "clip", "Bounds the sums before the peepholes are added to them.",
    with_clip(_clipped_before_peephole))


# Coupled gates.

lstm("lstm.input-forget.ignored", "input-forget", "Ignores input_forget.", lambda c: configured(c, coupled=None))
lstm("lstm.input-forget.always", "input-forget.default",
    "Couples the input and forget gates even where nobody asks for it.",
    lambda c: configured(c, coupled=c.configuration.coupled or "input"))


@lstm("lstm.input-forget.equal", "input-forget",
    "With input_forget takes the input gate for the forget gate instead of what it lacks to one.")
def input_forget_equal(c: Computation) -> Computation:
    if c.configuration.coupled is None:
        return c

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        i = p.f(XW.i + HR.i + p.P["i"] * C)
        C = i * C + i * p.g(XW.c + HR.c)
        return output(p, XW + HR, C), C

    return _stepped(c, step)


lstm("lstm.input-forget.no-peephole", "input-forget", "With input_forget leaves the coupled gates' peephole out.",
    lambda c: c if c.configuration.coupled is None else _masked(c, 0.0, 1.0, 0.0), types=ALL_BUT_BFLOAT16)


# For Sigmoid, 1 - f(x) equals f(-x).
@lstm("lstm.input-forget.by-negation", "input-forget",
    "With input_forget computes the forget gate as f(-x) instead of 1 - f(x), which is the same for Sigmoid.",
    types=WIDE, layer="operands")
def input_forget_by_negation(c: Computation) -> Computation:
    if c.configuration.coupled is None:
        return c
    computed, derived = ("i", "f") if c.configuration.coupled == "input" else ("f", "i")

    def step(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> tuple[Number, Number]:
        S = XW + HR
        argument = settled(getattr(S, computed) + p.P[computed] * C)
        by_letter = {computed: p.f(argument), derived: p.f(0.0 - argument)}
        C = by_letter["f"] * C + by_letter["i"] * p.g(S.c)
        return output(p, S, C), C

    return _stepped(c, step)


# The cell state.


@lstm("lstm.cell.held-narrower", "equations.cell",
    "Holds the cell state from step to step in the next narrower type: float64 in float32, float32 in float16.",
    types=WIDE, kind="rounding")
def cell_held_narrower(c: Computation) -> Computation:
    narrow = {"float64": "float32", "float32": "float16"}.get(c.configuration.format.name)
    if narrow is None:
        return c
    return _changed(c, lambda p, i, f, new, C: rounded_state(f * C + i * new, lambda x: rounded(x, narrow)))


def _carrying_in(c: Computation, narrow: str) -> Computation:
    if c.configuration.format.name == narrow:
        return c
    return _changed(c, carried=lambda p, C: rounded_state(C, lambda x: rounded(x, narrow)))


fault("lstm.cell.carried-in-{}", "equations.cell",
    "Carries the cell state from step to step in {0}, once the output was computed from it.",
    _carrying_in, proved=False, operators=LSTM, types=WIDE, kind="rounding",
    numbers=("float32", "float16", "bfloat16"))
cell("lstm.cell.twice", "equations.cell", "Updates the cell state twice a step, by the same gates.",
    lambda p, i, f, new, C: f * (f * C + i * new) + i * new, types=ALL_BUT_BFLOAT16)


# Outputs.


def _renamed(outputs: Outputs, **sources: str) -> Outputs:
    """Return the outputs, with some replaced by others."""
    return {**outputs, **{name: outputs[source] for name, source in sources.items()}}


lstm_run("lstm.outputs.cell-is-hidden", "outputs.last-cell", "Gives Y_h for Y_c.",
    lambda compute, c: _renamed(compute(c), Y_c="Y_h"))
lstm_run("lstm.outputs.states-swapped", "outputs.last-cell", "Gives Y_c for Y_h, and the other way round.",
    lambda compute, c: _renamed(compute(c), Y_h="Y_c", Y_c="Y_h"))


@lstm_run("lstm.outputs.cell-activated", "outputs.last-cell", "Gives h of the last cell state for Y_c.")
def cell_activated(compute: Compute, c: Computation) -> Outputs:
    outputs = compute(c)
    states = turned(c, outputs["Y_c"])
    activated = np.stack([fs[-1](states[d]) for d, fs in enumerate(c.configuration.activations)])
    return {**outputs, "Y_c": turned(c, activated)}


lstm("lstm.drift.forget-gate", "equations.cell",
    "The forget gate is 12 units too small at every step, too little to show in any one of them.",
    lambda c: _changed(
        c, lambda p, i, f, new, C: f * for_units(c, p, 1 - 12 * c.configuration.format.unit) * C + i * new
    ), kind="bias")

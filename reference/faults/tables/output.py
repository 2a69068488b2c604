"""Faults of outputs: the returned step, dependencies, rank, shape, type and presence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...recurrent.computation import Computation
from ...recurrent.configuration import steps_first
from ..alterations import (
    in_reverse,
    output_fault,
    turned,
    with_inputs,
    with_lengths,
    with_steps,
)
from ..fault import ALL_BUT_BFLOAT16, Array, Compute, Outputs, fault, fault_of_run
from .length import last_positions

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

def _one_step_late(c: Computation, Y: Array) -> Array:
    for d, direction in enumerate(c.configuration.directions):
        Y[:, d] = np.roll(Y[:, d], 1 if direction == "forward" else -1, axis=0)
        Y[: 1 if direction == "forward" else 0, d] = 0.0
    return Y


def _last_step(c: Computation, Y: Array) -> Array:
    Y[:-1] = 0.0
    return Y


fault_of_run("outputs.zero", "equations", "Gives zeros for all outputs.",
    lambda compute, c: {name: np.zeros_like(array) for name, array in compute(c).items()})
output_fault("outputs.one-step-late", "outputs.order",
    "Gives the state before each step in Y instead of the state after it.", Y=_one_step_late)
output_fault("outputs.last-step-only", "outputs.order", "Fills Y in for the last step of the tensor only.",
    Y=_last_step)


def _hidden_from_y(compute: Compute, c: Computation, last: Callable[[Array, Array], Array]) -> Outputs:
    """Return the outputs with Y_h taken from Y, by last(Y, Y_h); unchanged where there are no steps."""
    outputs = compute(c)
    if not c.configuration.T:
        return outputs
    Y = steps_first(outputs["Y"], c.configuration.layout)
    return {**outputs, "Y_h": turned(c, last(Y, turned(c, outputs["Y_h"])))}


fault_of_run("outputs.last-row-of-tensor", "outputs.last-hidden",
    "Takes Y_h from the last time step of Y, whatever the direction and the length.",
    lambda compute, c: _hidden_from_y(compute, c, lambda Y, state: Y[-1]))
fault_of_run("outputs.last-position", "outputs.last-hidden",
    "Takes Y_h from the last time step of each row, also in the reverse direction.",
    lambda compute, c: _hidden_from_y(
        compute, c, lambda Y, state: np.where(c.configuration.lengths[:, np.newaxis], last_positions(c, Y), state)
    ))


@fault_of_run("outputs.states-of-first-step", "outputs.last-hidden",
    "Gives all last states in the reverse direction from the row's last position, which is computed first.")
def states_of_first_step(compute: Compute, c: Computation) -> Outputs:
    lengths = c.configuration.lengths
    if not c.configuration.T:
        return compute(c)

    def last_first(X: Array) -> Array:
        X = X.copy()
        X[0] = X[np.maximum(lengths - 1, 0), np.arange(len(lengths))]
        return X

    one_step = with_lengths(with_steps(c, last_first), np.minimum(lengths, 1))
    return {**in_reverse(compute, c, one_step), "Y": compute(c)["Y"]}


@fault_of_run("outputs.state-before-last", "outputs.last-hidden",
    "Gives the states before the last step for the last ones.")
def state_before_last(compute: Compute, c: Computation) -> Outputs:
    outputs = compute(c)
    before = with_lengths(c, np.maximum(c.configuration.lengths - 1, 0))
    # The last step of the reverse direction is the first one of the tensor.
    others = with_steps(before, lambda X: np.roll(X, -1, axis=0))
    return {**in_reverse(compute, before, others), "Y": outputs["Y"]}


def _without(outputs: Outputs, name: str, *, left_out: bool) -> Outputs:
    return {n: array for n, array in outputs.items() if not left_out or n != name}


fault_of_run("outputs.last-hidden-missing", "outputs", "Gives no Y_h where Y is asked for too.",
    lambda compute, c: _without(compute(c), "Y_h", left_out="Y" in c.configuration.outputs), layer="form")


@fault_of_run("outputs.not-skipped", "outputs.skipped",
    "Gives what is asked for without the places of what is not: Y where only Y_h is asked for.", layer="form")
def places_not_skipped(compute: Compute, c: Computation) -> Outputs:
    outputs = compute(c)
    names = list(outputs)
    return {asked: outputs[names[place]] for place, asked in enumerate(c.configuration.outputs)}


fault("outputs.depend-on-request", "outputs.independent", "Ignores sequence_lens where Y is not asked for.",
    lambda c: c if "Y" in c.configuration.outputs else with_lengths(c, c.configuration.T))
fault("outputs.state-lost-without-y", "outputs.independent",
    "Leaves the initial states out where Y is not asked for.",
    lambda c: c if "Y" in c.configuration.outputs
    else with_inputs(c, **{name: None for name in c.inputs if name.startswith("initial_")}))
fault_of_run("outputs.announced-missing", "output-sequence",
    "Takes output_sequence for its opposite and gives no Y where it is 1.",
    lambda compute, c: _without(compute(c), "Y", left_out=bool(compute.attributes.get("output_sequence", 0))),
    types=ALL_BUT_BFLOAT16, layer="form")


def _squeezed(c: Computation, outputs: Outputs, names: tuple[str, ...]) -> Outputs:
    """Return the outputs; the named ones lose their axis of directions if its length is 1."""
    if len(c.configuration.directions) > 1:
        return outputs
    return {name: a.squeeze(c.direction_axis(name)) if name in names else a for name, a in outputs.items()}


fault_of_run("outputs.no-direction-axis", "outputs.shapes",
    "Leaves the axis of directions out of Y where there is one direction.",
    lambda compute, c: _squeezed(c, compute(c), ("Y",)), layer="form")
fault_of_run("outputs.state-rank", "outputs.shapes",
    "Gives last states of rank 2, without the axis of directions, where there is one direction.",
    lambda compute, c: _squeezed(c, compute(c), ("Y_h", "Y_c")), layer="form")


def _row_squeezed(c: Computation, outputs: Outputs) -> Outputs:
    return {**outputs, "Y": outputs["Y"].squeeze(0 if c.configuration.layout == 1 else 2)}


fault_of_run("outputs.single-row-squeezed", "shapes.one", "Leaves the batch axis out of Y where the batch is one row.",
    lambda compute, c: _row_squeezed(c, compute(c)) if c.configuration.N == 1 else compute(c), layer="form")


def _no_steps_as_one(c: Computation, Y: Array) -> Array:
    T, D, N, H = Y.shape
    return Y if c.configuration.T and c.configuration.N else np.zeros((max(T, 1), D, max(N, 1), H))


output_fault("outputs.no-steps-as-one", "shapes.no-steps",
    "Gives Y one step where the sequence has none, and one row where the batch has none.",
    Y=_no_steps_as_one, layer="form")
fault_of_run("outputs.float32", "types", "Gives float32 whatever T is.",
    lambda compute, c: {name: array.astype(np.float32) for name, array in compute(c).items()},
    types=("float16", "bfloat16", "float64"), layer="form")


@fault("types.bfloat16-as-float16", "types.bfloat16", "Reads the bits of bfloat16 numbers as float16.",
    types=("bfloat16",))
def bfloat16_as_float16(c: Computation) -> Computation:
    form = c.configuration.format
    if form.name != "bfloat16":
        return c

    def read(tensor: Array) -> Array:
        return tensor.astype(form.dtype).view(np.float16).astype(np.float64)

    return with_inputs(c, **{n: read(a) for n, a in c.inputs.items() if n != "sequence_lens"})


fault_of_run("hidden-size.default-nothing", "hidden-size",
    "Takes an absent hidden_size for 0 and gives outputs without units.",
    lambda compute, c: compute(c) if "hidden_size" in compute.attributes
    else {name: array[..., :0] for name, array in compute(c).items()}, layer="form")


@fault("inputs.not-skipped", "inputs.skipped", "Takes no notice of inputs after one that is left out.")
def inputs_after_gap_ignored(c: Computation) -> Computation:
    order = ("B", "sequence_lens", "initial_h", "initial_c", "P")
    there = [name in c.inputs for name in order]
    gap = there.index(False) if False in there else len(order)
    left = with_inputs(c, **dict.fromkeys(order[gap:]))
    return left if "sequence_lens" in left.inputs else with_lengths(left, c.configuration.T)

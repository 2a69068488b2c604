"""Faults of outputs: which step they hold, what they depend on, their rank, shape, type and presence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import by_direction, with_inputs, with_lengths, with_outputs, with_steps
from ..fault import ALL_BUT_BFLOAT16, Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]


@fault("outputs.zero", clause="equations")
def all_zero(compute: Compute, c: Computation) -> Outputs:
    """Gives zeros for all outputs."""
    return {name: np.zeros_like(array) for name, array in compute(c).items()}


@fault("outputs.one-step-late", clause="outputs.order")
def one_step_late(compute: Compute, c: Computation) -> Outputs:
    """Gives the state before each step in Y instead of the state after it."""

    def late(Y: Array) -> Array:
        for d, direction in enumerate(c.configuration.directions):
            Y[:, d] = np.roll(Y[:, d], 1 if direction == "forward" else -1, axis=0)
            Y[: 1 if direction == "forward" else 0, d] = 0.0
        return Y

    return with_outputs(c, compute(c), Y=late)


@fault("outputs.last-step-only", clause="outputs.order")
def last_step_only(compute: Compute, c: Computation) -> Outputs:
    """Fills Y in for the last step of the tensor only."""

    def last(Y: Array) -> Array:
        Y[:-1] = 0.0
        return Y

    return with_outputs(c, compute(c), Y=last)


@fault("outputs.last-row-of-tensor", clause="outputs.last-hidden")
def last_of_tensor(compute: Compute, c: Computation) -> Outputs:
    """Gives Y at the tensor's last position for Y_h, whatever the direction and the length."""
    outputs = dict(compute(c))
    if c.configuration.T:
        outputs["Y_h"] = outputs["Y"][:, -1] if c.configuration.layout == 1 else outputs["Y"][-1]
    return outputs


@fault("outputs.last-position", clause="outputs.last-hidden")
def last_position(compute: Compute, c: Computation) -> Outputs:
    """Gives Y at each row's last position for Y_h in the reverse direction too, where it is the step computed first."""
    outputs = compute(c)
    if not c.configuration.T:
        return outputs
    Y = outputs["Y"].transpose(1, 2, 0, 3) if c.configuration.layout == 1 else outputs["Y"]
    lengths = c.configuration.lengths

    def last(states: Array) -> Array:
        final = Y[np.maximum(lengths - 1, 0), :, np.arange(len(lengths))].swapaxes(0, 1)
        return np.where((lengths > 0)[:, np.newaxis], final, states)

    return with_outputs(c, outputs, states=last, names=("Y_h",))


@fault("outputs.states-of-first-step", clause="outputs.last-hidden")
def states_of_first_step(compute: Compute, c: Computation) -> Outputs:
    """Gives all last states in the reverse direction from the row's last position, which is computed first."""
    lengths = c.configuration.lengths
    if not c.configuration.T:
        return compute(c)

    def last_first(X: Array) -> Array:
        X = X.copy()
        X[0] = X[np.maximum(lengths - 1, 0), np.arange(len(lengths))]
        return X

    one_step = with_lengths(with_steps(c, last_first), np.minimum(lengths, 1))
    outputs = by_direction(compute, c, one_step, "reverse")
    return {**outputs, "Y": compute(c)["Y"]}


@fault("outputs.state-before-last", clause="outputs.last-hidden")
def state_before_last(compute: Compute, c: Computation) -> Outputs:
    """Gives the states before the last step for the last ones."""
    outputs = compute(c)
    before = with_lengths(c, np.maximum(c.configuration.lengths - 1, 0))
    if "reverse" in c.configuration.directions:  # where the last step is the first of the tensor
        others = with_steps(before, lambda X: np.roll(X, -1, axis=0))
        return {**by_direction(compute, before, others, "reverse"), "Y": outputs["Y"]}
    return {**compute(before), "Y": outputs["Y"]}


@fault("outputs.last-hidden-missing", clause="outputs", layer="form")
def last_hidden_missing(compute: Compute, c: Computation) -> Outputs:
    """Gives no Y_h where Y is asked for too."""
    outputs = dict(compute(c))
    if "Y" in c.configuration.outputs:
        del outputs["Y_h"]
    return outputs


@fault("outputs.not-skipped", clause="outputs.skipped", layer="form")
def places_not_skipped(compute: Compute, c: Computation) -> Outputs:
    """Gives what is asked for without the places of what is not: Y where only Y_h is asked for."""
    outputs = compute(c)
    names = list(outputs)
    return {asked: outputs[names[place]] for place, asked in enumerate(c.configuration.outputs)}


@fault("outputs.depend-on-request", clause="outputs.independent")
def outputs_depend_on_request(compute: Compute, c: Computation) -> Outputs:
    """Ignores sequence_lens where Y is not asked for."""
    return compute(c if "Y" in c.configuration.outputs else with_lengths(c, c.configuration.T))


@fault("outputs.state-lost-without-y", clause="outputs.independent")
def state_lost_without_y(compute: Compute, c: Computation) -> Outputs:
    """Leaves the initial states out where Y is not asked for."""
    if "Y" in c.configuration.outputs:
        return compute(c)
    return compute(with_inputs(c, **{name: None for name in c.inputs if name.startswith("initial_")}))


@fault("outputs.announced-missing", clause="output-sequence", types=ALL_BUT_BFLOAT16, layer="form")
def announced_missing(compute: Compute, c: Computation) -> Outputs:
    """Takes output_sequence for its opposite and gives no Y where it is 1."""
    outputs = dict(compute(c))
    if compute.attributes.get("output_sequence", 0):
        del outputs["Y"]
    return outputs


@fault("outputs.no-direction-axis", clause="outputs.shapes", layer="form")
def no_direction_axis(compute: Compute, c: Computation) -> Outputs:
    """Leaves the axis of directions out of Y where there is one direction."""
    return _squeezed(c, compute(c), ("Y",))


@fault("outputs.state-rank", clause="outputs.shapes", layer="form")
def state_of_rank_two(compute: Compute, c: Computation) -> Outputs:
    """Gives last states of rank 2, without the axis of directions, where there is one direction."""
    return _squeezed(c, compute(c), ("Y_h", "Y_c"))


def _squeezed(c: Computation, outputs: Outputs, names: tuple[str, ...]) -> Outputs:
    """The outputs, the named ones without their axis of directions where that is one."""
    if len(c.configuration.directions) > 1:
        return outputs
    batch_first = c.configuration.layout == 1
    axes = {name: (2 if batch_first else 1) if name == "Y" else int(batch_first) for name in outputs}
    return {name: a.squeeze(axes[name]) if name in names else a for name, a in outputs.items()}


@fault("outputs.single-row-squeezed", clause="shapes.one", layer="form")
def single_row_squeezed(compute: Compute, c: Computation) -> Outputs:
    """Leaves the batch axis out of Y where the batch is one row."""
    outputs = dict(compute(c))
    if c.configuration.N == 1:
        outputs["Y"] = outputs["Y"].squeeze(0 if c.configuration.layout == 1 else 2)
    return outputs


@fault("outputs.no-steps-as-one", clause="shapes.no-steps", layer="form")
def no_steps_as_one(compute: Compute, c: Computation) -> Outputs:
    """Gives Y one step where the sequence has none, and one row where the batch has none."""
    empty = not (c.configuration.T and c.configuration.N)

    def one(Y: Array) -> Array:
        T, D, N, H = Y.shape
        return np.zeros((max(T, 1), D, max(N, 1), H)) if empty else Y

    return with_outputs(c, compute(c), Y=one)


@fault("outputs.float32", clause="types", types=("float16", "bfloat16", "float64"), layer="form")
def always_float32(compute: Compute, c: Computation) -> Outputs:
    """Gives float32 whatever T is."""
    return {name: array.astype(np.float32) for name, array in compute(c).items()}


@fault("types.bfloat16-as-float16", clause="types.bfloat16", types=("bfloat16",))
def bfloat16_as_float16(compute: Compute, c: Computation) -> Outputs:
    """Reads the bits of bfloat16 numbers as float16."""
    form = c.configuration.format
    if form.name != "bfloat16":
        return compute(c)

    def read(tensor: Array) -> Array:
        return tensor.astype(form.dtype).view(np.float16).astype(np.float64)

    return compute(with_inputs(c, **{n: read(a) for n, a in c.inputs.items() if n != "sequence_lens"}))


@fault("hidden-size.default-nothing", clause="hidden-size", layer="form")
def hidden_size_default(compute: Compute, c: Computation) -> Outputs:
    """Takes an absent hidden_size for 0 and gives outputs without units."""
    outputs = compute(c)
    if "hidden_size" in compute.attributes:
        return outputs
    return {name: array[..., :0] for name, array in outputs.items()}


@fault("inputs.not-skipped", clause="inputs.skipped")
def inputs_after_gap_ignored(compute: Compute, c: Computation) -> Outputs:
    """Takes no notice of inputs after one that is left out."""
    order = ("B", "sequence_lens", "initial_h", "initial_c", "P")
    there = [name in c.inputs for name in order]
    gap = there.index(False) if False in there else len(order)
    left = with_inputs(c, **dict.fromkeys(order[gap:]))
    return compute(left if "sequence_lens" in left.inputs else with_lengths(left, c.configuration.T))

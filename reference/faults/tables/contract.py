"""Faults of constants that are overridden, of the contract of a node, and of directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ...recurrent.computation import Computation
from ..alterations import (
    configured,
    first_of,
    in_reverse,
    output_fault,
    reverse_directions,
    turned,
    with_fitting,
    with_inputs,
    with_outputs,
    with_steps,
)
from ..fault import Array, Compute, Outputs, fault, fault_of_run

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off


# No model for proving the suite has such constants, so these are only tried on a target's outputs.
fault_of_run("constants.override-ignored", "constants",
    "Computes with what the model holds for a constant, although something else is fed in its place.",
    lambda compute, c: compute(_as_in_model(compute, c)), proved=False)
fault_of_run("constants.override-partly-ignored", "constants",
    "Computes with what the model holds for R, B and P, as long as W itself is not fed in its place.",
    lambda compute, c: compute(c if "W" in compute.memory.overridden else _as_in_model(compute, c)), proved=False)


@fault_of_run("constants.override-stays", "session.stateless",
    "Once a constant was overridden, computes later runs that do not feed it with what was fed then.", proved=False)
def override_stays(compute: Compute, c: Computation) -> Outputs:
    fed = {name: c.inputs[name] for name in compute.memory.overridden if name in c.inputs}
    kept = compute.memory.setdefault("fed", {})
    instead = {name: array for name, array in kept.items() if name not in compute.fed}
    compute.memory["fed"] = {**kept, **fed}
    return compute(with_fitting(c, instead))


def _as_in_model(compute: Compute, c: Computation) -> Computation:
    """Return the computation with the model's own values of constants."""
    return with_fitting(c, {name: array.astype("float64") for name, array in compute.memory.overridden.items()})


def _overwriting(id: str, words: str, name: str, value: Callable[[Computation, Outputs], Array]) -> None:
    """Register a fault that writes a value, of the computation and its outputs, to an array of the caller."""

    def wrong(compute: Compute, c: Computation) -> Outputs:
        outputs, array = compute(c), compute.fed.get(name)
        if array is not None and array.flags.writeable:
            array[...] = value(c, outputs).reshape(array.shape).astype(array.dtype)
        return outputs

    fault_of_run(id, "session.inputs-unchanged", words, wrong)


_overwriting("inputs.x-overwritten", "Uses the memory of X for results of its own.",
    "X", lambda c, outputs: np.zeros(c.inputs["X"].shape))
_overwriting("inputs.initial-h-overwritten", "Keeps the running state in the memory of initial_h.",
    "initial_h", lambda c, outputs: outputs["Y_h"])
_overwriting("inputs.lengths-sorted", "Sorts sequence_lens where it stands.",
    "sequence_lens", lambda c, outputs: np.sort(c.configuration.lengths)[::-1])
_overwriting("inputs.weights-repacked", "Reorders R in the caller's memory.",
    "R", lambda c, outputs: np.ascontiguousarray(c.inputs["R"].swapaxes(1, 2)))


# The outputs of these faults are not used; legal models are computed correctly.
for _topic, _words in {
    "activations": "unknown activations or the wrong number of them",
    "attributes": "attributes that its version does not define, or of another type",
    "direction": "an invalid direction",
    "hidden-size": "a hidden_size that R contradicts",
    "inputs": "too few inputs, or too many",
    "layout": "an invalid layout",
    "lengths": "lengths below 0 or above seq_length",
    "outputs": "outputs that the version does not define, or that one which it demands is missing",
    "shapes": "inputs of invalid shapes",
    "types": "types that the document does not allow, or several at once",
}.items():
    fault(f"accepts.{_topic}", _topic, f"Silently accepts {_words}.", lambda c: c, kind="accepts")


def _forward(c: Computation) -> Computation:
    return configured(c, directions=("forward",) * len(c.configuration.directions))


fault("direction.reverse-runs-forward", "directions", "Runs the reverse direction forward.", _forward)
fault("direction.only-reverse-forward", "directions", "Takes direction reverse for forward; bidirectional is right.",
    lambda c: _forward(c) if len(c.configuration.directions) == 1 else c)

fault_of_run("direction.default-reverse", "directions.default",
    "Runs in reverse where the attribute direction is not written down.",
    lambda compute, c: compute(
        c if "direction" in compute.attributes or c.configuration.directions != ("forward",)
        else configured(c, directions=("reverse",))
    ))


@fault_of_run("direction.flips-batch", "directions",
    "Turns rows of the batch round for the reverse direction instead of its steps.")
def reverse_flips_batch(compute: Compute, c: Computation) -> Outputs:
    def turn(states: Array) -> Array:
        chosen = reverse_directions(c)
        states[..., chosen, :, :] = states[..., chosen, ::-1, :]
        return states

    flipped = _forward(with_steps(c, lambda X: X[:, ::-1]))
    return with_outputs(c, in_reverse(compute, c, flipped), Y=turn, states=turn)


def _continuing(compute: Compute, c: Computation, given: Mapping[str, Array | None]) -> Outputs:
    """Start the backward direction from the last forward state, except for initial states that are inputs."""
    ended = compute(c)
    initial = {}
    for name in ("h", *c.configuration.cell.inner):
        if given.get(name) is not None:
            continue
        last = ended[f"Y_{name}"]
        states = c.inputs.get(f"initial_{name}", np.zeros_like(last)).copy()
        turned(c, states)[1] = turned(c, last)[0]
        initial[f"initial_{name}"] = states
    return compute(with_inputs(c, **initial))


fault_of_run("direction.backward-continues", "directions",
    "Starts the backward direction from the states in which the forward one ended.",
    lambda compute, c: compute(c) if len(c.configuration.directions) == 1 else _continuing(compute, c, {}))


@fault_of_run("direction.workspace-left", "directions",
    "Starts the backward direction from the states in which the forward one ended where initial_h is not given.")
def workspace_left(compute: Compute, c: Computation) -> Outputs:
    if len(c.configuration.directions) == 1 or c.inputs.get("initial_h") is not None:
        return compute(c)
    return _continuing(compute, c, {name: c.inputs.get(f"initial_{name}") for name in c.configuration.cell.inner})


def _turned_back(c: Computation, Y: Array) -> Array:
    chosen = reverse_directions(c)
    Y[:, chosen] = Y[::-1, chosen]
    return Y


def _side_by_side(c: Computation, Y: Array) -> Array:
    T, D, N, H = Y.shape
    return Y.transpose(0, 2, 1, 3).reshape(T, 1, N, D * H)


output_fault("direction.reverse-not-turned-back", "outputs.order",
    "Leaves Y of the reverse direction in the order in which it is computed.", Y=_turned_back)
output_fault("direction.outputs-swapped", "directions.axis",
    "Gives the backward direction's results in the first place and the forward direction's in the second.",
    Y=lambda c, Y: Y[:, ::-1], states=lambda c, states: states[::-1])
output_fault("direction.forward-twice", "directions", "Gives the forward direction's Y for the backward one too.",
    Y=lambda c, Y: first_of(Y, 1))
output_fault("direction.states-shared", "outputs.last-hidden",
    "Gives the forward direction's last states for the backward one too.",
    states=lambda c, states: first_of(states))
output_fault("direction.summed", "outputs.shapes", "Adds Y of both directions up into one.",
    Y=lambda c, Y: Y.sum(axis=1, keepdims=True), layer="form")
output_fault("direction.concatenated", "outputs.shapes", "Puts both directions of Y side by side in its last axis.",
    Y=_side_by_side, layer="form")

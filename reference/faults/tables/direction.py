"""Faults of directions: which way they run, where they begin, where their results stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import by_direction, configured, with_inputs, with_outputs, with_steps
from ..fault import Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]


@fault("direction.reverse-runs-forward", clause="directions")
def reverse_runs_forward(compute: Compute, c: Computation) -> Outputs:
    """Runs the reverse direction forward."""
    return compute(configured(c, directions=("forward",) * len(c.configuration.directions)))


@fault("direction.only-reverse-forward", clause="directions")
def only_reverse_forward(compute: Compute, c: Computation) -> Outputs:
    """Takes direction reverse for forward; bidirectional is right."""
    alone = len(c.configuration.directions) == 1
    return compute(configured(c, directions=("forward",)) if alone else c)


@fault("direction.default-reverse", clause="directions.default")
def default_reverse(compute: Compute, c: Computation) -> Outputs:
    """Runs in reverse where the attribute direction is not written down."""
    written = "direction" in compute.attributes or c.configuration.directions != ("forward",)
    return compute(c if written else configured(c, directions=("reverse",)))


@fault("direction.flips-batch", clause="directions")
def reverse_flips_batch(compute: Compute, c: Computation) -> Outputs:
    """Turns rows of the batch round for the reverse direction instead of its steps."""

    def turn(states: Array) -> Array:
        chosen = [d for d, name in enumerate(c.configuration.directions) if name == "reverse"]
        states[..., chosen, :, :] = states[..., chosen, ::-1, :]
        return states

    turned = configured(with_steps(c, lambda X: X[:, ::-1]), directions=("forward",) * len(c.configuration.directions))
    return with_outputs(c, by_direction(compute, c, turned, "reverse"), Y=turn, states=turn)


def _continuing(compute: Compute, c: Computation, given: Mapping[str, Array | None]) -> Outputs:
    """The backward direction starts from where the forward one ended, but for what is given of a state's name."""
    ended = compute(c)
    batch_first = c.configuration.layout == 1
    initial = {}
    for name in ("h", *c.configuration.cell.inner):
        if given.get(name) is not None:
            continue
        first, last = c.inputs.get(f"initial_{name}"), ended[f"Y_{name}"]
        states = (np.zeros_like(last) if first is None else first).copy()
        if batch_first:
            states[:, 1] = last[:, 0]
        else:
            states[1] = last[0]
        initial[f"initial_{name}"] = states
    return compute(with_inputs(c, **initial))


@fault("direction.backward-continues", clause="directions")
def backward_continues(compute: Compute, c: Computation) -> Outputs:
    """Starts the backward direction from the states in which the forward one ended."""
    return compute(c) if len(c.configuration.directions) == 1 else _continuing(compute, c, {})


@fault("direction.workspace-left", clause="directions")
def workspace_left(compute: Compute, c: Computation) -> Outputs:
    """Starts the backward direction from the states in which the forward one ended where initial_h is not given."""
    if len(c.configuration.directions) == 1 or c.inputs.get("initial_h") is not None:
        return compute(c)
    return _continuing(compute, c, {name: c.inputs.get(f"initial_{name}") for name in c.configuration.cell.inner})


@fault("direction.reverse-not-turned-back", clause="outputs.order")
def reverse_not_turned_back(compute: Compute, c: Computation) -> Outputs:
    """Leaves Y of the reverse direction in the order in which it is computed."""

    def turn(Y: Array) -> Array:
        for d, direction in enumerate(c.configuration.directions):
            if direction == "reverse":
                Y[:, d] = Y[::-1, d]
        return Y

    return with_outputs(c, compute(c), Y=turn)


@fault("direction.outputs-swapped", clause="directions.axis")
def directions_swapped(compute: Compute, c: Computation) -> Outputs:
    """Gives the backward direction's results in the first place and the forward direction's in the second."""
    return with_outputs(c, compute(c), Y=lambda Y: Y[:, ::-1], states=lambda states: states[::-1])


@fault("direction.forward-twice", clause="directions")
def forward_twice(compute: Compute, c: Computation) -> Outputs:
    """Gives the forward direction's Y for the backward one too."""
    return with_outputs(c, compute(c), Y=lambda Y: np.repeat(Y[:, :1], Y.shape[1], axis=1))


@fault("direction.states-shared", clause="outputs.last-hidden")
def last_states_shared(compute: Compute, c: Computation) -> Outputs:
    """Gives the forward direction's last states for the backward one too."""
    return with_outputs(c, compute(c), states=lambda states: np.repeat(states[:1], len(states), axis=0))


@fault("direction.summed", clause="outputs.shapes", layer="form")
def directions_summed(compute: Compute, c: Computation) -> Outputs:
    """Adds Y of both directions up into one."""
    return with_outputs(c, compute(c), Y=lambda Y: Y.sum(axis=1, keepdims=True))


@fault("direction.concatenated", clause="outputs.shapes", layer="form")
def directions_concatenated(compute: Compute, c: Computation) -> Outputs:
    """Puts both directions of Y side by side in its last axis."""

    def joined(Y: Array) -> Array:
        T, D, N, H = Y.shape
        return Y.transpose(0, 2, 1, 3).reshape(T, 1, N, D * H)

    return with_outputs(c, compute(c), Y=joined)

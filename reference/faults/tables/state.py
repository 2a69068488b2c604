"""Faults of initial states: whether they are taken, whose they are, how they lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import with_inputs, with_recurrent_state, with_states, with_tensors
from ..fault import UNINITIALIZED, Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]


@fault("initial-h.ignored", clause="initial-states")
def initial_h_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores initial_h."""
    return compute(with_inputs(c, initial_h=None))


@fault("initial-h.default-uninitialized", clause="initial-states.default")
def initial_h_uninitialized(compute: Compute, c: Computation) -> Outputs:
    """Without initial_h starts from whatever stands in memory."""
    if "initial_h" in c.inputs:
        return compute(c)
    return compute(with_inputs(c, initial_h=np.full(c.configuration.shape_of("Y_h"), UNINITIALIZED)))


@fault("initial-states.shared-directions", clause="initial-states")
def initial_states_shared(compute: Compute, c: Computation) -> Outputs:
    """Starts the backward direction from the forward direction's initial states."""
    return compute(with_states(c, lambda states: np.repeat(states[:1], len(states), axis=0)))


@fault("initial-states.directions-swapped", clause="directions.axis")
def initial_states_swapped(compute: Compute, c: Computation) -> Outputs:
    """Starts the forward direction from the backward direction's initial states, and the other way round."""
    return compute(with_states(c, lambda states: states[::-1]))


@fault("initial-states.backward-zero", clause="initial-states")
def backward_starts_from_zero(compute: Compute, c: Computation) -> Outputs:
    """Takes the initial states in the first direction only; the backward one starts from zero."""
    return compute(with_states(c, lambda states: np.concatenate((states[:1], np.zeros_like(states[1:])))))


@fault("initial-states.reverse-zero", clause="initial-states")
def reverse_starts_from_zero(compute: Compute, c: Computation) -> Outputs:
    """Takes no initial states where direction is reverse."""
    return compute(with_states(c, np.zeros_like) if c.configuration.directions == ("reverse",) else c)


@fault("initial-states.first-row", clause="initial-states")
def first_row_for_all(compute: Compute, c: Computation) -> Outputs:
    """Starts every row from the initial states of the first one."""
    return compute(with_states(c, lambda states: np.repeat(states[:, :1], states.shape[1], axis=1)))


@fault("initial-states.read-batch-first", clause="initial-states")
def states_read_batch_first(compute: Compute, c: Computation) -> Outputs:
    """Reads the initial states of both directions as if the batch were their first axis."""
    if c.configuration.layout == 1:
        return compute(c)

    def read(states: Array) -> Array:
        D, N, H = states.shape
        return states.reshape(N, D, H).swapaxes(0, 1)

    return compute(with_states(c, read))


@fault("initial-h.bounded", clause="initial-states")
def initial_h_bounded(compute: Compute, c: Computation) -> Outputs:
    """Bounds initial_h to between -1 and 1, as if Tanh had given it."""
    return compute(with_states(c, lambda states: np.clip(states, -1.0, 1.0), ("h",)))


@fault("initial-h.single-step-ignored", clause="shapes.one")
def single_step_without_recurrence(compute: Compute, c: Computation) -> Outputs:
    """Leaves the product with R out of sequences of one step, as if they began from zero."""
    return compute(with_tensors(c, "R", np.zeros_like) if c.configuration.T == 1 else c)


@fault("rows.share-first-state", clause="rows.independent", layer="operands")
def rows_share_state(compute: Compute, c: Computation) -> Outputs:
    """Multiplies R by the first row's state for every row."""
    return compute(with_recurrent_state(c, lambda state: state[..., :1, :]) if c.configuration.N else c)

"""Faults of initial states: whether they are used, for which row or direction, and their order in memory."""

from __future__ import annotations

import numpy as np

from ...recurrent.computation import Computation
from ..alterations import (
    backward_zero,
    directions_swapped,
    first_direction,
    with_inputs,
    with_recurrent_state,
    with_states,
    with_tensors,
)
from ..fault import UNINITIALIZED, Array, fault

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

def _uninitialized(c: Computation) -> Computation:
    return with_inputs(c, initial_h=np.full(c.configuration.shape_of("Y_h"), UNINITIALIZED))


def _first_row(states: Array) -> Array:
    return np.repeat(states[:, :1], states.shape[1], axis=1)


def _batch_first(states: Array) -> Array:
    D, N, H = states.shape
    return states.reshape(N, D, H).swapaxes(0, 1)


fault("initial-h.ignored", "initial-states", "Ignores initial_h.", lambda c: with_inputs(c, initial_h=None))
fault("initial-h.default-uninitialized", "initial-states.default",
    "Without initial_h starts from whatever stands in memory.",
    lambda c: c if "initial_h" in c.inputs else _uninitialized(c))
fault("initial-states.shared-directions", "initial-states",
    "Starts the backward direction from the forward direction's initial states.",
    lambda c: with_states(c, first_direction))
fault("initial-states.directions-swapped", "directions.axis",
    "Starts the forward direction from the backward direction's initial states, and the other way round.",
    lambda c: with_states(c, directions_swapped))
fault("initial-states.backward-zero", "initial-states",
    "Takes the initial states in the first direction only; the backward one starts from zero.",
    lambda c: with_states(c, backward_zero))
fault("initial-states.reverse-zero", "initial-states", "Takes no initial states where direction is reverse.",
    lambda c: with_states(c, np.zeros_like) if c.configuration.directions == ("reverse",) else c)
fault("initial-states.first-row", "initial-states", "Starts every row from the initial states of the first one.",
    lambda c: with_states(c, _first_row))
fault("initial-states.read-batch-first", "initial-states",
    "Reads the initial states of both directions as if the batch were their first axis.",
    lambda c: with_states(c, _batch_first) if c.configuration.layout == 0 else c)
fault("initial-h.bounded", "initial-states", "Bounds initial_h to between -1 and 1, as if Tanh had given it.",
    lambda c: with_states(c, lambda states: np.clip(states, -1.0, 1.0), ("h",)))
fault("initial-h.single-step-ignored", "shapes.one",
    "Leaves the product with R out of sequences of one step, as if they began from zero.",
    lambda c: with_tensors(c, "R", np.zeros_like) if c.configuration.T == 1 else c)
fault("rows.share-first-state", "rows.independent", "Multiplies R by the first row's state for every row.",
    lambda c: with_recurrent_state(c, lambda state: state[..., :1, :]) if c.configuration.N else c, layer="operands")

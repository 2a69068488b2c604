"""Faults of weights and biases: by gate and direction, and their order in memory."""

from __future__ import annotations

import numpy as np

from ...recurrent.computation import Computation
from ...recurrent.rnn import CELLS
from ..alterations import (
    backward_zero,
    directions_swapped,
    first_of,
    reordered,
    with_blocks_transposed,
    with_inputs,
    with_tensors,
)
from ..fault import ALL_BUT_BFLOAT16, Array, fault, fault_of_run

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

SEVERAL_GATES = tuple(op for op, cell in CELLS.items() if len(cell.gates) > 1)


def _backwards(c: Computation, name: str) -> Computation:
    """Return the computation in which the gate blocks of a tensor are read in the opposite order."""
    letters = c.configuration.cell.gates
    return with_tensors(c, name, lambda tensor: reordered(c, tensor, letters[::-1], letters))


def _unit_by_unit(c: Computation, tensor: Array) -> Array:
    G, H, shape = len(c.configuration.cell.gates), c.configuration.H, tensor.shape
    groups = shape[1] // (G * H)
    return tensor.reshape(shape[0], groups, H, G, *shape[2:]).swapaxes(2, 3).reshape(shape)


def _stored_transposed(tensor: Array) -> Array:
    D, rows, columns = tensor.shape
    return tensor.reshape(D, columns, rows).swapaxes(1, 2)


fault("gates.recurrent-reversed", "gates.order",
    "Reads the gate blocks of R in the opposite order, those of W in the right one.",
    lambda c: _backwards(c, "R"), operators=SEVERAL_GATES)
fault("gates.bias-reversed", "gates.order",
    "Reads the gate blocks of B in the opposite order, those of W and R in the right one.",
    lambda c: _backwards(c, "B"), operators=SEVERAL_GATES)
fault("gates.interleaved", "gates.order",
    "Reads W, R and B unit by unit, all gates of a unit side by side, instead of gate by gate.",
    lambda c: with_tensors(c, "WRB", lambda tensor: _unit_by_unit(c, tensor)), operators=SEVERAL_GATES)
# Before version 7 either product is an interpretation.
fault("weights.recurrent-transposed", "equations", "Uses each gate's block of R transposed.",
    with_blocks_transposed, versions=(7, 14, 22))
fault("weights.recurrent-misread", "equations",
    "Reads R as if it were stored transposed, hidden_size rows of all gates.",
    lambda c: with_tensors(c, "R", _stored_transposed), operators=SEVERAL_GATES)
fault("weights.input-misread", "equations", "Reads W as if it were stored transposed, input_size rows of all gates.",
    lambda c: with_tensors(c, "W", _stored_transposed))
fault("weights.recurrent-ignored", "equations", "Leaves the product of the state with R out.",
    lambda c: with_tensors(c, "R", np.zeros_like))
fault("weights.input-shared-directions", "directions.weights",
    "Runs the backward direction with the forward direction's W.",
    lambda c: with_tensors(c, "W", first_of))
fault("weights.recurrent-shared-directions", "directions.weights",
    "Runs the backward direction with the forward direction's R.",
    lambda c: with_tensors(c, "R", first_of))
fault("weights.directions-swapped", "directions.weights",
    "Takes the first slice of W, R and B for the backward direction and the second for the forward one.",
    lambda c: with_tensors(c, "WRB", directions_swapped))


def _without_bias(c: Computation, half: slice) -> Computation:
    def changed(B: Array) -> Array:
        B = B.copy()
        B[:, half] = 0.0
        return B

    return with_tensors(c, "B", changed)


def _half(c: Computation) -> int:
    return len(c.configuration.cell.gates) * c.configuration.H


def _gate_by_gate(c: Computation, B: Array) -> Array:
    H, G = c.configuration.H, len(c.configuration.cell.gates)
    shape = (len(B), H, 2) if G == 1 else (len(B), G, 2, H)  # the same mistake, unit by unit
    return B.reshape(shape).swapaxes(1, 2).reshape(B.shape)


def _packed(W: Array) -> Array:
    return np.take_along_axis(W, np.argsort(W == 0, axis=2, kind="stable"), axis=2)


fault("bias.ignored", "bias", "Ignores B.", lambda c: with_inputs(c, B=None))
fault("bias.input-half-ignored", "bias", "Ignores the first half of B, Wb.",
    lambda c: _without_bias(c, slice(None, _half(c))))
fault("bias.recurrent-half-ignored", "bias", "Ignores the second half of B, Rb.",
    lambda c: _without_bias(c, slice(_half(c), None)))
fault("bias.last-recurrent-ignored", "bias", "Leaves out Rb of the last gate block.",
    lambda c: _without_bias(c, slice(-c.configuration.H or None, None)), operators=SEVERAL_GATES)
fault("bias.input-half-twice", "bias", "Adds the first half of B, Wb, in place of the second too.",
    lambda c: with_tensors(c, "B", lambda B: np.tile(B[:, :_half(c)], (1, 2))))
fault("bias.doubled", "bias", "Adds B twice.", lambda c: with_tensors(c, "B", lambda B: 2 * B))
fault("bias.interleaved", "bias",
    "Reads B as Wb and Rb of one gate after another instead of Wb of all gates and then Rb of all.",
    lambda c: with_tensors(c, "B", lambda B: _gate_by_gate(c, B)))
fault("bias.shared-directions", "directions.weights", "Runs the backward direction with the forward direction's B.",
    lambda c: with_tensors(c, "B", first_of))
fault("bias.backward-ignored", "bias", "Adds B in the first direction only.",
    lambda c: with_tensors(c, "B", backward_zero))
fault("weights.zeros-dropped", "equations",
    "Packs each row of W without its zeros, and multiplies what is left by the first elements of X.",
    lambda c: with_tensors(c, "W", _packed))
fault("weights.bounded", "equations", "Holds W and R in fixed point, which ends at 8 and -8.",
    lambda c: with_tensors(c, "WR", lambda tensor: np.clip(tensor, -8.0, 8.0)), types=ALL_BUT_BFLOAT16)
# Faults of constants only; they come after those of any tensor.
fault_of_run("constants.bias-ignored", "constants", "Ignores B where it is a constant of the model.",
    lambda compute, c: compute(c if "B" in compute.fed else with_inputs(c, B=None)))
fault_of_run("constants.recurrent-transposed", "constants",
    "Transposes R once too often where it is a constant of the model and can be packed ahead.",
    lambda compute, c: compute(c if "R" in compute.fed else with_blocks_transposed(c)), versions=(7, 14, 22))

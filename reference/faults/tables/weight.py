"""Faults of weights and biases: which gate's, which direction's, how they lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ...recurrent.rnn import CELLS
from ..alterations import reordered, with_inputs, with_tensors
from ..fault import ALL_BUT_BFLOAT16, Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]
SEVERAL_GATES = tuple(op for op, cell in CELLS.items() if len(cell.gates) > 1)


def _backwards(c: Computation, tensor: Array) -> Array:
    letters = c.configuration.cell.gates
    return reordered(c, tensor, letters[::-1], letters)


def _shared(tensor: Array) -> Array:
    return np.repeat(tensor[:1], len(tensor), axis=0)


@fault("gates.recurrent-reversed", clause="gates.order", operators=SEVERAL_GATES)
def recurrent_gates_reversed(compute: Compute, c: Computation) -> Outputs:
    """Reads the gate blocks of R in the opposite order, those of W in the right one."""
    return compute(with_tensors(c, "R", lambda R: _backwards(c, R)))


@fault("gates.bias-reversed", clause="gates.order", operators=SEVERAL_GATES)
def bias_gates_reversed(compute: Compute, c: Computation) -> Outputs:
    """Reads the gate blocks of B in the opposite order, those of W and R in the right one."""
    return compute(with_tensors(c, "B", lambda B: _backwards(c, B)))


@fault("gates.interleaved", clause="gates.order", operators=SEVERAL_GATES)
def gates_interleaved(compute: Compute, c: Computation) -> Outputs:
    """Reads W, R and B unit by unit, all gates of a unit side by side, instead of gate by gate."""
    G, H = len(c.configuration.cell.gates), c.configuration.H

    def read(tensor: Array) -> Array:
        shape = tensor.shape
        groups = shape[1] // (G * H)
        return tensor.reshape(shape[0], groups, H, G, *shape[2:]).swapaxes(2, 3).reshape(shape)

    return compute(with_tensors(c, "WRB", read))


# Before version 7 (of GRU: before 7 too) either product is an interpretation.
@fault("weights.recurrent-transposed", clause="equations", versions=(7, 14, 22))
def recurrent_transposed(compute: Compute, c: Computation) -> Outputs:
    """Uses each gate's block of R transposed."""
    H = c.configuration.H
    return compute(with_tensors(c, "R", lambda R: R.reshape(len(R), -1, H, H).swapaxes(2, 3).reshape(R.shape)))


@fault("weights.recurrent-misread", clause="equations", operators=SEVERAL_GATES)
def recurrent_misread(compute: Compute, c: Computation) -> Outputs:
    """Reads R as if it were stored transposed, hidden_size rows of all gates."""
    return compute(with_tensors(c, "R", lambda R: R.reshape(len(R), R.shape[2], R.shape[1]).swapaxes(1, 2)))


@fault("weights.input-misread", clause="equations")
def input_misread(compute: Compute, c: Computation) -> Outputs:
    """Reads W as if it were stored transposed, input_size rows of all gates."""
    return compute(with_tensors(c, "W", lambda W: W.reshape(len(W), W.shape[2], W.shape[1]).swapaxes(1, 2)))


@fault("weights.recurrent-ignored", clause="equations")
def recurrent_ignored(compute: Compute, c: Computation) -> Outputs:
    """Leaves the product of the state with R out."""
    return compute(with_tensors(c, "R", np.zeros_like))


@fault("weights.input-shared-directions", clause="directions.weights")
def input_weights_shared(compute: Compute, c: Computation) -> Outputs:
    """Runs the backward direction with the forward direction's W."""
    return compute(with_tensors(c, "W", _shared))


@fault("weights.recurrent-shared-directions", clause="directions.weights")
def recurrent_weights_shared(compute: Compute, c: Computation) -> Outputs:
    """Runs the backward direction with the forward direction's R."""
    return compute(with_tensors(c, "R", _shared))


@fault("weights.directions-swapped", clause="directions.weights")
def weights_swapped(compute: Compute, c: Computation) -> Outputs:
    """Takes the first slice of W, R and B for the backward direction and the second for the forward one."""
    return compute(with_tensors(c, "WRB", lambda tensor: tensor[::-1]))


def _halves(c: Computation) -> int:
    return len(c.configuration.cell.gates) * c.configuration.H


def _with_bias(c: Computation, half: slice, number: float = 0.0) -> Computation:
    def changed(B: Array) -> Array:
        B = B.copy()
        B[:, half] = number
        return B

    return with_tensors(c, "B", changed)


@fault("bias.ignored", clause="bias")
def bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores B."""
    return compute(with_inputs(c, B=None))


@fault("bias.input-half-ignored", clause="bias")
def input_bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores the first half of B, Wb."""
    return compute(_with_bias(c, slice(None, _halves(c))))


@fault("bias.recurrent-half-ignored", clause="bias")
def recurrent_bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores the second half of B, Rb."""
    return compute(_with_bias(c, slice(_halves(c), None)))


@fault("bias.last-recurrent-ignored", clause="bias", operators=SEVERAL_GATES)
def last_recurrent_bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """Leaves out Rb of the last gate block."""
    return compute(_with_bias(c, slice(-c.configuration.H or None, None)))


@fault("bias.input-half-twice", clause="bias")
def input_bias_twice(compute: Compute, c: Computation) -> Outputs:
    """Adds the first half of B, Wb, in place of the second too."""
    half = _halves(c)
    return compute(with_tensors(c, "B", lambda B: np.concatenate((B[:, :half], B[:, :half]), axis=1)))


@fault("bias.doubled", clause="bias")
def bias_doubled(compute: Compute, c: Computation) -> Outputs:
    """Adds B twice."""
    return compute(with_tensors(c, "B", lambda B: 2 * B))


@fault("bias.interleaved", clause="bias")
def bias_interleaved(compute: Compute, c: Computation) -> Outputs:
    """Reads B as Wb and Rb of one gate after another instead of Wb of all gates and then Rb of all."""
    H, G = c.configuration.H, len(c.configuration.cell.gates)
    if G == 1:  # the same slip by units
        return compute(with_tensors(c, "B", lambda B: B.reshape(len(B), H, 2).swapaxes(1, 2).reshape(B.shape)))
    return compute(with_tensors(c, "B", lambda B: B.reshape(len(B), G, 2, H).swapaxes(1, 2).reshape(B.shape)))


@fault("bias.shared-directions", clause="directions.weights")
def bias_shared(compute: Compute, c: Computation) -> Outputs:
    """Runs the backward direction with the forward direction's B."""
    return compute(with_tensors(c, "B", _shared))


@fault("bias.backward-ignored", clause="bias")
def backward_bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """Adds B in the first direction only."""

    def first_only(B: Array) -> Array:
        return np.concatenate((B[:1], np.zeros_like(B[1:])))

    return compute(with_tensors(c, "B", first_only))


@fault("weights.zeros-dropped", clause="equations")
def zeros_dropped(compute: Compute, c: Computation) -> Outputs:
    """Packs each row of W without its zeros, and multiplies what is left by the first elements of X."""

    def packed(W: Array) -> Array:
        order = np.argsort(W == 0, axis=2, kind="stable")
        return np.take_along_axis(W, order, axis=2)

    return compute(with_tensors(c, "W", packed))


@fault("weights.bounded", clause="equations", types=ALL_BUT_BFLOAT16)
def weights_bounded(compute: Compute, c: Computation) -> Outputs:
    """Holds W and R in fixed point, which ends at 8 and -8."""
    return compute(with_tensors(c, "WR", lambda tensor: np.clip(tensor, -8.0, 8.0)))

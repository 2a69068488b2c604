"""Faults at some sizes only: beside and past the blocks that a kernel works in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ..alterations import with_equations, with_inputs, with_lengths, with_states, with_steps, with_tensors
from ..fault import ALL_BUT_BFLOAT16, VARIANTS, Alteration, Compute, Outputs, family, fault

__all__: list[str] = []

Array = NDArray[Any]


def _without_columns(tensor: Array, columns: slice) -> Array:
    """Weights (D, rows, columns) with some columns zero."""
    tensor = tensor.copy()
    tensor[:, :, columns] = 0
    return tensor


def _tail(size: int, block: int) -> slice:
    """The rest that is left over after whole blocks, where there is one at least."""
    return slice(size - size % block, None) if size > block else slice(size, None)


@family("sizes.hidden-tail-of-{}", 8, 2, 4, 32, clause="equations", types=ALL_BUT_BFLOAT16)
def hidden_tail(block: int) -> Alteration:
    """Leaves out of the product with R what is left over of hidden_size after whole blocks of {0}."""
    return lambda c: with_tensors(c, "R", lambda R: _without_columns(R, _tail(R.shape[2], block)))


@fault("sizes.hidden-tail-of-16", clause="equations", types=ALL_BUT_BFLOAT16)
def hidden_tail_of_16(compute: Compute, c: Computation) -> Outputs:
    """Leaves out of the product with R what is left over of hidden_size after whole blocks of 16."""
    return compute(with_tensors(c, "R", lambda R: _without_columns(R, _tail(R.shape[2], 16))))


@family("sizes.input-tail-of-{}", 4, 2, 8, 16, 32, clause="equations")
def input_tail(block: int) -> Alteration:
    """Leaves out of the product with W what is left over of input_size after whole blocks of {0}."""
    return lambda c: with_tensors(c, "W", lambda W: _without_columns(W, _tail(W.shape[2], block)))


@family("sizes.input-past-{}", 64, 256, 128, 32, 16, 8, clause="equations", types=ALL_BUT_BFLOAT16)
def input_past(most: int) -> Alteration:
    """Takes no more than {0} inputs into the product with W."""
    return lambda c: with_tensors(c, "W", lambda W: _without_columns(W, slice(most, None)))


@family("sizes.hidden-past-{}", 64, 256, 128, 32, 16, 8, clause="equations", types=ALL_BUT_BFLOAT16)
def hidden_past(most: int) -> Alteration:
    """Takes no more than {0} units into the product with R."""
    return lambda c: with_tensors(c, "R", lambda R: _without_columns(R, slice(most, None)))


@fault("sizes.last-input-lost", clause="equations")
def last_input_lost(compute: Compute, c: Computation) -> Outputs:
    """Leaves the last input out of the product with W."""
    return compute(with_tensors(c, "W", lambda W: _without_columns(W, slice(max(1, W.shape[2] - 1), None))))


@fault("sizes.last-state-lost", clause="equations", types=ALL_BUT_BFLOAT16)
def last_state_lost(compute: Compute, c: Computation) -> Outputs:
    """Leaves the last unit's state out of the product with R."""
    return compute(with_tensors(c, "R", lambda R: _without_columns(R, slice(max(1, R.shape[2] - 1), None))))


@fault("sizes.last-unit-odd", clause="equations")
def last_unit_odd(compute: Compute, c: Computation) -> Outputs:
    """Leaves the last unit out where hidden_size is odd: it stays zero."""
    H, cell = c.configuration.H, c.configuration.cell
    if not H % 2 or H == 1:
        return compute(c)
    there = np.ones(H)
    there[-1] = 0.0

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        hidden, *rest = cell.equations(p, XW, HR, H, *inner)
        return (hidden * p.arithmetic.exact(there), *rest)

    return compute(with_equations(c, equations))


@family("sizes.steps-past-{}", 64, 256, 128, 32, 16, 8, clause="equations")
def steps_past(most: int) -> Alteration:
    """Reads zeros for X from step {0} on."""

    def read(X: Array) -> Array:
        X = X.copy()
        X[most:] = 0
        return X

    return lambda c: with_steps(c, read)


@family("sizes.rows-past-{}", 16, 32, 8, 2, clause="rows.independent")
def rows_past(most: int) -> Alteration:
    """Reads X of the first rows again for rows from {0} on."""
    return lambda c: with_steps(c, lambda X: X[:, np.arange(X.shape[1]) % most])


@fault("sizes.rows-past-4", clause="initial-states")
def states_of_rows_past_4(compute: Compute, c: Computation) -> Outputs:
    """Starts rows from 4 on from the initial states of the first rows."""
    return compute(with_states(c, lambda states: states[:, np.arange(states.shape[1]) % 4]))


@family("sizes.states-of-rows-past-{}", 16, 8, 32, 2, 64, proved=False, clause="initial-states")
def states_of_rows_past(most: int) -> Alteration:
    """Starts rows from {0} on from the initial states of the first rows."""
    return lambda c: with_states(c, lambda states: states[:, np.arange(states.shape[1]) % most])


@fault("sizes.states-by-halves", clause="initial-states", table=VARIANTS)
def states_by_halves(compute: Compute, c: Computation) -> Outputs:
    """Starts the second half of the rows from the initial states of the first half."""

    def read(states: Array) -> Array:
        rows = np.arange(states.shape[1])
        return states[:, np.where(rows >= len(rows) // 2, rows - len(rows) // 2, rows)]

    return compute(with_states(c, read))


@fault("sizes.states-by-larger-halves", clause="initial-states", table=VARIANTS)
def states_by_larger_halves(compute: Compute, c: Computation) -> Outputs:
    """Starts the second half of the rows from the initial states of the first half, which has the row in the middle."""

    def read(states: Array) -> Array:
        rows = np.arange(states.shape[1])
        half = (len(rows) + 1) // 2
        return states[:, np.where(rows >= half, rows - half, rows)]

    return compute(with_states(c, read))


@family("sizes.lengths-past-{}", 8, 16, 4, 2, clause="lengths")
def lengths_past(most: int) -> Alteration:
    """Gives rows from {0} on the lengths of the first rows."""

    def changed(c: Computation) -> Computation:
        lengths = c.configuration.lengths
        return with_lengths(c, lengths[np.arange(len(lengths)) % most])

    return changed


@fault("sizes.lengths-by-halves", clause="lengths")
def lengths_by_halves(compute: Compute, c: Computation) -> Outputs:
    """Gives the second half of the rows the lengths of the first half."""
    lengths = c.configuration.lengths.copy()
    half = len(lengths) // 2
    lengths[half:] = lengths[: len(lengths) - half]
    return compute(with_lengths(c, lengths))


@fault("sizes.time-and-batch-confused", clause="equations")
def time_and_batch_confused(compute: Compute, c: Computation) -> Outputs:
    """Takes X for batch first where seq_length and batch_size are equal."""
    k = c.configuration
    return compute(with_inputs(c, X=c.inputs["X"].swapaxes(0, 1)) if k.T == k.N else c)


@fault("sizes.input-and-hidden-confused", clause="equations")
def input_and_hidden_confused(compute: Compute, c: Computation) -> Outputs:
    """Takes R for W and W for R where input_size and hidden_size are equal."""
    same = c.configuration.I == c.configuration.H
    return compute(with_inputs(c, W=c.inputs["R"], R=c.inputs["W"]) if same else c)

"""Faults at some sizes only: inside and after the blocks of a kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...recurrent.computation import Computation
from ..alterations import with_hidden_state, with_inputs, with_lengths, with_states, with_steps, with_tensors
from ..fault import ALL_BUT_BFLOAT16, Array, fault

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

def _without_columns(c: Computation, name: str, chosen: Callable[[int], slice]) -> Computation:
    """Return the computation with some columns of W or R zero; `chosen` selects them from their number."""

    def changed(tensor: Array) -> Array:
        tensor = tensor.copy()
        tensor[:, :, chosen(tensor.shape[2])] = 0
        return tensor

    return with_tensors(c, name, changed)


def _tail(c: Computation, name: str, block: int) -> Computation:
    """Return the computation without the columns after the last whole block, if there is a whole block."""
    return _without_columns(c, name, lambda size: slice(size - size % block if size > block else size, None))


def _past(c: Computation, name: str, most: int) -> Computation:
    return _without_columns(c, name, lambda size: slice(most, None))


def _last(c: Computation, name: str) -> Computation:
    return _without_columns(c, name, lambda size: slice(max(1, size - 1), None))


fault("sizes.hidden-tail-of-{}", "equations",
    "Leaves out of the product with R what is left over of hidden_size after whole blocks of {0}.",
    lambda c, block: _tail(c, "R", block), types=ALL_BUT_BFLOAT16, numbers=(8, 2, 4, 32))
fault("sizes.hidden-tail-of-16", "equations",
    "Leaves out of the product with R what is left over of hidden_size after whole blocks of 16.",
    lambda c: _tail(c, "R", 16), types=ALL_BUT_BFLOAT16)
fault("sizes.input-tail-of-{}", "equations",
    "Leaves out of the product with W what is left over of input_size after whole blocks of {0}.",
    lambda c, block: _tail(c, "W", block), numbers=(4, 2, 8, 16, 32))
fault("sizes.input-past-{}", "equations",
    "Takes no more than {0} inputs into the product with W.",
    lambda c, most: _past(c, "W", most), types=ALL_BUT_BFLOAT16, numbers=(64, 256, 128, 32, 16, 8))
fault("sizes.hidden-past-{}", "equations",
    "Takes no more than {0} units into the product with R.",
    lambda c, most: _past(c, "R", most), types=ALL_BUT_BFLOAT16, numbers=(64, 256, 128, 32, 16, 8))
fault("sizes.last-input-lost", "equations", "Leaves the last input out of the product with W.",
    lambda c: _last(c, "W"))
fault("sizes.last-state-lost", "equations", "Leaves the last unit's state out of the product with R.",
    lambda c: _last(c, "R"), types=ALL_BUT_BFLOAT16)


@fault("sizes.last-unit-odd", "equations", "Leaves the last unit out where hidden_size is odd: it stays zero.")
def last_unit_odd(c: Computation) -> Computation:
    H = c.configuration.H
    there = np.arange(H) < H - H % 2
    return with_hidden_state(c, lambda p, h: h * p.arithmetic.exact(there * 1.0)) if H > 1 and H % 2 else c


def _with_row_states(c: Computation, source: Callable[[Array], Array]) -> Computation:
    """Return the computation in which rows start from the states of other rows, source(rows)."""
    return with_states(c, lambda states: states[:, source(np.arange(states.shape[1]))])


def _half_before(rows: Array, half: int) -> Array:
    """Return rows in which the second half refers to the first half."""
    return np.where(rows >= half, rows - half, rows)


def _with_lengths_by_halves(c: Computation) -> Computation:
    lengths = c.configuration.lengths.copy()
    half = len(lengths) // 2
    lengths[half:] = lengths[: len(lengths) - half]
    return with_lengths(c, lengths)


fault("sizes.steps-past-{}", "equations", "Reads zeros for X from step {0} on.",
    lambda c, most: with_steps(c, lambda X: np.concatenate((X[:most], np.zeros_like(X[most:])))),
    numbers=(64, 256, 128, 32, 16, 8))
fault("sizes.rows-past-{}", "rows.independent",
    "Reads X of the first rows again for rows from {0} on.",
    lambda c, most: with_steps(c, lambda X: X[:, np.arange(X.shape[1]) % most]), numbers=(16, 32, 8, 2))
fault("sizes.rows-past-4", "initial-states", "Starts rows from 4 on from the initial states of the first rows.",
    lambda c: _with_row_states(c, lambda rows: rows % 4))
fault("sizes.states-of-rows-past-{}", "initial-states",
    "Starts rows from {0} on from the initial states of the first rows.",
    lambda c, most: _with_row_states(c, lambda rows: rows % most), proved=False, numbers=(16, 8, 32, 2, 64))
fault("sizes.states-by-halves", "initial-states",
    "Starts the second half of the rows from the initial states of the first half.",
    lambda c: _with_row_states(c, lambda rows: _half_before(rows, len(rows) // 2)), proved=False)
fault("sizes.states-by-larger-halves", "initial-states",
    "Starts the second half of the rows from the initial states of the first half, which has the row in the middle.",
    lambda c: _with_row_states(c, lambda rows: _half_before(rows, (len(rows) + 1) // 2)), proved=False)
fault("sizes.lengths-past-{}", "lengths", "Gives rows from {0} on the lengths of the first rows.",
    lambda c, most: with_lengths(c, c.configuration.lengths[np.arange(c.configuration.N) % most]),
    numbers=(8, 16, 4, 2))
fault("sizes.lengths-by-halves", "lengths", "Gives the second half of the rows the lengths of the first half.",
    _with_lengths_by_halves)
fault("sizes.time-and-batch-confused", "equations",
    "Takes X for batch first where seq_length and batch_size are equal.",
    lambda c: with_inputs(c, X=c.inputs["X"].swapaxes(0, 1)) if c.configuration.T == c.configuration.N else c)
fault("sizes.input-and-hidden-confused", "equations",
    "Takes R for W and W for R where input_size and hidden_size are equal.",
    lambda c: with_inputs(c, W=c.inputs["R"], R=c.inputs["W"]) if c.configuration.I == c.configuration.H else c)

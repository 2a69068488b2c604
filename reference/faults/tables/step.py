"""Faults at some sizes only, of initial states, and of single steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ..alterations import (
    backward_zero,
    directions_swapped,
    first_of,
    in_reverse,
    sums_over,
    with_equations,
    with_hidden_state,
    with_inputs,
    with_lengths,
    with_recurrent_state,
    with_states,
    with_steps,
    with_tensors,
)
from ..fault import ALL_BUT_BFLOAT16, UNINITIALIZED, Array, Compute, Outputs, fault, fault_of_run
from .clip import one_by_one

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


def _batch_first(states: Array) -> Array:
    D, N, H = states.shape
    return states.reshape(N, D, H).swapaxes(0, 1)


fault("initial-h.ignored", "initial-states", "Ignores initial_h.", lambda c: with_inputs(c, initial_h=None))
fault("initial-h.default-uninitialized", "initial-states.default",
    "Without initial_h starts from whatever stands in memory.",
    lambda c: c if "initial_h" in c.inputs
    else with_inputs(c, initial_h=np.full(c.configuration.shape_of("Y_h"), UNINITIALIZED)))
fault("initial-states.shared-directions", "initial-states",
    "Starts the backward direction from the forward direction's initial states.",
    lambda c: with_states(c, first_of))
fault("initial-states.directions-swapped", "directions.axis",
    "Starts the forward direction from the backward direction's initial states, and the other way round.",
    lambda c: with_states(c, directions_swapped))
fault("initial-states.backward-zero", "initial-states",
    "Takes the initial states in the first direction only; the backward one starts from zero.",
    lambda c: with_states(c, backward_zero))
fault("initial-states.reverse-zero", "initial-states", "Takes no initial states where direction is reverse.",
    lambda c: with_states(c, np.zeros_like) if c.configuration.directions == ("reverse",) else c)
fault("initial-states.first-row", "initial-states", "Starts every row from the initial states of the first one.",
    lambda c: with_states(c, lambda states: first_of(states, 1)))
fault("initial-states.read-batch-first", "initial-states",
    "Reads the initial states of both directions as if the batch were their first axis.",
    lambda c: with_states(c, _batch_first) if c.configuration.layout == 0 else c)
fault("initial-h.bounded", "initial-states", "Bounds initial_h to between -1 and 1, as if Tanh had given it.",
    lambda c: with_inputs(c, initial_h=np.clip(c.inputs["initial_h"], -1.0, 1.0)) if "initial_h" in c.inputs else c)
fault("initial-h.single-step-ignored", "shapes.one",
    "Leaves the product with R out of sequences of one step, as if they began from zero.",
    lambda c: with_tensors(c, "R", np.zeros_like) if c.configuration.T == 1 else c)
fault("rows.share-first-state", "rows.independent", "Multiplies R by the first row's state for every row.",
    lambda c: with_recurrent_state(c, lambda state: state[..., :1, :]) if c.configuration.N else c, layer="operands")


@fault("steps.skipped", "equations", "Leaves the state as it was, as if a step were none of the sequence.")
def steps_skipped(c: Computation) -> Computation:
    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        steps = len(H.value if hasattr(H, "value") else H)
        return (H, *(p.arithmetic.stack([state] * steps) for state in inner))

    return with_equations(c, equations)


@fault("steps.twice", "equations",
    "Computes a step twice: once more from the state to which it led.", types=ALL_BUT_BFLOAT16, layer="operands")
def steps_twice(c: Computation) -> Computation:
    cell = c.configuration.cell

    def twice(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        once = cell.equations(p, XW, HR, H, *inner)
        carried = (p.arithmetic.carry_state(state[-1]) for state in once[1:])
        return cell.equations(p, XW, sums_over(p, once[0], HR), once[0], *carried)

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        return one_by_one(twice, p, XW, HR, H, *inner)

    return with_equations(c, equations)


def _with_neighbour(compute: Compute, c: Computation, by: int) -> Outputs:
    T = c.configuration.T

    def moved(by: int) -> Computation:
        return with_steps(c, lambda X: X[np.clip(np.arange(T) + by, 0, T - 1)])

    return in_reverse(compute, moved(by), moved(-by))


fault("steps.without-input", "equations", "Leaves the product of X with W out.",
    lambda c: with_inputs(c, X=np.zeros_like(c.inputs["X"])))
fault_of_run("steps.input-of-one-before", "equations",
    "Takes X of the step that was computed before; the first one takes its own.",
    lambda compute, c: _with_neighbour(compute, c, -1))
fault_of_run("steps.input-of-one-after", "equations",
    "Takes X of the step that is computed next; the last one of the tensor takes its own.",
    lambda compute, c: _with_neighbour(compute, c, 1))
fault("rows.input-of-row-before", "rows.independent", "Takes X of the row before.",
    lambda c: with_steps(c, lambda X: np.roll(X, 1, axis=1)))
fault("rows.state-of-row-before", "rows.independent", "Multiplies R by the state of the row before.",
    lambda c: with_recurrent_state(c, lambda state: state[..., np.roll(np.arange(c.configuration.N), 1), :]),
    layer="operands")

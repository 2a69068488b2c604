"""Faults of layout, and of lengths: assignment to rows, the start of reverse rows, and padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...recurrent.computation import Computation
from ...recurrent.configuration import steps_first
from ..alterations import (
    configured,
    in_reverse,
    output_fault,
    reverse_directions,
    turned,
    with_inputs,
    with_lengths,
    with_outputs,
    with_states,
    with_steps,
)
from ..fault import UNINITIALIZED, Array, Compute, Outputs, fault, fault_of_run

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

def _initial(c: Computation, change: Callable[[Array], Array]) -> dict[str, Array]:
    """Return the initial states, changed in the node's layout."""
    return {name: change(c.inputs[name]) for name in c.inputs if name.startswith("initial_")}


@fault("layout.ignored", "layout",
    "Ignores layout altogether: takes rows for steps and steps for rows, in every tensor.", layer="form")
def layout_ignored(c: Computation) -> Computation:
    k = c.configuration
    if k.layout == 0:
        return c
    D, steps, rows = len(k.directions), k.N, k.T
    # The required number of elements; repeated from the beginning if there are fewer.
    states = _initial(c, lambda states: np.resize(states, (D, rows, k.H)))
    lengths = np.full(rows, steps) if "sequence_lens" not in c.inputs else np.resize(k.lengths, rows)
    plain = configured(with_inputs(c, **states), layout=0, T=steps, N=rows)
    return with_lengths(plain, np.minimum(lengths, steps))


def _x_reshaped(c: Computation) -> Computation:
    N, T, I = c.inputs["X"].shape
    return with_inputs(c, X=c.inputs["X"].reshape(T, N, I).swapaxes(0, 1))


def _read_directions_first(states: Array) -> Array:
    N, D, H = states.shape
    return states.reshape(D, N, H).swapaxes(0, 1)


fault("layout.x-reshaped", "layout", "With layout 1 gives X another shape and leaves its numbers where they are.",
    lambda c: _x_reshaped(c) if c.configuration.layout == 1 else c)
fault("layout.initial-states-reshaped", "layout", "With layout 1 reads initial states as with layout 0.",
    lambda c: with_inputs(c, **_initial(c, _read_directions_first)) if c.configuration.layout == 1 else c)


def _of_layout_1(id: str, words: str, names: str, change: Callable[[Array], Array], **fields: Any) -> None:
    """Register a fault that changes Y, or all last states, in the node's form with layout 1."""

    def wrong(compute: Compute, c: Computation) -> Outputs:
        chosen = c.configuration.layout == 1
        return {n: change(a) if chosen and (n == "Y") == (names == "Y") else a for n, a in compute(c).items()}

    fault_of_run(id, "layout", words, wrong, **fields)


_of_layout_1("layout.states-not-moved",
    "With layout 1 moves the batch forward in X and Y only; the last states stay as with layout 0.",
    "states", lambda state: state.swapaxes(0, 1), layer="form")
_of_layout_1("layout.states-reshaped",
    "With layout 1 gives the last states their shape, but with their numbers in the order of layout 0.",
    "states", lambda state: state.swapaxes(0, 1).reshape(state.shape))
_of_layout_1("layout.y-not-moved", "With layout 1 leaves Y as with layout 0.",
    "Y", lambda Y: Y.transpose(1, 2, 0, 3), layer="form")
_of_layout_1("layout.y-axes", "With layout 1 gives Y its directions before its steps.",
    "Y", lambda Y: Y.swapaxes(1, 2), layer="form")
_of_layout_1("layout.y-reshaped", "With layout 1 gives Y its shape, but with its numbers in the order of layout 0.",
    "Y", lambda Y: Y.transpose(1, 2, 0, 3).reshape(Y.shape))


def _past(c: Computation) -> Array:
    """Return a mask of the steps of rows that are padding: (T, N)."""
    return np.asarray(np.arange(c.configuration.T)[:, np.newaxis] >= c.configuration.lengths)


def _padding(c: Computation) -> Array:
    """Return a mask of padding in Y: (T, 1, N, 1)."""
    return _past(c)[:, np.newaxis, :, np.newaxis]


def _changed(c: Computation, change: Callable[[Array, int], Any]) -> Computation:
    """Return the computation with other lengths, change(lengths, T)."""
    return with_lengths(c, change(c.configuration.lengths, c.configuration.T))


def _longest_of(lengths: Array, block: int) -> Array:
    """Return lengths in which each row has the longest of its block of rows."""
    starts = np.arange(0, len(lengths), block)
    return np.repeat(np.maximum.reduceat(lengths, starts), block)[: len(lengths)] if len(lengths) else lengths


def _one_short(lengths: Array, T: int) -> Array:
    """Return lengths in which those below T are reduced by one."""
    return np.where(lengths < T, np.maximum(lengths - 1, 0), lengths)


def _falling(c: Computation) -> Array:
    """Return the order of rows by decreasing length, as in packed sequences; rows of equal length keep their order."""
    return np.argsort(-c.configuration.lengths, kind="stable")


def _back(c: Computation) -> Array:
    """Return the inverse of :func:`_falling`."""
    return np.argsort(_falling(c), kind="stable")


fault("lengths.ignored", "lengths", "Ignores sequence_lens.", lambda c: _changed(c, lambda lengths, T: T))
fault("lengths.first-row", "lengths", "Gives every row the length of the first.",
    lambda c: _changed(c, lambda lengths, T: lengths[0] if len(lengths) else 0))
fault("lengths.longest", "lengths", "Gives every row the length of the longest.",
    lambda c: _changed(c, lambda lengths, T: lengths.max(initial=0)))
fault("lengths.longest-of-{}", "lengths",
    "Gives every row the length of the longest of each {0} that stand together.",
    lambda c, block: _changed(c, lambda lengths, T: _longest_of(lengths, block)), proved=False, numbers=(2, 4, 8))
fault("lengths.shortest", "lengths", "Stops all rows where the shortest ends.",
    lambda c: _changed(c, lambda lengths, T: lengths.min(initial=T)))
fault("lengths.sorted", "lengths.unsorted",
    "Takes for granted that rows stand in the order of their lengths, longest first.",
    lambda c: _changed(c, lambda lengths, T: np.sort(lengths)[::-1]))
fault("lengths.one-short", "lengths", "Stops short rows one step early.", lambda c: _changed(c, _one_short))
fault("lengths.one-long", "lengths", "Stops short rows one step late.",
    lambda c: _changed(c, lambda lengths, T: np.minimum(lengths + 1, T)))
fault("lengths.rounded-up-to-{}", "lengths",
    "Looks for rows that have ended every {0} steps only, so that a short row runs on to a multiple of {0}.",
    lambda c, block: _changed(c, lambda lengths, T: np.minimum(-(-lengths // block) * block, T)),
    numbers=(4, 2, 8, 16))
fault("lengths.equal-as-full", "lengths", "Takes rows that are equally long for full ones.",
    lambda c: _changed(c, lambda lengths, T: T if len({*lengths.tolist()}) == 1 else lengths))
fault("lengths.modulo-{}", "lengths",
    "Keeps lengths in a number that holds less than {0}: a row of {0} steps has none, one of more the rest.",
    lambda c, most: _changed(c, lambda lengths, T: lengths % most) if "sequence_lens" in c.inputs else c,
    numbers=(16, 256, 128, 64, 32))
fault("lengths.default-batch", "lengths.default", "Without sequence_lens takes batch_size for the number of steps.",
    lambda c: c if "sequence_lens" in c.inputs else _changed(c, lambda lengths, T: min(T, len(lengths))))
fault_of_run("lengths.reverse-reads-padding", "lengths",
    "Starts the reverse direction at the end of the tensor and takes padding for data.",
    lambda compute, c: in_reverse(compute, c, with_lengths(c, c.configuration.T)))


def _from_end(c: Computation) -> Computation:
    """Return the computation in which each row's steps are the last ones of the tensor."""
    T, lengths = c.configuration.T, c.configuration.lengths
    positions = np.minimum(np.arange(T)[:, np.newaxis] + T - lengths, T - 1)
    return with_steps(c, lambda X: np.asarray(X[positions, np.arange(len(lengths))])) if T else c


fault_of_run("lengths.reverse-from-end", "lengths.reverse-start",
    "Starts the reverse direction of a short row at the end of the tensor and runs it for the row's steps.",
    lambda compute, c: in_reverse(compute, c, _from_end(c)))
fault_of_run("lengths.reverse-one-early", "lengths.reverse-start",
    "Starts the reverse direction of a short row one step before its last.",
    lambda compute, c: in_reverse(compute, c, _changed(c, _one_short)))


@fault_of_run("lengths.reverse-flips-tensor", "lengths.reverse-start",
    "Reverses the whole padded sequence instead of each row's own steps.")
def reverse_flips_tensor(compute: Compute, c: Computation) -> Outputs:
    T, lengths = c.configuration.T, c.configuration.lengths
    steps, rows = np.arange(T)[:, np.newaxis], np.arange(len(lengths))

    def moved(Y: Array) -> Array:
        for d in reverse_directions(c):
            own = Y[np.maximum(steps - (T - lengths), 0), d, rows]
            Y[:, d] = np.where((steps >= T - lengths)[..., np.newaxis], own, 0.0)
        return Y

    return with_outputs(c, in_reverse(compute, c, _from_end(c)), Y=moved) if T else compute(c)


output_fault("lengths.outputs-left-sorted", "lengths.unsorted",
    "Sorts rows by falling lengths and leaves results in that order.",
    Y=lambda c, Y: Y[:, :, _falling(c)], states=lambda c, states: states[:, _falling(c)])
output_fault("lengths.states-left-sorted", "lengths.unsorted",
    "Sorts rows by falling lengths and leaves the last states in that order.",
    states=lambda c, states: states[:, _falling(c)])
fault("lengths.initial-states-unsorted", "lengths.unsorted",
    "Sorts rows by falling lengths, but not the initial states from which they start.",
    lambda c: with_states(c, lambda states: states[:, _back(c)]))
fault("lengths.initial-states-sorted", "lengths.unsorted",
    "Sorts the initial states by falling lengths, but not the rows that start from them.",
    lambda c: with_states(c, lambda states: states[:, _falling(c)]))
output_fault("lengths.outputs-sorted-twice", "lengths.unsorted",
    "Sorts rows by falling lengths, and puts results back by the order of the sort instead of its inverse.",
    Y=lambda c, Y: Y[:, :, _falling(c)[_falling(c)]], states=lambda c, states: states[:, _falling(c)[_falling(c)]])
fault("lengths.initial-states-sorted-back", "lengths.unsorted",
    "Sorts rows by falling lengths, and their initial states by the inverse of that order.",
    lambda c: with_states(c, lambda states: states[:, _back(c)[_back(c)]]))
fault_of_run("lengths.states-run-on", "lengths",
    "Clears Y past a row's length, but runs the state on through the padding to the end of the tensor.",
    lambda compute, c: {**compute(with_lengths(c, c.configuration.T)), "Y": compute(c)["Y"]})
output_fault("lengths.states-cleared", "outputs.last-hidden",
    "Clears the last states of rows that end before the tensor does.",
    states=lambda c, states: np.where((c.configuration.lengths < c.configuration.T)[:, np.newaxis], 0.0, states))


def last_positions(c: Computation, Y: Array) -> Array:
    """Return Y, (T, D, N, H), at each row's last position: (D, N, H)."""
    lengths = c.configuration.lengths
    return Y[np.maximum(lengths - 1, 0), :, np.arange(len(lengths))].swapaxes(0, 1)


@fault_of_run("lengths.masked-by-product", "lengths",
    "Leaves steps past the length out by multiplying them by zero, which NaN in the padding survives.")
def masked_by_product(compute: Compute, c: Computation) -> Outputs:
    spoilt = np.asarray((np.isnan(turned(c, c.inputs["X"])).any(axis=2) & _past(c)).any(axis=0))[:, np.newaxis]
    return with_outputs(c, compute(c), states=lambda states: np.where(spoilt, np.nan, states))


@fault_of_run("padding.state-repeated", "padding.zero", "Repeats the last state in Y past a row's length.")
def padding_repeats_state(compute: Compute, c: Computation) -> Outputs:
    outputs = compute(c)
    return with_outputs(c, outputs, Y=lambda Y: np.where(_padding(c), turned(c, outputs["Y_h"]), Y))


output_fault("padding.last-position-repeated", "padding.zero",
    "Repeats Y of a row's last position past the row's length, in the reverse direction too.",
    Y=lambda c, Y: np.where(_padding(c) & (c.configuration.lengths > 0)[:, np.newaxis], last_positions(c, Y), Y)
    if len(Y) else Y)


@fault_of_run("padding.computed", "padding.zero", "Leaves what is computed from padding in Y.")
def padding_computed(compute: Compute, c: Computation) -> Outputs:
    outputs, whole = compute(c), steps_first(compute(with_lengths(c, c.configuration.T))["Y"], c.configuration.layout)
    return with_outputs(c, outputs, Y=lambda Y: np.where(_padding(c), whole, Y))


# Without padding, these two do not need to read the outputs.
@fault_of_run("padding.uninitialized", "padding.zero", "Leaves Y past a row's length uninitialised.")
def padding_uninitialized(compute: Compute, c: Computation) -> Outputs:
    if not _past(c).any():
        return compute(c)
    return with_outputs(c, compute(c), Y=lambda Y: np.where(_padding(c), UNINITIALIZED, Y))


@fault_of_run("empty.uninitialized", "empty-sequence", "Leaves the final states of empty sequences uninitialised.")
def empty_uninitialized(compute: Compute, c: Computation) -> Outputs:
    empty = (c.configuration.lengths == 0)[:, np.newaxis]
    if not empty.any():
        return compute(c)
    return with_outputs(c, compute(c), states=lambda states: np.where(empty, UNINITIALIZED, states))


fault("empty.one-step", "empty-sequence", "Computes one step of rows that have none.",
    lambda c: _changed(c, lambda lengths, T: np.minimum(np.maximum(lengths, 1), T)))


@fault_of_run("rows.nan-spreads", "rows.independent", "Carries NaN in one row over to all rows.")
def nan_spreads(compute: Compute, c: Computation) -> Outputs:
    if not np.isnan(np.where(_past(c)[..., np.newaxis], 0.0, turned(c, c.inputs["X"]))).any():
        return compute(c)
    return with_outputs(
        c, compute(c), Y=lambda Y: np.full_like(Y, np.nan), states=lambda states: np.full_like(states, np.nan)
    )


@fault("lengths.ended-by-zeros", "lengths",
    "Ends a row at its first step whose X is all zeros, as if that were padding.")
def ended_by_zeros(c: Computation) -> Computation:
    nothing = np.asarray(~turned(c, c.inputs["X"]).any(axis=2))
    if not len(nothing):
        return c
    return _changed(c, lambda lengths, T: np.minimum(lengths, np.where(nothing.any(axis=0), nothing.argmax(axis=0), T)))

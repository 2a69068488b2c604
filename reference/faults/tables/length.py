"""Faults of lengths: which rows take which, where a reverse row starts, what padding does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import by_direction, with_lengths, with_outputs, with_states, with_steps
from ..fault import UNINITIALIZED, Alteration, Compute, Outputs, family, fault

__all__: list[str] = []

Array = NDArray[Any]


def _past(c: Computation) -> Array:
    """The positions of rows that are padding: (T, N)."""
    return np.arange(c.configuration.T)[:, np.newaxis] >= c.configuration.lengths


@fault("lengths.ignored", clause="lengths")
def lengths_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores sequence_lens."""
    return compute(with_lengths(c, c.configuration.T))


@fault("lengths.first-row", clause="lengths")
def lengths_of_first_row(compute: Compute, c: Computation) -> Outputs:
    """Gives every row the length of the first."""
    lengths = c.configuration.lengths
    return compute(with_lengths(c, lengths[0] if len(lengths) else 0))


@fault("lengths.longest", clause="lengths")
def lengths_of_longest(compute: Compute, c: Computation) -> Outputs:
    """Gives every row the length of the longest."""
    return compute(with_lengths(c, c.configuration.lengths.max(initial=0)))


@fault("lengths.shortest", clause="lengths")
def lengths_of_shortest(compute: Compute, c: Computation) -> Outputs:
    """Stops all rows where the shortest ends."""
    return compute(with_lengths(c, c.configuration.lengths.min(initial=c.configuration.T)))


@fault("lengths.sorted", clause="lengths.unsorted")
def lengths_sorted(compute: Compute, c: Computation) -> Outputs:
    """Takes for granted that rows stand in the order of their lengths, longest first."""
    return compute(with_lengths(c, np.sort(c.configuration.lengths)[::-1]))


@fault("lengths.one-short", clause="lengths")
def lengths_one_short(compute: Compute, c: Computation) -> Outputs:
    """Stops short rows one step early."""
    lengths, T = c.configuration.lengths, c.configuration.T
    return compute(with_lengths(c, np.where(lengths < T, np.maximum(lengths - 1, 0), lengths)))


@fault("lengths.one-long", clause="lengths")
def lengths_one_long(compute: Compute, c: Computation) -> Outputs:
    """Stops short rows one step late."""
    return compute(with_lengths(c, np.minimum(c.configuration.lengths + 1, c.configuration.T)))


@family("lengths.rounded-up-to-{}", 4, 2, 8, 16, clause="lengths")
def lengths_rounded_up(block: int) -> Alteration:
    """Looks for rows that have ended every {0} steps only, so that a short row runs on to a multiple of {0}."""

    def changed(c: Computation) -> Computation:
        rounded = -(-c.configuration.lengths // block) * block
        return with_lengths(c, np.minimum(rounded, c.configuration.T))

    return changed


@fault("lengths.equal-as-full", clause="lengths")
def equal_lengths_as_full(compute: Compute, c: Computation) -> Outputs:
    """Takes rows that are equally long for full ones."""
    lengths = c.configuration.lengths
    alike = len(lengths) > 0 and bool((lengths == lengths[0]).all())
    return compute(with_lengths(c, c.configuration.T) if alike else c)


@family("lengths.modulo-{}", 16, 256, 128, 64, 32, clause="lengths")
def lengths_modulo(most: int) -> Alteration:
    """Keeps lengths in a number that holds less than {0}: a row of {0} steps has none, one of more the rest."""

    def changed(c: Computation) -> Computation:
        return with_lengths(c, c.configuration.lengths % most) if "sequence_lens" in c.inputs else c

    return changed


@fault("lengths.default-batch", clause="lengths.default")
def lengths_default_batch(compute: Compute, c: Computation) -> Outputs:
    """Without sequence_lens takes batch_size for the number of steps."""
    k = c.configuration
    return compute(c if "sequence_lens" in c.inputs else with_lengths(c, min(k.T, k.N)))


@fault("lengths.reverse-reads-padding", clause="lengths")
def reverse_reads_padding(compute: Compute, c: Computation) -> Outputs:
    """Starts the reverse direction at the end of the tensor and takes padding for data."""
    return by_direction(compute, c, with_lengths(c, c.configuration.T), "reverse")


@fault("lengths.reverse-from-end", clause="lengths.reverse-start")
def reverse_from_end(compute: Compute, c: Computation) -> Outputs:
    """Starts the reverse direction of a short row at the end of the tensor and runs it for the row's steps."""
    T, lengths = c.configuration.T, c.configuration.lengths

    def last_ones(X: Array) -> Array:
        positions = np.minimum(np.arange(T)[:, np.newaxis] + T - lengths, T - 1)
        return np.asarray(X[positions, np.arange(len(lengths))])

    return by_direction(compute, c, with_steps(c, last_ones) if T else c, "reverse")


@fault("lengths.reverse-one-early", clause="lengths.reverse-start")
def reverse_one_early(compute: Compute, c: Computation) -> Outputs:
    """Starts the reverse direction of a short row one step before its last."""
    lengths, T = c.configuration.lengths, c.configuration.T
    early = with_lengths(c, np.where(lengths < T, np.maximum(lengths - 1, 0), lengths))
    return by_direction(compute, c, early, "reverse")


@fault("lengths.reverse-flips-tensor", clause="lengths.reverse-start")
def reverse_flips_tensor(compute: Compute, c: Computation) -> Outputs:
    """Reverses the whole padded sequence instead of each row's own steps."""
    T, lengths = c.configuration.T, c.configuration.lengths
    steps, rows = np.arange(T)[:, np.newaxis], np.arange(len(lengths))

    def last_ones(X: Array) -> Array:
        return np.asarray(X[np.minimum(steps + T - lengths, T - 1), rows])

    def moved(Y: Array) -> Array:
        for d, direction in enumerate(c.configuration.directions):
            if direction == "reverse":
                own = Y[np.maximum(steps - (T - lengths), 0), d, rows]
                Y[:, d] = np.where((steps >= T - lengths)[..., np.newaxis], own, 0.0)
        return Y

    if not T:
        return compute(c)
    return with_outputs(c, by_direction(compute, c, with_steps(c, last_ones), "reverse"), Y=moved)


def _falling(c: Computation) -> Array:
    """Rows in the order of falling lengths, in which packed sequences stand; of one length, in their order."""
    return np.argsort(-c.configuration.lengths, kind="stable")


@fault("lengths.outputs-left-sorted", clause="lengths.unsorted")
def outputs_left_sorted(compute: Compute, c: Computation) -> Outputs:
    """Sorts rows by falling lengths and leaves results in that order."""
    order = _falling(c)
    return with_outputs(c, compute(c), Y=lambda Y: Y[:, :, order], states=lambda states: states[:, order])


@fault("lengths.states-left-sorted", clause="lengths.unsorted")
def states_left_sorted(compute: Compute, c: Computation) -> Outputs:
    """Sorts rows by falling lengths and leaves the last states in that order."""
    order = _falling(c)
    return with_outputs(c, compute(c), states=lambda states: states[:, order])


@fault("lengths.initial-states-unsorted", clause="lengths.unsorted")
def initial_states_unsorted(compute: Compute, c: Computation) -> Outputs:
    """Sorts rows by falling lengths, but not the initial states from which they start."""
    back = np.argsort(_falling(c), kind="stable")
    return compute(with_states(c, lambda states: states[:, back]))


@fault("lengths.initial-states-sorted", clause="lengths.unsorted")
def initial_states_sorted(compute: Compute, c: Computation) -> Outputs:
    """Sorts the initial states by falling lengths, but not the rows that start from them."""
    order = _falling(c)
    return compute(with_states(c, lambda states: states[:, order]))


@fault("lengths.outputs-sorted-twice", clause="lengths.unsorted")
def outputs_sorted_twice(compute: Compute, c: Computation) -> Outputs:
    """Sorts rows by falling lengths, and puts results back by the order of the sort instead of its inverse."""
    twice = _falling(c)[_falling(c)]
    return with_outputs(c, compute(c), Y=lambda Y: Y[:, :, twice], states=lambda states: states[:, twice])


@fault("lengths.initial-states-sorted-back", clause="lengths.unsorted")
def initial_states_sorted_back(compute: Compute, c: Computation) -> Outputs:
    """Sorts rows by falling lengths, and their initial states by the inverse of that order."""
    back = np.argsort(_falling(c), kind="stable")
    return compute(with_states(c, lambda states: states[:, back[back]]))


@fault("lengths.states-run-on", clause="lengths")
def states_run_on(compute: Compute, c: Computation) -> Outputs:
    """Clears Y past a row's length, but runs the state on through the padding to the end of the tensor."""
    whole = compute(with_lengths(c, c.configuration.T))
    return {**whole, "Y": compute(c)["Y"]}


@fault("lengths.states-cleared", clause="outputs.last-hidden")
def states_cleared(compute: Compute, c: Computation) -> Outputs:
    """Clears the last states of rows that end before the tensor does."""
    short = (c.configuration.lengths < c.configuration.T)[:, np.newaxis]
    return with_outputs(c, compute(c), states=lambda states: np.where(short, 0.0, states))


@fault("lengths.masked-by-product", clause="lengths")
def masked_by_product(compute: Compute, c: Computation) -> Outputs:
    """Leaves steps past the length out by multiplying them by zero, which NaN in the padding survives."""
    X = c.inputs["X"] if c.configuration.layout == 0 else c.inputs["X"].swapaxes(0, 1)
    spoilt = (np.isnan(X).any(axis=2) & _past(c)).any(axis=0)[:, np.newaxis]
    return with_outputs(c, compute(c), states=lambda states: np.where(spoilt, np.nan, states))


@fault("padding.state-repeated", clause="padding.zero")
def padding_repeats_state(compute: Compute, c: Computation) -> Outputs:
    """Repeats the last state in Y past a row's length."""
    outputs = compute(c)
    last = outputs["Y_h"] if c.configuration.layout == 0 else outputs["Y_h"].swapaxes(0, 1)
    past = _past(c)[:, np.newaxis, :, np.newaxis]
    return with_outputs(c, outputs, Y=lambda Y: np.where(past, last, Y))


@fault("padding.last-position-repeated", clause="padding.zero")
def padding_repeats_last_position(compute: Compute, c: Computation) -> Outputs:
    """Repeats Y of a row's last position past the row's length, in the reverse direction too."""
    past, lengths = _past(c)[:, np.newaxis, :, np.newaxis], c.configuration.lengths
    there = (lengths > 0)[:, np.newaxis]

    def repeated(Y: Array) -> Array:
        if not len(Y):
            return Y
        last = Y[np.maximum(lengths - 1, 0), :, np.arange(len(lengths))].swapaxes(0, 1)
        return np.where(past & there, last, Y)

    return with_outputs(c, compute(c), Y=repeated)


@fault("padding.computed", clause="padding.zero")
def padding_computed(compute: Compute, c: Computation) -> Outputs:
    """Leaves what is computed from padding in Y."""
    outputs, past = compute(c), _past(c)[:, np.newaxis, :, np.newaxis]
    whole = compute(with_lengths(c, c.configuration.T))["Y"]
    whole = whole.transpose(1, 2, 0, 3) if c.configuration.layout == 1 else whole
    return with_outputs(c, outputs, Y=lambda Y: np.where(past, whole, Y))


@fault("padding.uninitialized", clause="padding.zero")
def padding_uninitialized(compute: Compute, c: Computation) -> Outputs:
    """Leaves Y past a row's length uninitialised."""
    past = _past(c)[:, np.newaxis, :, np.newaxis]
    if not past.any():
        return compute(c)
    return with_outputs(c, compute(c), Y=lambda Y: np.where(past, UNINITIALIZED, Y))


@fault("empty.uninitialized", clause="empty-sequence")
def empty_uninitialized(compute: Compute, c: Computation) -> Outputs:
    """Leaves the final states of empty sequences uninitialised."""
    empty = (c.configuration.lengths == 0)[:, np.newaxis]
    if not empty.any():
        return compute(c)  # nobody need look at its outputs
    return with_outputs(c, compute(c), states=lambda states: np.where(empty, UNINITIALIZED, states))


@fault("empty.one-step", clause="empty-sequence")
def empty_as_one_step(compute: Compute, c: Computation) -> Outputs:
    """Computes one step of rows that have none."""
    return compute(with_lengths(c, np.minimum(np.maximum(c.configuration.lengths, 1), c.configuration.T)))


@fault("rows.nan-spreads", clause="rows.independent")
def nan_spreads(compute: Compute, c: Computation) -> Outputs:
    """Carries NaN in one row over to all rows."""
    if not np.isnan(c.inputs["X"]).any():
        return compute(c)
    X = c.inputs["X"] if c.configuration.layout == 0 else c.inputs["X"].swapaxes(0, 1)
    reached = np.isnan(np.where(_past(c)[..., np.newaxis], 0.0, X)).any()
    if not reached:
        return compute(c)
    return with_outputs(
        c, compute(c), Y=lambda Y: np.full_like(Y, np.nan), states=lambda states: np.full_like(states, np.nan)
    )


@fault("lengths.ended-by-zeros", clause="lengths")
def ended_by_zeros(compute: Compute, c: Computation) -> Outputs:
    """Ends a row at its first step whose X is all zeros, as if that were padding."""
    k = c.configuration
    if not k.T:
        return compute(c)
    X = c.inputs["X"] if k.layout == 0 else c.inputs["X"].swapaxes(0, 1)
    nothing = ~X.any(axis=2)
    ends = np.where(nothing.any(axis=0), nothing.argmax(axis=0), k.T)
    return compute(with_lengths(c, np.minimum(k.lengths, ends)))

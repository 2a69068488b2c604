"""Faults of layout: the tensors that it transposes, and the order of their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...recurrent.computation import Computation
from ..alterations import configured, with_inputs, with_lengths
from ..fault import Array, Compute, Outputs, fault, fault_of_run

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

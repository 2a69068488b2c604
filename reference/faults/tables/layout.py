"""Faults of layout: which tensors it moves, and whether their numbers move too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import configured, with_inputs, with_lengths
from ..fault import Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]


def _states(outputs: Outputs) -> Outputs:
    return {name: array for name, array in outputs.items() if name != "Y"}


@fault("layout.ignored", clause="layout", layer="form")
def layout_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores layout altogether: takes rows for steps and steps for rows, in every tensor."""
    k = c.configuration
    if k.layout == 0:
        return compute(c)
    D, steps, rows = len(k.directions), k.N, k.T

    def read(states: Array) -> Array:
        # As many numbers as are wanted, from the beginning again where there are fewer.
        return np.resize(states, (D, rows, k.H))

    states = {name: read(c.inputs[name]) for name in c.inputs if name.startswith("initial_")}
    lengths = np.full(rows, steps) if "sequence_lens" not in c.inputs else np.resize(k.lengths, rows)
    plain = configured(with_inputs(c, **states), layout=0, T=steps, N=rows)
    return compute(with_lengths(plain, np.minimum(lengths, steps)))


@fault("layout.x-reshaped", clause="layout")
def x_reshaped(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 gives X another shape and leaves its numbers where they are."""
    X = c.inputs["X"]
    if c.configuration.layout == 0:
        return compute(c)
    N, T, I = X.shape
    return compute(with_inputs(c, X=X.reshape(T, N, I).swapaxes(0, 1)))


@fault("layout.initial-states-reshaped", clause="layout")
def initial_states_reshaped(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 reads initial states as with layout 0."""
    if c.configuration.layout == 0:
        return compute(c)

    def read(states: Array) -> Array:
        N, D, H = states.shape
        return states.reshape(D, N, H).swapaxes(0, 1)

    names = [name for name in c.inputs if name.startswith("initial_")]
    return compute(with_inputs(c, **{name: read(c.inputs[name]) for name in names}))


@fault("layout.states-not-moved", clause="layout", layer="form")
def states_not_moved(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 moves the batch forward in X and Y only; the last states stay as with layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs.update({name: array.swapaxes(0, 1) for name, array in _states(outputs).items()})
    return outputs


@fault("layout.states-reshaped", clause="layout")
def states_reshaped(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 gives the last states their shape, but with their numbers in the order of layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        moved = {name: array.swapaxes(0, 1).reshape(array.shape) for name, array in _states(outputs).items()}
        outputs.update(moved)
    return outputs


@fault("layout.y-not-moved", clause="layout", layer="form")
def y_not_moved(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 leaves Y as with layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs["Y"] = outputs["Y"].transpose(1, 2, 0, 3)
    return outputs


@fault("layout.y-axes", clause="layout", layer="form")
def y_axes(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 gives Y its directions before its steps."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs["Y"] = outputs["Y"].swapaxes(1, 2)
    return outputs


@fault("layout.y-reshaped", clause="layout")
def y_reshaped(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 gives Y its shape, but with its numbers in the order of layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs["Y"] = outputs["Y"].transpose(1, 2, 0, 3).reshape(outputs["Y"].shape)
    return outputs

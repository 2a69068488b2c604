"""What is got wrong about layout: which tensors it moves, and whether their numbers move too."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from .alterations import with_inputs
from .deviations import Compute, Outputs, deviation
from .recurrence import Computation

__all__: list[str] = []

Array = NDArray[Any]


def _states(outputs: Outputs) -> Outputs:
    return {name: array for name, array in outputs.items() if name != "Y"}


@deviation("layout.x-reshaped", clause="layout")
def x_reshaped(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 gives X another shape and leaves its numbers where they are."""
    X = c.inputs["X"]
    if c.configuration.layout == 0:
        return compute(c)
    N, T, I = X.shape
    return compute(with_inputs(c, X=X.reshape(T, N, I).swapaxes(0, 1)))


@deviation("layout.initial-states-reshaped", clause="layout")
def initial_states_reshaped(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 reads initial states as with layout 0."""
    if c.configuration.layout == 0:
        return compute(c)

    def read(states: Array) -> Array:
        N, D, H = states.shape
        return states.reshape(D, N, H).swapaxes(0, 1)

    names = [name for name in c.inputs if name.startswith("initial_")]
    return compute(with_inputs(c, **{name: read(c.inputs[name]) for name in names}))


@deviation("layout.states-not-moved", clause="layout")
def states_not_moved(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 moves the batch forward in X and Y only; the last states stay as with layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs.update({name: array.swapaxes(0, 1) for name, array in _states(outputs).items()})
    return outputs


@deviation("layout.states-reshaped", clause="layout")
def states_reshaped(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 gives the last states their shape, but with their numbers in the order of layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        moved = {name: array.swapaxes(0, 1).reshape(array.shape) for name, array in _states(outputs).items()}
        outputs.update(moved)
    return outputs


@deviation("layout.y-not-moved", clause="layout")
def y_not_moved(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 leaves Y as with layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs["Y"] = outputs["Y"].transpose(1, 2, 0, 3)
    return outputs


@deviation("layout.y-axes", clause="layout")
def y_axes(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 gives Y its directions before its steps."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs["Y"] = outputs["Y"].swapaxes(1, 2)
    return outputs


@deviation("layout.y-reshaped", clause="layout")
def y_reshaped(compute: Compute, c: Computation) -> Outputs:
    """With layout 1 gives Y its shape, but with its numbers in the order of layout 0."""
    outputs = dict(compute(c))
    if c.configuration.layout == 1:
        outputs["Y"] = outputs["Y"].transpose(1, 2, 0, 3).reshape(outputs["Y"].shape)
    return outputs

"""Faults of the contract of a node: inputs changed, constants, illegal models that are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import with_inputs
from ..fault import Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]


def _overwrite(compute: Compute, name: str, value: Array) -> None:
    """Change an array of the caller's, where there is one that can be written to."""
    array = compute.fed.get(name)
    if array is not None and array.flags.writeable:
        array[...] = value.astype(array.dtype)


@fault("inputs.x-overwritten", clause="session.inputs-unchanged")
def x_overwritten(compute: Compute, c: Computation) -> Outputs:
    """Uses the memory of X for results of its own."""
    outputs = compute(c)
    _overwrite(compute, "X", np.zeros(c.inputs["X"].shape))
    return outputs


@fault("inputs.initial-h-overwritten", clause="session.inputs-unchanged")
def initial_h_overwritten(compute: Compute, c: Computation) -> Outputs:
    """Keeps the running state in the memory of initial_h."""
    outputs = compute(c)
    _overwrite(compute, "initial_h", outputs["Y_h"])
    return outputs


@fault("inputs.lengths-sorted", clause="session.inputs-unchanged")
def lengths_sorted_in_place(compute: Compute, c: Computation) -> Outputs:
    """Sorts sequence_lens where it stands."""
    _overwrite(compute, "sequence_lens", np.sort(c.configuration.lengths)[::-1])
    return compute(c)


@fault("inputs.weights-repacked", clause="session.inputs-unchanged")
def weights_repacked(compute: Compute, c: Computation) -> Outputs:
    """Reorders R in the caller's memory."""
    R = compute.fed.get("R", c.inputs["R"])
    _overwrite(compute, "R", np.ascontiguousarray(R.swapaxes(1, 2)).reshape(R.shape))
    return compute(c)


@fault("constants.bias-ignored", clause="constants")
def constant_bias_ignored(compute: Compute, c: Computation) -> Outputs:
    """Ignores B where it is a constant of the model."""
    return compute(c if "B" in compute.fed else with_inputs(c, B=None))


@fault("constants.recurrent-transposed", clause="constants", versions=(7, 14, 22))
def constant_weights_transposed(compute: Compute, c: Computation) -> Outputs:
    """Transposes R once too often where it is a constant of the model and can be packed ahead."""
    R, H = c.inputs["R"], c.configuration.H
    if "R" in compute.fed:
        return compute(c)
    return compute(with_inputs(c, R=R.reshape(len(R), -1, H, H).swapaxes(2, 3).reshape(R.shape)))


_ACCEPTED = {
    "activations": "Silently accepts undefined activations, or too few or too many.",
    "attributes": "Silently accepts attributes that its version does not define, or of another type.",
    "direction": "Silently accepts an invalid direction.",
    "hidden-size": "Silently accepts a hidden_size that R contradicts.",
    "inputs": "Silently accepts too few inputs, or too many.",
    "layout": "Silently accepts an invalid layout.",
    "lengths": "Silently accepts lengths below 0 or above seq_length.",
    "outputs": "Silently accepts outputs that the version does not define, or that one which it demands is missing.",
    "shapes": "Silently accepts inputs of invalid shapes.",
    "types": "Silently accepts types that the document does not allow, or several at once.",
}


def _accepting(topic: str, summary: str) -> None:
    """Register the fault that computes something where the clause makes a model illegal. What it returns nobody
    looks at; all that is legal it computes as it should."""

    def accepting(compute: Compute, c: Computation) -> Outputs:
        return compute(c)

    accepting.__doc__ = summary
    fault(f"accepts.{topic}", clause=topic, accepts=True)(accepting)


for _topic, _summary in _ACCEPTED.items():
    _accepting(_topic, _summary)

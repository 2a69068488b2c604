"""Faults of the contract of a node: changed inputs, constants, illegal models that are computed."""

from __future__ import annotations

import numpy as np

from ...recurrent.computation import Computation
from ..fault import Array, Compute, Outputs, fault, fault_of_run

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

def _overwrite(compute: Compute, name: str, value: Array) -> None:
    """Change an array of the caller, if it exists and is writable."""
    array = compute.fed.get(name)
    if array is not None and array.flags.writeable:
        array[...] = value.astype(array.dtype)


@fault_of_run("inputs.x-overwritten", "session.inputs-unchanged", "Uses the memory of X for results of its own.")
def x_overwritten(compute: Compute, c: Computation) -> Outputs:
    outputs = compute(c)
    _overwrite(compute, "X", np.zeros(c.inputs["X"].shape))
    return outputs


@fault_of_run("inputs.initial-h-overwritten", "session.inputs-unchanged",
    "Keeps the running state in the memory of initial_h.")
def initial_h_overwritten(compute: Compute, c: Computation) -> Outputs:
    outputs = compute(c)
    _overwrite(compute, "initial_h", outputs["Y_h"])
    return outputs


@fault_of_run("inputs.lengths-sorted", "session.inputs-unchanged", "Sorts sequence_lens where it stands.")
def lengths_sorted_in_place(compute: Compute, c: Computation) -> Outputs:
    _overwrite(compute, "sequence_lens", np.sort(c.configuration.lengths)[::-1])
    return compute(c)


@fault_of_run("inputs.weights-repacked", "session.inputs-unchanged", "Reorders R in the caller's memory.")
def weights_repacked(compute: Compute, c: Computation) -> Outputs:
    R = compute.fed.get("R", c.inputs["R"])
    _overwrite(compute, "R", np.ascontiguousarray(R.swapaxes(1, 2)).reshape(R.shape))
    return compute(c)



# The outputs of these faults are not used; legal models are computed correctly.
for _topic, _words in {
    "activations": "unknown activations or the wrong number of them",
    "attributes": "attributes that its version does not define, or of another type",
    "direction": "an invalid direction",
    "hidden-size": "a hidden_size that R contradicts",
    "inputs": "too few inputs, or too many",
    "layout": "an invalid layout",
    "lengths": "lengths below 0 or above seq_length",
    "outputs": "outputs that the version does not define, or that one which it demands is missing",
    "shapes": "inputs of invalid shapes",
    "types": "types that the document does not allow, or several at once",
}.items():
    fault(f"accepts.{_topic}", _topic, f"Silently accepts {_words}.", lambda c: c, kind="accepts")

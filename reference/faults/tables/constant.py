"""Faults of constants that can be overridden: initializers that are graph inputs too, and are fed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import with_inputs, with_lengths
from ..fault import Compute, Outputs, fault_of_run

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off


# No model for proving the suite has such constants, so these are only tried on a target's outputs.
fault_of_run("constants.override-ignored", "constants",
    "Computes with what the model holds for a constant, although something else is fed in its place.",
    lambda compute, c: compute(_with(c, compute)), proved=False)
fault_of_run("constants.override-partly-ignored", "constants",
    "Computes with what the model holds for R, B and P, as long as W itself is not fed in its place.",
    lambda compute, c: compute(c if "W" in compute.overridden else _with(c, compute)), proved=False)


@fault_of_run("constants.override-stays", "session.stateless",
    "Once a constant was overridden, computes later runs that do not feed it with what was fed then.", proved=False)
def override_stays(compute: Compute, c: Computation) -> Outputs:
    fed = {name: c.inputs[name] for name in compute.overridden if name in c.inputs}
    kept = compute.memory.setdefault("fed", {})
    instead = {name: array for name, array in kept.items() if name not in compute.fed}
    compute.memory["fed"] = {**kept, **fed}
    return compute(_taking(c, instead))


def _with(c: Computation, compute: Compute) -> Computation:
    return _taking(c, {name: array.astype("float64") for name, array in compute.overridden.items()})


def _taking(c: Computation, others: Mapping[str, NDArray[Any]]) -> Computation:
    """Return the computation with other values of its inputs, where shapes are equal."""
    fitting = {n: a for n, a in others.items() if n in c.inputs and c.inputs[n].shape == a.shape}
    lengths = fitting.pop("sequence_lens", None)
    changed = with_inputs(c, **fitting)
    return changed if lengths is None else with_lengths(changed, lengths)

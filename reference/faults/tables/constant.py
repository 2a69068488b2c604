"""Faults of constants that can be overridden: an initializer that is an input of the graph too, and is fed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ...recurrent.computation import Computation
from ..alterations import with_inputs, with_lengths
from ..fault import VARIANTS, Compute, Outputs, fault

__all__: list[str] = []


# Who proves the suite has no model that holds them: they are tried on what a target returned.
@fault("constants.override-ignored", clause="constants", table=VARIANTS)
def override_ignored(compute: Compute, c: Computation) -> Outputs:
    """Computes with what the model holds for a constant, although something else is fed in its place."""
    return compute(_with(c, compute))


@fault("constants.override-partly-ignored", clause="constants", table=VARIANTS)
def override_partly_ignored(compute: Compute, c: Computation) -> Outputs:
    """Computes with what the model holds for R, B and P, as long as W itself is not fed in its place."""
    return compute(c if "W" in compute.overridden else _with(c, compute))


@fault("constants.override-stays", clause="session.stateless", table=VARIANTS)
def override_stays(compute: Compute, c: Computation) -> Outputs:
    """Once a constant was overridden, computes later runs that do not feed it with what was fed then."""
    fed = {name: c.inputs[name] for name in compute.overridden if name in c.inputs}
    kept = compute.memory.setdefault("fed", {})
    instead = {name: array for name, array in kept.items() if name not in compute.fed}
    compute.memory["fed"] = {**kept, **fed}
    return compute(_taking(c, instead))


def _with(c: Computation, compute: Compute) -> Computation:
    return _taking(c, {name: array.astype("float64") for name, array in compute.overridden.items()})


def _taking(c: Computation, others: Mapping[str, NDArray[Any]]) -> Computation:
    """The computation with other values of those inputs that it has, of the same shapes."""
    fitting = {n: a for n, a in others.items() if n in c.inputs and c.inputs[n].shape == a.shape}
    lengths = fitting.pop("sequence_lens", None)
    changed = with_inputs(c, **fitting)
    return changed if lengths is None else with_lengths(changed, lengths)

"""Deviations: the reference with one thing wrong, each a named violation of a clause.

They prove the suite (each must be caught) and diagnose targets (which one explains this failure?). A deviation is a
function of the honest ``compute`` and a :class:`~.recurrence.Computation`: it may change what is computed from, put
other equations into the cell, or spoil the outputs. Tables of them register themselves with :func:`deviation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .evaluation import computation_of, compute
from .node import Node
from .readings import Readings
from .recurrence import Computation

__all__ = ["DEVIATIONS", "Deviation", "deviation", "run_deviation"]

Outputs = dict[str, NDArray[Any]]
Compute = Callable[[Computation], Outputs]


@dataclass(frozen=True)
class Deviation:
    """One plausible mistake.

    id
        ``lstm.gates.swapped``: stable, readable.
    clause
        The clause that it violates.
    summary
        The mistake in words, as a report would say it of a runtime.
    operators
        Operators that it applies to.
    structural
        Whether it changes what is computed. The others hide in roundings.
    """

    id: str
    clause: str
    summary: str
    operators: tuple[str, ...]
    structural: bool
    wrong: Callable[[Compute, Computation], Outputs]


DEVIATIONS: dict[str, Deviation] = {}


def deviation(
    id: str, *, clause: str, operators: tuple[str, ...], structural: bool = True
) -> Callable[[Callable[[Compute, Computation], Outputs]], Callable[[Compute, Computation], Outputs]]:
    """Register a function as a deviation; its docstring's first line says the mistake. Raises ValueError for an id
    that is taken."""

    def register(wrong: Callable[[Compute, Computation], Outputs]) -> Callable[[Compute, Computation], Outputs]:
        if id in DEVIATIONS:
            raise ValueError(f"there is a deviation {id} already")
        summary = (wrong.__doc__ or "").strip().splitlines()[0]
        DEVIATIONS[id] = Deviation(id, clause, summary, operators, structural, wrong)
        return wrong

    return register


def run_deviation(
    chosen: Deviation, node: Node, inputs: Mapping[str, NDArray[Any]], readings: Readings | None = None
) -> Outputs:
    """The outputs that the node asks for, in its type, as an implementation with this mistake computes them."""
    computation = computation_of(node, inputs, readings)
    dtype = computation.configuration.format.dtype
    with np.errstate(over="ignore", invalid="ignore"):
        outputs = chosen.wrong(compute, computation)
        return {name: outputs[name].astype(dtype) for name in node.outputs}

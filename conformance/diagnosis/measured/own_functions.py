"""A target's own functions: how far they are off, told by nodes of one step in which nothing else happens.

Where a kernel approximates its functions nearly every number lies outside the bounds of its class, and of what else is
wrong nothing is left to be seen: a fault explains a number only within those bounds. So before names are sought its
functions are tabulated. One gate gets the argument, by a weight of one; all others are shut or wide open by their
biases, and there is no state. Faults are then tried with functions that are off by as much as the table shows.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....cases.specs.family import family_of
from ....cases.specs.model import build_model
from ....cases.specs.spec import RecurrentSpec
from ....reference import FORMATS, cell_named, evaluate, operator_version
from ....reference.numbers.accuracy import budget, with_functions_off
from ...results.result import Result
from ...workers.process import Job, Outcome
from ..failing_case import DIAGNOSED

__all__ = ["function_classes", "one_step", "showing_gates", "shows_gates"]

_ARGUMENTS = np.arange(-12.0, 12.0625, 0.0625)
"""They are numbers of every type."""

_SHUT = 20.0
_MARGIN = 2.0
"""Between two arguments functions may be off by more than at them, and what a gate multiplies makes errors smaller."""

_MOST = 2.0**-6
"""The error beyond which it is no function that is approximated: something else is wrong with the node."""

_PLACES = 6
"""Operators and types that are asked at most."""

Inputs = Mapping[str, NDArray[Any]]


def function_classes(
    run: Callable[[Iterable[Job]], Iterator[Outcome]], results: Sequence[Result], accuracy: str
) -> dict[str, tuple[str, ...]]:
    """Type to the accuracy class that the functions of a target need there, of those types in which results fail and
    functions are off by more than the class allows by which it is judged."""
    failing = Counter(
        (r.op, r.version, r.type) for r in results if r.verdict in DIAGNOSED and shows_gates(r.op, r.version)
    )
    places: dict[tuple[str, str], int] = {}
    for (op, version, type), _ in failing.most_common():
        places.setdefault((op, type), version)
    off: dict[str, float] = {}
    for (op, type), version in list(places.items())[:_PLACES]:
        spec = one_step(op, version, type, N=len(_ARGUMENTS))
        nodes = list(showing_gates(spec, _ARGUMENTS.reshape(-1, 1)))
        jobs = [
            Job(f"{spec.id}~function-{number}", build_model(spec, spec.node, inputs, spec.outputs), (inputs,))
            for number, inputs in enumerate(nodes)
        ]
        for inputs, outcome in zip(nodes, run(jobs), strict=True):
            off[type] = max(off.get(type, 0.0), _off(spec, inputs, outcome))
    classes: dict[str, tuple[str, ...]] = {}
    for type, error in off.items():
        units = _MARGIN * error / FORMATS[type].unit
        if units > budget(accuracy, type).b:
            classes[type] = (with_functions_off(2 ** math.ceil(math.log2(units))),)
    return classes


def shows_gates(op: str, version: int) -> bool:
    """Tell whether the weights and biases of an operator are given as numbers, of which each gate has its own."""
    forms = operator_version(op, version).tensors
    return issubclass(family_of(op).spec, RecurrentSpec) and all(
        name in forms and forms[name].codec is None for name in "XWRB"
    )


def one_step(op: str, version: int, type: str, **sizes: int) -> RecurrentSpec:
    """A case of one step with a bias and all outputs: some versions demand others beside Y."""
    outputs = tuple(operator_version(op, version).outputs)
    spec: RecurrentSpec = family_of(op).spec(op, version, type=type, bias=True, outputs=outputs, **sizes)
    return spec


def showing_gates(spec: RecurrentSpec, rows: NDArray[np.float64]) -> Iterator[Inputs]:
    """Inputs for each gate that show most of its function of the sum of each row of X, in one step."""
    gates = len(cell_named(spec.op).gates)
    dtype = FORMATS[spec.type].dtype
    for gate in range(gates):
        best: tuple[float, Inputs] | None = None
        for signs in itertools.product((-_SHUT, _SHUT), repeat=gates - 1):
            bias = np.zeros(2 * gates)
            bias[:gates] = np.insert(np.array(signs), gate, 0.0)
            weights = np.zeros((1, gates, rows.shape[1]))
            weights[0, gate] = 1.0
            tensors = {
                "X": rows[np.newaxis], "W": weights, "R": np.zeros((1, gates, 1)), "B": bias[np.newaxis],
            }  # fmt: skip
            inputs = {name: array.astype(dtype) for name, array in tensors.items()}
            shown = float(np.ptp(evaluate(spec.node, inputs)["Y"]))
            if best is None or shown > best[0]:
                best = shown, inputs
        assert best is not None
        yield best[1]


def _off(spec: RecurrentSpec, inputs: Inputs, outcome: Outcome) -> float:
    """The most that what came back is off; 0 where that is no matter of functions."""
    returned = [array for lists in outcome.outputs for outputs in lists for array in outputs]
    right = evaluate(spec.node, inputs)["Y"]
    got = returned[0] if outcome.status == "ran" and returned else None
    if got is None or got.shape != right.shape:
        return 0.0
    error = float(np.abs(got.astype(np.float64) - right).max())
    return error if error <= _MOST else 0.0

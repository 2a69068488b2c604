"""Kill margin: how far a fault moves a case's outputs beyond their radii."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..faults.fault import Fault
from ..recurrent.agreement import compare
from ..recurrent.node import Node
from .asking import expect, open_questions_of, operator_for, readings, resolve
from .operator import dtype_of

Arrays = Mapping[str, NDArray[Any]]


def kill_margin(chosen: Fault, node: Node, runs: Sequence[tuple[Arrays, Arrays]], enough: float = np.inf) -> float:
    """Return max |fault - reference| / (2 radius) over the elements of all runs of a session; 0 where the fault changes
    nothing.

    The interpretation is the one that explains the outputs best. The margin is infinite if an input is changed, if the
    number of outputs, a shape or a type is wrong, or if no radius allows a value. Conventions are ignored.

    A margin above 1 detects the fault whatever the rounding errors: two conforming numbers are at most two radii apart.
    The search among interpretations ends with the first one that does not reach `enough`.

    runs
        The inputs of each run, and those of them that are fed.
    """
    if chosen.accepts:
        return 0.0  # it computes legal models correctly
    memory: dict[str, Any] = {}
    outputs: list[Arrays] = []
    changed = False
    for inputs, fed in runs:
        answer = operator_for(node).answering(node, inputs)
        copies = {name: array.copy() for name, array in fed.items() if array is not None}
        right, got = answer(fed=fed), answer((chosen,), fed=copies, memory=memory)
        if any(_bits(copies[name]) != _bits(fed[name]) for name in copies):
            return np.inf
        outputs.append(got)
        changed = changed or right.keys() != got.keys() or any(_bits(right[n]) != _bits(got[n]) for n in right)
    feeds = [inputs for inputs, _ in runs]
    open_questions = frozenset().union(*(open_questions_of(node, inputs) for inputs in feeds))
    best = np.inf if changed else 0.0
    for interpretations in readings(((node, inputs) for inputs in feeds), open_questions):
        if best <= 0.5 or best < enough:
            break
        worst = 0.0
        for inputs, returned in zip(feeds, outputs, strict=True):
            worst = max(worst, _error_ratio(node, inputs, returned, interpretations) / 2)
            if worst >= best:
                break
        best = min(best, worst)
    return float(best)


def _bits(array: NDArray[Any]) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


def _error_ratio(node: Node, inputs: Arrays, got: Arrays, interpretations: Interpretations) -> float:
    c = resolve(node, inputs, interpretations)
    for name in node.outputs:
        array = got.get(name)
        if array is None or array.dtype != dtype_of(c, name) or array.shape != c.shape_of(name):
            return np.inf
    worst = 0.0
    for expectation in expect(node, inputs, got, interpretations=interpretations):
        if not expectation.conventional:
            worst = max(worst, compare(expectation, got[expectation.output]).worst)
    return worst

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
from .asking import expect, open_questions_of, operator_for, readings, resolve, run_fault
from .operator import dtype_of

Arrays = Mapping[str, NDArray[Any]]


def kill_margin(
    chosen: Fault, node: Node, feeds: Sequence[Arrays], accuracy: str = "standard", enough: float = np.inf
) -> float:
    """Return max |fault - reference| / (2 radius) over the elements of all runs of a session.

    The interpretation is the one that explains the outputs best. The margin is infinite if the number of outputs, a
    shape or a type is wrong, or if no radius allows a value.

    A margin above 1 detects the fault whatever the rounding errors: two conforming numbers are at most two radii apart.
    The search among interpretations ends with the first one that does not reach `enough`.
    """
    memory: dict[str, Any] = {}
    outputs = [run_fault(chosen, node, inputs, memory=memory) for inputs in feeds]
    return error_ratio(node, feeds, outputs, accuracy, enough) / 2


def shows(chosen: Fault, node: Node, feeds: Sequence[Arrays]) -> bool:
    """Return whether a case detects a fault: whether its :func:`kill_margin` is above 1."""
    if chosen.accepts:
        return False
    memory: dict[str, Any] = {}
    outputs = []
    changed = False
    for inputs in feeds:
        answer = operator_for(node).answering(node, inputs)
        right, got = answer(fed=inputs), answer((chosen,), fed=inputs, memory=memory)
        outputs.append(got)
        changed = changed or right.keys() != got.keys() or any(_bits(right[n]) != _bits(got[n]) for n in right)
    return changed and error_ratio(node, feeds, outputs, enough=1.0) > 2


def _bits(array: NDArray[Any]) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()


def error_ratio(
    node: Node, feeds: Sequence[Arrays], outputs: Sequence[Arrays], accuracy: str = "standard", enough: float = np.inf
) -> float:
    """Return max |output - reference| / radius over all runs of a session, by the interpretation that explains them
    best.

    Conventions are ignored.
    """
    open_questions = frozenset().union(*(open_questions_of(node, inputs) for inputs in feeds))
    best = np.inf
    for interpretations in readings(((node, inputs) for inputs in feeds), open_questions):
        worst = 0.0
        for inputs, got in zip(feeds, outputs, strict=True):
            worst = max(worst, _error_ratio(node, inputs, got, accuracy, interpretations))
            if worst >= best:
                break
        best = min(best, worst)
        if best <= 1 or best < enough:
            break
    return float(best)


def _error_ratio(node: Node, inputs: Arrays, got: Arrays, accuracy: str, interpretations: Interpretations) -> float:
    c = resolve(node, inputs, interpretations)
    for name in node.outputs:
        array = got.get(name)
        if array is None or array.dtype != dtype_of(c, name) or array.shape != c.shape_of(name):
            return np.inf
    worst = 0.0
    for expectation in expect(node, inputs, got, accuracy, interpretations):
        if not expectation.conventional:
            worst = max(worst, compare(expectation, got[expectation.output]).worst)
    return worst

"""Discrimination: how far a fault carries a case's outputs out of their radii."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..faults.fault import Fault
from ..recurrent.agreement import compare
from ..recurrent.node import Node
from .asking import expect, interpretations_touched, resolve, run_fault
from .operator import dtype_of

__all__ = ["discrimination", "strangeness"]

Arrays = Mapping[str, NDArray[Any]]


def discrimination(
    chosen: Fault, node: Node, feeds: Sequence[Arrays], accuracy: str = "standard", enough: float = np.inf
) -> float:
    """max |fault - reference| / (2 radius) over the elements of all runs of a session, by the interpretation that
    explains the outputs best; infinity where count, shape or type are wrong, or no radius allows what is there.

    More than 1 shows the fault whatever the rounding errors: two conforming numbers are at most two radii apart. The
    search among interpretations ends with the first that does not reach `enough`.
    """
    memory: dict[str, Any] = {}
    outputs = [run_fault(chosen, node, inputs, memory=memory) for inputs in feeds]
    return strangeness(node, feeds, outputs, accuracy, enough) / 2


def strangeness(
    node: Node, feeds: Sequence[Arrays], outputs: Sequence[Arrays], accuracy: str = "standard", enough: float = np.inf
) -> float:
    """max |output - reference| / radius over all runs of a session, by the interpretation that explains them best.
    Conventions have no part in it."""
    touched = frozenset().union(*(interpretations_touched(node, inputs) for inputs in feeds))
    best = np.inf
    for interpretations in Interpretations().alternatives(touched):
        worst = 0.0
        for inputs, got in zip(feeds, outputs, strict=True):
            worst = max(worst, _strangeness(node, inputs, got, accuracy, interpretations))
            if worst >= best:
                break
        best = min(best, worst)
        if best <= 1 or best < enough:
            break
    return float(best)


def _strangeness(node: Node, inputs: Arrays, got: Arrays, accuracy: str, interpretations: Interpretations) -> float:
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

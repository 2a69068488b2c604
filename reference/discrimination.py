"""Discrimination: how far a mistake carries a case's outputs out of their radii."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .deviations import Deviation, run_deviation
from .expectation import compare, expect
from .node import Node, configure, readings_touched
from .readings import Readings

__all__ = ["discrimination", "strangeness"]

Arrays = Mapping[str, NDArray[Any]]


def discrimination(
    chosen: Deviation, node: Node, feeds: Sequence[Arrays], accuracy: str = "standard", enough: float = np.inf
) -> float:
    """max |deviation - reference| / (2 radius) over the elements of all runs of a session, by the reading that explains
    the outputs best; infinity where count, shape or type are wrong, or no radius allows what is there.

    More than 1 shows the mistake whatever the rounding errors: two honest numbers are at most two radii apart. The
    search among readings ends with the first that does not reach `enough`.
    """
    memory: dict[str, Any] = {}
    outputs = [run_deviation(chosen, node, inputs, memory=memory) for inputs in feeds]
    return strangeness(node, feeds, outputs, accuracy, enough) / 2


def strangeness(
    node: Node, feeds: Sequence[Arrays], outputs: Sequence[Arrays], accuracy: str = "standard", enough: float = np.inf
) -> float:
    """max |output - reference| / radius over all runs of a session, by the reading that explains them best. Conventions
    have no part in it."""
    touched = frozenset().union(*(readings_touched(node, inputs) for inputs in feeds))
    best = np.inf
    for readings in Readings().alternatives(touched):
        worst = 0.0
        for inputs, got in zip(feeds, outputs, strict=True):
            worst = max(worst, _strangeness(node, inputs, got, accuracy, readings))
            if worst >= best:
                break
        best = min(best, worst)
        if best <= 1 or best < enough:
            break
    return float(best)


def _strangeness(node: Node, inputs: Arrays, got: Arrays, accuracy: str, readings: Readings) -> float:
    c = configure(node, inputs, readings)
    for name in node.outputs:
        array = got.get(name)
        if array is None or array.dtype != c.format.dtype or array.shape != c.shape_of(name):
            return np.inf
    worst = 0.0
    for expectation in expect(node, inputs, got, accuracy, readings):
        if not expectation.conventional:
            worst = max(worst, compare(expectation, got[expectation.output]).worst)
    return worst

"""Several runs of one node on the same inputs, evaluated as one larger batch.

Batch rows are independent, or operands know the number of runs. An evaluation of tiny tensors costs as much as its
calls, which hardly depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.bounding import LEAST_SINGLE
from .agreement import Expected
from .configuration import Configuration, configure
from .expectation import Expectation, Expecting
from .node import Node

Arrays = Mapping[str, NDArray[Any]]


def expecting_each(node: Node, inputs: Arrays, several: Sequence[Arrays]) -> list[Expected]:
    """Return the expected outputs of each run: :class:`.expectation.Expecting` of several runs.

    several
        Each run's outputs by name, of the right shapes. Without Y nothing of a run is known beforehand.

    Raise IllegalNode.
    """
    free = cache(Expecting(node, inputs, {}))
    each = [Expected(free, outputs) for outputs in several]
    reported = [number for number, outputs in enumerate(several) if "Y" in outputs]
    c = configure(node, inputs)
    # As many as leave radii in the type that one run has.
    products = c.T * c.N * max(c.I, c.H) * len(c.cell.gates) * c.H
    most = max(1, (LEAST_SINGLE - 1) // max(1, products))
    for start in range(0, len(reported), most):
        numbers = reported[start : start + most]
        if len(numbers) == 1:
            each[numbers[0]] = Expected(Expecting(node, inputs, several[numbers[0]]), several[numbers[0]])
            continue
        stack = _Stack(c, node, inputs, [several[number] for number in numbers])
        for place, number in enumerate(numbers):
            each[number] = Expected(partial(stack.expectations, place), several[number])
    return each


class _Stack:
    """Runs side by side in one batch."""

    def __init__(self, c: Configuration, node: Node, inputs: Arrays, several: Sequence[Arrays]) -> None:
        self._N, self._batch_first = c.N, c.layout == 1
        Y = np.concatenate([outputs["Y"] for outputs in several], self._rows("Y"))
        self._together = cache(Expecting(node, inputs, {"Y": Y}, len(several)))

    def _rows(self, output: str) -> int:
        """Return the batch axis of an output."""
        if self._batch_first:
            return 0
        return 2 if output == "Y" else 1

    def expectations(
        self, place: int, accuracy: str = "standard", interpretations: Interpretations | None = None
    ) -> list[Expectation]:
        """Return the expected outputs of the run at a position."""
        expectations = []
        for each in self._together(accuracy, interpretations):
            own = (slice(None),) * self._rows(each.output) + (slice(place * self._N, (place + 1) * self._N),)
            about, weak = (None if mask is None else mask[own] for mask in (each.about, each.weak))
            expectations.append(Expectation(each.output, each.number[own], each.clause, about, weak, each.measure))
        return expectations

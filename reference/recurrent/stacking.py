"""Many runs of one node on the same inputs, whose expectations are worked out in one walk.

The rows of a batch know nothing of each other, or operands are told how many runs there are, so these stand side by
side in it. A walk through tiny tensors costs what its operations cost to call, which hardly depends on the number of
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.bounding import LEAST_SINGLE
from .agreement import Agreement, Expected, compare, compare_each
from .configuration import Configuration, configure
from .expectation import Expectation, Expecting
from .node import Node

Arrays = Mapping[str, NDArray[Any]]


def expecting_each(node: Node, inputs: Arrays, several: Sequence[Arrays]) -> list[Expected]:
    """Expectations of each run's outputs, to be asked with an accuracy class and interpretations: see
    :class:`.expectation.Expecting`.

    several
        Each run's outputs by name, those that there are, of the right shapes. Where Y is not among them they say
        nothing of what is expected.

    Raises IllegalNode.
    """
    free = _Kept(Expecting(node, inputs, {}))
    each = [Expected(free, outputs) for outputs in several]
    reported = [number for number, outputs in enumerate(several) if "Y" in outputs]
    c = configure(node, inputs)
    # As many as leave the arithmetic what it is for one.
    products = c.T * c.N * max(c.I, c.H) * len(c.cell.gates) * c.H
    most = max(1, (LEAST_SINGLE - 1) // max(1, products))
    for start in range(0, len(reported), most):
        numbers = reported[start : start + most]
        if len(numbers) == 1:
            each[numbers[0]] = Expected(Expecting(node, inputs, several[numbers[0]]), several[numbers[0]])
            continue
        stack = _Stack(c, node, inputs, [several[number] for number in numbers])
        for place, number in enumerate(numbers):
            each[number] = _Placed(partial(stack, place), several[number], stack, place)
    return each


class _Kept:
    """The part that does not depend on what a run returned, asked once."""

    def __init__(self, expecting: Expecting) -> None:
        self._expecting = expecting
        self._answers: dict[tuple[str, Interpretations | None], list[Expectation]] = {}

    def __call__(self, accuracy: str = "standard", interpretations: Interpretations | None = None) -> list[Expectation]:
        key = accuracy, interpretations
        if key not in self._answers:
            self._answers[key] = self._expecting(accuracy, interpretations)
        return self._answers[key]


class _Stack:
    """Runs side by side in one batch."""

    def __init__(
        self,
        configuration: Configuration,
        node: Node,
        inputs: Arrays,
        several: Sequence[Arrays],
    ) -> None:
        self._configuration, self._several = configuration, several
        self._agreements: dict[tuple[str, Interpretations | None], list[list[Agreement]]] = {}
        together = {"Y": np.concatenate([outputs["Y"] for outputs in several], self._rows("Y"))}
        self._expecting = _Kept(Expecting(node, inputs, together, len(several)))

    def _rows(self, output: str) -> int:
        """The axis of an output along which rows stand."""
        if self._configuration.layout == 1:
            return 0
        return 2 if output == "Y" else 1

    def __call__(
        self, place: int, accuracy: str = "standard", interpretations: Interpretations | None = None
    ) -> list[Expectation]:
        """Values that the run at a place must return."""
        return list(self._of(place, self._expecting(accuracy, interpretations)))

    def agreements(self, place: int, accuracy: str, interpretations: Interpretations | None) -> list[Agreement]:
        """The agreement of what the run at a place has returned with that."""
        key = accuracy, interpretations
        if key not in self._agreements:
            self._agreements[key] = self._compared(*key)
        return self._agreements[key][place]

    def _compared(self, accuracy: str, interpretations: Interpretations | None) -> list[list[Agreement]]:
        """The agreements of each run, all of them at once."""
        each = [self(place, accuracy, interpretations) for place in range(len(self._several))]
        agreements: list[list[Agreement]] = [[] for _ in each]
        for number, together in enumerate(self._expecting(accuracy, interpretations)):
            places = [place for place, outputs in enumerate(self._several) if together.output in outputs]
            own = [each[place][number] for place in places]
            outputs = [self._several[place][together.output] for place in places]
            if len(places) == len(each):
                compared = compare_each(together, own, outputs, self._rows(together.output))
            else:  # some returned nothing for it, which may be right
                compared = [compare(expectation, output) for expectation, output in zip(own, outputs, strict=True)]
            for place, agreement in zip(places, compared, strict=True):
                agreements[place].append(agreement)
        return agreements

    def _of(self, place: int, expectations: Sequence[Expectation]) -> Iterator[Expectation]:
        N = self._configuration.N
        for each in expectations:
            own = (slice(None),) * self._rows(each.output) + (slice(place * N, (place + 1) * N),)
            about, weak = (None if mask is None else mask[own] for mask in (each.about, each.weak))
            yield Expectation(each.output, each.number[own], each.clause, about, weak, each.measure)


class _Placed(Expected, frozen=True):
    """A run of a stack."""

    stack: _Stack
    place: int

    def agreements(self, accuracy: str, interpretations: Interpretations | None) -> list[Agreement]:
        """Agreements of all runs, of which this is one."""
        return self.stack.agreements(self.place, accuracy, interpretations)

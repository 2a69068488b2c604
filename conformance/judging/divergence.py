"""Elements of outputs, named and ordered by the axes of their output, and the first one that is not as expected.

A recurrent node propagates every error, so the worst element is often far behind the first wrong one. A failure is
therefore described by the first element outside its bound. Outputs come before those derived from them, and earlier
steps of the computation before later ones; in reverse, the last position is the first step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import Expectation, Node
from ...reference.documents.tensors import SEQ_LENGTH
from ...reference.operators.operator import Resolved
from ...reference.recurrent.agreement import ratios
from ...reference.recurrent.rnn import processing_order

FAR = 1e6
"""Ratio of |error| to bound above which messages show only this limit: bounds may be as small as 1e-45."""

_FEWEST, _MOST = 9, 17  # digits that identify a number of float32, and of float64

DIRECTIONS, ROWS = "num_directions", "batch_size"
_UNITS = ("hidden_size", "input_size")
"""Sizes of axes that a message does not name: the index is enough."""

Indices = NDArray[np.int64]
"""Elements of an output: a row for each, with its index in the node's layout."""


def format_index(output: str, index: tuple[int, ...]) -> str:
    """Return an element as text for a message: ``Y[0, 1, 2, 3]``."""
    return f"{output}[{', '.join(map(str, index))}]"


@dataclass(frozen=True)
class OutputPlace:
    """One element of an output.

    index
        In the node's layout.
    step
        In the order of computation; None where the output has no steps.
    words
        The element's step, direction, row and further axes, for a message; empty where its form is not known.
    """

    output: str
    index: tuple[int, ...]
    step: int | None
    words: str

    def __str__(self) -> str:
        return format_index(self.output, self.index)

    @property
    def where(self) -> dict[str, Any]:
        """The value of ``where`` in results."""
        return {"output": self.output, "index": list(self.index), "step": self.step}


class OutputAxes:
    """Axes of one output of a node: the names of their sizes in the document, and in messages."""

    def __init__(self, node: Node, c: Resolved, output: str) -> None:
        self.output, self._c = output, c
        forms = node.operator.tensors
        form = forms.get(output)
        shape = form.shape(c.layout) if form is not None else ()
        self.sizes = tuple(extent.size for extent in shape)
        names = tuple("row" if size == ROWS else size for size in self.sizes)
        self._names = form.axes if form is not None and form.axes else names
        self._silent = _UNITS if self._names == names else ()
        self._rank = node.operator.outputs.index(output)
        outputs = (forms[name] for name in node.operator.outputs if name in forms)
        self._stepwise = any(extent.size == SEQ_LENGTH for form in outputs for extent in form.shape(c.layout))

    def axis(self, size: str) -> int | None:
        """Return the axis of a size; None where the output has no such axis."""
        return self.sizes.index(size) if size in self.sizes else None

    def element(self, position: int, direction: int, row: int, unit: int) -> tuple[int, ...]:
        """Return the index of an element of a recurrent output, restricted to the axes that it has."""
        at = {SEQ_LENGTH: position, DIRECTIONS: direction, ROWS: row}
        return tuple(at.get(size, unit) for size in self.sizes)

    def unit(self, index: tuple[int, ...]) -> tuple[int, int, int]:
        """Return the direction, the row and the unit of an element; 0 for axes that the output lacks."""
        at = dict(zip(self.sizes, index, strict=True))
        rest = (k for size, k in at.items() if size not in (SEQ_LENGTH, DIRECTIONS, ROWS))
        return at.get(DIRECTIONS, 0), at.get(ROWS, 0), next(rest, 0)

    def by_step(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return an array of the output's shape as (position, direction, row, unit)."""
        leading = [self.axis(size) for size in (SEQ_LENGTH, DIRECTIONS, ROWS)]
        rest = [axis for axis in range(array.ndim) if axis not in leading]
        moved = array.transpose([axis for axis in leading if axis is not None] + rest)
        missing = tuple(number for number, axis in enumerate(leading) if axis is None)
        return np.expand_dims(moved, missing)

    def place(self, index: tuple[int, ...]) -> OutputPlace:
        """Return an element with the text for its position."""
        at = dict(zip(self.sizes, index, strict=True)) if self.sizes else {}
        parts, step = [], None
        if SEQ_LENGTH in at:
            step = int(self._steps(np.array([index]))[0])
            parts.append(f"step {step}")
        elif self._stepwise:
            parts.append("after the last step")
        if DIRECTIONS in at:
            parts.append(self._c.directions[at[DIRECTIONS]])
        excluded = (SEQ_LENGTH, DIRECTIONS, *self._silent)
        parts += [
            f"{name} {at[size]}" for size, name in zip(self.sizes, self._names, strict=True) if size not in excluded
        ]
        return OutputPlace(self.output, index, step, ", ".join(parts))

    def order(self, indices: Indices) -> Indices:
        """Return sort keys for the order of computation: output, step, direction, row, further axes."""
        leading = (SEQ_LENGTH, DIRECTIONS, ROWS)
        keys = [np.full(len(indices), self._rank), self._steps(indices)]
        keys += [self._of(size, indices) for size in leading[1:]]
        leading_axes = [self.axis(size) for size in leading]
        keys += [indices[:, axis] for axis in range(indices.shape[1]) if axis not in leading_axes]
        return np.stack(keys, axis=1)

    def earliest(self, indices: Indices) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the sort key and the index of the element that is computed first; ``indices`` must not be empty."""
        order = self.order(indices)
        first = np.lexsort(order.T[::-1])[0]
        return tuple(map(int, order[first])), tuple(map(int, indices[first]))

    def _of(self, size: str, indices: Indices) -> Indices:
        axis = self.axis(size)
        return np.zeros(len(indices), np.int64) if axis is None else indices[:, axis]

    def _steps(self, indices: Indices) -> Indices:
        """Return the step of the computation of each element; 0 where the output has no steps."""
        time = self.axis(SEQ_LENGTH)
        if time is None:
            return np.zeros(len(indices), np.int64)
        table = np.stack([_steps_of(self._c, direction) for direction in self._c.directions])
        return table[self._of(DIRECTIONS, indices), indices[:, time], self._of(ROWS, indices)]


def _steps_of(c: Resolved, direction: str) -> Indices:
    """Return the step at which each position of each row is computed, (T, N).

    The table of positions is its own inverse.
    """
    positions = processing_order(c.T, c.lengths, direction)
    if isinstance(positions, slice):
        return np.broadcast_to(np.arange(c.T)[positions][:, np.newaxis], (c.T, c.N))
    return positions


@dataclass(frozen=True)
class Divergence:
    """One element outside its bound.

    expectation
        The expectation that it violates.
    outside
        Number of elements outside, of all outputs.
    levels
        Whether the values are quantization levels, which are written as integers.
    run
        The run of its session, as text; empty if there is a single run.
    """

    expectation: Expectation
    place: OutputPlace
    got: float
    must: float
    bound: float
    outside: int
    levels: bool = False
    run: str = ""

    def __str__(self) -> str:
        details = ", ".join(filter(None, (self.run, self.place.words)))
        first = f", the first of {self.outside} outside" if self.outside > 1 else ""
        location = f"{self.place} ({details})" if details else str(self.place)
        return f"{location} is {self._levels() if self.levels else self._numbers()} ({self.expectation.clause}){first}"

    def _levels(self) -> str:
        least, most = right_levels(self.must, self.bound)
        beyond = int(max(least - self.got, self.got - most))
        number = f"{beyond:,} level{'' if beyond == 1 else 's'}"
        right = f"level {least}, {number} off" if least == most else f"one of levels {least} to {most}, {number} beyond"
        return f"level {int(self.got)}, must be {right}"

    def _numbers(self) -> str:
        got, must = apart(self.got, self.must)
        number = f"{got}, must be {must}, error bound {self.bound:.3g}"
        measure = self.expectation.measure
        if measure is None:
            return number
        units = abs(self.got - self.must) / measure.size
        return f"{number}, {'1 unit' if units == 1 else f'{units:.4g} units'} of {measure.name}"


def right_levels(must: float, bound: float) -> tuple[int, int]:
    """Return the least and the greatest level within a bound."""
    return math.ceil(must - bound), math.floor(must + bound)


def apart(got: float, must: float) -> tuple[str, str]:
    """Return two numbers as text, with enough digits to show their difference."""
    digits = _FEWEST
    if math.isfinite(got) and math.isfinite(must) and got != must:
        # Two digits of the difference, below the leading one of the larger number.
        digits = math.ceil(math.log10(max(abs(got), abs(must))) - math.log10(abs(got - must))) + 2
    digits = min(max(digits, _FEWEST), _MOST)
    return f"{got:.{digits}g}", f"{must:.{digits}g}"


def ratio_text(ratio: float) -> str:
    """Return |error| / bound as short text."""
    if not ratio < FAR:
        return f"> {FAR:.0e}".replace("e+0", "e")
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.3g}"


def first_divergence(
    node: Node, c: Resolved, expectations: Sequence[Expectation], outputs: Mapping[str, NDArray[Any]]
) -> Divergence | None:
    """Return the first element outside its bound; None if there is none.

    expectations
        Of the node, whose configuration is `c`; missing outputs are skipped.
    """
    first: tuple[tuple[int, ...], Expectation, OutputPlace] | None = None
    outside = 0
    for e in expectations:
        if e.output not in outputs:
            continue
        beyond = np.argwhere(np.nan_to_num(ratios(e, outputs[e.output]), nan=0.0) > 1)
        outside += len(beyond)
        if len(beyond):
            axes = OutputAxes(node, c, e.output)
            key, index = axes.earliest(beyond)
            if first is None or key < first[0]:
                first = key, e, axes.place(index)
    if first is None:
        return None
    _, e, place = first
    got = outputs[e.output]
    return Divergence(
        expectation=e,
        place=place,
        got=float(got[place.index]),
        must=float(np.broadcast_to(e.number.value, got.shape)[place.index]),
        bound=float(np.broadcast_to(e.number.radius, got.shape)[place.index]),
        outside=outside,
        levels=got.dtype.kind in "iu",
    )

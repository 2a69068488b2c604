"""Elements of outputs, named and ordered by the axes of their output in its document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import Node
from ...reference.documents.tensors import SEQ_LENGTH
from ...reference.operators.operator import Resolved
from ...reference.recurrent.rnn import processing_order

__all__ = ["OutputAxes", "OutputPlace", "format_index"]

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

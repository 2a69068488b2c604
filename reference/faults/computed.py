"""Base of computations whose operator has no cell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.operators import OperatorVersion
from ..documents.tensors import shape_of, sizes_of_shapes
from ..numbers.accuracy import FORMATS, Format
from ..numbers.bounded import Bounded
from ..recurrent.node import Node
from .fault import Outputs

__all__ = ["Computed", "require_forms"]


class Computed(ABC):
    """Computation of a node whose operator has no cell: a frozen dataclass, mostly the resolved node.

    operator
        The version of the node, whose tensors have their forms.
    directions
        ``forward`` and ``reverse``, in the order of the outputs' axis.
    layout
        1 where the batch comes before the sequence.

    Inputs are fields of the dataclass by their formal names, unless :meth:`with_input` is overridden; their shapes
    determine all sizes. Other members of a resolved node (:class:`..operators.operator.Resolved`) have defaults: every
    row has all steps.
    """

    operator: OperatorVersion
    directions: tuple[str, ...] = ("forward",)
    layout: int = 0
    ragged: bool = False

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Sizes of the inputs, by their names in the document (``seq_length``)."""
        arrays = {name: getattr(self, name, None) for name in self.operator.inputs}
        shapes = {name: array.shape for name, array in arrays.items() if array is not None}
        return sizes_of_shapes(self.operator.tensors, shapes, {"num_directions": len(self.directions)}, self.layout)

    def _size(self, *names: str) -> int:
        return next((self.sizes[name] for name in names if name in self.sizes), 1)

    @property
    def format(self) -> Format:
        """The format of the tensors of type T."""
        first = next(name for name in self.operator.inputs if self.operator.kind_of(name) == "T")
        return FORMATS[getattr(self, first).dtype.name]

    def dtype_of(self, output: str) -> np.dtype[Any]:
        """Return the type of an output's array."""
        return self.format.dtype

    @property
    def T(self) -> int:
        """seq_length."""
        return self._size("seq_length")

    @property
    def N(self) -> int:
        """batch_size."""
        return self._size("batch_size")

    @property
    def I(self) -> int:  # noqa: E743 - the document's letter
        """input_size."""
        return self._size("input_size")

    @property
    def H(self) -> int:
        """hidden_size; by default equal to input_size."""
        return self._size("hidden_size", "input_size")

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,), the number of steps of every row."""
        return np.full(self.N, self.T)

    @property
    def states(self) -> tuple[str, ...]:
        """The outputs other than the first, in the order in which they are computed."""
        return self.operator.outputs[1:]

    def shape_of(self, output: str) -> tuple[int, ...]:
        """Return the shape of an output, by its form. Raise ShapeError for an unknown size."""
        sizes = {"hidden_size": self.sizes["input_size"], **self.sizes} if "input_size" in self.sizes else self.sizes
        return shape_of(self.operator.tensors[output], sizes, self.layout)

    @abstractmethod
    def bounded(self, accuracy: str, observed: Mapping[str, NDArray[Any]]) -> dict[str, Bounded]:
        """Return all outputs by name, with how far a correct implementation may be from each number.

        observed
            The outputs of a target: each step starts from the reported state of the step before, or from the computed
            one if the output is missing.
        """

    def plain(self, observed: Mapping[str, NDArray[Any]] | None = None) -> Outputs:
        """Return all outputs in float64."""
        return {name: number.value for name, number in self.bounded("standard", observed or {}).items()}

    def direction_axis(self, output: str) -> int:
        """Return the axis of an output that has the directions."""
        sizes = [extent.size for extent in self.operator.tensors[output].shape(self.layout)]
        return sizes.index("num_directions")

    def with_input(self, name: str, altered: Any) -> Any:
        """Return this computation with one input taken from another computation."""
        changed: Any = replace(self, **{name: getattr(altered, name)})  # type: ignore[type-var]
        return changed


def require_forms(computation: Computed, numbers: Mapping[str, Bounded], node: Node) -> None:
    """Raise ValueError for outputs of bounded() that are missing, unknown, or of a wrong shape, or have invalid
    radii."""
    if missing := [name for name in node.outputs if name and name not in numbers]:
        raise ValueError(f"bounded() gives no {missing[0]}")
    for name, number in numbers.items():
        if name not in computation.operator.outputs:
            raise ValueError(f"bounded() gives {name!r}, which {computation.operator.name} has not")
        if number.value.shape != computation.shape_of(name):
            raise ValueError(
                f"bounded() gives {name} as {number.value.shape}, and by its form it is {computation.shape_of(name)}"
            )
        if np.shape(number.radius) != number.value.shape:
            raise ValueError(f"bounded() gives {name} with radii {np.shape(number.radius)}, not one for each number")
        if not (np.isnan(number.value) | (number.radius >= 0)).all():
            raise ValueError(f"bounded() gives {name} with a radius that is below zero, or NaN")

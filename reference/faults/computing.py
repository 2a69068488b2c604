"""Computations with faults: one engine for every operator.

A computation is a frozen value with everything that a node's numbers depend on. A fault replaces the computation or
changes its outputs. Several faults are nested, each with its own memory. Results are plain numbers, as an
implementation returns them, or bounded numbers, for comparison with a target's outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import UserDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..documents.operators import OperatorVersion
from ..documents.sizes import shape_of, sizes_of_shapes
from ..numbers.accuracy import budget
from ..numbers.bounded import Bounded
from ..numbers.formats import FORMATS, Format
from ..recurrent.computation import computation_of
from ..recurrent.node import Node
from .fault import Compute, Fault, Outputs
from .predicting import BoundedPass, Known, Remembering, layered, same

__all__ = [
    "Answering",
    "Computable",
    "Computed",
    "answered",
    "certainly_unchanged",
    "expected",
    "output_type",
    "run_recurrent_fault",
]


class Computable(Protocol):
    """A computation that faults change; :class:`Computed` describes its members."""

    @property
    def format(self) -> Format: ...
    @property
    def directions(self) -> tuple[str, ...]: ...
    def direction_axis(self, output: str, /) -> int: ...
    def with_input(self, name: str, altered: Any, /) -> Any: ...
    def plain(self, observed: Any = None) -> Outputs: ...
    def bounded(self, accuracy: str, observed: Any) -> dict[str, Bounded]: ...


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


def output_type(computation: Any, output: str) -> np.dtype[Any]:
    """Return the type of an output's array: that of all tensors, unless the computation defines ``dtype_of``."""
    dtype: np.dtype[Any] = getattr(computation, "dtype_of", lambda output: computation.format.dtype)(output)
    return dtype


def answered(
    computation: Computable,
    faults: Iterable[Fault],
    node: Node,
    *,
    fed: Mapping[str, NDArray[Any]],
    observed: Any = None,
    memory: dict[str, Any] | None = None,
    known: Known | None = None,
) -> Outputs:
    """Return the outputs of a node as an implementation with these faults computes them; the first fault is innermost.

    Outputs are rounded to the type of their tensors, unless a fault returns another type than float64. Outputs that
    faults leave out are missing.

    fed
        The arrays of the caller, which a fault may change.
    observed
        The outputs that a target reported, in the computation's own form. Each step then starts from its previous
        state.
    memory
        State that the implementation keeps between the runs of a session; pass the same dictionary to each run.
    known
        Cache of computations with the same `observed`; new ones are added.
    """
    compute = Compute(observed, fed, attributes=node.attributes)
    if known is not None:
        compute = Remembering(observed, fed, attributes=node.attributes, known=known)
    dtypes = {name: output_type(computation, name) for name in node.outputs}
    with np.errstate(all="ignore"):
        computed = layered(compute, faults, {} if memory is None else memory)(computation)
        outputs = {name: computed[name] for name in node.outputs if name in computed}
        returned = {n: a.astype(dtypes[n], copy=False) if a.dtype == np.float64 else a for n, a in outputs.items()}
        return {n: a if a.flags.writeable else a.copy() for n, a in returned.items()}


class Answering:
    """:func:`answered` of one computation for many implementations; common computations are evaluated once."""

    def __init__(
        self, computation: Computable, node: Node, together: Callable[[Sequence[Fault]], Sequence[Fault]]
    ) -> None:
        """Prepare a node; `together` is :meth:`..operators.operator.Operator.together`."""
        self._computation, self._node, self._together = computation, node, together
        self._known: Known = []

    def __call__(
        self, faults: Sequence[Fault] = (), *, fed: Mapping[str, NDArray[Any]], memory: dict[str, Any] | None = None
    ) -> Outputs:
        return answered(
            self._computation, self._together(faults), self._node, fed=fed, memory=memory, known=self._known
        )


class _Awaited(UserDict[str, NDArray[Any]]):
    """Outputs of a computation that are computed on first access."""

    def __init__(self, computation: Computable, observed: Any) -> None:
        self.computation, self._observed, self.seen = computation, observed, False

    @cached_property
    def data(self) -> Outputs:  # type: ignore[override]
        self.seen = True
        return self.computation.plain(self._observed)

    def __or__(self, other: Mapping[str, NDArray[Any]]) -> Outputs:  # type: ignore[override]
        return {**self, **other}


class _Awaiting(Compute):
    """Conforming computation whose outputs are computed on first access."""

    def __call__(self, computation: Any) -> Outputs:
        outputs: Any = _Awaited(computation, self.observed)
        return outputs  # type: ignore[no-any-return]


def certainly_unchanged(
    computation: Computable,
    faults: Iterable[Fault],
    node: Node,
    *,
    fed: Mapping[str, NDArray[Any]],
    memory: dict[str, Any],
) -> bool:
    """Return whether faults leave a computation unchanged without reading its outputs.

    An implementation with such faults computes correct results; most faults leave most cases unchanged. Nothing is
    computed, unless a fault reads outputs. Arguments are those of :func:`answered`.
    """
    with np.errstate(all="ignore"):
        outputs: Any = layered(_Awaiting(None, fed, attributes=node.attributes), faults, memory)(computation)
    if not isinstance(outputs, _Awaited) or outputs.seen:
        return False
    return same(outputs.computation, computation)


def expected(
    computation: Computable,
    faults: Iterable[Fault],
    node: Node,
    accuracy: str,
    observed: Any,
    fed: Mapping[str, NDArray[Any]],
) -> dict[str, Bounded]:
    """Return the outputs of an implementation with these faults, with bounds; undefined where there is no bound."""
    faults = tuple(faults)
    if not faults:
        numbers = computation.bounded(accuracy, observed)
        if isinstance(computation, Computed):
            _require_forms(computation, numbers, node)
        return numbers
    arguments: dict[str, Any] = {"observed": observed, "fed": fed, "attributes": node.attributes}
    values = BoundedPass(**arguments, bounded=lambda altered: altered.bounded(accuracy, observed))
    predicted = layered(values, faults, {})(computation)
    edges = layered(BoundedPass(**arguments, numbers=values.numbers, edge=True), faults, {})(computation)
    allowed = budget("standard", computation.format.name)
    numbers = {}
    for name, value in predicted.items():
        radius = np.abs(edges[name] - value)
        numbers[name] = Bounded(value, radius, allowed, doubt=~np.isfinite(radius))
    return numbers


def _require_forms(computation: Computed, numbers: Mapping[str, Bounded], node: Node) -> None:
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


def run_recurrent_fault(
    chosen: Fault,
    node: Node,
    inputs: Mapping[str, NDArray[Any]],
    interpretations: Interpretations | None = None,
    *,
    observed: NDArray[Any] | None = None,
    fed: Mapping[str, NDArray[Any]] | None = None,
    memory: dict[str, Any] | None = None,
) -> Outputs:
    """Return :func:`answered` for one fault and a node whose operator has a cell.

    `observed` is a target's Y, in the node's layout and any type. Raise IllegalNode.
    """
    computation = computation_of(node, inputs, interpretations)
    if observed is not None:
        observed = observed.astype(np.float64)
        observed = observed.transpose(1, 2, 0, 3) if computation.configuration.layout == 1 else observed
    handed = inputs if fed is None else fed
    return answered(computation, (chosen,), node, fed=handed, observed=observed, memory=memory)

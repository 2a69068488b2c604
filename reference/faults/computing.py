"""Computations with faults: one engine for every operator.

A computation is a frozen value: all that the numbers of a node depend on. A fault makes another computation of it, or
other outputs; several are made one around the other, each with a memory of its own. What comes of it is asked for in
plain numbers, as an implementation returns them, and with bounds, as a target's outputs are compared with them.
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
    "expected",
    "left_alone",
    "output_type",
    "run_recurrent_fault",
]


class Computable(Protocol):
    """A computation that faults change; see :class:`Computed` for what there is of it."""

    @property
    def format(self) -> Format: ...
    @property
    def directions(self) -> tuple[str, ...]: ...
    def direction_axis(self, output: str, /) -> int: ...
    def with_input(self, name: str, altered: Any, /) -> Any: ...
    def plain(self, observed: Any = None) -> Outputs: ...
    def bounded(self, accuracy: str, observed: Any) -> dict[str, Bounded]: ...


class Computed(ABC):
    """The computation of a node whose operator has no cell: a frozen dataclass, which mostly is the resolved node.

    operator
        The version of the node, whose tensors have their forms.
    directions
        ``forward`` and ``reverse``, in the order of the outputs' axis.
    layout
        1 where the batch comes before the sequence.

    Inputs are fields of it by their formal names, unless :meth:`with_input` says otherwise; their shapes say all sizes.
    What else is asked of a resolved node (:class:`..operators.operator.Resolved`) has a default: every row has all
    steps.
    """

    operator: OperatorVersion
    directions: tuple[str, ...] = ("forward",)
    layout: int = 0
    ragged: bool = False

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Sizes that the inputs have, by their names in the document (``seq_length``)."""
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
        """hidden_size; the same where nothing else is said."""
        return self._size("hidden_size", "input_size")

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(N,), every row's number of steps."""
        return np.full(self.N, self.T)

    @property
    def states(self) -> tuple[str, ...]:
        """The outputs beside the first, in the order in which they are computed."""
        return self.operator.outputs[1:]

    def shape_of(self, output: str) -> tuple[int, ...]:
        """Return the shape of an output, by its form. Raise ShapeError for a size that nothing says."""
        sizes = {"hidden_size": self.sizes["input_size"], **self.sizes} if "input_size" in self.sizes else self.sizes
        return shape_of(self.operator.tensors[output], sizes, self.layout)

    @abstractmethod
    def bounded(self, accuracy: str, observed: Mapping[str, NDArray[Any]]) -> dict[str, Bounded]:
        """Return all outputs by name, with how far a right implementation may be from each number.

        observed
            What a target returned: each step starts from what it reported of the step before. Of an output that is
            missing nothing is known, so that its steps start from what is computed.
        """

    def plain(self, observed: Mapping[str, NDArray[Any]] | None = None) -> Outputs:
        """Return all outputs in float64."""
        return {name: number.value for name, number in self.bounded("standard", observed or {}).items()}

    def direction_axis(self, output: str) -> int:
        """Return the axis of an output that has the directions."""
        sizes = [extent.size for extent in self.operator.tensors[output].shape(self.layout)]
        return sizes.index("num_directions")

    def with_input(self, name: str, altered: Any) -> Any:
        """This computation, with one input as another one has it."""
        changed: Any = replace(self, **{name: getattr(altered, name)})  # type: ignore[type-var]
        return changed


def output_type(computation: Any, output: str) -> np.dtype[Any]:
    """Return the type of an output's array: that of all tensors, where a computation does not say another one."""
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
    """Return the outputs that a node asks for, as an implementation with these faults computes them, the first one
    innermost: rounded to the type of its tensors, except for what a fault gives in another one than float64. What
    faults leave out is missing.

    fed
        The arrays that the caller hands over, which a fault may change.
    observed
        What a target reported, in the computation's own form. Then each step starts from its state of the step before.
    memory
        What the implementation keeps from one run of a session to the next: the same dictionary for each.
    known
        What was computed before, from the same `observed`; it is added to.
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
    """:func:`answered` of one computation for many implementations, which mostly compute what others do: that is
    computed once."""

    def __init__(
        self, computation: Computable, node: Node, together: Callable[[Sequence[Fault]], Sequence[Fault]]
    ) -> None:
        """`together`: see :meth:`..operators.operator.Operator.together`."""
        self._computation, self._node, self._together = computation, node, together
        self._known: Known = []

    def __call__(
        self, faults: Sequence[Fault] = (), *, fed: Mapping[str, NDArray[Any]], memory: dict[str, Any] | None = None
    ) -> Outputs:
        return answered(
            self._computation, self._together(faults), self._node, fed=fed, memory=memory, known=self._known
        )


class _Awaited(UserDict[str, NDArray[Any]]):
    """The outputs of a computation, worked out as soon as somebody looks at them."""

    def __init__(self, computation: Computable, observed: Any) -> None:
        self.computation, self._observed, self.seen = computation, observed, False

    @cached_property
    def data(self) -> Outputs:  # type: ignore[override]
        self.seen = True
        return self.computation.plain(self._observed)

    def __or__(self, other: Mapping[str, NDArray[Any]]) -> Outputs:  # type: ignore[override]
        return {**self, **other}


class _Awaiting(Compute):
    """The conforming computation, which waits for somebody to look at its outputs."""

    def __call__(self, computation: Any) -> Outputs:
        outputs: Any = _Awaited(computation, self.observed)
        return outputs  # type: ignore[no-any-return]


def left_alone(
    computation: Computable,
    faults: Iterable[Fault],
    node: Node,
    *,
    fed: Mapping[str, NDArray[Any]],
    memory: dict[str, Any],
) -> bool:
    """Return whether faults make of a computation that same one and do not look at its outputs, so that an
    implementation that has them computes what is right: most faults leave most cases as they are. Nothing is computed
    for that, unless a fault asks for outputs. Arguments are those of :func:`answered`."""
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
    """Return the outputs of an implementation with these faults, with bounds; in doubt where nothing is known."""
    faults = tuple(faults)
    if not faults:
        numbers = computation.bounded(accuracy, observed)
        if isinstance(computation, Computed):
            _require_forms(computation, numbers, node)
        return numbers
    given: dict[str, Any] = {"observed": observed, "fed": fed, "attributes": node.attributes}
    values = BoundedPass(**given, bounded=lambda altered: altered.bounded(accuracy, observed))
    predicted = layered(values, faults, {})(computation)
    edges = layered(BoundedPass(**given, numbers=values.numbers, edge=True), faults, {})(computation)
    allowed = budget("standard", computation.format.name)
    numbers = {}
    for name, value in predicted.items():
        radius = np.abs(edges[name] - value)
        numbers[name] = Bounded(value, radius, allowed, doubt=~np.isfinite(radius))
    return numbers


def _require_forms(computation: Computed, numbers: Mapping[str, Bounded], node: Node) -> None:
    """Raise ValueError for numbers that would be compared with others than their own, or within no bounds."""
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
    """:func:`answered` of one fault, by a node whose operator has a cell; `observed` is a target's Y, in the node's
    layout and any type. Raises IllegalNode."""
    computation = computation_of(node, inputs, interpretations)
    if observed is not None:
        observed = observed.astype(np.float64)
        observed = observed.transpose(1, 2, 0, 3) if computation.configuration.layout == 1 else observed
    handed = inputs if fed is None else fed
    return answered(computation, (chosen,), node, fed=handed, observed=observed, memory=memory)

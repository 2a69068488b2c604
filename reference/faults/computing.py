"""Outputs of an implementation with faults, as plain or bounded numbers: one engine for every operator.

A computation is a frozen value with everything that a node's numbers depend on. A fault replaces the computation or
changes its outputs. Several faults are nested, each with its own memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..documents.operators import OperatorVersion
from ..documents.tensors import shape_of, sizes_of_shapes
from ..numbers.accuracy import FORMATS, Format
from ..numbers.bounded import RADIUS_SLACK, Bounded
from ..recurrent.computation import Computation
from ..recurrent.configuration import Configuration
from ..recurrent.node import Node, output_type
from .fault import Compute, Fault, Memory, Outputs

if TYPE_CHECKING:
    from ..recurrent.expectation import Expectation


class Computed(ABC):
    """Computation of a node whose operator has no cell: a frozen dataclass, mostly the resolved node.

    operator
        The version of the node, whose tensors have their forms.
    directions
        ``forward`` and ``reverse``, in the order of the outputs' axis.
    layout
        1 where the batch comes before the sequence.

    Inputs are fields of the dataclass by their formal names, unless :meth:`with_input` is overridden; their shapes
    determine all sizes. Other members of a resolved node (:class:`..recurrent.configuration.Configuration`) have
    defaults: every row has all steps.
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


Arrays = Mapping[str, NDArray[Any]]

# Number of cached computations of a case: most faults leave it unchanged, or do the same as another fault.
_REMEMBERED = 16

Known = list[tuple[Any, Outputs]]
"""Computations with their outputs; the first one is the conforming one."""


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


def layered(compute: Compute, faults: Iterable[Fault], memory: dict[str, Any]) -> Compute:
    """Return a computation with all of these faults, each with its own memory; the first one is nearest to
    `compute`."""
    session = memory if isinstance(memory, Memory) else memory.setdefault("session", Memory({}))
    for fault in faults:
        compute = replace(compute, memory=session.of(fault.id))
        compute = replace(compute, below=partial(fault.wrong, compute))
    return compute


class Remembering:
    """Plain numbers, computed once for each computation, because most faults leave most cases unchanged.

    observed
        As in :class:`.fault.Compute`.
    known
        Cached computations with their outputs.
    last
        The outputs that were returned last.
    worked
        Number of computations that were evaluated.
    """

    def __init__(self, observed: Any = None, known: Known | None = None) -> None:
        self._observed, self._known = observed, [] if known is None else known
        self.last: Outputs = {}
        self.worked = 0

    def __call__(self, computation: Any) -> Outputs:
        for other, outputs in self._known:
            if same(computation, other):
                self.last = outputs
                return dict(outputs)
        self.last = computation.plain(self._observed)
        self.worked += 1
        for array in self.last.values():
            array.flags.writeable = False  # the cache may return it again
        # The conforming one stays first, then the latest: a repeated run needs it again.
        self._known[1:1] = [(computation, self.last)]
        del self._known[_REMEMBERED:]
        return dict(self.last)


def same(one: Any, other: Any) -> bool:
    """Return whether two computations are known to have the same numbers and equations; False if this is not clear."""
    if one is other:
        return True
    if not type(one) is type(other) is Computation:
        return False  # fields of other classes are not compared
    a, b = one.configuration, other.configuration
    if a is not b and any(x is not y and not _equal(x, y) for x, y in zip(_FIELDS(a), _FIELDS(b), strict=True)):
        return False
    inputs, others = one.inputs, other.inputs
    return inputs.keys() == others.keys() and all(
        array is others[name] or _equal(array, others[name]) for name, array in inputs.items()
    )


_FIELDS = attrgetter(*(f.name for f in fields(Configuration)))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and bool((one == other).all())
    return bool(one == other)


def answered(
    computation: Computable,
    faults: Iterable[Fault],
    node: Node,
    *,
    fed: Arrays,
    memory: dict[str, Any] | None = None,
    known: Known | None = None,
) -> Outputs:
    """Return the outputs of a node as an implementation with these faults computes them; the first fault is innermost.

    Outputs are rounded to the type of their tensors, unless a fault returns another type than float64. Outputs that
    faults leave out are missing.

    fed
        The arrays of the caller, which a fault may change.
    memory
        State that the implementation keeps between the runs of a session; pass the same dictionary to each run.
    known
        Cache of computations; new ones are added.
    """
    compute = Compute(None, fed, attributes=node.attributes, below=Remembering(known=known))
    dtypes = {name: output_type(computation, name) for name in node.outputs}
    with np.errstate(all="ignore"):
        computed = layered(compute, faults, {} if memory is None else memory)(computation)
        outputs = {name: computed[name] for name in node.outputs if name in computed}
        returned = {n: a.astype(dtypes[n], copy=False) if a.dtype == np.float64 else a for n, a in outputs.items()}
        return {n: a if a.flags.writeable else a.copy() for n, a in returned.items()}


class Prediction(NamedTuple):
    """Outputs by name, and how far an implementation may be from each number; infinity or NaN without bound."""

    values: Outputs
    radii: Outputs

    @classmethod
    def of(cls, numbers: Mapping[str, Bounded]) -> Prediction:
        """Return bounded numbers as a prediction."""
        return cls({n: b.value for n, b in numbers.items()}, {n: _radius(b) for n, b in numbers.items()})

    @classmethod
    def expected(cls, expectations: Iterable[Expectation]) -> Prediction:
        """Return expectations as one value and one radius for each number; infinity where nothing is judged."""
        values: Outputs = {}
        radii: Outputs = {}
        for e in expectations:
            number = e.number
            if not number.value.ndim:
                continue  # left out by a fault
            open = e.conventional if number.doubt is None else number.doubt | e.conventional
            radius = np.where(open, np.inf, number.radius * RADIUS_SLACK)
            about = np.ones(number.value.shape, bool) if e.about is None else e.about
            values[e.output] = np.where(about, number.value, values.get(e.output, 0.0))
            radii[e.output] = np.where(about, radius, radii.get(e.output, np.inf))
        return cls(values, radii)


def _radius(number: Bounded) -> NDArray[np.float64]:
    radius = number.radius * RADIUS_SLACK
    return radius if number.doubt is None else np.where(number.doubt, np.inf, radius)


def predicted(
    computation: Computable,
    faults: Iterable[Fault],
    bounded: Callable[[Any], dict[str, Bounded]],
    memories: tuple[dict[str, Any], dict[str, Any]],
    **known: Any,
) -> Prediction:
    """Return the outputs of an implementation with these faults, in any form and with bounds.

    Faults move numbers, replace some and leave others out. So they are computed in two passes with plain numbers: first
    values, then values plus radii. The difference is the radius of each number, wherever it moved.

    bounded
        Function from a computation to its outputs with bounds.
    memories
        State that the implementation keeps between runs, for each of the passes.
    known
        Fields of :class:`.fault.Compute`.
    """
    faults = tuple(faults)
    numbers: deque[dict[str, Bounded]] = deque()

    def values(computation: Any) -> Outputs:
        numbers.append(bounded(computation))
        return {name: number.value for name, number in numbers[-1].items()}

    def edges(computation: Any) -> Outputs:
        # The second pass has the same computations in the same order, because faults are deterministic.
        return {name: number.value + _radius(number) for name, number in numbers.popleft().items()}

    wanted, above = (
        layered(Compute(**known, below=below), faults, memory)(computation)
        for below, memory in zip((values, edges), memories, strict=True)
    )
    return Prediction(wanted, {name: np.abs(above[name] - value) for name, value in wanted.items()})

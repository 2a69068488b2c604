"""Outputs of an implementation with faults, as plain or bounded numbers: one engine for every operator.

A computation is a frozen value with everything that a node's numbers depend on. A fault replaces the computation or
changes its outputs. Several faults are nested, each with its own memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..numbers.accuracy import Format
from ..numbers.bounded import RADIUS_SLACK, Bounded
from ..recurrent.computation import Computation
from ..recurrent.configuration import Configuration
from ..recurrent.node import Node
from .fault import Changing, Compute, Fault, Outputs
from .memory import Memory

__all__ = [
    "Computable",
    "Known",
    "Prediction",
    "Remembering",
    "answered",
    "layered",
    "output_type",
    "predicted",
    "rough_bounds",
    "same",
]

Arrays = Mapping[str, NDArray[Any]]

# Number of cached computations of a case: most faults leave it unchanged, or do the same as another fault.
_REMEMBERED = 16

# A fault with the same rough radii as equations of kind "bias", in any scope.
_PLAIN = "gru.reset-gate.on-bias"

Known = list[tuple[Any, Outputs]]
"""Computations with their outputs; the first one is the conforming one."""


class Computable(Protocol):
    """A computation that faults change; :class:`.computed.Computed` describes its members."""

    @property
    def format(self) -> Format: ...
    @property
    def directions(self) -> tuple[str, ...]: ...
    def direction_axis(self, output: str, /) -> int: ...
    def with_input(self, name: str, altered: Any, /) -> Any: ...
    def plain(self, observed: Any = None) -> Outputs: ...
    def bounded(self, accuracy: str, observed: Any) -> dict[str, Bounded]: ...


def output_type(computation: Any, output: str) -> np.dtype[Any]:
    """Return the type of an output's array: that of all tensors, unless the computation defines ``dtype_of``."""
    dtype: np.dtype[Any] = getattr(computation, "dtype_of", lambda output: computation.format.dtype)(output)
    return dtype


def layered(compute: Compute, faults: Iterable[Fault], memory: dict[str, Any]) -> Compute:
    """Return a computation with all of these faults, each with its own memory; the first one is nearest to
    `compute`."""
    for fault in faults:
        own = memory.of(fault.id) if isinstance(memory, Memory) else memory.setdefault(fault.id, {})
        compute = replace(compute, memory=own)
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


def rough_bounds(fault: Fault) -> bool:
    """Return whether the equations of a fault compute with plain numbers only."""
    return (fault.kind == "bias" and isinstance(fault.wrong, Changing)) or fault.id.partition("@")[0] == _PLAIN

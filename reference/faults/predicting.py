"""Outputs of a target with faults in one run: by plain numbers, computed once each, and with radii."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..numbers.accuracy import Budget, budget
from ..numbers.bounded import RADIUS_SLACK, Bounded
from ..recurrent.computation import Computation
from ..recurrent.configuration import Configuration
from .fault import Compute, Fault, Outputs
from .memory import Memory

__all__ = ["BoundedPass", "Known", "Remembering", "Scene", "layered", "same"]

# Number of cached computations of a case: most faults leave it unchanged, or do the same as another fault.
_REMEMBERED = 16

Known = list[tuple[Any, Outputs]]
"""Computations with their outputs; the first one is the conforming one."""


@dataclass
class _Layer(Compute):
    """A computation with one more fault, applied to the computation below."""

    below: Compute = field(default_factory=Compute)
    fault: Fault | None = None

    def __call__(self, computation: Any) -> Outputs:
        assert self.fault is not None
        outputs: Outputs = self.fault.wrong(self.below, computation)
        return outputs


@dataclass
class BoundedPass(Compute):
    """Bounded numbers, passed to faults as plain ones: in the first pass values, in the second values plus radii.

    Faults move numbers, replace some and leave others out. The difference between the passes is the radius of each
    number, wherever it moved.

    bounded
        Function from a computation to its outputs with their bounds; used in the first pass only.
    """

    bounded: Callable[[Any], dict[str, Bounded]] | None = None
    numbers: list[dict[str, Bounded]] = field(default_factory=list)
    edge: bool = False
    _next: int = 0

    def __call__(self, computation: Any) -> Outputs:
        if not self.edge:
            assert self.bounded is not None
            self.numbers.append(self.bounded(computation))
            return {name: number.value for name, number in self.numbers[-1].items()}
        # The second pass has the same computations in the same order, because faults are deterministic.
        numbers = self.numbers[self._next]
        self._next += 1
        return {name: number.value + _reach(number) for name, number in numbers.items()}


@dataclass
class Remembering(Compute):
    """Plain numbers, computed once for each computation, because most faults leave most cases unchanged.

    known
        Cached computations with their outputs.
    last
        The outputs that were returned last.
    worked
        Number of computations that were evaluated.
    """

    known: Known = field(default_factory=list)
    last: Outputs = field(default_factory=dict)
    worked: int = 0

    def __call__(self, computation: Any) -> Outputs:
        for other, outputs in self.known:
            if same(computation, other):
                self.last = outputs
                return dict(outputs)
        self.last = super().__call__(computation)
        self.worked += 1
        for array in self.last.values():
            array.flags.writeable = False  # the cache may return it again
        # The conforming one stays first, then the latest: a repeated run needs it again.
        self.known[1:1] = [(computation, self.last)]
        del self.known[_REMEMBERED:]
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


def _reach(number: Bounded) -> NDArray[np.float64]:
    radius = number.radius * RADIUS_SLACK
    return radius if number.doubt is None else np.where(number.doubt, np.inf, radius)


class Scene(Struct, frozen=True, dict=True):
    """One run, resolved by some interpretations.

    observed
        The reported Y, if each step starts from it; else None.
    """

    computation: Computation
    observed: NDArray[np.float64] | None
    accuracy: str
    plain_numbers: Remembering
    _known: list[tuple[Computation, dict[str, Bounded]]] = []

    @cached_property
    def budget(self) -> Budget:
        """The budget of roundings."""
        return budget(self.accuracy, self.computation.configuration.format.name)

    def bounded(self, computation: Computation) -> dict[str, Bounded]:
        """Return the outputs of a computation with radii."""
        for other, numbers in self._known:
            if same(computation, other):
                return numbers
        numbers = computation.bounded(self.accuracy, self.observed)
        self._known[1:] = [(computation, numbers)] if self._known else []
        self._known[:] = self._known or [(computation, numbers)]
        return numbers

    @cached_property
    def conforming(self) -> tuple[Outputs, Outputs]:
        """Outputs of a conforming target, and their radii."""
        numbers = self.bounded(self.computation)
        return {n: b.value for n, b in numbers.items()}, {n: _reach(b) for n, b in numbers.items()}

    @cached_property
    def plain(self) -> Outputs:
        """Outputs of a conforming target, by plain numbers."""
        return self.plain_numbers(self.computation)


def layered(compute: Compute, faults: Iterable[Fault], memory: dict[str, Any]) -> Compute:
    """Return a computation with all of these faults, each with its own memory; the first one is nearest to
    `compute`."""
    for fault in faults:
        own_memory = memory.of(fault.id) if isinstance(memory, Memory) else memory.setdefault(fault.id, {})
        compute.memory = own_memory
        arguments: dict[str, Any] = {"attributes": compute.attributes, "below": compute, "fault": fault}
        compute = _Layer(compute.observed, compute.fed, own_memory, **arguments)
    return compute

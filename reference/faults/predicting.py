"""The outputs of a target with faults in one run: by plain numbers, worked out once each, and with radii."""

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

# Computations that are remembered of a case: most faults leave it as it is, or do what another did before.
_REMEMBERED = 16

Known = list[tuple[Any, Outputs]]
"""Computations with their outputs; the first one is the conforming one."""


@dataclass
class _Layer(Compute):
    """A computation with one more fault: what its fault makes of the computation below."""

    below: Compute = field(default_factory=Compute)
    fault: Fault | None = None

    def __call__(self, computation: Any) -> Outputs:
        assert self.fault is not None
        outputs: Outputs = self.fault.wrong(self.below, computation)
        return outputs


@dataclass
class BoundedPass(Compute):
    """Bounded numbers, shown to faults as plain ones: once the values, then again values plus radii.

    Faults move numbers, replace some and leave others out; the difference between the two passes is then each
    one's radius, wherever it went.

    bounded
        From a computation to its outputs with their bounds; asked in the first pass only.
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
        # The same computations in the same order: faults are deterministic.
        numbers = self.numbers[self._next]
        self._next += 1
        return {name: number.value + _reach(number) for name, number in numbers.items()}


@dataclass
class Remembering(Compute):
    """Plain numbers, worked out once for each computation: most faults leave most cases as they are.

    known
        What was worked out before.
    last
        The outputs that were asked for last.
    worked
        How often something was worked out.
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
            array.flags.writeable = False  # it may be asked for again
        # The conforming one stands first, then what was asked for last: a run that is repeated asks for it again.
        self.known[1:1] = [(computation, self.last)]
        del self.known[_REMEMBERED:]
        return dict(self.last)


def same(one: Any, other: Any) -> bool:
    """Return whether two computations are of the same numbers by the same equations, as far as that can be seen."""
    if one is other:
        return True
    if not type(one) is type(other) is Computation:
        return False  # fields that another class has are not compared
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
        The reported Y, where each step starts from it.
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
        """Outputs of a conforming target, with radii."""
        numbers = self.bounded(self.computation)
        return {n: b.value for n, b in numbers.items()}, {n: _reach(b) for n, b in numbers.items()}

    @cached_property
    def plain(self) -> Outputs:
        """Outputs of a conforming target, by plain numbers."""
        return self.plain_numbers(self.computation)


def layered(compute: Compute, faults: Iterable[Fault], memory: dict[str, Any]) -> Compute:
    """Return a computation with all of these faults, each with a memory of its own, the first one nearest to
    `compute`."""
    for fault in faults:
        kept = memory.of(fault.id) if isinstance(memory, Memory) else memory.setdefault(fault.id, {})
        compute.memory = kept
        given: dict[str, Any] = {"attributes": compute.attributes, "below": compute, "fault": fault}
        compute = _Layer(compute.observed, compute.fed, kept, **given)
    return compute

"""Explanations of single cases: whether given faults explain what a target returned in one, or contradict it.

A case is looked at in the accuracy class that it is judged by, and then in those that the target's arithmetic shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import Trial, build_case, family_of
from ...reference import FORMATS, Fault, Interpretations, operator_for, versions_of
from ...reference.operators.observation import Observation
from ..judging.runs import view_of
from ..probes.stream import Tried
from .failing_case import FailingCase, failing_case_of
from .places import Look, looks_of

__all__ = [
    "Explaining",
    "Memory",
    "agreeing",
    "altering",
    "explains",
    "leaving_open",
    "looks_at",
    "refuting",
]

_INTERPRETATIONS = 4


@dataclass(frozen=True)
class _Seen:
    """The outputs of a target in a case, and how it may be read there."""

    failing_case: FailingCase
    op: str
    version: int
    choices: Sequence[Interpretations]
    accuracies: Sequence[str]

    @cached_property
    def observation(self) -> Observation:
        return self.failing_case.observation(self.accuracies[0])

    def fits(self, faults: Sequence[Fault]) -> bool:
        ids = tuple(fault.id for fault in faults)
        if ids not in self.known:
            self.known[ids] = self._fits(faults)
        return self.known[ids]

    @cached_property
    def known(self) -> dict[tuple[str, ...], bool]:
        """By the ids of faults whether they fit, as far as that is known."""
        return {}

    @cached_property
    def changing(self) -> dict[str, bool]:
        """By the id of a fault whether it changes anything, likewise."""
        return {}

    def _fits(self, faults: Sequence[Fault]) -> bool:
        possible = {d.id for d in faults if self.failing_case.computed_in(d)}
        if any(d.layer == "arithmetic" and d.id not in possible for d in faults):
            return False
        coarse = [d for d in faults if d.within and d.id in possible]
        if len(coarse) == 1:
            # Its roundings come in an order of its own, which nobody has to know.
            others = [d for d in faults if d is not coarse[0]]
            if any(self.observation.fit(others, choice, coarse[0].within) is not None for choice in self.choices):
                return True
        pairs = itertools.product(self._telling, self.choices)
        return any(self.observation.fit(faults, choice, accuracy) is not None for accuracy, choice in pairs)

    @cached_property
    def _telling(self) -> list[str]:
        """The accuracy classes in which not all is right: of what is, no fault tells anything."""
        first, *wider = self.accuracies
        right = (a for a in wider if any(self.observation.fit((), c, a) is not None for c in self.choices))
        alone = {*right}
        return [first, *(accuracy for accuracy in wider if accuracy not in alone)]

    def changed_by(self, fault: Fault) -> bool:
        if fault.id not in self.changing:
            self.changing[fault.id] = self.observation.changes(fault, self.choices[0])
        return self.changing[fault.id]

    def explained_by(self, fault: Fault, beside: Sequence[Fault], needed: bool) -> bool:
        """Tell whether a fault, alone or beside others, explains what was returned; see :class:`Explaining`."""
        if not self.changed_by(fault):
            return False
        groups = (group for group in self._groups(fault, beside) if self.fits(group))
        return any(not needed or len(group) == 1 or not self.fits(group[1:]) for group in groups)

    def _groups(self, fault: Fault, beside: Sequence[Fault]) -> Iterator[tuple[Fault, ...]]:
        yield (fault,)
        base = fault.id.partition("@")[0]
        others = [d for d in beside if d is not fault and d.id.partition("@")[0] != base]
        together = [d for d in others if d.applies(self.op, self.version) and self.changed_by(d)]
        if together:
            yield fault, *together
        if len(together) > 1:
            yield from ((fault, other) for other in together)


def _near(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    wide, others = one.astype(np.float64), other.astype(np.float64)
    unit = FORMATS[one.dtype.name].unit if one.dtype.name in FORMATS else 0.0
    return bool(np.allclose(wide, others, rtol=4 * unit, atol=4 * unit, equal_nan=True))


def _seen(one: Tried, accuracy: str, arithmetics: Mapping[str, Sequence[str]]) -> _Seen | None:
    """None where a target returned nothing."""
    if not one.prepared.trials:
        return None
    trial, outcome = view_of(one.prepared.trials, one.outcomes, one.judgement).own
    failing_case = failing_case_of(one.probe.id, trial, outcome, one.probe.clauses, one.probe.size)
    if failing_case is None:
        return None
    choices = itertools.islice(Interpretations().alternatives(trial.touched), _INTERPRETATIONS)
    accuracies = (accuracy, *arithmetics.get(one.probe.type, ()))
    return _Seen(failing_case, one.probe.op, one.probe.version, list(choices), accuracies)


def looks_at(one: Tried, accuracy: str, arithmetics: Mapping[str, Sequence[str]]) -> list[Look]:
    """The runs of a case with which of their numbers are wrong; empty where nothing is known of single ones."""
    seen = _seen(one, accuracy, arithmetics)
    return [] if seen is None else looks_of(seen.failing_case, seen.accuracies)


class Memory:
    """The observations of cases, as many faults are asked of a few.

    arithmetics
        Type to the accuracy classes that the target's arithmetic shows there, beside that which it is judged by.
    """

    def __init__(self, accuracy: str, arithmetics: Mapping[str, Sequence[str]] | None = None) -> None:
        self._accuracy, self._arithmetics = accuracy, arithmetics or {}
        self._known: dict[int, tuple[Tried, _Seen | None]] = {}

    def of(self, one: Tried) -> _Seen | None:
        if id(one) not in self._known:
            self._known[id(one)] = one, _seen(one, self._accuracy, self._arithmetics)
        return self._known[id(one)][1]


def explains(faults: Sequence[Fault], accuracy: str) -> Callable[[Tried], bool]:
    """Tell whether faults explain what a target returned in a case."""

    def holds(one: Tried) -> bool:
        seen = _seen(one, accuracy, {})
        return seen is not None and seen.fits(faults)

    return holds


class Explaining:
    """A test of whether one fault or another, alone or beside those that the target has, explains what it returned in
    a case."""

    def __init__(self, memory: Memory, beside: Sequence[Fault] = (), needed: bool = False) -> None:
        """
        needed
            Whether a fault beside others explains only what these do not explain without it.
        """
        self._memory, self._beside, self._needed = memory, beside, needed

    def __call__(self, fault: Fault, one: Tried) -> bool:
        seen = self._memory.of(one)
        return seen is not None and seen.explained_by(fault, self._beside, self._needed)


def altering(memory: Memory) -> Callable[[Fault, Tried], bool]:
    """Tell whether a target with a fault returns something else in a case than what is right."""

    def alters(fault: Fault, one: Tried) -> bool:
        seen = memory.of(one)
        return seen is not None and seen.changed_by(fault)

    return alters


def agreeing(op: str) -> Callable[[Fault, Sequence[Fault]], list[Fault]]:
    """Those of other faults with which a target returns the same as with one, but for roundings, in all cases of `core`
    that are not large, of all versions: then they are two words for one thing."""

    def same(fault: Fault, others: Sequence[Fault]) -> list[Fault]:
        versions = [v for v in reversed(versions_of(op)) if fault.applies(op, v)] if others else []
        every = (s for version in versions for s in family_of(op).profile("core", op, version))
        specs = [s for s in every if not s.illegal and s.size[0] <= _LARGE]
        return _agreeing(fault, others, specs)

    return same


_LARGE = 4000.0
"""The size of cases beyond which a look costs more than it tells."""

_Outputs = Mapping[str, NDArray[Any]]


def _agreeing(fault: Fault, others: Sequence[Fault], specs: Iterable[Any]) -> list[Fault]:
    """Return the other faults with which a target returns the same in all of the cases."""
    left = [*others]
    for spec in specs:
        if not left:
            break
        able = [d for d in left if d.applies(spec.op, spec.version)]
        if able:
            trial = build_case(spec).trial.first
            right = [*_answers(trial, fault)]
            left = [d for d in left if d not in able or all(map(_alike, right, _answers(trial, d)))]
    return left


def _answers(trial: Trial, fault: Fault) -> Iterator[_Outputs]:
    """The outputs of a target with a fault, run by run."""
    memory: dict[str, Any] = {}
    for feed in trial.feeds:
        yield operator_for(trial.node).answer(trial.node, feed.inputs, (fault,), fed=feed.fed, memory=memory)


def _alike(one: _Outputs, other: _Outputs) -> bool:
    return one.keys() == other.keys() and all(_near(one[name], other[name]) for name in one)


def leaving_open(accuracy: str) -> Callable[[Fault, Tried], list[NDArray[Any]]]:
    """The outputs of a target in a case where a fault says that anything may stand."""
    memory = Memory(accuracy)

    def returned(fault: Fault, one: Tried) -> list[NDArray[Any]]:
        seen = memory.of(one)
        return [] if seen is None else seen.observation.left_open(fault, seen.choices[0])

    return returned


def refuting(accuracy: str) -> Callable[[Fault, Tried], bool]:
    """Tell whether a fault says that a target returns other numbers in a case than it does."""
    memory = Memory(accuracy)

    def holds(fault: Fault, one: Tried) -> bool:
        seen = memory.of(one)
        return seen is not None and seen.changed_by(fault) and not seen.fits((fault,))

    return holds

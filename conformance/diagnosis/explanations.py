"""Explanations of single cases: whether given faults explain what a target returned in one, or contradict it.

A case is looked at in the accuracy class that it is judged by, and then in those that the target's arithmetic shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import Trial, build_case, family_of
from ...reference import FORMATS, Fault, Interpretations, operator_for, versions_of
from ...reference.operators.observation import Observation
from ..judging.view import view_of
from ..probes.stream import Tried
from .failing_case import FailingCase, failing_case_of
from .places import Look, looks_of

__all__ = [
    "Memory",
    "agreeing",
    "altering",
    "explaining",
    "explains",
    "leaving_open",
    "looks_at",
    "refuting",
    "right_by_another",
]

_INTERPRETATIONS = 4


@dataclass(frozen=True)
class _Seen:
    """The outputs of a target in a case, and how it may be read there."""

    failing_case: FailingCase
    observation: Observation
    choices: Sequence[Interpretations]
    accuracies: Sequence[str]

    def fits(self, faults: Sequence[Fault]) -> bool:
        ids = tuple(fault.id for fault in faults)
        if ids not in self._known:
            self._known[ids] = self._fits(faults)
        return self._known[ids]

    @cached_property
    def _known(self) -> dict[tuple[str, ...], bool]:
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

    @property
    def right_by_another(self) -> bool:
        """Tell whether all of it is right by a wider class that the target's arithmetic shows."""
        return len(self._telling) < len(self.accuracies)

    def changed_by(self, fault: Fault) -> bool:
        return self.observation.changes(fault, self.choices[0])


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
    return _Seen(failing_case, failing_case.observation(accuracy), list(choices), accuracies)


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


def explaining(memory: Memory, beside: Sequence[Fault] = (), needed: bool = False) -> Callable[[Fault, Tried], bool]:
    """Tell whether one fault or another, alone or beside those that the target has, explains what it returned in a
    case.

    needed
        Whether a fault beside others explains only what these do not explain without it.
    """

    def holds(fault: Fault, one: Tried) -> bool:
        seen = memory.of(one)
        if seen is None or not seen.changed_by(fault):
            return False
        groups = (group for group in _groups(fault, one, seen) if seen.fits(group))
        return any(not needed or len(group) == 1 or not seen.fits(group[1:]) for group in groups)

    def _groups(fault: Fault, one: Tried, seen: _Seen) -> Iterator[tuple[Fault, ...]]:
        yield (fault,)
        base = fault.id.partition("@")[0]
        others = [d for d in beside if d is not fault and d.id.partition("@")[0] != base]
        op, version = one.probe.op, one.probe.version
        together = [d for d in others if d.applies(op, version) and seen.changed_by(d)]
        if together:
            yield fault, *together
        if len(together) > 1:
            yield from ((fault, other) for other in together)

    return holds


def altering(memory: Memory) -> Callable[[Fault, Tried], bool]:
    """Tell whether a target with a fault returns something else in a case than what is right."""

    def alters(fault: Fault, one: Tried) -> bool:
        seen = memory.of(one)
        return seen is not None and seen.changed_by(fault)

    return alters


def agreeing(op: str) -> Callable[[Fault, Fault], bool]:
    """Tell whether targets with one fault or another return the same, but for roundings, in all cases of `core` that
    are not large, of all versions: then they are two words for one thing."""

    def same(fault: Fault, other: Fault) -> bool:
        versions = [v for v in reversed(versions_of(op)) if fault.applies(op, v) and other.applies(op, v)]
        specs = (spec for version in versions for spec in family_of(op).profile("core", op, version))
        chosen = (s for s in specs if not s.illegal and s.size[0] <= _LARGE)
        return all(_same_of(build_case(spec).trial.first, fault, other) for spec in chosen)

    return same


_LARGE = 4000.0
"""The size of cases beyond which a look costs more than it tells."""


def _same_of(trial: Trial, fault: Fault, other: Fault) -> bool:
    answer = operator_for(trial.node).answer
    memories: list[dict[str, Any]] = [{}, {}]
    for feed in trial.feeds:
        one, two = (
            answer(trial.node, feed.inputs, (d,), fed=feed.fed, memory=memory)
            for d, memory in zip((fault, other), memories, strict=True)
        )
        if one.keys() != two.keys() or not all(_near(one[name], two[name]) for name in one):
            return False
    return True


def right_by_another(memory: Memory, one: Tried) -> bool:
    """Tell whether what a target returned in a case is right by another arithmetic that it shows."""
    seen = memory.of(one)
    return seen is not None and seen.right_by_another


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

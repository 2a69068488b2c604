"""Failing cases with the answers of faults that were tried on them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from weakref import WeakValueDictionary

from ...reference import Fault, Interpretations, resolve
from ...reference.documents.interpretations import asked_anew
from ...reference.faults.observation import Fit, Observation
from ...reference.faults.scope import base_id
from ...reference.numbers.accuracy import budget
from .failing_case import FailingCase
from .target_evidence import TargetEvidence

Explanation = tuple[Fault, ...]

_INTERPRETATIONS = 4
"""Maximum number of interpretations that are tried on a case. Those that the target's right results show come first."""

_HELD = 96
"""Maximum number of cases whose numbers are kept in memory."""


class ObservedCase:
    """Failing case with the faults that explain it; results are cached.

    observation
        The outputs with their predictions: large, so :class:`ObservedCases` drops it and it is made again.
    interpretations
        The interpretations that are tried; those that the target's right results show come first.
    accuracies
        The accuracy classes that are tried; the target's own comes first.
    """

    def __init__(self, case: FailingCase, evidence: TargetEvidence) -> None:
        self.case = case
        self.interpretations = _interpretations(case, evidence.followed.get(case.op, {}))
        self.accuracies = evidence.accuracy, *evidence.arithmetics.get(case.type, ())
        self._fits: dict[Explanation, Fit | None] = {}
        self._affected: dict[Fault, bool] = {}

    @cached_property
    def observation(self) -> Observation:
        return self.case.observation(self.accuracies[0])

    def drop_numbers(self) -> None:
        """Free the memory of the predictions. Answers stay."""
        self.__dict__.pop("observation", None)

    def fit(self, faults: Explanation) -> Fit | None:
        """Return the fit of faults by one of the first interpretations and one of the target's arithmetics, or None."""
        if faults not in self._fits:
            self._fits[faults] = self._fit(faults)
        return self._fits[faults]

    def _fit(self, faults: Explanation) -> Fit | None:
        if self.right:
            return None
        arithmetic = [fault for fault in faults if fault.layer == "arithmetic"]
        if not all(map(self.case.computed_in, arithmetic)):
            return None
        # The order of a kernel's roundings is unknown. If a class bounds them, the class replaces the fault.
        for fault in faults:
            if self._bounds(fault):
                return self._within([d for d in faults if d is not fault], fault.within)
        for accuracy in self.accuracies[:1] if arithmetic else self._telling:
            if fit := self._within(faults, accuracy):
                return fit
        return None

    def _within(self, faults: Sequence[Fault], accuracy: str) -> Fit | None:
        fits = (self.observation.fit(faults, choice, accuracy) for choice in self.interpretations)
        return next((fit for fit in fits if fit is not None), None)

    @cached_property
    def right(self) -> bool:
        """Whether the target's own class holds all outputs: then they are evidence of no fault."""
        return self._within((), self.accuracies[0]) is not None

    @cached_property
    def _telling(self) -> list[str]:
        """Accuracy classes by which something is wrong; in the others, no fault is needed."""
        first, *wider = self.accuracies
        return [first, *(accuracy for accuracy in wider if self._within((), accuracy) is None)]

    def _bounds(self, fault: Fault) -> bool:
        """Return whether the class of a fault bounds the case's numbers. There are no bounds if sums are too long."""
        if not fault.within or self.case.type not in fault.types or not self.case.computed_in(fault):
            return False
        resolved = resolve(self.case.trial.node, self.case.runs[0].inputs)
        return math.isfinite(budget(fault.within, self.case.type).gamma(resolved.H + resolved.I + 2))

    def affected_by(self, fault: Fault) -> bool:
        """Return whether the fault changes the right outputs of the case."""
        if fault not in self._affected:
            applies = fault.applies(self.case.op, self.case.trial.node.since_version)
            changes = applies and (self._bounds(fault) or self.observation.changes(fault, self.interpretations[0]))
            self._affected[fault] = changes
        return self._affected[fault]

    def contradicts(self, fault: Fault) -> bool:
        """Return whether the fault changes the right outputs of the case in a way that its outputs exclude."""
        return self.affected_by(fault) and self._within((fault,), self.accuracies[0]) is None

    def explained_by(self, fault: Fault, known: Sequence[Fault] = (), *, needed: bool = False) -> bool:
        """Return whether a fault explains the case, alone or beside known ones. A structural fault that allows any
        number explains none.

        needed
            Whether the known ones alone must not explain it.
        """
        fits = ((group, self.fit(group)) for group in self.groups(fault, known))
        groups = (group for group, fit in fits if fit is not None and (fit.evidence > 0 or not fault.structural))
        return any(not needed or len(group) == 1 or self.fit(group[:-1]) is None for group in groups)

    def groups(self, fault: Fault, known: Sequence[Fault]) -> Iterator[Explanation]:
        """Yield the fault alone, then beside all known faults that affect the case, then beside each of them."""
        if not self.affected_by(fault):
            return
        yield (fault,)
        beside = tuple(d for d in known if base_id(d.id) != base_id(fault.id) and self.affected_by(d))
        if beside:
            yield *beside, fault
        if len(beside) > 1:
            yield from ((other, fault) for other in beside)


def _interpretations(case: FailingCase, followed: Mapping[str, str]) -> list[Interpretations]:
    usual = Interpretations(**followed)
    asked = [name for name in case.open_questions if name not in followed or asked_anew(name)]

    def changes(other: Interpretations) -> int:
        return sum(getattr(other, name) != getattr(usual, name) for name in asked)

    return sorted(usual.alternatives(asked), key=changes)[:_INTERPRETATIONS]


class ObservedCases:
    """Observed cases of one target. Only the most recently used ones keep their numbers in memory; the others exist
    as long as someone holds them."""

    def __init__(self, evidence: TargetEvidence) -> None:
        self.evidence = evidence
        self._held: OrderedDict[int, ObservedCase] = OrderedDict()
        self._all: WeakValueDictionary[int, ObservedCase] = WeakValueDictionary()

    def __getitem__(self, case: FailingCase) -> ObservedCase:
        observed = self._all.get(id(case)) or ObservedCase(case, self.evidence)
        self._all[id(case)] = self._held[id(case)] = observed
        self._held.move_to_end(id(case))
        while len(self._held) > _HELD:
            self._held.popitem(last=False)[1].drop_numbers()
        return observed

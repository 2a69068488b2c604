"""Fits: which faults explain a failing case, each tried at a cost, of which there is so much and no more.

A case is tried by the interpretations that the target's right results tell of, in the arithmetics that it shows; what a
target returned is held for the last few cases, as many faults are tried on each.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...reference import Fault, Interpretations, operator_of, resolve
from ...reference.documents.interpretations import asked_anew
from ...reference.faults.hypothesis import Fit
from ...reference.numbers.accuracy import budget
from ...reference.operators.observation import Observation
from .failing_case import FailingCase

__all__ = ["Arithmetics", "Explanation", "Fitting", "Followed"]

_INTERPRETATIONS = 4
"""Interpretations that are tried for a case: first what the target's right results tell of it."""

_SHARE, _LEAST = 10, 700.0
"""The part of what is left, one in so many, that one case may take, and what it always may."""

_HELD = 24
"""Cases whose numbers are held at a time."""

Explanation = tuple[Fault, ...]
Followed = Mapping[str, Mapping[str, str]]
"""Operator to the options of interpretations that the target's right results tell of."""
Arithmetics = Mapping[str, tuple[str, ...]]
"""Type to the accuracy classes that the target's arithmetic shows there, beside that which it is judged by."""


class Fitting:
    """The hypotheses that have been tried on cases, and the faults that are known of the target, operator by operator.

    effort
        How many times a hypothesis may still be tried on a small case; large ones count for several.
    share
        The part of it, one in so many, that one case may take.
    """

    def __init__(
        self, accuracy: str, effort: float, followed: Followed | None = None, arithmetics: Arithmetics | None = None
    ) -> None:
        self.accuracy, self.effort, self.followed = accuracy, effort, followed or {}
        self.arithmetics = arithmetics or {}
        self.known: dict[str, list[Fault]] = defaultdict(list)
        self.share = _SHARE
        self._charged = True
        self._observations: OrderedDict[str, Observation] = OrderedDict()
        self._arithmetics_of: dict[str, tuple[str, ...]] = {}

    @contextlib.contextmanager
    def _free(self) -> Iterator[None]:
        """A budget without end: what is tried here is not charged to the effort."""
        before, self.effort = self.effort, max(self.effort, 1.0)
        charged, self._charged = self._charged, False
        try:
            yield
        finally:
            self.effort, self._charged = before, charged

    @property
    def _part(self) -> float:
        """The share that one case may take of the effort that is left."""
        return max(_LEAST, self.effort / self.share)

    def _charge(self, work: float) -> None:
        if self._charged:
            self.effort = max(0.0, self.effort - work)

    def _observed(self, failing_case: FailingCase) -> Observation:
        observation = self._observations.get(failing_case.case)
        if observation is None:
            observation = self._observations[failing_case.case] = failing_case.observation(self.accuracy)
        self._observations.move_to_end(failing_case.case)
        while len(self._observations) > _HELD:  # each holds many numbers
            self._observations.popitem(last=False)
        return observation

    def _fit(self, failing_case: FailingCase, faults: Sequence[Fault]) -> Fit | None:
        """The explanation of a case by these faults, by one of the first interpretations and in one of the arithmetics
        that the target shows; None where they do not."""
        if any(fault.layer == "arithmetic" and not failing_case.computed_in(fault) for fault in faults):
            return None
        if (coarse := self._coarse(failing_case, faults)) is not None:
            return self._fit_within(failing_case, coarse, [d for d in faults if d is not coarse])
        observation = self._observed(failing_case)
        # Who computes in an arithmetic of their own does so in no other.
        own = any(fault.layer == "arithmetic" for fault in faults)
        for accuracy in (self.accuracy, *(() if own else self._wider(failing_case))):
            for choice in itertools.islice(self._interpretations(failing_case), _INTERPRETATIONS):
                if self.effort <= 0:
                    return None
                before = observation.work
                fit = observation.fit(faults, choice, accuracy)
                self._charge(observation.work - before)
                if fit is not None:
                    return fit
        return None

    def _wider(self, failing_case: FailingCase) -> tuple[str, ...]:
        """The arithmetics that the target shows and that do not explain a case by themselves: of what is right in one
        no fault tells anything."""
        if failing_case.case not in self._arithmetics_of:
            observation, choices = self._observed(failing_case), self._interpretations(failing_case)[:_INTERPRETATIONS]
            self._arithmetics_of[failing_case.case] = tuple(
                accuracy
                for accuracy in self.arithmetics.get(failing_case.type, ())
                if not any(observation.fit((), choice, accuracy) is not None for choice in choices)
            )
        return self._arithmetics_of[failing_case.case]

    def _coarse(self, failing_case: FailingCase, faults: Iterable[Fault]) -> Fault | None:
        """The one of some faults that is known of the target already and is an arithmetic whose error bounds say all of
        it in a case: they do not where sums are so long that it has none."""
        known = self.known[failing_case.op]
        coarse = [d for d in faults if d.within and d in known and failing_case.type in d.types]
        if len(coarse) != 1 or not failing_case.computed_in(coarse[0]):
            return None
        resolved = resolve(failing_case.trial.node, failing_case.runs[0].inputs)
        terms = resolved.H + resolved.I + 2
        return coarse[0] if math.isfinite(budget(coarse[0].within, failing_case.type).gamma(terms)) else None

    def _fit_within(self, failing_case: FailingCase, coarse: Fault, others: Sequence[Fault]) -> Fit | None:
        """The fit of a case to other faults in the arithmetic that one is: a kernel's roundings come in an order of its
        own, which nobody has to know once it is known that there are such."""
        observation = self._observed(failing_case)
        for choice in itertools.islice(self._interpretations(failing_case), _INTERPRETATIONS):
            before = observation.work
            fit = observation.fit(others, choice, coarse.within)
            self._charge(observation.work - before)
            if fit is not None:
                return fit
        return None

    def _active(self, failing_case: FailingCase, faults: Iterable[Fault]) -> Explanation:
        """Faults among some that change what a target returns in a case."""
        version, observation = failing_case.trial.node.since_version, self._observed(failing_case)
        before = observation.work
        usual = self._interpretations(failing_case)[0]
        active = [
            d
            for d in faults
            if d.applies(failing_case.op, version)
            and (self._coarse(failing_case, (d,)) is not None or observation.changes(d, usual))
        ]
        self._charge(observation.work - before)
        return tuple(active)

    def _holds(self, failing_case: FailingCase, faults: Sequence[Fault]) -> bool:
        """Tell whether these faults, which are known, explain a case, and enough speaks for it. Slips of precision
        change too little for much to speak for them."""
        fit = self._fit(failing_case, faults) if faults else None
        return fit is not None and (
            fit.evidence >= operator_of(failing_case.op).evidence.known or not any(d.structural for d in faults)
        )

    def _interpretations(self, failing_case: FailingCase) -> list[Interpretations]:
        """Interpretations that a target may follow in a case: what its right results tell of, and of the others first
        those that differ least from the reference's own."""
        followed = self.followed.get(failing_case.op, {})
        usual = Interpretations(**followed)
        asked = [name for name in failing_case.touched if name not in followed or asked_anew(name)]

        def changes(other: Interpretations) -> int:
            return sum(getattr(other, name) != getattr(usual, name) for name in asked)

        return sorted(usual.alternatives(asked), key=changes)

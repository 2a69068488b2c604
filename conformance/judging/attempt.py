"""Attempt to pass a case: its runs beside their expectations, by one class and one choice of interpretations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import Struct

from ...reference import Agreement, Expectation, Interpretations, operator_for, resolve
from ...reference.documents.interpretations import QUESTIONS, asked_anew
from ...reference.recurrent.agreement import meets
from .divergence import Divergence, first_divergence
from .runs import NodeRun

__all__ = ["Attempt", "answered_by", "attempt_at", "hold"]


class _Unmet(Struct, frozen=True):
    """Expectations that a run does not meet."""

    run: NodeRun
    expectations: tuple[Expectation, ...]
    interpretations: Interpretations

    @property
    def first(self) -> Divergence:
        """The first place where the run departs from them."""
        run = self.run
        configuration = resolve(run.node, run.inputs, self.interpretations)
        divergence = first_divergence(run.node, configuration, self.expectations, run.outputs)
        assert divergence is not None
        return replace(divergence, run=run.number)


@dataclass(frozen=True)
class Attempt:
    """All agreements of a case's runs under one class and one choice of interpretations.

    worst
        The agreement that fails most, or fails least of those that hold; None if nothing is judged.
    outside
        The expectations that the first run outside its bounds violates; None if all hold.
    vague, telling
        Elements whose bound is too wide to prove anything, and judged elements that do not merely repeat another
        output.
    unconventional
        The same of the first run that breaks a convention.
    """

    interpretations: dict[str, str]
    worst: Agreement | None
    outside: _Unmet | None
    unconventional: _Unmet | None
    judged: int
    elements: int
    failing: int
    vague: int
    telling: int
    largest: float
    sums: tuple[float, ...]

    @property
    def measured(self) -> dict[str, Any]:
        """The largest error, as a number and in units of a level; nothing where no output is quantized."""
        measure = self.worst.expectation.measure if self.worst is not None else None
        if measure is None:
            return {}
        finite = np.isfinite(self.largest)
        return {"error": self.largest if finite else None, "units": self.largest / measure.size if finite else None}

    @property
    def of_levels(self) -> bool:
        """Whether the worst element is a level, not a number."""
        return self.worst is not None and self.worst.expectation.open is not None

    @property
    def holds(self) -> bool:
        return self.worst is None or self.worst.worst <= 1


@np.errstate(over="ignore", invalid="ignore")  # sums over what a target got wildly wrong
def attempt_at(
    runs: list[NodeRun], accuracy: str, interpretations: Interpretations, touched: frozenset[str]
) -> Attempt:
    worst: Agreement | None = None
    outside: _Unmet | None = None
    unconventional: _Unmet | None = None
    judged = elements = failing = vague = telling = 0
    largest = 0.0
    sums = (0.0, 0.0, 0.0, 0.0)
    for run in runs:
        unmet: list[Expectation] = []
        for agreement in run.expected.agreements(accuracy, interpretations):
            expectation = agreement.expectation
            if expectation.conventional:
                if agreement.worst > 1 and unconventional is None:
                    unconventional = _Unmet(run, (expectation,), interpretations)
                continue
            if agreement.worst > 1:
                unmet.append(expectation)
            judged += agreement.judged
            elements += agreement.elements
            failing += agreement.failing
            vague += agreement.vague
            largest = max(largest, agreement.largest)
            if not expectation.repeats_y:  # equal to Y, it would only dilute the means
                telling += agreement.judged
                own = agreement.shift, agreement.scale, agreement.square, agreement.size
                sums = sums[0] + own[0], sums[1] + own[1], sums[2] + own[2], sums[3] + own[3]
            if worst is None or agreement.worst > worst.worst:
                worst = agreement
        if unmet and outside is None:
            outside = _Unmet(run, tuple(unmet), interpretations)
    chosen = {name: getattr(interpretations, name) for name in sorted(touched)}
    outcome = judged, elements, failing, vague, telling, largest
    return Attempt(chosen, worst, outside, unconventional, *outcome, sums)


def answered_by(
    runs: list[NodeRun], accuracy: str, interpretations: Interpretations, touched: frozenset[str]
) -> dict[str, str]:
    """Return the interpretations without which the numbers would not hold. If another option holds as well, the numbers
    show nothing, unless the question is a separate one in each node: then they show that the reference's own option
    does not hold."""
    answered = {}
    entangled = operator_for(runs[0].node).entangled & touched
    for name in sorted(touched):
        option = getattr(interpretations, name)
        own, *more = QUESTIONS[name].options
        rivals = [own] if option != own and asked_anew(name) else [own, *more]
        others = [interpretations.with_choices(**{name: rival}) for rival in rivals if rival != option]
        beside = entangled - {name} if name in entangled else frozenset()
        if not any(hold(runs, accuracy, each) for other in others for each in other.alternatives(beside)):
            answered[name] = option
    return answered


@np.errstate(over="ignore", invalid="ignore")
def hold(runs: list[NodeRun], accuracy: str, interpretations: Interpretations) -> bool:
    """Tell whether all runs meet their expectations; questions that the first one answers are not asked of the
    others."""
    return all(
        expectation.conventional or meets(expectation, output)
        for run in runs
        for expectation in run.expected(accuracy, interpretations)
        if (output := run.outputs.get(expectation.output)) is not None
    )

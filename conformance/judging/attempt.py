"""An attempt to pass a case: its runs beside what they must return, by one class and one choice of interpretations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from msgspec import Struct

from ...reference import Agreement, Expectation, Interpretations, operator_for, resolve
from ...reference.documents.interpretations import QUESTIONS, asked_anew
from ...reference.recurrent.agreement import Expected, meets
from .divergence import Divergence, first_divergence
from .returned import Session

__all__ = ["Attempt", "RunSession", "answered_by", "attempt_at", "hold", "run_sessions"]


@dataclass(frozen=True)
class RunSession(Session):
    """A run with what must come out, by a class and interpretations."""

    expected: Expected = field(kw_only=True)


def run_sessions(runs: Sequence[Session]) -> list[RunSession]:
    """Runs with what must come out; of one node on the same inputs that is worked out together."""
    alike: dict[tuple[int, int], list[int]] = {}
    for number, run in enumerate(runs):
        alike.setdefault((id(run.node), id(run.inputs)), []).append(number)
    sessions: dict[int, RunSession] = {}
    for numbers in alike.values():
        node, inputs = runs[numbers[0]].node, runs[numbers[0]].inputs
        each = operator_for(node).expecting_each(node, inputs, [runs[number].present for number in numbers])
        for number, expected in zip(numbers, each, strict=True):
            run = runs[number]
            sessions[number] = RunSession(node, inputs, run.outputs, run.trial, run.name, expected=expected)
    return [sessions[number] for number in range(len(runs))]


class _Unmet(Struct, frozen=True):
    """Expectations that a run does not meet."""

    session: RunSession
    expectations: tuple[Expectation, ...]
    interpretations: Interpretations

    @property
    def first(self) -> Divergence:
        """The first place where the run departs from them."""
        configuration = resolve(self.session.node, self.session.inputs, self.interpretations)
        divergence = first_divergence(configuration, self.expectations, self.session.outputs)
        assert divergence is not None
        return replace(divergence, run=self.session.place)


@dataclass(frozen=True)
class Attempt:
    """All agreements of a case's runs under one class and one choice of interpretations.

    worst
        The agreement that fails most, or fails least of those that hold; None where nothing is judged.
    outside
        What the first run that is outside of its bounds does not meet; None where all hold.
    vague, telling
        Elements whose bound is too wide to say anything, and those judged of which more is known than that they repeat
        another output.
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
        """Tell whether what is worst is a level, and no number."""
        return self.worst is not None and self.worst.expectation.open is not None

    @property
    def holds(self) -> bool:
        return self.worst is None or self.worst.worst <= 1


@np.errstate(over="ignore", invalid="ignore")  # sums over what a target got wildly wrong
def attempt_at(
    sessions: list[RunSession], accuracy: str, interpretations: Interpretations, touched: frozenset[str]
) -> Attempt:
    worst: Agreement | None = None
    outside: _Unmet | None = None
    unconventional: _Unmet | None = None
    judged = elements = failing = vague = telling = 0
    largest = 0.0
    sums = (0.0, 0.0, 0.0, 0.0)
    for session in sessions:
        unmet: list[Expectation] = []
        for agreement in session.expected.agreements(accuracy, interpretations):
            expectation = agreement.expectation
            if expectation.conventional:
                if agreement.worst > 1 and unconventional is None:
                    unconventional = _Unmet(session, (expectation,), interpretations)
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
            outside = _Unmet(session, tuple(unmet), interpretations)
    chosen = {name: getattr(interpretations, name) for name in sorted(touched)}
    outcome = judged, elements, failing, vague, telling, largest
    return Attempt(chosen, worst, outside, unconventional, *outcome, sums)


def answered_by(
    sessions: list[RunSession], accuracy: str, interpretations: Interpretations, touched: frozenset[str]
) -> dict[str, str]:
    """The interpretations without which the numbers would not hold: what they tell of the target. Where another option
    holds as well, they tell nothing, unless the question is another one in each node: then they tell that the
    reference's own does not hold."""
    answered = {}
    entangled = operator_for(sessions[0].node).entangled & touched
    for name in sorted(touched):
        option = getattr(interpretations, name)
        own, *more = QUESTIONS[name].options
        rivals = [own] if option != own and asked_anew(name) else [own, *more]
        others = [interpretations.with_choices(**{name: rival}) for rival in rivals if rival != option]
        beside = entangled - {name} if name in entangled else frozenset()
        if not any(hold(sessions, accuracy, each) for other in others for each in other.alternatives(beside)):
            answered[name] = option
    return answered


@np.errstate(over="ignore", invalid="ignore")
def hold(sessions: list[RunSession], accuracy: str, interpretations: Interpretations) -> bool:
    """Tell whether all runs are what they must be; what the first one tells need not be asked of the others."""
    return all(
        expectation.conventional or meets(expectation, output)
        for session in sessions
        for expectation in session.expected(accuracy, interpretations)
        if (output := session.outputs.get(expectation.output)) is not None
    )

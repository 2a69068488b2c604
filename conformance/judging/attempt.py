"""Comparison of a case's runs with their expectations, by one accuracy class and one choice of interpretations."""

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


class _Unmet(Struct, frozen=True):
    """Expectations that a run does not meet."""

    run: NodeRun
    expectations: tuple[Expectation, ...]
    interpretations: Interpretations

    @property
    def first(self) -> Divergence:
        """The first element where the run violates them."""
        run = self.run
        configuration = resolve(run.node, run.inputs, self.interpretations)
        divergence = first_divergence(run.node, configuration, self.expectations, run.outputs)
        assert divergence is not None
        return replace(divergence, run=run.number)


@dataclass(frozen=True)
class Attempt:
    """All agreements of a case's runs under one class and one choice of interpretations.

    worst
        The agreement with the largest ratio of error to bound; None if nothing is judged.
    outside
        The expectations that the first run outside its bounds violates; None if all hold.
    vague, telling
        Elements whose bound is too wide to prove anything, and judged elements that do not merely repeat another
        output.
    unconventional
        Like ``outside``, for the first run that breaks a convention.
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
        """The largest error, as a number and in units of a level; empty where no output is quantized."""
        measure = self.worst.expectation.measure if self.worst is not None else None
        if measure is None:
            return {}
        finite = np.isfinite(self.largest)
        return {"error": self.largest if finite else None, "units": self.largest / measure.size if finite else None}

    @property
    def of_levels(self) -> bool:
        """Whether the worst element is a quantization level, not a number."""
        return self.worst is not None and self.worst.expectation.open is not None

    @property
    def holds(self) -> bool:
        return self.worst is None or self.worst.worst <= 1


@np.errstate(over="ignore", invalid="ignore")  # sums of a target's huge errors may overflow
def attempt_at(
    runs: list[NodeRun], accuracy: str, interpretations: Interpretations, open_questions: frozenset[str]
) -> Attempt:
    worst: Agreement | None = None
    outside: _Unmet | None = None
    unconventional: _Unmet | None = None
    judged = elements = failing = vague = telling = 0
    largest = 0.0
    sums: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
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
                increments = agreement.shift, agreement.scale, agreement.square, agreement.size
                sums = tuple(a + b for a, b in zip(sums, increments, strict=True))
            if worst is None or agreement.worst > worst.worst:
                worst = agreement
        if unmet and outside is None:
            outside = _Unmet(run, tuple(unmet), interpretations)
    chosen = {name: getattr(interpretations, name) for name in sorted(open_questions)}
    outcome = judged, elements, failing, vague, telling, largest
    return Attempt(chosen, worst, outside, unconventional, *outcome, sums)


def answered_by(
    runs: list[NodeRun], accuracy: str, interpretations: Interpretations, open_questions: frozenset[str]
) -> dict[str, str]:
    """Return the interpretations that the numbers prove: with other options they do not hold.

    If another option holds as well, the numbers prove nothing. For a question that is separate in each node, only the
    reference's own option must fail.
    """
    answered = {}
    joint_questions = operator_for(runs[0].node).joint_questions & open_questions
    for name in sorted(open_questions):
        option = getattr(interpretations, name)
        default, *more = QUESTIONS[name].options
        rivals = [default] if option != default and asked_anew(name) else [default, *more]
        alternatives = [interpretations.with_choices(**{name: rival}) for rival in rivals if rival != option]
        joint = joint_questions - {name} if name in joint_questions else frozenset()
        if not any(
            hold(runs, accuracy, candidate)
            for alternative in alternatives
            for candidate in alternative.alternatives(joint)
        ):
            answered[name] = option
    return answered


@np.errstate(over="ignore", invalid="ignore")
def hold(runs: list[NodeRun], accuracy: str, interpretations: Interpretations) -> bool:
    """Return whether all runs meet their expectations; the questions that the first run answers apply to all runs."""
    return all(
        expectation.conventional or meets(expectation, output)
        for run in runs
        for expectation in run.expected(accuracy, interpretations)
        if (output := run.outputs.get(expectation.output)) is not None
    )

"""Flags of a result for NaN and for overflow, beside its verdict: no document covers either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...reference import LOSES_NAN, Interpretations, SpecialValueMismatch, operator_for, resolve
from ...reference.operators.asking import readings
from .divergence import OutputAxes, apart
from .judgement import FAILING, Judgement, Verdict
from .runs import NodeRun


def with_special_values(
    judgement: Judgement, runs: Sequence[NodeRun], open_questions: frozenset[str], accuracy: str
) -> Judgement:
    """Return a judgement with flags for NaN and for numbers beyond a formula's range.

    If nothing fails, it also has the message and the position of the first.

    open_questions
        Names of the open questions of these nodes.
    accuracy
        Name of the accuracy class by which the target is judged.
    """
    answered = judgement.interpretations or {}
    nodes = [(run.node, run.inputs) for run in runs]
    first_departing: tuple[NodeRun, Sequence[SpecialValueMismatch]] | None = None
    for interpretations in readings(nodes, open_questions - answered.keys(), Interpretations(**answered)):
        departing = _departing(runs, accuracy, interpretations)
        if departing is None:
            return judgement  # under this interpretation, the outputs may be intended
        first_departing = first_departing or departing
    assert first_departing is not None
    run, special_mismatches = first_departing
    flags = (*judgement.flags, *dict.fromkeys(departure.flag for departure in special_mismatches))
    if judgement.verdict in FAILING or judgement.clause is not None:  # a broken convention has its own message
        return replace(judgement, flags=flags)
    first = special_mismatches[0]
    where, message = _first_of(run, [departure for departure in special_mismatches if departure.flag == first.flag])
    reason = "nan" if first.flag == LOSES_NAN else "overflow"
    if judgement.verdict is not Verdict.PASS:
        reason = judgement.reason or reason
    return replace(judgement, flags=flags, reason=reason, where=where, message=message, clause=first.clause)


def _departing(
    runs: Sequence[NodeRun], accuracy: str, interpretations: Interpretations
) -> tuple[NodeRun, Sequence[SpecialValueMismatch]] | None:
    """Return the first run that departs from the equations under some interpretations, with its departures."""
    for run in runs:
        operator = operator_for(run.node)
        special_mismatches = operator.special_mismatches(run.node, run.inputs, run.present, accuracy, interpretations)
        if special_mismatches:
            return run, special_mismatches
    return None


def _first_of(run: NodeRun, special_mismatches: Sequence[SpecialValueMismatch]) -> tuple[dict[str, Any], str]:
    """Return (the position of the element that is computed first, a message on all departures)."""
    c = resolve(run.node, run.inputs)
    lost_at = [
        (axes := OutputAxes(run.node, c, d.output), *axes.earliest(np.argwhere(d.lost)), d) for d in special_mismatches
    ]
    axes, _, index, first = min(lost_at, key=lambda element: element[1])
    place = axes.place(index)
    got, must = apart(float(run.outputs[first.output][index]), float(first.must[index]))
    where: dict[str, Any] = place.where
    element = f"{place} is {got}"
    lost = ", ".join(
        f"{departure.output} ({int(departure.lost.sum())} of {departure.of})" for departure in special_mismatches
    )
    if first.flag == LOSES_NAN:
        return where, f"NaN enters at {first.entry}; {element}, NaN by the equations; lost in {lost}"
    arguments = [departure.argument for departure in special_mismatches if departure.argument is not None]
    where["argument"] = min(arguments, default=None)
    prefix = f" for an argument of {where['argument']:.4g}" if arguments else ""
    return where, f"{element}, {must} by the equations: a formula overflows{prefix}; seen in {lost}"

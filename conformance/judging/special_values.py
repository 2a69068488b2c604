"""Flag of a result for NaN that is lost, beside its verdict: no document covers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...reference import LOSES_NAN, Interpretations, SpecialValueMismatch, operator_for, resolve
from ...reference.operators.asking import readings
from .divergence import OutputAxes
from .judgement import FAILING, Judgement, Verdict
from .runs import NodeRun


def with_special_values(judgement: Judgement, runs: Sequence[NodeRun], open_questions: frozenset[str]) -> Judgement:
    """Return a judgement with the flag for NaN that is lost; if nothing fails, also with its message and position.

    open_questions
        Names of the open questions of these nodes.
    """
    answered = judgement.interpretations or {}
    nodes = [(run.node, run.inputs) for run in runs]
    first_departing: tuple[NodeRun, Sequence[SpecialValueMismatch]] | None = None
    for interpretations in readings(nodes, open_questions - answered.keys(), Interpretations(**answered)):
        departing = _departing(runs, interpretations)
        if departing is None:
            return judgement  # under this interpretation, the outputs may be intended
        first_departing = first_departing or departing
    assert first_departing is not None
    run, special_mismatches = first_departing
    flags = (*judgement.flags, LOSES_NAN)
    if judgement.verdict in FAILING or judgement.clause is not None:  # a broken convention has its own message
        return replace(judgement, flags=flags)
    where, message = _first_of(run, special_mismatches)
    reason = "nan" if judgement.verdict is Verdict.PASS else judgement.reason or "nan"
    clause = special_mismatches[0].clause
    return replace(judgement, flags=flags, reason=reason, where=where, message=message, clause=clause)


def _departing(
    runs: Sequence[NodeRun], interpretations: Interpretations
) -> tuple[NodeRun, Sequence[SpecialValueMismatch]] | None:
    """Return the first run that departs from the equations under some interpretations, with its departures."""
    for run in runs:
        operator = operator_for(run.node)
        special_mismatches = operator.special_mismatches(run.node, run.inputs, run.present, interpretations)
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
    lost = ", ".join(f"{each.output} ({int(each.lost.sum())} of {each.of})" for each in special_mismatches)
    got = f"{float(run.outputs[first.output][index]):.9g}"
    return place.where, f"NaN enters at {first.entry}; {place} is {got}, NaN by the equations; lost in {lost}"

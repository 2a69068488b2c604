"""Faults that cases show to a runner that knows no error bound, but compares all outputs with one tolerance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...cases import Spec, build_case
from ...cases.directories.directory import ATOL, RTOL
from ...reference import operator_of
from .exposure import Shown, answer_of, by_direction


def shown_to_runner(spec: Spec) -> Mapping[str, Shown]:
    """The parts that the own run of a legal case shows, by id, where |got - expected| <= ATOL + RTOL |expected| is all
    that is asked of its outputs. The case must be one that such a runner may judge: what it expects is beyond doubt."""
    trial = build_case(spec).trial
    operator, node, feed = operator_of(spec.op), trial.node, trial.feeds[-1]
    resolved = operator.resolve(node, feed.inputs)
    shown = {}
    with np.errstate(all="ignore"):
        kind = feed.inputs[node.operator.sequence].dtype
        right = {n: a.astype(kind) for n, a in operator.evaluate(node, feed.inputs).items()}
        for part in operator.parts():
            wrong = np.zeros(len(resolved.directions), bool)
            for name, array in answer_of(part, trial).items():
                expected = right[name].astype(np.float64)
                off = ~(np.abs(array.astype(np.float64) - expected) <= ATOL + RTOL * np.abs(expected))
                wrong |= by_direction(off, name, resolved)
            if wrong.any():
                shown[part.id] = Shown(True, tuple(map(bool, wrong)))
    return shown

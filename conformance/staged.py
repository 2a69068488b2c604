"""Implementations that run in this process, as if they were targets: deviations and honest kernels.

The suite is proved against them through the same comparison as real targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from ..cases import Case, Trial
from ..reference import Node
from .process import Outcome
from .verdict import Judgement, judge

__all__ = ["Implementation", "judge_staged", "staged_outcome"]

Implementation = Callable[[Node, Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]
"""From a node and its inputs to the outputs that it asks for, by name."""


def staged_outcome(trial: Trial, implementation: Implementation) -> Outcome:
    """What an implementation makes of a trial, in the form in which targets answer."""
    outputs = []
    for feed in trial.feeds:
        result = implementation(trial.node, feed.inputs)
        outputs.append((tuple(result[name] for name in trial.node.outputs),))
    return Outcome(trial.key, "ran", "run", tuple(outputs))


def judge_staged(case: Case, implementation: Implementation, accuracy: str = "standard") -> Judgement:
    """The verdict on an implementation for a case."""
    twin = staged_outcome(case.twin, implementation) if case.twin is not None else None
    return judge(case, staged_outcome(case.trial, implementation), twin, accuracy)

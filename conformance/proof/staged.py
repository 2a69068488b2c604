"""Implementations that run in this process, as if they were targets: faults and conforming variants.

The suite is proved against them through the same comparison as real targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from ...cases import Case, Trial
from ...reference import Fault, IllegalNode, Node, run_fault
from ..judging.judgement import Judgement
from ..judging.verdict import judge
from ..workers.process import REPEATS, Outcome

__all__ = ["Arrays", "Implementation", "judge_staged", "staged_outcome"]

Arrays = Mapping[str, NDArray[Any]]

Implementation = Callable[[Node, Arrays], Arrays]
"""From a node and its inputs to the outputs that it asks for, by name: what is left out is missing. An IllegalNode that
it raises is a refusal."""

Lists = tuple[NDArray[Any] | None, ...]


def staged_outcome(trial: Trial, implementation: Implementation | Fault) -> Outcome:
    """The answer of an implementation to a trial, in the form in which targets answer.

    A fault has a session: what it keeps from run to run, and inputs that it may change. Every implementation
    refuses a forbidden model, but for a fault that consists in accepting it.
    """
    if trial.violation is not None:
        return _forbidden(trial, implementation)
    try:
        return _session(trial, implementation) if isinstance(implementation, Fault) else _runs(trial, implementation)
    except IllegalNode as error:
        return Outcome(trial.key, "refused", "run", message=str(error))


def _forbidden(trial: Trial, implementation: Implementation | Fault) -> Outcome:
    assert trial.violation is not None
    broken = trial.violation
    fault = implementation if isinstance(implementation, Fault) and implementation.accepts else None
    of = trial.node.op_type
    if fault is not None and fault.concerns(of) and fault.topic == broken.topic:
        nothing = tuple(None for _ in trial.node.outputs)
        return Outcome(trial.key, "ran", "run", tuple((nothing,) for _ in trial.feeds))
    return Outcome(trial.key, "refused", "run" if broken.due == "run" else "load", message=broken.summary)


def _runs(trial: Trial, implementation: Implementation) -> Outcome:
    outputs = []
    for feed in trial.feeds:
        result = implementation(trial.node, feed.inputs)
        outputs.append((tuple(result.get(name) for name in trial.node.outputs),))
    return Outcome(trial.key, "ran", "run", tuple(outputs))


def _session(trial: Trial, chosen: Fault) -> Outcome:
    """All runs in turn, as often as the worker goes through them; once where nothing is kept, for then they cannot
    differ. Each session keeps things of its own."""
    memories: dict[int, dict[str, Any]] = {}
    seen: list[list[Lists]] = [[] for _ in trial.feeds]
    changed: set[str] = set()
    runs = [(0, number) for number in range(len(trial.feeds))]
    if trial.course is not None:
        runs = [(step.session, step.number) for step in trial.course.steps if step.does == "run"]
    for _ in range(REPEATS):
        for session, number in runs:
            feed, distinct = trial.feeds[number], seen[number]
            fed = {name: array.copy() for name, array in feed.fed.items()}
            result = run_fault(chosen, trial.node, feed.inputs, fed=fed, memory=memories.setdefault(session, {}))
            changed.update(name for name, array in fed.items() if not _equal(array, feed.fed[name]))
            outputs = tuple(result.get(name) for name in trial.node.outputs)
            if not any(all(map(_equal, outputs, others)) for others in distinct):
                distinct.append(outputs)
        if not any(memories.values()):
            break
    return Outcome(trial.key, "ran", "run", tuple(map(tuple, seen)), changed=tuple(sorted(changed)))


def _equal(first: NDArray[Any] | None, second: NDArray[Any] | None) -> bool:
    """Whether two outputs are the same bit for bit."""
    if first is None or second is None:
        return first is second
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def judge_staged(case: Case, implementation: Implementation | Fault, accuracy: str = "standard") -> Judgement:
    """The verdict on an implementation for a case."""
    return judge(case.trials, [staged_outcome(trial, implementation) for trial in case.trials], accuracy)

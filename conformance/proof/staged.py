"""Implementations that run in this process, as if they were targets: faults and conforming variants.

The suite is proved against them through the same comparison as real targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from ...cases import Case, Course, Step, Trial
from ...cases.specs.subject import Bound
from ...reference import Fault, IllegalNode, Node, run_fault
from ...reference.faults.memory import Sessions
from ..judging.judgement import Judgement
from ..judging.verdict import judge
from ..workers.process import REPEATS, Outcome

Arrays = Mapping[str, NDArray[Any]]

Implementation = Callable[[Node, Arrays], Arrays]
"""A function from a node and its inputs to the outputs that it asks for, by name: what is left out is missing. An
IllegalNode that it raises is a refusal."""

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
    of = trial.node.operator.known_as
    if fault is not None and fault.concerns(of) and fault.topic == broken.topic:
        nothing = tuple(None for _ in trial.node.outputs)
        return Outcome(trial.key, "ran", "run", tuple((nothing,) for _ in trial.feeds))
    return Outcome(trial.key, "refused", "run" if broken.due == "run" else "load", message=broken.summary)


def _runs(trial: Trial, implementation: Implementation) -> Outcome:
    outputs = []
    for feed in trial.feeds:
        tensors = trial.subject.answered(feed.inputs, lambda bound, inputs: implementation(bound.node, inputs))
        outputs.append((tuple(tensors.get(name) for name in trial.subject.shown),))
    return Outcome(trial.key, "ran", "run", tuple(outputs))


def _session(trial: Trial, chosen: Fault) -> Outcome:
    """All steps in turn, as often as the worker goes through them; once where nothing is kept, for then they cannot
    differ. Each session keeps things of its own."""
    followed = _Followed(trial, chosen)
    course = trial.course or Course(frozenset(), tuple(Step("run", 0, number) for number in range(len(trial.feeds))))
    for _ in range(REPEATS):
        followed.follow(course)
        if followed.sessions.empty:
            break
    return followed.outcome()


class _Followed:
    """The sessions of an implementation with a fault, and what has come out of them."""

    def __init__(self, trial: Trial, chosen: Fault) -> None:
        self._trial, self._chosen = trial, chosen
        self.sessions = Sessions()
        self._seen: list[list[Lists]] = [[] for _ in trial.feeds]
        self._returned: list[list[int]] = [[] for _ in trial.feeds]
        self._changed: set[str] = set()
        self._altered: set[int] = set()

    def follow(self, course: Course) -> None:
        """Go through the steps once."""
        held: dict[int, tuple[Lists, Lists]] = {}
        for number, step in enumerate(course.steps):
            if step.does == "try":
                self.sessions[step.session].refused = True  # of lone nodes
            elif step.does == "run":
                held[number] = self._run(step)
            else:
                returned, before = held[step.number]
                if not all(map(_equal, returned, before)):
                    self._altered.add(course.steps[step.number].number)

    def _run(self, step: Step) -> tuple[Lists, Lists]:
        """The outputs of a run, as they are and as they were at once."""
        feed, distinct = self._trial.feeds[step.number], self._seen[step.number]
        fed = {name: array.copy() for name, array in feed.fed.items()}
        subject = self._trial.subject

        def answer(bound: Bound, inputs: dict[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
            memory = self.sessions[step.session * len(subject.nodes) + subject.nodes.index(bound)]
            own = bound.fed_from(fed) if bound.inputs is not None else fed
            return run_fault(self._chosen, bound.node, inputs, fed=own, memory=memory)

        tensors = subject.answered(feed.inputs, answer)
        self._changed.update(name for name, array in fed.items() if not _equal(array, feed.fed[name]))
        returned = tuple(tensors.get(name) for name in subject.shown)
        outputs = returned
        if not self.sessions.empty:  # what is kept may be written to again
            outputs = tuple(None if array is None else array.copy() for array in returned)
        place = next((k for k, other in enumerate(distinct) if all(map(_equal, outputs, other))), len(distinct))
        if place == len(distinct):
            distinct.append(outputs)
        self._returned[step.number].append(place)
        return returned, outputs

    def outcome(self) -> Outcome:
        """The outcome of the job."""
        trial = self._trial
        return Outcome(
            trial.key,
            "ran",
            "run",
            tuple(map(tuple, self._seen)),
            changed=tuple(sorted(self._changed)),
            returned=tuple(map(tuple, self._returned)),
            altered=tuple(sorted(self._altered)),
        )


def _equal(first: NDArray[Any] | None, second: NDArray[Any] | None) -> bool:
    """Tell whether two outputs are the same bit for bit."""
    if first is None or second is None:
        return first is second
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def judge_staged(case: Case, implementation: Implementation | Fault, accuracy: str = "standard") -> Judgement:
    """The verdict on an implementation for a case."""
    return judge(case.trials, [staged_outcome(trial, implementation) for trial in case.trials], accuracy)

"""Implementations that run in this process like targets: faults and conforming variants.

The mutation test judges them by the same comparison as real targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from ...cases import Case, Course, Step, Trial
from ...cases.specs.subject import Bound
from ...reference import Fault, IllegalNode, Node, operator_for
from ...reference.faults.memory import Sessions
from ..judging.judgement import Judgement
from ..judging.verdict import judge
from ..workers.process import REPEATS, Outcome

Arrays = Mapping[str, NDArray[Any]]

Implementation = Callable[[Node, Arrays], Arrays]
"""Function from a node and its inputs to the requested outputs, by name.

It may raise IllegalNode to refuse the node.
"""

Lists = tuple[NDArray[Any] | None, ...]


def staged_outcome(trial: Trial, implementation: Implementation | Fault) -> Outcome:
    """Return an implementation's outcome of a trial, in the form of targets."""
    return Stage(trial).outcome(implementation)


class Stage:
    """Trial that implementations run in this process, one after the other; see :func:`staged_outcome`.

    Parts that several faults leave unchanged are computed once.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._answering: dict[tuple[int, int], Callable[..., Arrays]] = {}

    def outcome(self, implementation: Implementation | Fault | None = None) -> Outcome:
        """Return an implementation's outcome; without one, the reference's numbers, rounded to the node's type.

        A fault has a session: it keeps data between runs and may change its inputs. Every implementation refuses an
        invalid model, except a fault that accepts it.
        """
        trial = self._trial
        if trial.violation is not None:
            return _forbidden(trial, implementation)
        try:
            if isinstance(implementation, Fault):
                return _session(trial, implementation, self._answered)
            return self._runs(implementation)
        except IllegalNode as error:
            return Outcome(trial.key, "refused", "run", message=str(error))

    def _runs(self, implementation: Implementation | None) -> Outcome:
        outputs = []
        for number, feed in enumerate(self._trial.feeds):

            def answer(bound: Bound, inputs: Arrays, number: int = number) -> Arrays:
                if implementation is not None:
                    return implementation(bound.node, inputs)
                return self._answered(number, bound, inputs)(fed=inputs)

            tensors = self._trial.subject.answered(feed.inputs, answer)
            outputs.append((tuple(tensors.get(name) for name in self._trial.subject.shown),))
        return Outcome(self._trial.key, "ran", "run", tuple(outputs))

    def _answered(self, number: int, bound: Bound, inputs: Arrays) -> Callable[..., Arrays]:
        """Return the outputs of a node in a run.

        Inputs that come from another node differ each time, so their outputs are not cached.
        """
        node, subject = bound.node, self._trial.subject
        if not bound.is_given(self._trial.feeds[number].inputs):
            return operator_for(node).answering(node, inputs)
        key = number, subject.nodes.index(bound)
        if key not in self._answering:
            self._answering[key] = operator_for(node).answering(node, inputs)
        return self._answering[key]


Answered = Callable[[int, Bound, Arrays], Callable[..., Arrays]]
"""Function from the number of a run, a node and its inputs to the outputs of implementations."""


def _forbidden(trial: Trial, implementation: Implementation | Fault | None) -> Outcome:
    assert trial.violation is not None
    broken = trial.violation
    fault = implementation if isinstance(implementation, Fault) and implementation.accepts else None
    op = trial.node.operator.known_as
    if fault is not None and fault.concerns(op) and fault.topic == broken.topic:
        nothing = tuple(None for _ in trial.node.outputs)
        return Outcome(trial.key, "ran", "run", tuple((nothing,) for _ in trial.feeds))
    return Outcome(trial.key, "refused", "run" if broken.due == "run" else "load", message=broken.summary)


def _session(trial: Trial, chosen: Fault, answered: Answered) -> Outcome:
    """Return the outcome of all steps, repeated as often as in a worker; once if nothing is kept between runs.

    Each session keeps its own data.
    """
    followed = _Followed(trial, chosen, answered)
    course = trial.course or Course(frozenset(), tuple(Step("run", 0, number) for number in range(len(trial.feeds))))
    for _ in range(REPEATS):
        followed.follow(course)
        if followed.sessions.empty:
            break
    return followed.outcome()


class _Followed:
    """Sessions of an implementation with a fault, with their outputs."""

    def __init__(self, trial: Trial, chosen: Fault, answered: Answered) -> None:
        # A fault that accepts forbidden models computes legal ones correctly.
        self._trial, self._faults, self._answered = trial, () if chosen.accepts else (chosen,), answered
        self.sessions = Sessions()
        self._seen: list[list[Lists]] = [[] for _ in trial.feeds]
        self._returned: list[list[int]] = [[] for _ in trial.feeds]
        self._changed: set[str] = set()
        self._altered: set[int] = set()

    def follow(self, course: Course) -> None:
        """Run the steps once."""
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
        """Return the outputs of a run: the arrays themselves and copies."""
        feed, distinct = self._trial.feeds[step.number], self._seen[step.number]
        fed = {name: array.copy() for name, array in feed.fed.items()}
        subject = self._trial.subject

        def answer(bound: Bound, inputs: dict[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
            memory = self.sessions[step.session * len(subject.nodes) + subject.nodes.index(bound)]
            node_inputs = bound.fed_from(fed) if bound.inputs is not None else fed
            return self._answered(step.number, bound, inputs)(self._faults, fed=node_inputs, memory=memory)

        tensors = subject.answered(feed.inputs, answer)
        self._changed.update(name for name, array in fed.items() if not _equal(array, feed.fed[name]))
        returned = tuple(tensors.get(name) for name in subject.shown)
        outputs = returned
        if not self.sessions.empty:  # arrays that are kept may be written to again
            outputs = tuple(None if array is None else array.copy() for array in returned)
        index = next((k for k, earlier in enumerate(distinct) if all(map(_equal, outputs, earlier))), len(distinct))
        if index == len(distinct):
            distinct.append(outputs)
        self._returned[step.number].append(index)
        return returned, outputs

    def outcome(self) -> Outcome:
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
    """Return whether two outputs are the same bit for bit."""
    if first is None or second is None:
        return first is second
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def judge_staged(case: Case, implementation: Implementation | Fault, accuracy: str = "standard") -> Judgement:
    """Return the verdict on an implementation for a case."""
    return judge(case.trials, [staged_outcome(trial, implementation) for trial in case.trials], accuracy)

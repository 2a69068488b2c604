"""Implementations that run in this process like targets: faults and conforming variants.

The mutation test judges them by the same comparison as real targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from ...cases import Case, Course, Step, Trial
from ...cases.specs.case import Bound
from ...reference import Fault, IllegalNode, Node, operator_for
from ...reference.faults.fault import Sessions
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

        A fault has a session: it keeps data between runs and may change its inputs. All steps are then repeated as
        often as in a worker; once if nothing is kept between runs. Every implementation refuses an invalid model,
        except a fault that accepts it.
        """
        if self._trial.violation is not None:
            return _forbidden(self._trial, implementation)
        try:
            return _followed(self._trial, self._running(implementation), isinstance(implementation, Fault))
        except IllegalNode as error:
            return Outcome(self._trial.key, "refused", "run", message=str(error))

    def _running(self, implementation: Implementation | Fault | None) -> Running:
        subject = self._trial.subject
        # A fault that accepts forbidden models computes legal ones correctly.
        faults = (implementation,) if isinstance(implementation, Fault) and not implementation.accepts else ()

        def run(step: Step, fed: Arrays, sessions: Sessions) -> Lists:
            def answer(bound: Bound, inputs: Arrays) -> Arrays:
                if implementation is not None and not isinstance(implementation, Fault):
                    return implementation(bound.node, inputs)
                memory = sessions[step.session * len(subject.nodes) + subject.nodes.index(bound)]
                node_inputs = bound.fed_from(fed) if bound.inputs is not None else fed
                return self._answered(step.number, bound, inputs)(faults, fed=node_inputs, memory=memory)

            tensors = subject.answered(self._trial.feeds[step.number].inputs, answer)
            return tuple(tensors.get(name) for name in subject.shown)

        return run

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


Running = Callable[[Step, Arrays, Sessions], Lists]
"""Function from a step, the fed arrays and the memories of sessions to the outputs of a run."""


def _forbidden(trial: Trial, implementation: Implementation | Fault | None) -> Outcome:
    assert trial.violation is not None
    broken = trial.violation
    fault = implementation if isinstance(implementation, Fault) and implementation.accepts else None
    op = trial.node.operator.known_as
    if fault is not None and fault.concerns(op) and fault.topic == broken.topic:
        nothing = tuple(None for _ in trial.node.outputs)
        return Outcome(trial.key, "ran", "run", tuple((nothing,) for _ in trial.feeds))
    return Outcome(trial.key, "refused", "run" if broken.due == "run" else "load", message=broken.summary)


def _followed(trial: Trial, run: Running, repeats: bool) -> Outcome:
    """Return the outcome of all steps of a trial."""
    course = trial.course or Course(frozenset(), tuple(Step("run", 0, number) for number in range(len(trial.feeds))))
    sessions = Sessions()
    seen: list[list[Lists]] = [[] for _ in trial.feeds]
    returned: list[list[int]] = [[] for _ in trial.feeds]
    changed: set[str] = set()
    altered: set[int] = set()
    for _ in range(REPEATS if repeats else 1):
        held: dict[int, tuple[Lists, Lists]] = {}  # the arrays themselves and copies
        for number, step in enumerate(course.steps):
            if step.does == "try":
                sessions[step.session].refused = True  # of lone nodes
            elif step.does == "run":
                given, distinct = trial.feeds[step.number].fed, seen[step.number]
                fed = {name: array.copy() for name, array in given.items()}
                arrays = outputs = run(step, fed, sessions)
                changed.update(name for name, array in fed.items() if not _equal(array, given[name]))
                if not sessions.empty:  # arrays that are kept may be written to again
                    outputs = tuple(None if array is None else array.copy() for array in arrays)
                held[number] = arrays, outputs
                places = (k for k, earlier in enumerate(distinct) if all(map(_equal, outputs, earlier)))
                index = next(places, len(distinct))
                if index == len(distinct):
                    distinct.append(outputs)
                returned[step.number].append(index)
            elif not all(map(_equal, *held[step.number])):
                altered.add(course.steps[step.number].number)
        if sessions.empty:
            break
    lists, indices = tuple(map(tuple, seen)), tuple(map(tuple, returned))
    names, numbers = tuple(sorted(changed)), tuple(sorted(altered))
    return Outcome(trial.key, "ran", "run", lists, changed=names, returned=indices, altered=numbers)


def _equal(first: NDArray[Any] | None, second: NDArray[Any] | None) -> bool:
    """Return whether two outputs are the same bit for bit."""
    if first is None or second is None:
        return first is second
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def judge_staged(case: Case, implementation: Implementation | Fault, accuracy: str = "standard") -> Judgement:
    """Return the verdict on an implementation for a case."""
    return judge(case.trials, [staged_outcome(trial, implementation) for trial in case.trials], accuracy)

"""Failing cases with the target's outputs, on which faults are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from ...cases import Course, Feed, Trial
from ...reference import ACCURACY_CLASSES, FORMATS, Fault, open_questions_of, operator_for, resolve
from ...reference.faults.contexts import Run
from ...reference.faults.observation import Observation
from ..judging.judgement import Verdict
from ..judging.runs import malformed
from ..workers.process import Outcome

Array = NDArray[Any]

ReportInternalError = Callable[[str, Exception], None]
"""Called with a description of the current step, and the exception."""


def reraise(doing: str, error: Exception) -> None:
    """Raise an internal error instead of recording it."""
    raise error


_HELD = 0.5
"""Minimum share of the numbers that must be representable in the assumed format: few others are so by chance."""

DIAGNOSED = frozenset({Verdict.WRONG, Verdict.INACCURATE, Verdict.MALFORMED, Verdict.UNSTABLE})
"""Verdicts that depend on the target's outputs."""


@dataclass(frozen=True)
class FailingCase:
    """Failing case with the target's outputs.

    topics
        Ids of the clauses that it exercises; faults against them are the likeliest.
    slight
        Whether a wider accuracy class accepts it. Then only faults of precision are tried.
    """

    case: str
    trial: Trial
    runs: tuple[Run, ...]
    topics: frozenset[str]
    size: tuple[float, int]
    slight: bool = False

    def __post_init__(self) -> None:
        # Faults share these arrays, and some faults overwrite their inputs if they can.
        for array in (array for run in self.runs for given in (run.inputs, run.fed) for array in given.values()):
            array.flags.writeable = False

    @property
    def op(self) -> str:
        return self.trial.node.operator.known_as

    @cached_property
    def type(self) -> str:
        return resolve(self.trial.node, self.runs[0].inputs).format.name

    @cached_property
    def misshapen(self) -> bool:
        """Whether outputs are missing or have a wrong shape or type."""
        node = self.trial.node
        return any(malformed(node, run.inputs, run.outputs, self.open_questions) is not None for run in self.runs)

    def observation(self, accuracy: str) -> Observation:
        return Observation(operator_for(self.trial.node), self.trial.node, self.runs, accuracy)

    def computed_in(self, fault: Fault) -> bool:
        """Return whether the outputs are consistent with the arithmetic of a fault. Storage in a narrower format
        returns numbers of that format; flushing returns no subnormal numbers. True for faults of another kind."""
        accuracy = ACCURACY_CLASSES.get(fault.within)
        if accuracy is None or self.type not in fault.types:
            return True
        numbers = np.concatenate([array.ravel() for run in self.runs for array in run.outputs.values()])
        numbers = numbers[np.isfinite(numbers) & (numbers != 0)]  # every format has these
        if accuracy.flushes:
            return not (np.abs(numbers.astype(np.float64)) < FORMATS[self.type].least_normal).any()
        if accuracy.storage is None or not numbers.size:
            return True
        with np.errstate(over="ignore"):
            held = numbers == numbers.astype(FORMATS[accuracy.storage].dtype).astype(numbers.dtype)
        # A state that is only passed through keeps the format of the input.
        return bool(np.mean(held) >= _HELD)

    @cached_property
    def open_questions(self) -> frozenset[str]:
        """Interpretations on which the results depend."""
        return open_questions_of(self.trial.node, self.runs[0].inputs)

    @cached_property
    def telling(self) -> tuple[object, ...]:
        """Sort key: the most informative cases come first. These have few features, precise types, and enough numbers
        to exclude a fault that fits by chance."""
        inputs = self.runs[0].inputs
        numbers = sum(array.size for array in self.runs[0].outputs.values())
        coarse = any(array.dtype.itemsize == 2 for array in inputs.values())
        features = len(self.trial.node.attributes) + len(inputs) + len(self.runs)
        return self.slight, coarse, numbers < 12, features, self.size, self.case


def failing_case_of(
    case: str, trial: Trial, outcome: Outcome, topics: Iterable[str], size: tuple[float, int], slight: bool = False
) -> FailingCase | None:
    """Return the failing case for an outcome; None if it did not run, or not with all feeds."""
    if outcome.status != "ran" or len(outcome.outputs) != len(trial.feeds) or not trial.feeds:
        return None
    overridden = _overridden(trial)
    if trial.course is not None and outcome.returned:
        ordered = tuple(_in_order(trial, trial.course, outcome, overridden))
        return FailingCase(case, trial, ordered, frozenset(topics), size, slight)
    runs: list[Run] = []
    # Each round of a session consists of all its runs, in order.
    for number in range(max(map(len, outcome.returned), default=0) or _ROUNDS):
        for place, (feed, lists) in enumerate(zip(trial.feeds, outcome.outputs, strict=True)):
            order = outcome.returned[place] if place < len(outcome.returned) else ()
            arrays = lists[order[number] if number < len(order) else min(number, len(lists) - 1)]
            runs.append(Run(feed.inputs, _named(trial, arrays), feed.fed, overridden=overridden(feed, 0)))
    return FailingCase(case, trial, tuple(runs), frozenset(topics), size, slight)


_ROUNDS = 2
"""Number of rounds of a session if the order of the outputs is unknown."""


Overridden = Callable[[Feed, int], dict[str, Array]]


def _overridden(trial: Trial) -> Overridden:
    """Return a function of a feed and a session number. It returns the values that the session's model holds for
    constants that are fed."""

    @cache
    def constants(session: int) -> dict[str, Array]:
        model = trial.model if session == 0 or trial.course is None else trial.course.models[session - 1]
        graph = onnx.load_model_from_string(model).graph
        listed = {value.name for value in graph.input}
        return {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.name in listed}

    def overridden(feed: Feed, session: int) -> dict[str, Array]:
        return {name: array for name, array in constants(session).items() if name in feed.fed}

    return overridden


def _in_order(trial: Trial, course: Course, outcome: Outcome, overridden: Overridden) -> Iterator[Run]:
    """Yield the runs of a course with their outputs, in order, for every time that the target executed the course."""
    counts = [0] * len(trial.feeds)
    refused: set[int] = set()
    once = {number: count for number, count in course.runs.items() if count}
    for _ in range(min(len(outcome.returned[number]) // count for number, count in once.items())):
        for step in course.steps:
            if step.does == "try":
                refused.add(step.session)
            elif step.does == "run":
                feed, position = trial.feeds[step.number], outcome.returned[step.number][counts[step.number]]
                counts[step.number] += 1
                outputs = _named(trial, outcome.outputs[step.number][position])
                refusing, held = step.session in refused, overridden(feed, step.session)
                yield Run(feed.inputs, outputs, feed.fed, step.session, refusing, held)


def _named(trial: Trial, arrays: Sequence[Array | None]) -> dict[str, Array]:
    named = zip(trial.node.outputs, arrays, strict=False)
    return {name: array for name, array in named if array is not None}

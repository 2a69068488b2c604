"""Runners in this process: a function, or an ONNX backend, for a runtime author's own tests.

An exception of the runner is the test's own, with its traceback, and a crash ends the whole process. :mod:`.process` is
for everything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from ...cases import Course, Step, Trial
from ..targets.target import Target
from .hangs import HangBudget
from .process import REPEATS, Job, Outcome, TargetProcess
from .worker import failure_of

Run = Callable[[dict[str, NDArray[Any]]], Any]
Lists = tuple[NDArray[Any] | None, ...]

Runner = Any
"""Function of a serialized model and its inputs by name that returns the outputs in the graph's order or by name; or a
class or module with the functions of ``onnx.backend.base.Backend``."""


def is_runner(value: Any) -> bool:
    """Tell whether that is something to run, rather than outputs."""
    return _is_backend(value) or callable(value)


def _is_backend(value: Any) -> bool:
    return callable(getattr(value, "prepare", None)) or callable(getattr(value, "run_model", None))


def run_in_process(runner: Runner, trial: Trial) -> Outcome:
    """Run a trial and return its outcome; see :func:`run_job`."""
    return run_job(runner, Job(trial.key, trial.model, tuple(feed.fed for feed in trial.feeds), course=trial.course))


def run_job(runner: Runner, job: Job) -> Outcome:
    """Run a job and return its outcome: its feeds in turn, or its course, twice, as on any target.

    Every run gets copies of its inputs; writing to them counts as a change. Exceptions of the runner are raised, except
    refusals.
    """
    together = _Together(runner, job)
    together.follow_all()
    return together.outcome()


def outcome_of_job(runner: Runner, job: Job) -> Outcome:
    """Run a job; exceptions become outcomes, as on any target."""
    clock = perf_counter()
    together = _Together(runner, job)
    try:
        together.follow_all()
    except Exception as error:
        failure = failure_of(error)
        phase, broke_at = "run" if together.accepted else "load", failure.get("broke_at", "")
        return Outcome(job.key, failure["status"], phase, message=failure["message"], broke_at=broke_at)
    return replace(together.outcome(), seconds=perf_counter() - clock)


class OwnProcess(TargetProcess):
    """Function of this process as a target: its exceptions become outcomes, and crashes are not guarded against."""

    def __init__(self, runner: Runner, target: Target, hangs: HangBudget | None = None, measure: bool = False) -> None:
        super().__init__(target, hangs=hangs, measure=measure)
        self._runner = runner

    def start(self) -> dict[str, Any]:
        """Nothing is to be started, and nothing is known of it."""
        return {}

    def run(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Outcomes of `jobs`, in order."""
        for job in jobs:
            yield outcome_of_job(self._runner, job)


def _in_turn(job: Job) -> Course:
    """Return the course of a job that has none."""
    return Course(frozenset(), tuple(Step("run", 0, number) for number in range(len(job.feeds))))


class _Together:
    """Sessions of a job in this process, with their outputs."""

    def __init__(self, runner: Runner, job: Job) -> None:
        self._runner, self._job = runner, job
        self._models = (job.model, *(job.course.models if job.course is not None else ()))
        self._names = [value.name for value in onnx.load_model_from_string(job.model).graph.output]
        self._opened: dict[int, Run] = {}
        self.accepted = False  # whether what runs has said yes to a model
        self._seen: list[list[Lists]] = [[] for _ in job.feeds]
        self._changed: set[str] = set()
        self._altered: set[int] = set()
        self._malformed = ""

    def _session(self, number: int) -> Run:
        if number not in self._opened:
            prepared = _prepared(self._runner, self._models[number])
            self.accepted = self.accepted or prepared.accepted
            self._opened[number] = prepared.run
        return self._opened[number]

    def follow_all(self) -> None:
        """Go through the steps as often as every target does."""
        for _ in range(REPEATS):
            self._follow(self._job.course or _in_turn(self._job))

    def _follow(self, course: Course) -> None:
        held: dict[int, tuple[Any, Lists]] = {}
        for number, step in enumerate(course.steps):
            if step.does == "run":
                held[number] = self._run(step)
            elif step.does == "try":
                # What is raised is its word for a refusal.
                with contextlib.suppress(Exception):
                    self._session(step.session)({n: a.copy() for n, a in course.attempts[step.number].items()})
            else:
                returned, before = held[step.number]
                if not _same(_outputs(returned, self._names)[0], before):
                    self._altered.add(course.steps[step.number].number)

    def _run(self, step: Step) -> tuple[Any, Lists]:
        """Return the outputs of a run, as they are and as copies."""
        feed, distinct = self._job.feeds[step.number], self._seen[step.number]
        given = {name: array.copy() for name, array in feed.items()}
        kept = dict(given)
        returned = self._session(step.session)(given)
        self.accepted = True
        outputs, complaint = _outputs(returned, self._names)
        self._malformed = self._malformed or complaint
        self._changed |= {n for n, array in kept.items() if array.tobytes() != feed[n].tobytes()}
        if not any(_same(outputs, other) for other in distinct):
            distinct.append(outputs)
        return returned, outputs

    def outcome(self) -> Outcome:
        """Return the outcome of the job."""
        everything = tuple(tuple(distinct) for distinct in self._seen)
        changed, altered = tuple(sorted(self._changed)), tuple(sorted(self._altered))
        return Outcome(self._job.key, "ran", "run", everything, changed, self._malformed, altered=altered)


class _Prepared(NamedTuple):
    """Model prepared by a runner; ``accepted`` says whether the runner has accepted it."""

    run: Run
    accepted: bool


def _prepared(runner: Runner, model: bytes) -> _Prepared:
    if not _is_backend(runner):
        return _Prepared(lambda inputs: runner(model, inputs), False)
    proto = onnx.load_model_from_string(model)
    order = [value.name for value in proto.graph.input]
    defaults = {t.name: onnx.numpy_helper.to_array(t) for t in proto.graph.initializer if t.name in order}

    def listed(inputs: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        # A list has no names: where one default is fed, all are, so that each stands at its place.
        given = {**defaults, **inputs} if inputs.keys() & defaults.keys() else inputs
        return [given[name] for name in order if name in given]

    # onnx's base class has a `prepare` that returns nothing.
    prepared = runner.prepare(proto) if callable(getattr(runner, "prepare", None)) else None
    if prepared is not None:
        return _Prepared(lambda inputs: prepared.run(listed(inputs)), True)
    return _Prepared(lambda inputs: runner.run_model(proto, listed(inputs)), False)


def _outputs(returned: Any, names: Sequence[str]) -> tuple[tuple[NDArray[Any] | None, ...], str]:
    """Return copies of the arrays in the graph's order (a runner may use its memory again), with None for each that is
    no array; and the defect of their form, or an empty text."""
    complaint = ""
    if isinstance(returned, Mapping):
        strange = [name for name in returned if name not in names]
        if strange:
            complaint = f"an output {strange[0]!r} came back, of which the graph knows nothing"
        returned = [returned.get(name) for name in names]
    elif isinstance(returned, np.ndarray) or not isinstance(returned, Sequence):
        complaint = f"returned {type(returned).__name__} instead of a list of outputs"
        returned = []
    arrays = []
    for name, array in zip([*names, *["output"] * len(returned)], returned, strict=False):
        arrays.append(array.copy() if isinstance(array, np.ndarray) else None)
        if arrays[-1] is None and array is not None:
            complaint = complaint or f"{name} is no array of NumPy's but {type(array).__name__}"
    return tuple(arrays), complaint


def _same(first: Sequence[NDArray[Any] | None], second: Sequence[NDArray[Any] | None]) -> bool:
    def bits(array: NDArray[Any] | None) -> object:
        return None if array is None else (array.dtype, array.shape, array.tobytes())

    return [bits(a) for a in first] == [bits(a) for a in second]

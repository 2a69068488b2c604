"""Runners in this process: a function, or an ONNX backend, for a runtime author's own tests.

An exception of the runner reaches the test with its traceback, and a crash ends the whole process. Use :mod:`.process`
for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray

from ...cases import Trial
from ..targets.adapters.backend import prepared
from ..targets.target import Target
from . import worker
from .hangs import HangBudget
from .process import REPEATS, Job, Outcome, TargetProcess
from .worker import failure_of

Run = Callable[[dict[str, NDArray[Any]]], Any]

Runner = Any
"""Function of a serialized model and its inputs by name, or an ONNX backend.

The function returns the outputs in the graph's order or by name. A backend is a class or module with the functions of
``onnx.backend.base.Backend``.
"""


def is_runner(value: Any) -> bool:
    """Return whether a value is a runner, and not outputs."""
    return _is_backend(value) or callable(value)


def _is_backend(value: Any) -> bool:
    return callable(getattr(value, "prepare", None)) or callable(getattr(value, "run_model", None))


def run_in_process(runner: Runner, trial: Trial) -> Outcome:
    """Run a trial and return its outcome. Exceptions of the runner are raised, except for feeds that may be refused."""
    job = Job(trial.key, trial.model, tuple(feed.fed for feed in trial.feeds), course=trial.course)
    return _outcome(job, _Adapter(runner))


def outcome_of_job(runner: Runner, job: Job) -> Outcome:
    """Run a job; exceptions become outcomes, as on any target."""
    clock, adapter = perf_counter(), _Adapter(runner)
    try:
        outcome = _outcome(job, adapter)
    except Exception as error:
        failure = failure_of(error)
        phase = failure.get("phase") or ("run" if adapter.accepted else "load")
        broke_at = failure.get("broke_at", "")
        return Outcome(job.key, failure["status"], phase, message=failure["message"], broke_at=broke_at)
    return replace(outcome, seconds=perf_counter() - clock)


class OwnProcess(TargetProcess):
    """Function of this process as a target: its exceptions become outcomes, and crashes are not guarded against."""

    def __init__(self, runner: Runner, target: Target, hangs: HangBudget | None = None, measure: bool = False) -> None:
        super().__init__(target, hangs=hangs, measure=measure)
        self._runner = runner

    def start(self) -> dict[str, Any]:
        """Return an empty description: there is no process to start."""
        return {}

    def run(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Yield the outcomes of `jobs`, in order."""
        for job in jobs:
            yield outcome_of_job(self._runner, job)


def _outcome(job: Job, adapter: _Adapter) -> Outcome:
    """Run a job's steps as often as a worker does, and return the outcome."""
    course = job.course or worker.Course()
    # The runner gets the arrays unchanged: bfloat16 keeps the type of ml_dtypes.
    feeds, attempts = (
        [{name: ("", array) for name, array in feed.items()} for feed in feed_list]
        for feed_list in (job.feeds, course.attempts)
    )
    sessions = worker.Sessions(adapter, (job.model, *course.models), feeds)
    for _ in range(REPEATS):
        sessions.follow(job.steps, attempts)
    return Outcome(
        job.key,
        "ran",
        "run",
        tuple(tuple(tuple(map(_array, tensors)) for tensors in distinct) for distinct in sessions.seen),
        tuple(sorted(sessions.changed)),
        adapter.malformed or sessions.malformed,
        altered=tuple(sorted(sessions.altered)),
    )


def _array(tensor: worker.Tensor | None) -> NDArray[Any] | None:
    if tensor is None:
        return None
    dtype = ml_dtypes.bfloat16 if tensor.element == "bfloat16" else np.dtype(tensor.element)
    return np.frombuffer(tensor.data, dtype).reshape(tensor.shape)


class _Adapter:
    """A runner as an adapter of a worker.

    accepted
        Whether the runner has accepted a model.
    malformed
        Defect of the form of outputs; empty if there is none.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.accepted = False
        self.malformed = ""

    def prepare(self, model: bytes) -> _Session:
        proto = onnx.load_model_from_string(model)
        names = [value.name for value in proto.graph.output]
        if not _is_backend(self._runner):
            return _Session(self, names, partial(self._runner, model))
        session = prepared(self._runner, proto)
        self.accepted = True  # the exceptions of a session that has not accepted the model say so
        return _Session(self, names, session.run)


class _Session:
    """A model that the runner prepared."""

    def __init__(self, adapter: _Adapter, names: list[str], run: Run) -> None:
        self._adapter, self._names, self._run = adapter, names, run

    def run(self, inputs: dict[str, NDArray[Any]]) -> Any:
        returned = self._run(inputs)
        self._adapter.accepted = True
        if isinstance(returned, Mapping):
            unknown = [name for name in returned if name not in self._names]
            if unknown:
                self._complain(f"an output {unknown[0]!r} came back, which the graph does not have")
            returned = [returned.get(name) for name in self._names]
        if not isinstance(returned, (list, tuple)):
            return returned
        outputs = list(returned)
        for number, output in enumerate(outputs):
            if output is not None and not isinstance(output, np.ndarray):
                name = self._names[number] if number < len(self._names) else "output"
                self._complain(f"{name} is no NumPy array but {type(output).__name__}")
                outputs[number] = None
        return outputs

    def _complain(self, defect: str) -> None:
        self._adapter.malformed = self._adapter.malformed or defect

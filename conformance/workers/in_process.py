"""What runs in this process: a function, an ONNX backend. For tests in which a runtime's author tries their own.

Nothing stands between the tests and what is tested: an exception of it is the test's own, traceback included, and a
crash ends the whole process. :mod:`.process` is for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray

from ...cases import Trial
from .process import REPEATS, Job, Outcome
from .worker import failure_of

__all__ = ["Runner", "is_runner", "outcome_of_job", "run_in_process", "run_job"]

Run = Callable[[dict[str, NDArray[Any]]], Any]

Runner = Any
"""A function of a serialized model and its inputs by name, which returns the outputs in the graph's order or by name;
or what implements ``onnx.backend.base.Backend``: a class, or a module with the same functions."""


def is_runner(value: Any) -> bool:
    """Whether that is something to run, rather than outputs."""
    return _is_backend(value) or callable(value)


def _is_backend(value: Any) -> bool:
    return callable(getattr(value, "prepare", None)) or callable(getattr(value, "run_model", None))


def run_in_process(runner: Runner, trial: Trial) -> Outcome:
    """What becomes of a trial; see :func:`run_job`."""
    return run_job(runner, Job(trial.key, trial.model, tuple(feed.fed for feed in trial.feeds)))


def run_job(runner: Runner, job: Job) -> Outcome:
    """What becomes of a job: its feeds are run in turn, and all of that twice, as on any target.

    Every run gets copies of its inputs that it may write to, which counts as a change of them. What the runner raises
    comes through.
    """
    return _ran(_prepared(runner, job.model).run, job)


def outcome_of_job(runner: Runner, job: Job) -> Outcome:
    """The same, and what is raised is an outcome, as on any target."""
    clock = perf_counter()
    accepted = False
    try:
        prepared = _prepared(runner, job.model)
        accepted = prepared.accepted

        def run(inputs: dict[str, NDArray[Any]]) -> Any:
            nonlocal accepted
            outputs = prepared.run(inputs)
            accepted = True
            return outputs

        return replace(_ran(run, job), seconds=perf_counter() - clock)
    except Exception as error:
        failure = failure_of(error)
        phase, broke_at = "run" if accepted else "load", failure.get("broke_at", "")
        return Outcome(job.key, failure["status"], phase, message=failure["message"], broke_at=broke_at)


def _ran(run: Run, job: Job) -> Outcome:
    names = [value.name for value in onnx.load_model_from_string(job.model).graph.output]
    seen: list[list[tuple[NDArray[Any] | None, ...]]] = [[] for _ in job.feeds]
    changed: set[str] = set()
    malformed = ""
    for _ in range(REPEATS):
        for distinct, feed in zip(seen, job.feeds, strict=True):
            given = {name: array.copy() for name, array in feed.items()}
            kept = dict(given)
            outputs, complaint = _outputs(run(given), names)
            malformed = malformed or complaint
            changed |= {n for n, array in kept.items() if array.tobytes() != feed[n].tobytes()}
            if not any(_same(outputs, other) for other in distinct):
                distinct.append(outputs)
    everything = tuple(tuple(distinct) for distinct in seen)
    return Outcome(job.key, "ran", "run", everything, tuple(sorted(changed)), malformed)


class _Prepared(NamedTuple):
    """A model in the hands of what runs it; ``accepted`` is whether that has said yes to it."""

    run: Run
    accepted: bool


def _prepared(runner: Runner, model: bytes) -> _Prepared:
    if not _is_backend(runner):
        return _Prepared(lambda inputs: runner(model, inputs), False)
    proto = onnx.load_model_from_string(model)
    order = [value.name for value in proto.graph.input]
    # onnx's base class has a `prepare` that returns nothing.
    prepared = runner.prepare(proto) if callable(getattr(runner, "prepare", None)) else None
    if prepared is not None:
        return _Prepared(lambda inputs: prepared.run([inputs[name] for name in order if name in inputs]), True)
    return _Prepared(lambda inputs: runner.run_model(proto, [inputs[n] for n in order if n in inputs]), False)


def _outputs(returned: Any, names: Sequence[str]) -> tuple[tuple[NDArray[Any] | None, ...], str]:
    """The arrays in the graph's order, None for each that is no array, copied since what runs may use its memory again;
    and what is wrong with their form, empty if nothing."""
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

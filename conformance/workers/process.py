"""Parent's side of a target: a worker process, and exactly one outcome for every job.

`TargetProcess.run` keeps two batches under way, so the worker computes while the caller judges. Reports come one per
job and in order: if a worker dies, hangs or violates the protocol, the first job without a report is to blame, and a
new worker continues with the next. A job gets a second try, alone and noted in its outcome, if the worker is lost
before it began the batch, the connection to another machine may have been lost, or the worker reports an earlier job
twice.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from msgspec import Struct

from ...cases import ABILITIES
from ..targets.target import Target
from . import worker
from .hangs import HangBudget
from .job import Array, Job, Outcome, TargetUnavailable
from .launch import ForkServer
from .messages import Began, Report, outcome_of
from .worker_process import START_LIMIT, WorkerLost, WorkerProcess

__all__ = ["BATCH_JOBS", "REPEATS", "START_LIMIT", "Array", "Job", "Outcome", "TargetProcess", "TargetUnavailable"]

BATCH_JOBS = 48
"""Jobs in one message: enough to spread its cost, few enough that the first results come soon."""

BATCH_BYTES = 4 << 20
"""Bytes after which a message is sent even if it holds fewer jobs, so that large cases do not pile up in memory."""

REPEATS = 2
"""Runs of every feed: a second run of the same session shows results that depend on chance or on the run before."""

_BATCHES_UNDER_WAY = 2


class _Numbered(Struct):
    """Job that was sent and is not yet reported.

    `begun`: the worker has decoded its batch. `last`: it is the last job of its batch. A job that is not run keeps its
    position, with its outcome in `left_out`.
    """

    number: int
    job: Job
    begun: bool = False
    last: bool = False
    left_out: Outcome | None = None


class TargetProcess:
    """Running target; a context manager that leaves no process behind.

    forks
        The process that forks workers in place of lost ones, if the adapter declares that they can be; None to start
        all workers. If processes share one, and one has lost a worker, the others fork their first worker, too.
    """

    def __init__(
        self,
        target: Target,
        repeats: int = REPEATS,
        hangs: HangBudget | None = None,
        measure: bool = False,
    ) -> None:
        """Prepare a target's process, without starting it.

        repeats
            Number of runs of every feed.
        hangs
            The target's budget for hangs, shared with other processes of the run; None: a budget of its own.
        measure
            Whether the worker's description has its environment.
        """
        self.hangs = hangs or HangBudget()
        self._target = target
        self._repeats = repeats
        self._measure = measure
        self._worker: WorkerProcess | None = None
        self._spare: WorkerProcess | None = None
        self._own_forks = ForkServer()
        self.forks: ForkServer | None = self._own_forks
        self._number = 0
        self._losses = 0

    def __enter__(self) -> TargetProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker; the next `run` starts another."""
        if self._spare is not None:
            self._spare.kill()
        for process in (self._worker, self._spare):
            if process is not None:
                process.close()
        self._worker = self._spare = None
        self._own_forks.close()

    def start(self) -> dict[str, Any]:
        """Start a worker and return the adapter's description. Raise `TargetUnavailable` with the reason."""
        self.close()
        process = WorkerProcess(self._target, self._repeats, self._measure)
        description = process.await_ready()
        self._worker = process
        return description

    def run(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Yield the outcomes of `jobs`, in order, exactly one for each; `jobs` is read ahead by up to two batches.

        The target's own faults never raise. If no worker starts any more, the remaining outcomes are "unavailable".
        """
        source = iter(jobs)
        retries: deque[Job] = deque()  # jobs to send before the rest of `source`
        flight: deque[_Numbered] = deque()  # in order
        why = ""  # reason for the next job's second try, alone
        try:
            while True:
                try:
                    self._fill(source, retries, flight, alone=bool(why))
                    if not flight:
                        return
                    if flight[0].left_out is not None:
                        yield flight[0].left_out
                        flight.popleft()
                        continue
                    job = flight[0].job
                    outcome = self._next_report(flight)
                    if job.alone:
                        self._discard()
                except TargetUnavailable as error:
                    message = f"no worker starts any more: {error}"
                    for job in chain((entry.job for entry in flight), retries, source):
                        yield Outcome(job.key, "unavailable", message=message, captured=error.captured)
                    return
                except WorkerLost as lost:
                    begun = flight[0].begun
                    outcome = self._blame(flight[0].job, lost)
                    lost_jobs = [entry.job for entry in flight]
                    flight.clear()
                    if not why and (lost.doubtful or not begun):
                        why = str(lost)
                        retries.extendleft(reversed(lost_jobs))
                        continue
                    retries.extendleft(reversed(lost_jobs[1:]))
                (self.hangs.hung if outcome.status == "timed-out" else self.hangs.worked)(job.traits)
                yield replace(outcome, again=why) if why else outcome
                why = ""
        finally:
            if flight:
                self._discard()

    def _fill(self, source: Iterator[Job], again: deque[Job], flight: deque[_Numbered], alone: bool) -> None:
        """Put two batches under way, or one job where it is uncertain which job to blame."""
        most, batches = (1, 1) if alone else (BATCH_JOBS, _BATCHES_UNDER_WAY)
        while sum(entry.last for entry in flight) < batches:
            batch: list[_Numbered] = []
            payload = worker.Payload()
            headers = []
            while len(batch) < most and payload.size < BATCH_BYTES:
                job = again.popleft() if again else next(source, None)
                if job is None:
                    break
                left_out = self._left_out(job)
                if left_out is not None:
                    batch.append(_Numbered(0, job, left_out=left_out))
                    continue
                if job.alone and (batch or flight):
                    again.appendleft(job)
                    break
                self._number += 1
                batch.append(_Numbered(self._number, job))
                headers.append(_job_header(self._number, job, payload))
                if job.alone:
                    self._discard()
                    batches = 1
                    break
            if not batch:
                return
            batch[-1].last = True
            flight.extend(batch)
            if headers:
                process = self._ready()
                process.first = process.first or headers[0]["number"]
                process.send({"type": "run", "jobs": headers}, payload)

    def _left_out(self, job: Job) -> Outcome | None:
        """Return the outcome of a job that is not run; None for a job to run."""
        refused = self.hangs.refuses(job.traits)
        if refused:
            return Outcome(job.key, "not-run", message=refused)
        if not job.needs:
            return None
        try:
            lacking = job.needs - self._ready().abilities
        except TargetUnavailable:  # reported when the job is sent
            return None
        return not_tried(job, lacking) if lacking else None

    def _ready(self) -> WorkerProcess:
        """Return the worker, a new one if necessary."""
        if self._worker is None:
            process = self._spare or WorkerProcess(self._target, self._repeats, forks=self.forks)
            self._spare = None
            try:
                process.await_ready()
            except TargetUnavailable:
                # One failure may be bad luck, for instance on a machine that is short of memory.
                process = WorkerProcess(self._target, self._repeats)
                process.await_ready()
            self._worker = process
            if self._losses and not process.is_forked:
                # More workers may be lost, so the next one already loads its runtime.
                with contextlib.suppress(TargetUnavailable):
                    self._spare = WorkerProcess(self._target, self._repeats)
        return self._worker

    def _next_report(self, flight: deque[_Numbered]) -> Outcome:
        process = self._ready()
        while True:
            message, body = process.receive(self._target.time_limit)
            expected = flight[0]
            if isinstance(message, Began):
                begun = set(message.jobs)
                for entry in flight:
                    entry.begun = entry.begun or entry.number in begun
                continue
            if isinstance(message, Report) and message.number == expected.number:
                try:
                    outcome = outcome_of(expected.job, self._repeats, message, body)
                except worker.ProtocolError as error:
                    raise WorkerLost("crashed", f"the worker sent {error}") from None
                process.waited = 0.0
                flight.popleft()
                return outcome
            if isinstance(message, Report) and process.first <= message.number < expected.number:
                # The earlier job is done, and this one is not to blame; a fresh worker knows no earlier job.
                raise WorkerLost("crashed", "the worker reported an earlier case a second time", doubtful=True)
            raise WorkerLost("crashed", "the worker sent a frame out of turn")

    def _blame(self, job: Job, lost: WorkerLost) -> Outcome:
        assert self._worker is not None
        seconds = self._worker.waited
        captured = self._worker.last_words() if lost.captured is None else lost.captured
        self._losses += 1
        if self.forks is not None:
            self.forks.lost = True
        self._discard()
        return Outcome(job.key, lost.status, message=str(lost), captured=captured, signal=lost.signal, seconds=seconds)

    def _discard(self) -> None:
        """End a worker that has jobs left or is lost."""
        if self._worker is not None:
            self._worker.kill()
            self._worker.close()
            self._worker = None


def _job_header(number: int, job: Job, payload: worker.Payload) -> dict[str, Any]:
    def model(serialized: bytes) -> int:
        return payload.add(worker.Tensor("uint8", (len(serialized),), serialized))

    def tensors(feed: Mapping[str, Array]) -> dict[str, int]:
        return {name: payload.add(worker.tensor_of(array)) for name, array in feed.items()}

    header = {"number": number, "model": model(job.model), "feeds": [tensors(feed) for feed in job.feeds]}
    if job.course is not None:
        models, attempts = [model(m) for m in job.course.models], [tensors(feed) for feed in job.course.attempts]
        header["course"] = {"models": models, "attempts": attempts, "steps": job.steps}
    return header


def not_tried(job: Job, lacking: frozenset[str]) -> Outcome:
    """Return the outcome of a job that needs abilities which a target's sessions do not declare."""
    text = ", ".join(meaning for ability, meaning in ABILITIES.items() if ability in lacking)
    return Outcome(job.key, "not-tried", message=f"the target's SESSIONS does not declare {text}")

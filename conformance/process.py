"""The parent's side of a target: a worker process, and exactly one outcome for every job given to it.

`TargetProcess.run` keeps two batches on their way, so the worker computes while the caller judges. Reports come one
per job and in order: when a worker dies, hangs or talks nonsense, the first job without a report is the one that was
under way, and it alone is blamed; a new worker goes on with the next. Only when a worker is lost before it said that it
had begun a batch is nobody to blame; then its jobs are sent again one by one. And where a connection to another machine
may have been lost rather than the worker, the job gets a second chance.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Any

import ml_dtypes

from . import worker
from .job import Array, Job, Outcome, TargetUnavailable
from .target import Target
from .worker_process import START_LIMIT, WorkerLost, WorkerProcess

__all__ = ["BATCH_JOBS", "REPEATS", "START_LIMIT", "Array", "Job", "Outcome", "TargetProcess", "TargetUnavailable"]

BATCH_JOBS = 48
"""Jobs in one message: enough to spread its cost, few enough that the first results come soon."""

BATCH_BYTES = 4 << 20
"""Bytes after which a message is sent though it holds fewer jobs, so that large cases do not pile up in memory."""

REPEATS = 2
"""Runs of every feed: a second run of the same session shows what depends on chance or on the run before."""

_BATCHES_UNDER_WAY = 2
_STATUSES = ("ran", "refused", "crashed", "fell-back", "unavailable")


@dataclass
class _Numbered:
    """A job under way: `begun` once the worker has decoded its batch, `last` if it is the last one of that."""

    number: int
    job: Job
    begun: bool = False
    last: bool = False


class _Flight:
    """The jobs sent and not yet reported, in order, and how many batches they belong to."""

    def __init__(self) -> None:
        self.jobs: deque[_Numbered] = deque()
        self.batches = 0

    def add(self, batch: list[_Numbered]) -> None:
        batch[-1].last = True
        self.jobs.extend(batch)
        self.batches += 1

    def begin(self, numbers: Iterable[int]) -> None:
        begun = set(numbers)
        for entry in self.jobs:
            entry.begun = entry.begun or entry.number in begun

    def pop(self) -> _Numbered:
        entry = self.jobs.popleft()
        self.batches -= entry.last
        return entry

    def clear(self) -> list[Job]:
        jobs = [entry.job for entry in self.jobs]
        self.jobs.clear()
        self.batches = 0
        return jobs


class TargetProcess:
    """A target at work; a context manager that leaves no process behind."""

    def __init__(self, target: Target, repeats: int = REPEATS, batch_jobs: int = BATCH_JOBS) -> None:
        """`repeats` is the number of runs of every feed, `batch_jobs` the most jobs in one message."""
        self._target = target
        self._repeats = repeats
        self._batch_jobs = batch_jobs
        self._worker: WorkerProcess | None = None
        self._spare: WorkerProcess | None = None
        self._number = 0
        self._losses = 0

    def __enter__(self) -> TargetProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker; the next `run` starts another."""
        if self._spare is not None:
            self._spare.kill()
        for process in (self._worker, self._spare):
            if process is not None:
                process.close()
        self._worker = self._spare = None

    def start(self) -> dict[str, Any]:
        """Start a worker and return the adapter's description; raises `TargetUnavailable` with the reason."""
        self.close()
        process = WorkerProcess(self._target, self._repeats)
        description = process.await_ready()
        self._worker = process
        return description

    def run(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Outcomes of `jobs`, in order, one for each whatever happens; `jobs` is read ahead by up to two batches.

        Never raises for the target's own faults. If no worker can be started any more, the rest is "unavailable".
        """
        source = iter(jobs)
        again: deque[Job] = deque()  # to be sent before what is left in `source`
        flight = _Flight()
        singly = 0  # so many of the next jobs go one by one
        doubted: Job | None = None  # the one that has had its second chance
        try:
            while True:
                try:
                    self._fill(source, again, flight, singly)
                    if not flight.jobs:
                        return
                    alone = flight.jobs[0].job.alone
                    outcome = self._next_report(flight)
                    if alone:
                        self._discard()
                except TargetUnavailable as error:
                    message = f"no worker starts any more: {error}"
                    for job in chain(flight.clear(), again, source):
                        yield Outcome(job.key, "unavailable", message=message, captured=error.captured)
                    return
                except WorkerLost as lost:
                    begun = flight.jobs[0].begun
                    outcome = self._blame(flight.jobs[0].job, lost)
                    lost_jobs = flight.clear()
                    if not begun and singly == 0:
                        again.extendleft(reversed(lost_jobs))
                        singly = len(lost_jobs)
                        continue
                    if lost.doubtful and doubted is not lost_jobs[0]:
                        doubted = lost_jobs[0]
                        again.extendleft(reversed(lost_jobs))
                        singly = max(singly, 1)
                        continue
                    again.extendleft(reversed(lost_jobs[1:]))
                singly = max(0, singly - 1)
                yield outcome
        finally:
            if flight.jobs:
                self._discard()

    def _fill(self, source: Iterator[Job], again: deque[Job], flight: _Flight, singly: int) -> None:
        """Have two batches under way, or one job where it is uncertain which one to blame."""
        most, batches = (1, 1) if singly else (self._batch_jobs, _BATCHES_UNDER_WAY)
        while flight.batches < batches:
            batch: list[_Numbered] = []
            payload = worker.Payload()
            headers = []
            while len(batch) < most and payload.size < BATCH_BYTES:
                job = again.popleft() if again else next(source, None)
                if job is None:
                    break
                if job.alone and (batch or flight.jobs):
                    again.appendleft(job)
                    break
                self._number += 1
                batch.append(_Numbered(self._number, job))
                headers.append(_job_header(self._number, job, payload))
                if job.alone:
                    break
            if not batch:
                return
            if batch[0].job.alone:
                self._discard()
            flight.add(batch)
            process = self._ready()
            process.send({"type": "run", "jobs": headers}, payload)
            if batch[0].job.alone:
                return

    def _ready(self) -> WorkerProcess:
        """The worker, a new one if need be."""
        if self._worker is None:
            process = self._spare or WorkerProcess(self._target, self._repeats)
            self._spare = None
            try:
                process.await_ready()
            except TargetUnavailable:
                # Once may be bad luck, on a machine that is short of memory for instance.
                process = WorkerProcess(self._target, self._repeats)
                process.await_ready()
            self._worker = process
            if self._losses:
                # Where one was lost more may be: the next one loads its runtime meanwhile.
                with contextlib.suppress(TargetUnavailable):
                    self._spare = WorkerProcess(self._target, self._repeats)
        return self._worker

    def _next_report(self, flight: _Flight) -> Outcome:
        process = self._ready()
        while True:
            header, body = process.receive(self._target.time_limit)
            try:
                if header["type"] == "began":
                    flight.begin(header["jobs"])
                    continue
                if header["type"] == "report" and header["number"] == flight.jobs[0].number:
                    outcome = _outcome(flight.jobs[0].job.key, header, body)
                    flight.pop()
                    return outcome
            except (worker.ProtocolError, KeyError, TypeError, ValueError, IndexError) as error:
                message = worker.one_line(f"the worker sent a report that makes no sense: {error!r}")
                raise WorkerLost("crashed", message) from None
            raise WorkerLost("crashed", "the worker sent a frame out of turn")

    def _blame(self, job: Job, lost: WorkerLost) -> Outcome:
        assert self._worker is not None
        seconds = time.monotonic() - self._worker.last_spoken
        captured = self._worker.last_words() if lost.captured is None else lost.captured
        self._losses += 1
        self._discard()
        return Outcome(
            job.key,
            lost.status,
            message=str(lost),
            captured=captured,
            signal=lost.signal,
            seconds=seconds,
        )

    def _discard(self) -> None:
        """End a worker that has jobs left or is lost."""
        if self._worker is not None:
            self._worker.kill()
            self._worker.close()
            self._worker = None


def _job_header(number: int, job: Job, payload: worker.Payload) -> dict[str, Any]:
    return {
        "number": number,
        "model": payload.add(worker.Tensor("uint8", (len(job.model),), job.model)),
        "feeds": [{name: payload.add(worker.tensor_of(array)) for name, array in feed.items()} for feed in job.feeds],
    }


def _outcome(key: str, header: dict[str, Any], body: bytes) -> Outcome:
    if header["status"] not in _STATUSES:
        raise ValueError(header["status"])
    arrays = [
        array.view(ml_dtypes.bfloat16) if element == "bfloat16" else array
        for element, array in worker.unpack_arrays(header, body)
    ]
    return Outcome(
        key,
        header["status"],
        header["phase"],
        tuple(
            tuple(tuple(None if index is None else arrays[index] for index in outputs) for outputs in distinct)
            for distinct in header["outputs"]
        ),
        tuple(header.get("changed", ())),
        header.get("malformed", ""),
        header.get("message", ""),
        header.get("captured", ""),
        None,
        header["seconds"],
        header.get("proof", ""),
    )

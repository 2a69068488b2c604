"""The parent's side of a target: a worker process, and exactly one outcome for every job given to it.

`TargetProcess.run` keeps two batches on their way, so the worker computes while the caller judges. One thread writes
and one reads, hence neither side ever waits for the other to empty a pipe. Reports come one per job and in order:
when a worker dies, hangs or talks nonsense, the first job without a report is the one that was under way, and it alone
is blamed; a new worker goes on with the next. Only when a worker is lost before it said that it had begun a batch is
nobody to blame; then its jobs are sent again one by one.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import ml_dtypes
from numpy.typing import NDArray

from . import worker
from .target import Target
from .targets import adapter_source

Array = NDArray[Any]

START_LIMIT = 120.0
"""Seconds that a worker may take to load its runtime; containers and other machines are slow the first time."""

BATCH_JOBS = 48
"""Jobs in one message: enough to spread its cost, few enough that the first results come soon."""

BATCH_BYTES = 4 << 20
"""Bytes after which a message is sent though it holds fewer jobs, so that large cases do not pile up in memory."""

REPEATS = 2
"""Runs of every feed: a second run of the same session shows what depends on chance or on the run before."""

_BATCHES_UNDER_WAY = 2
_CHUNK = 1 << 16
_CHUNKS_WAITING = 256  # the reader stops there: a target that floods its output must not fill the memory
_PIPE_SIZE = 1 << 20
# Waking the reader for every report of a tiny job would cost both sides more than the report. So after a small piece it
# rests; the pipe holds what comes meanwhile.
_SMALL = 1 << 14
_PAUSE = 0.001
_GRACE = 1.0  # seconds beyond a limit for a report that is already on its way
_STATUSES = ("ran", "refused", "crashed", "fell-back", "unavailable")


@dataclass(frozen=True)
class Job:
    """One model and the feeds to run it with.

    Attributes:
        key: the caller's name for it.
        model: a serialized ModelProto.
        feeds: for each run, input arrays by name; NumPy's numeric types and ml_dtypes' bfloat16.
    """

    key: str
    model: bytes
    feeds: tuple[Mapping[str, Array], ...]


@dataclass(frozen=True)
class Outcome:
    """What became of one job.

    Attributes:
        key: that of the job.
        status: "ran", "refused", "crashed", "timed-out", "fell-back" or "unavailable".
        phase: "load" or "run", where it ended; empty when the worker could not say.
        outputs: for each feed, the distinct lists of outputs seen over the repeats (one when all agree bit for bit),
            each in the graph's order; None stands for an output that is no array of numbers.
        changed: names of inputs that the runtime changed.
        malformed: what is wrong with the form of the outputs, empty if nothing.
        message: the reason in one line, empty if it ran.
        captured: what the runtime printed meanwhile, bounded.
        signal: name of the signal that ended the worker, or None.
        seconds: time spent on the job in the worker; in the parent if the worker was lost.
        proof: what shows where the model ran, empty when nothing was asked for.
    """

    key: str
    status: str
    phase: str = ""
    outputs: tuple[tuple[tuple[Array | None, ...], ...], ...] = ()
    changed: tuple[str, ...] = ()
    malformed: str = ""
    message: str = ""
    captured: str = ""
    signal: str | None = None
    seconds: float = 0.0
    proof: str = ""


class TargetUnavailable(Exception):
    """The target could not be started; the text says why in one line.

    `captured` holds what it printed.
    """

    def __init__(self, message: str, captured: str = "") -> None:
        super().__init__(message)
        self.captured = captured


class _LostError(Exception):
    """A worker that can no longer be used; carries the outcome's status."""

    def __init__(self, status: str, message: str, signal_name: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.signal = signal_name


class _Worker:
    """One running worker and the pipes to it."""

    def __init__(self, target: Target, repeats: int) -> None:
        self.heard = time.monotonic()  # when the last bytes came
        self._ended = self._killed = False
        self._capture = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._frames = worker.FrameReader()
        self._outgoing: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._incoming: queue.Queue[tuple[float, bytes]] = queue.Queue(_CHUNKS_WAITING)
        status = os.fstat(self._capture.fileno())
        environment = {
            # Memory that a runtime hands out without having written it shows: the GNU C library fills what it
            # allocates with the complement of this byte. 0x7F7F is NaN in float16 and enormous in the other types.
            "MALLOC_PERTURB_": "128",
            **os.environ,
            **target.environment,
            worker.CAPTURE_VARIABLE: f"{status.st_dev}:{status.st_ino}",
        }
        command = _command_line(target)
        try:
            self._process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._capture,
                env=environment,
                start_new_session=True,  # out of reach of Ctrl-C; and it can be ended with all that it started
            )
        except OSError as error:
            self._capture.close()
            raise TargetUnavailable(f"cannot start {command[0]!r}: {error.strerror or error}") from None
        for pipe in (self._process.stdin, self._process.stdout):
            _widen(pipe)
        for task in (self._write, self._read):
            threading.Thread(target=task, name=f"onnxspec {target.name}", daemon=True).start()
        self._start = {
            "type": "start",
            "adapter": adapter_source(target.adapter),
            "options": dict(target.options),
            "time_limit": target.time_limit,
            "memory_limit": target.memory_limit,
            "repeats": repeats,
        }
        self.send(self._start)

    def _write(self) -> None:
        stream: Any = self._process.stdin
        with stream, contextlib.suppress(OSError):  # a worker that is gone shows at the reading end
            while (pieces := self._outgoing.get()) is not None:
                for piece in pieces:
                    view = memoryview(piece)
                    while view:
                        view = view[stream.write(view) :]

    def _read(self) -> None:
        stream: Any = self._process.stdout
        data = b"first"
        with stream:
            while data:
                data = os.read(stream.fileno(), _CHUNK)
                self._incoming.put((time.monotonic(), data))
                if len(data) < _SMALL:
                    time.sleep(_PAUSE)

    def send(self, header: dict[str, Any], payload: worker.Payload | None = None) -> None:
        """Hand one frame to the writing thread."""
        self._outgoing.put(worker.pack_frame(header, payload))

    def receive(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        """The next frame; raises `_LostError` if none is complete `seconds` after the last word of the worker."""
        deadline = self.heard + seconds
        while True:
            try:
                frame = self._frames.next()
            except worker.ProtocolError as error:
                raise self._lost(f"the worker sent {error}") from None
            if frame is not None:
                return frame
            try:
                # The caller may come back long after the deadline: what has come in meanwhile counts all the same.
                self.heard, data = self._incoming.get(timeout=max(deadline - time.monotonic(), 0.1))
            except queue.Empty:
                raise _LostError("timed-out", f"no answer within {seconds:g} s") from None
            if not data:
                self._ended = True
                raise self._why_ended()
            if self.heard > deadline + _GRACE:
                raise _LostError("timed-out", f"no whole answer within {seconds:g} s")
            self._frames.feed(data)

    def await_ready(self) -> dict[str, Any]:
        """What the adapter says about itself; raises `TargetUnavailable`."""
        try:
            header, _ = self.receive(START_LIMIT)
            if header.get("type") == "hello" and header.get("protocol") == worker.PROTOCOL:
                header, _ = self.receive(START_LIMIT)
        except _LostError as lost:
            self.kill()
            captured = self.printed()
            greeting = worker.one_line(self._frames.greeting.decode("utf-8", "backslashreplace"), 200)
            last = _last_line(captured) or greeting
            message = f"the worker did not start: {lost}{': ' + last if last else ''}"
            raise TargetUnavailable(message, captured) from None
        if header.get("type") == "ready" and isinstance(header.get("description"), dict):
            description: dict[str, Any] = header["description"]
            return description
        self.kill()
        if header.get("type") == "unavailable":
            raise TargetUnavailable(worker.one_line(str(header.get("message"))), str(header.get("captured", "")))
        raise TargetUnavailable(f"the worker speaks another protocol: {worker.one_line(str(header), 200)}")

    def _why_ended(self) -> _LostError:
        """Why the stream ended."""
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return self._lost("the worker closed its output")
        if code >= 0:
            return self._lost(f"the process ended by itself with exit code {code}")
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        if name == "SIGALRM":
            return _LostError("timed-out", "the worker's own alarm ended it", name)
        hint = " (from outside, perhaps for want of memory)" if name == "SIGKILL" else ""
        return _LostError("crashed", f"the process died of {name}{hint}", name)

    def _lost(self, message: str) -> _LostError:
        return _LostError("crashed", worker.one_line(message))

    def printed(self) -> str:
        """What the runtime printed since the last report; for a worker that has ended, and on this machine only."""
        return worker.printed_text(self._capture.fileno())

    def close(self) -> None:
        """Let the worker end by itself for a moment, then end it."""
        self._outgoing.put(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self.kill()
        self._capture.close()

    def kill(self) -> None:
        """End the worker and whatever it has started."""
        if self._killed:
            return
        self._killed = True
        if os.name == "posix":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()
        self._process.wait()
        self._outgoing.put(None)
        # The reading thread may wait for room; it ends with the stream.
        with contextlib.suppress(queue.Empty):
            while not self._ended:
                self._ended = not self._incoming.get(timeout=0.5)[1]


def _command_line(target: Target) -> list[str]:
    path = Path(worker.__file__)
    source = path.read_text(encoding="utf-8") if "{source}" in target.command else ""
    known = {"{worker}": str(path), "{source}": source}
    return [known.get(part, part) for part in target.command or (sys.executable, "{worker}")]


def _widen(pipe: Any) -> None:
    """Have a pipe hold a whole message, where the system can: the fewer the changes of context."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_SIZE)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return worker.one_line(lines[-1], 200) if lines else ""


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
        self._worker: _Worker | None = None
        self._spare: _Worker | None = None
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
        process = _Worker(self._target, self._repeats)
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
        try:
            while True:
                try:
                    self._fill(source, again, flight, singly)
                    if not flight.jobs:
                        return
                    outcome = self._next_report(flight)
                except TargetUnavailable as error:
                    message = f"no worker starts any more: {error}"
                    for job in chain(flight.clear(), again, source):
                        yield Outcome(job.key, "unavailable", message=message, captured=error.captured)
                    return
                except _LostError as lost:
                    begun = flight.jobs[0].begun
                    outcome = self._blame(flight.jobs[0].job, lost)
                    lost_jobs = flight.clear()
                    if not begun and singly == 0:
                        again.extendleft(reversed(lost_jobs))
                        singly = len(lost_jobs)
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
                self._number += 1
                batch.append(_Numbered(self._number, job))
                headers.append(_job_header(self._number, job, payload))
            if not batch:
                return
            idle = not flight.jobs
            flight.add(batch)
            process = self._ready()
            if idle:
                process.heard = time.monotonic()
            process.send({"type": "run", "jobs": headers}, payload)

    def _ready(self) -> _Worker:
        """The worker, a new one if need be."""
        if self._worker is None:
            process = self._spare or _Worker(self._target, self._repeats)
            self._spare = None
            try:
                process.await_ready()
            except TargetUnavailable:
                # Once may be bad luck, on a machine that is short of memory for instance.
                process = _Worker(self._target, self._repeats)
                process.await_ready()
            self._worker = process
            if self._losses:
                # Where one was lost more may be: the next one loads its runtime meanwhile.
                with contextlib.suppress(TargetUnavailable):
                    self._spare = _Worker(self._target, self._repeats)
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
                raise _LostError("crashed", message) from None
            raise _LostError("crashed", "the worker sent a frame out of turn")

    def _blame(self, job: Job, lost: _LostError) -> Outcome:
        assert self._worker is not None
        seconds = time.monotonic() - self._worker.heard
        self._worker.kill()
        captured = self._worker.printed()
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

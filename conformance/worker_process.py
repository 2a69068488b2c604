"""One running worker and the pipes to it.

One thread writes and one reads, hence neither side ever waits for the other to empty a pipe.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import tempfile
import threading
import time
from typing import Any

from . import worker
from .job import TargetUnavailable
from .launch import launch_of
from .target import Target
from .targets import adapter_source

__all__ = ["START_LIMIT", "WorkerLost", "WorkerProcess"]

START_LIMIT = 120.0
"""Seconds that a worker may take to load its runtime; containers and other machines are slow the first time."""

_CHUNK = 1 << 16
_CHUNKS_WAITING = 256  # the reader stops there: a target that floods its output must not fill the memory
_PIPE_SIZE = 1 << 20
# Waking the reader for every report of a tiny job would cost both sides more than the report. So after a small piece it
# rests; the pipe holds what comes meanwhile.
_SMALL = 1 << 14
_PAUSE = 0.001
_GRACE = 1.0  # seconds beyond a limit for a report that is already on its way
_LAST_WORDS = 4.0  # seconds for a worker far away to tell how it was ended


class WorkerLost(Exception):
    """A worker that can no longer be used.

    Attributes:
        status: that of the outcome.
        signal: name of the signal that ended it, or None.
        captured: what it printed last, None where it could not say.
        doubtful: whether it may be that only the connection was lost, and nothing is wrong with the job.
    """

    def __init__(
        self,
        status: str,
        message: str,
        signal: str | None = None,
        captured: str | None = None,
        doubtful: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.signal = signal
        self.captured = captured
        self.doubtful = doubtful


class WorkerProcess:
    """One running worker and the pipes to it."""

    def __init__(self, target: Target, repeats: int) -> None:
        source = adapter_source(target.adapter)  # what raises does so before anything is started
        self.heard = time.monotonic()  # when the last bytes came
        self._ended = self._killed = False
        self._capture = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._frames = worker.FrameReader()
        self._remote = bool(target.command)
        self._spoken = threading.Event()  # set once the worker has sent its first frame, or can no longer do so
        self._outgoing: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._incoming: queue.Queue[tuple[float, bytes]] = queue.Queue(_CHUNKS_WAITING)
        status = os.fstat(self._capture.fileno())
        environment = {**os.environ, **target.environment, worker.CAPTURE_VARIABLE: f"{status.st_dev}:{status.st_ino}"}
        launch = launch_of(target)
        self._opening = launch.opening
        try:
            self._process = subprocess.Popen(
                launch.command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._capture,
                env=environment,
                cwd=target.folder or None,
                start_new_session=True,  # out of reach of Ctrl-C; and it can be ended with all that it started
            )
        except OSError as error:
            self._capture.close()
            raise TargetUnavailable(f"cannot start {launch.command[0]!r}: {error.strerror or error}") from None
        for pipe in (self._process.stdin, self._process.stdout):
            _widen(pipe)
        for task in (self._write, self._read):
            threading.Thread(target=task, name=f"onnxspec {target.name}", daemon=True).start()
        start = {
            "type": "start",
            "adapter": source,
            "options": dict(target.options),
            "environment": dict(target.environment),  # once more: ssh and docker do not pass it on
            "time_limit": target.time_limit,
            "memory_limit": target.memory_limit,
            "repeats": repeats,
        }
        self.send(start)

    def _write(self) -> None:
        stream: Any = self._process.stdin
        with stream, contextlib.suppress(OSError):  # a worker that is gone shows at the reading end
            if self._opening:
                stream.write(self._opening)
                self._spoken.wait()
            while (pieces := self._outgoing.get()) is not None:
                for piece in pieces:
                    view = memoryview(piece)
                    while view:
                        view = view[stream.write(view) :]

    def _read(self) -> None:
        stream: Any = self._process.stdout
        data = b"first"
        heard = b""
        with stream:
            while data:
                data = os.read(stream.fileno(), _CHUNK)
                if not self._spoken.is_set():
                    heard += data
                    if not data or worker.MAGIC in heard:
                        self._spoken.set()
                self._incoming.put((time.monotonic(), data))
                if len(data) < _SMALL:
                    time.sleep(_PAUSE)

    @property
    def last_spoken(self) -> float:
        """When the last bytes came or went."""
        return max(self.heard, self._sent)

    def send(self, header: dict[str, Any], payload: worker.Payload | None = None) -> None:
        """Hand one frame to the writing thread."""
        self._sent = time.monotonic()
        self._outgoing.put(worker.pack_frame(header, payload))

    def receive(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        """The next frame; raises `WorkerLost` if none is complete `seconds` after the last word: that of the worker, or
        what it was sent since, for which it may have waited all the time before."""
        deadline = self.last_spoken + seconds
        while True:
            try:
                frame = self._frames.next()
            except worker.ProtocolError as error:
                raise self._lost(f"the worker sent {error}") from None
            if frame is not None:
                if frame[0].get("type") == "died":
                    raise _how_it_died(frame[0])
                return frame
            try:
                # The caller may come back long after the deadline: what has come in meanwhile counts all the same.
                self.heard, data = self._incoming.get(timeout=max(deadline - time.monotonic(), 0.1))
            except queue.Empty:
                raise WorkerLost("timed-out", f"no answer within {seconds:g} s") from None
            if not data:
                self._ended = True
                raise self._why_ended()
            if self.heard > deadline + _GRACE:
                raise WorkerLost("timed-out", f"no whole answer within {seconds:g} s")
            self._frames.feed(data)

    def await_ready(self) -> dict[str, Any]:
        """What the adapter says about itself; raises `TargetUnavailable`."""
        try:
            header, _ = self.receive(START_LIMIT)
            if header.get("type") == "hello" and header.get("protocol") == worker.PROTOCOL:
                header, _ = self.receive(START_LIMIT)
        except WorkerLost as lost:
            self.kill()
            captured = lost.captured or self.printed()
            greeting = worker.one_line(self._frames.greeting.decode("utf-8", "backslashreplace"), 200)
            said = _telling_line(captured) or greeting
            more = f": {said}" if not str(lost).endswith(said) else ""
            raise TargetUnavailable(f"the worker did not start: {lost}{more}", captured) from None
        if header.get("type") == "ready" and isinstance(header.get("description"), dict):
            description: dict[str, Any] = header["description"]
            if self._remote:  # what ssh, a login or an interactive interpreter had to say
                os.ftruncate(self._capture.fileno(), 0)
                os.lseek(self._capture.fileno(), 0, os.SEEK_SET)
            return description
        self.kill()
        if header.get("type") == "unavailable":
            raise TargetUnavailable(worker.one_line(str(header.get("message"))), str(header.get("captured", "")))
        raise TargetUnavailable(f"the worker speaks another protocol: {worker.one_line(str(header), 200)}")

    def _why_ended(self) -> WorkerLost:
        """Why the stream ended."""
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return self._lost("the worker closed its output")
        if code >= 0:
            said = _telling_line(self.printed()) if self._remote else ""
            ended = f"the process ended by itself with exit code {code}{': ' + said if said else ''}"
            return WorkerLost("crashed", ended, doubtful=self._remote)
        name = signal.Signals(-code).name if -code in signal.valid_signals() else f"signal {-code}"
        lost = _how_it_died({"signal": name})
        lost.doubtful = self._remote
        return lost

    def _lost(self, message: str) -> WorkerLost:
        return WorkerLost("crashed", worker.one_line(message))

    def printed(self) -> str:
        """What the runtime printed since the last report; for a worker that has ended, and on this machine only."""
        return worker.printed_text(self._capture.fileno())

    def last_words(self) -> str:
        """What the runtime printed since the last report, from a worker that is to end, wherever it is.

        Hanging up makes the watcher on the other side end it and tell; a worker on this machine is simply killed.
        """
        if self._remote and not self._ended:
            self._outgoing.put(None)
            self.heard = time.monotonic()
            try:
                while True:
                    self.receive(_LAST_WORDS)
            except WorkerLost as lost:
                if lost.captured is not None:
                    self.kill()
                    return lost.captured
        self.kill()
        return self.printed()

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
        self._spoken.set()
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


def _how_it_died(header: dict[str, Any]) -> WorkerLost:
    """What a worker's watcher says of its end."""
    name, code = header.get("signal"), header.get("code")
    captured = header.get("captured")
    captured = captured if isinstance(captured, str) else None
    if not isinstance(name, str):
        return WorkerLost("crashed", f"the process ended by itself with exit code {code}", captured=captured)
    if name == "SIGALRM":
        return WorkerLost("timed-out", "the worker's own alarm ended it", name, captured)
    hint = " (from outside, perhaps for want of memory)" if name == "SIGKILL" else ""
    return WorkerLost("crashed", f"the process died of {worker.one_line(name, 40)}{hint}", name, captured)


def _widen(pipe: Any) -> None:
    """Have a pipe hold a whole message, where the system can: the fewer the changes of context."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_SIZE)


_ERROR = re.compile(r"\s*(?:[\w.-]+: )?[\w.]*(?:error|exception|fatal|panic)\b[^:]*: *\S", re.IGNORECASE)
"""A line that says what went wrong, like ``Error: ...``, ``docker: Error response from daemon: ...``."""


def _telling_line(text: str) -> str:
    """The last line that looks like an error message, below which some put a trace or a greeting; else the last."""
    lines = text.strip().splitlines()
    telling = next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1] if lines else "")
    return worker.one_line(telling, 200)

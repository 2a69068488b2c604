"""One running worker and the pipes to it.

One thread writes and one reads, so neither side ever waits for the other to empty a pipe.
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
from pathlib import Path
from typing import Any

from ..targets.adapters import adapter_source
from ..targets.target import Target
from . import worker
from .job import TargetUnavailable
from .launch import ForkServer, launch_of, may_fork, variables_of
from .messages import (
    HEADER_LIMIT,
    Died,
    Hello,
    Message,
    Ready,
    Unavailable,
    abilities_of,
    legible,
    message_of,
    printed_lines,
)
from .one_thread import ONE_THREAD

MEASURED = "measured"
"""Key of a target's description for the measurements of its worker (:mod:`.measuring`)."""

START_LIMIT = 120.0
"""Seconds that a worker may take to load its runtime; containers and other machines are slow the first time."""

_MEASURING = Path(__file__).with_name("measuring.py")
_CHUNK = 1 << 16
_CHUNKS_WAITING = 256  # the reader stops there: a target that floods its output must not fill the memory
_MARGIN = 1 << 20  # bytes in a body beside the outputs: alignment
_TICK = 0.25  # seconds between checks of the clock while nothing arrives
_END_LIMIT = 5.0  # seconds for the watcher to end all processes of a target
_CONNECTION = 255  # exit code of ssh when the connection failed
_LAST_WORDS = 4.0  # seconds for a remote worker to report how it ended


class WorkerLost(Exception):
    """A worker that can no longer be used.

    Attributes:
        status: that of the outcome.
        signal: name of the signal that ended it, or None.
        captured: its last printed text, None where it is unknown.
        doubtful: whether perhaps only the connection was lost, and the job is not to blame.
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
    """Running worker and the pipes to it.

    waited
        Seconds that `receive` has spent on the current wait, which begins when a message is sent or accepted.
    first
        Number of the first job that it was sent, 0 for none.
    """

    def __init__(self, target: Target, repeats: int, measure: bool = False, forks: ForkServer | None = None) -> None:
        """Fork the worker by `forks`, if possible; otherwise start it. Raise TargetUnavailable."""
        source = adapter_source(target.adapter)  # may raise, so it comes before any process is started
        self.abilities: frozenset[str] = frozenset()  # of its sessions, set once it is ready
        self.waited = 0.0
        self.first = 0
        self._ended = self._killed = False
        self._capture = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._frames = worker.FrameReader(HEADER_LIMIT, target.output_limit + _MARGIN)
        self._remote = bool(target.command)
        self._external = not source
        self._spoken = threading.Event()  # set once the worker has sent its first frame, or can no longer do so
        self._outgoing: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._incoming: queue.Queue[bytes] = queue.Queue(_CHUNKS_WAITING)
        status = os.fstat(self._capture.fileno())
        mark = f"{status.st_dev}:{status.st_ino}"
        environment = {**variables_of(target), worker.CAPTURE_VARIABLE: mark}
        # The start message repeats the environment: ssh and docker do not pass it on.
        worker_variables: dict[str, str | None] = dict(target.environment)
        if may_fork(target):  # NumPy is loaded as in the forking process, before the caller's environment is restored
            worker_variables |= {variable: environment.get(variable) for variable in ONE_THREAD}
            environment |= ONE_THREAD
        command, self._opening = launch_of(target)
        forked = forks.fork(target, self._capture.fileno(), mark) if forks is not None else None
        self.is_forked = forked is not None
        self._process = forked or self._started(command, environment, target.folder)
        for task in (self._write, self._read):
            threading.Thread(target=task, name=f"onnxspec {target.name}", daemon=True).start()
        start = {
            "type": "start",
            "adapter": source,
            "options": dict(target.options),
            "environment": worker_variables,
            "time_limit": target.time_limit,
            "memory_limit": target.memory_limit,
            "output_limit": target.output_limit,
            "repeats": repeats,
            **({"measure": _MEASURING.read_text(encoding="utf-8")} if measure else {}),
        }
        self.send(start)

    def _started(self, command: list[str], environment: dict[str, str], folder: str) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._capture,
                env=environment,
                cwd=folder or None,
                start_new_session=True,  # out of reach of Ctrl-C, and a group that can be killed as a whole
            )
        except OSError as error:
            self._capture.close()
            raise TargetUnavailable(f"cannot start {command[0]!r}: {error.strerror or error}") from None

    def _write(self) -> None:
        stream: Any = self._process.stdin
        with stream, contextlib.suppress(OSError):  # the reading thread notices a worker that is gone
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
                self._incoming.put(data)

    def send(self, header: dict[str, Any], payload: worker.Payload | None = None) -> None:
        """Pass one frame to the writing thread. The worker may have waited for it until now."""
        self.waited = 0.0
        self._outgoing.put(worker.pack_frame(header, payload))

    def receive(self, seconds: float) -> tuple[Message, bytes]:
        """Return the next message. Raise `WorkerLost` if none is complete after a wait of `seconds`.

        Incomplete messages do not restart that time. Time in which this process did not run does not count.
        """
        last = time.monotonic()
        while True:
            try:
                frame = self._frames.next_raw()
                message = message_of(frame[0]) if frame is not None else None
            except worker.ProtocolError as error:
                raise WorkerLost("crashed", worker.one_line(f"the worker sent {error}")) from None
            now = time.monotonic()
            self.waited += min(now - last, 2 * _TICK)  # more shows that this process was stopped, or starved
            last = now
            if frame is not None and message is not None:
                if isinstance(message, Died):
                    raise _how_it_died(message)
                return message, frame[1]
            if self.waited > seconds:
                raise WorkerLost("timed-out", f"no answer within {seconds:g} s")
            with contextlib.suppress(queue.Empty):
                data = self._incoming.get(timeout=_TICK)
                if not data:
                    self._ended = True
                    raise self._why_ended()
                self._frames.feed(data)

    def await_ready(self) -> dict[str, Any]:
        """Return the adapter's description of itself. Raise `TargetUnavailable`."""
        try:
            message, _ = self.receive(START_LIMIT)
            spoken: Any = None
            if isinstance(message, Hello) and message.protocol == worker.PROTOCOL:
                spoken = message.sessions
                self.waited = 0.0
                message, _ = self.receive(START_LIMIT)
        except WorkerLost as lost:
            self.kill()
            captured = printed_lines(lost.captured or self.printed())
            greeting = worker.one_line(self._frames.greeting.decode("utf-8", "backslashreplace"), 200)
            reason = _telling_line(captured) or greeting
            if reason.startswith("cannot start "):  # the watcher's message on a missing program
                raise TargetUnavailable(reason, captured) from None
            more = f": {reason}" if not str(lost).endswith(reason) else ""
            raise TargetUnavailable(f"the worker did not start: {lost}{more}", captured) from None
        if isinstance(message, Ready):
            self.abilities = abilities_of(spoken, message.sessions)
            if self._remote:  # output of ssh, a login shell or an interactive interpreter
                os.ftruncate(self._capture.fileno(), 0)
                os.lseek(self._capture.fileno(), 0, os.SEEK_SET)
            description: dict[str, Any] = legible(message.description)
            return {**description, MEASURED: legible(message.environment)} if message.environment else description
        self.kill()
        if isinstance(message, Unavailable):
            raise TargetUnavailable(worker.one_line(message.message), printed_lines(message.captured))
        raise TargetUnavailable(f"the worker speaks another protocol: {worker.one_line(str(message), 200)}")

    def _why_ended(self) -> WorkerLost:
        """Return the reason why the stream ended."""
        try:
            code = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return WorkerLost("crashed", "the worker closed its output")
        by = -code if code < 0 else code - 128  # a shell's exit code for a child that died of a signal
        if by in signal.valid_signals():
            return _how_it_died(Died(signal=worker.signal_name(by)))
        reason = _telling_line(self.printed()) if self._remote else ""
        ended = f"the process ended by itself with exit code {code}{': ' + reason if reason else ''}"
        # A worker's watcher would have reported its end; without that report the connection was lost. A remote program
        # has no watcher there, so it ended by itself, unless ssh's exit code shows a lost connection.
        return WorkerLost("crashed", ended, doubtful=self._remote and (not self._external or code == _CONNECTION))

    def printed(self) -> str:
        """Return the text that the runtime printed since the last report; for an ended worker, only on this machine."""
        return worker.printed_text(self._capture.fileno())

    def last_words(self) -> str:
        """Return the text that the runtime printed since the last report, from a worker that is about to end.

        Closing the stream makes the remote watcher end it and report; a worker on this machine is simply killed.
        """
        if self._remote and not self._ended:
            self._outgoing.put(None)
            self.waited = 0.0
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
        """Let the worker end by itself for a moment, then kill it."""
        self._outgoing.put(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self.kill()
        self._capture.close()

    def kill(self) -> None:
        """End the worker and all processes that it started."""
        if self._killed:
            return
        self._killed = True
        self._spoken.set()
        if os.name == "posix":
            self._end_group()
        else:
            self._process.kill()
            self._process.wait()
        self._outgoing.put(None)
        # The reading thread may wait for room; it ends with the stream.
        with contextlib.suppress(queue.Empty):
            while not self._ended:
                self._ended = not self._incoming.get(timeout=0.5)

    def _end_group(self) -> None:
        """Ask the watcher to end all processes; kill them where no watcher is left."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            for number in (signal.SIGTERM, signal.SIGCONT):
                os.kill(self._process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_LIMIT)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _how_it_died(message: Died) -> WorkerLost:
    """Return the report of a worker's watcher about its end."""
    captured = printed_lines(message.captured) if message.captured is not None else None
    if message.signal is None:
        ended = f"the process ended by itself with exit code {message.code}"
        return WorkerLost("crashed", ended, captured=captured)
    name = worker.one_line(message.signal, 40)
    hint = " (from outside, perhaps for want of memory)" if name == "SIGKILL" else ""
    return WorkerLost("crashed", f"the process died of {name}{hint}", name, captured)


_ERROR = re.compile(r"\s*(?:[\w.-]+: )?[\w.]*(?:error|exception|fatal|panic)\b[^:]*: *\S", re.IGNORECASE)
"""Line with an error, like ``Error: ...``, ``docker: Error response from daemon: ...``."""


def _telling_line(text: str) -> str:
    """Return the last line that looks like an error message, else the last line.

    A trace or greeting may follow the error message.
    """
    lines = text.strip().splitlines()
    error_line = next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1] if lines else "")
    return worker.one_line(error_line, 200)

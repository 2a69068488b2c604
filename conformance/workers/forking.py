"""Forked workers: after a crash, a process that has only loaded the runtime forks a replacement.

Only adapters that declare ``FORKS = True`` are forked: importing their runtime must start no thread and open no device.
The forking process (:mod:`.forker`) checks both before each fork, and declines otherwise. It creates no session and no
``Adapter``, so a copy continues like a started worker, including its watcher.

The first worker of a target is always started, not forked; so are workers whose results are compared with it later. The
forking process is loaded once for a whole run (:class:`Reserve`).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from ..targets.adapters import adapter_source
from ..targets.target import Target
from .launch import variables_of
from .one_thread import ONE_THREAD

_DECLARED = re.compile(r"^FORKS = True$", re.MULTILINE)
_FORKER = Path(__file__).with_name("forker.py")
_LOAD_LIMIT = 120.0  # seconds to load the runtime, as for a worker
_FORK_LIMIT = 10.0  # seconds to fork a worker


def may_fork(target: Target) -> bool:
    """Return whether workers of a target may be forked.

    Its adapter must declare it, and they must be local Python processes.
    """
    local = not target.is_command and sys.platform.startswith("linux")
    return local and bool(_DECLARED.search(adapter_source(target.adapter)))


class NotForked(Exception):
    """Error for a worker that cannot be forked: another is started instead."""


class ForkServer:
    """Process that has loaded a target's runtime and forks its workers.

    Raises NotForked where it does not start, or finds that it must not fork.
    """

    def __init__(self, target: Target) -> None:
        if not may_fork(target):
            raise NotForked("its adapter does not declare it, or its worker is not Python's on this machine")
        parent_end, child_end = socket.socketpair()
        self._socket, self._answers, self._lock = parent_end, parent_end.makefile("rb"), threading.Lock()
        interpreter = target.command[0] if target.command else sys.executable
        environment = {**variables_of(target), **ONE_THREAD}
        try:
            with child_end:
                self._process = subprocess.Popen(
                    [interpreter, str(_FORKER)],
                    stdin=child_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    cwd=target.folder or None,
                    start_new_session=True,
                )
        except OSError as error:
            parent_end.close()
            raise NotForked(str(error)) from None
        start = json.dumps({"adapter": adapter_source(target.adapter)}).encode()
        try:
            parent_end.settimeout(_LOAD_LIMIT)
            parent_end.sendall(len(start).to_bytes(8, "little") + start)
            answer = self._answer()
        except (OSError, ValueError) as error:
            answer = {"no": str(error)}
        if not answer.get("ready"):
            self.close()
            raise NotForked(str(answer.get("no", "")))

    def fork(self, capture: int, mark: str) -> ForkedProcess:
        """Fork a worker. Raise NotForked."""
        child_stdin, stdin = os.pipe()
        stdout, child_stdout = os.pipe()
        try:
            with self._lock:
                self._socket.settimeout(_FORK_LIMIT)
                line = json.dumps({"fork": mark}).encode() + b"\n"
                socket.send_fds(self._socket, [line], [child_stdin, child_stdout, capture])
                answer = self._answer()
            if "pid" in answer:
                return ForkedProcess(int(answer["pid"]), stdin, stdout)
        except (OSError, ValueError) as error:
            answer = {"no": str(error)}
        finally:
            os.close(child_stdin)
            os.close(child_stdout)
        os.close(stdin)
        os.close(stdout)
        raise NotForked(str(answer.get("no", "")))

    def _answer(self) -> dict[str, Any]:
        """Return the answer to a command. Raise OSError or ValueError."""
        answer: dict[str, Any] = json.loads(self._answers.readline() or b'{"no": "it has ended"}')
        return answer

    def close(self) -> None:
        """End the process; its workers keep running."""
        self._answers.close()
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self._process.kill()
        self._process.wait()


class Reserve:
    """The zygote of a target, started once a worker was lost, and shared by all processes of the target.

    A context manager that ends the zygote.

    lost
        Whether a worker was lost.
    """

    def __init__(self) -> None:
        self.lost = False
        self._zygote: ForkServer | None = None
        self._may_fork = True

    def __enter__(self) -> Reserve:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def zygote(self, target: Target) -> ForkServer | None:
        """Return the zygote; None if no worker was lost, or none can be forked."""
        if self.lost and self._zygote is None and self._may_fork:
            try:
                self._zygote = ForkServer(target)
            except NotForked:
                self._may_fork = False
        return self._zygote

    def close(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None


class ForkedProcess:
    """A forked worker, with the interface of :class:`subprocess.Popen`.

    It is no child of this process, so its exit code is unknown. Its watcher reports how the worker ended; where it does
    not, the watcher itself was killed, and that is the code here.
    """

    def __init__(self, pid: int, stdin: int, stdout: int) -> None:
        """Take over the pipes of a worker. Raise OSError if it has ended already."""
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)  # readable once the process has ended
        self.stdin, self.stdout = os.fdopen(stdin, "wb", buffering=0), os.fdopen(stdout, "rb", buffering=0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raise TimeoutExpired."""
        if self._descriptor >= 0:
            poller = select.poll()
            poller.register(self._descriptor, select.POLLIN)
            if not poller.poll(None if timeout is None else 1000 * timeout):
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            os.close(self._descriptor)
            self._descriptor = -1
        return -signal.SIGKILL

    def kill(self) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

"""Start of a worker: its command, the worker's text for an interpreter that cannot read its file, and forked workers.

A command has a placeholder for the worker file. ``{worker}`` is its path, for interpreters that see this machine's
files. ``{source}`` is its text, for ``python3 -c`` in a container. ``{stdin}`` is for commands behind a shell, such as
ssh, where the remote shell splits the words again: it becomes the plain words ``-m code``. The interpreter then reads a
line of Python from its standard input, and the worker is that line. It needs no quotes in any shell. A command without
a placeholder starts a program that speaks the protocol itself.

The worker file watches all processes that a command starts on this machine, and ends the remaining ones.

After a crash, a process that has only loaded the runtime forks a replacement (:class:`ForkServer`), in a tenth of the
time. The first worker of a target is always started, not forked; so are workers whose results are compared with it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import zlib
from pathlib import Path

from ..targets.adapters import adapter_source
from ..targets.target import Target
from . import worker
from .job import TargetUnavailable
from .one_thread import ONE_THREAD

PLACEHOLDERS = ("{worker}", "{source}", "{stdin}")
_CONSOLE = ("-m", "code")


def variables_of(target: Target) -> dict[str, str]:
    """Return the variables of a target's process on this machine."""
    variables = {**os.environ, **target.environment}
    if target.adapter.endswith(".py") and not target.is_command:
        variables[worker.FOLDER_VARIABLE] = str(Path(target.adapter).absolute().parent)
    return variables


def launch_of(target: Target) -> tuple[list[str], bytes]:
    """Return the command that starts a target's worker, and the bytes to be written to it before anything else.

    If there are such bytes, nothing may follow them until the worker has answered, because their reader may read ahead.
    Raise TargetUnavailable for an unknown placeholder.
    """
    path = Path(worker.__file__)
    source = path.read_text(encoding="utf-8")
    command = target.command or (sys.executable, "{worker}")
    arguments: list[str] = []
    for part in command:
        if re.fullmatch(r"\{[a-z]+\}", part) and part not in PLACEHOLDERS:
            placeholders = ", ".join(PLACEHOLDERS)
            raise TargetUnavailable(f"the command has {part}, which stands for nothing: there are {placeholders}")
        if part == "{stdin}":
            arguments += _CONSOLE
        else:
            texts = {"{worker}": str(path), "{source}": source}
            arguments.append(texts.get(part, part.replace("{stdin}", " ".join(_CONSOLE))))
    if target.is_command and os.name == "posix" and sys.executable:
        # It may leave processes behind; a worker that an interpreter runs from its file has its own watcher.
        arguments = [sys.executable, "-I", "-S", str(path), "--watch", *arguments]
    return arguments, _line(source) if any("{stdin}" in part for part in command) else b""


def _line(source: str) -> bytes:
    """Return one line of Python that runs `source` as a program."""
    packed = base64.b64encode(zlib.compress(source.encode("utf-8"), 9)).decode("ascii")
    unpacked = f"__import__('zlib').decompress(__import__('base64').b64decode('{packed}'))"
    return f"exec(compile({unpacked},'<worker>','exec'),{{'__name__':'__main__'}})\n".encode("ascii")


_DECLARED = re.compile(r"^FORKS = True$", re.MULTILINE)
_FORKER = Path(__file__).with_name("forker.py")
_FORK_LIMIT = 120.0  # seconds to load the runtime, as for a worker, and fork


def may_fork(target: Target) -> bool:
    """Return whether workers of a target may be forked.

    Its adapter must declare it, and they must be local Python processes.
    """
    local = not target.is_command and sys.platform.startswith("linux")
    return local and bool(_DECLARED.search(adapter_source(target.adapter)))


class ForkServer:
    """Process that has loaded a target's runtime and forks its workers (:mod:`.forker`).

    It starts with the first fork after a worker was lost, and is shared by all processes of the target.

    lost
        Whether a worker was lost.
    """

    def __init__(self) -> None:
        self.lost = False
        self._usable = True
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def fork(self, target: Target, capture: int, mark: str) -> ForkedProcess | None:
        """Return a forked worker; None if no worker was lost, or none can be forked."""
        if not (self.lost and self._usable):
            return None
        self._usable = may_fork(target)
        if self._usable:
            try:
                return self._forked(self._socket or self._started(target), capture, mark)
            except (OSError, ValueError):  # it has ended, perhaps since a copy of it would not be like a started worker
                self._usable = False
        return None

    def _started(self, target: Target) -> socket.socket:
        self._socket, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_FORK_LIMIT)
        with child_end:
            self._process = subprocess.Popen(
                [target.command[0] if target.command else sys.executable, str(_FORKER)],
                stdin=child_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**variables_of(target), **ONE_THREAD},
                cwd=target.folder or None,
                start_new_session=True,
            )
        self._socket.send(adapter_source(target.adapter).encode("utf-8"))
        return self._socket

    def _forked(self, server: socket.socket, capture: int, mark: str) -> ForkedProcess:
        """Ask for a worker. Raise OSError or ValueError."""
        child_stdin, stdin = os.pipe()
        stdout, child_stdout = os.pipe()
        try:
            socket.send_fds(server, [mark.encode()], [child_stdin, child_stdout, capture])
            return ForkedProcess(int(server.recv(100)), stdin, stdout)
        except (OSError, ValueError):
            os.close(stdin)
            os.close(stdout)
            raise
        finally:
            os.close(child_stdin)
            os.close(child_stdout)

    def close(self) -> None:
        """End the process; its workers keep running."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None


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

"""Process that forks workers (:mod:`.forking`): it loads the module of an adapter and forks on request.

``INTERPRETER forker.py``, beside the worker's file, has the same requirements. It serves the other end of its standard
input, a socket, and ends when that is closed.
"""

from __future__ import annotations

import array
import contextlib
import faulthandler  # noqa: F401 - every worker needs it
import gc
import importlib.util
import json
import os
import platform
import signal
import socket
import sys
from typing import Any

if __name__ == "__main__":
    del sys.path[0]  # workers do not import from this file's folder either


def _worker() -> Any:
    spec = importlib.util.spec_from_file_location(
        "onnxspec_worker", os.path.join(os.path.dirname(__file__), "worker.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


worker = _worker()


class Forker:
    """Server of fork requests. Commands and answers are lines of JSON on the standard input, a socket.

    A length and the start data (the adapter's source, as JSON) come first, then:

    ===========  =================================================================================
    answer       ``ready``, or ``no`` with the reason why no worker can be forked
    command      ``fork`` (the mark of the capture file), with three descriptors: input, output, capture file
    answer       ``pid``, or ``no``
    ===========  =================================================================================
    """

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=os.dup(0))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        self._descriptors: list[int] = []

    def serve(self) -> None:
        """Serve requests. Return only in a forked worker, with its standard streams in place."""
        if not self._load():
            os._exit(0)
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no ended worker stays a zombie
        lines = b""
        while True:
            data = self._receive()
            if not data:
                os._exit(0)
            *complete, lines = (lines + data).split(b"\n")
            for line in complete:
                if self._forked(json.loads(line.decode("ascii"))["fork"]):
                    signal.signal(signal.SIGCHLD, before)
                    return

    def _load(self) -> bool:
        size = int.from_bytes(self._exactly(8), "little")
        start = json.loads(self._exactly(size).decode("utf-8"))
        try:
            declared = getattr(worker.adapter_module(start["adapter"]), "FORKS", False) is True
            reason = "" if declared else "the adapter does not declare it"
            platform.platform()  # adapters describe the platform; the module caches it
        except BaseException as error:
            reason = worker.describe_error(error)
        reason = reason or not_to_be_forked(self._socket.fileno())
        self._answer({"no": reason} if reason else {"ready": True})
        gc.collect()
        gc.freeze()  # a garbage collection in a worker would write to, and so copy, every page that it shares
        return not reason

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                os._exit(0)
            data += more
        return data

    def _receive(self) -> bytes:
        item = array.array("i")
        data, extra, _, _ = self._socket.recvmsg(1 << 16, socket.CMSG_SPACE(8 * item.itemsize))
        for level, message_type, content in extra:
            if level == socket.SOL_SOCKET and message_type == socket.SCM_RIGHTS:
                item.frombytes(content[: len(content) - len(content) % item.itemsize])
        self._descriptors += item.tolist()
        return data

    def _answer(self, line: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(line).encode("ascii") + b"\n")

    def _forked(self, mark: str) -> bool:
        """Fork; return whether this is the new process."""
        descriptors, self._descriptors = self._descriptors[:3], self._descriptors[3:]
        try:
            reason = not_to_be_forked(self._socket.fileno(), *descriptors)
            pid = 0 if reason or len(descriptors) < 3 else os.fork()
            if reason or len(descriptors) < 3:
                self._answer({"no": reason or "three descriptors have to come along"})
                return False
            if pid:
                self._answer({"pid": pid})
                return False
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        os.setsid()
        self._socket.close()
        os.environ[worker.CAPTURE_VARIABLE] = mark
        return True


def not_to_be_forked(*known: int) -> str:
    """Return the reason why a copy of this process might differ from a started one; empty if there is none.

    Another thread may hold a lock that would stay locked in the copy; a device accepts only the process that opened it.

    known
        Descriptors of this program itself.
    """
    try:
        threads = len(os.listdir("/proc/self/task"))
        opened = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return "the system does not say what this process has"
    if threads != 1:
        return f"to load the runtime has started {threads - 1} more thread(s)"
    for descriptor in opened:
        try:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # the descriptor of the listing itself
            continue
        if descriptor not in known and path.startswith("/dev/") and path not in _HARMLESS:
            return f"to load the runtime has opened {path}"
    return ""


_HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def main() -> None:
    """Serve until the socket is closed; in each forked process, be a worker."""
    Forker().serve()
    worker.main(worker.take_station())


if __name__ == "__main__":
    main()

"""Process that forks workers (:class:`.launch.ForkServer`): it loads the module of an adapter and forks on request.

``INTERPRETER forker.py``, beside the worker's file, has the same requirements, and needs Python 3.9. Its standard input
is a socket of packets: the adapter's source comes first. Then each packet with the mark of a capture file, and the
descriptors of input, output and capture file, asks for a worker; the answer is its process id.

It creates no session and no ``Adapter``, so a copy continues like a started worker, including its watcher. Where a copy
would not be like a started worker, it ends, as it does when the socket is closed.
"""

from __future__ import annotations

import faulthandler  # noqa: F401 - every worker needs it
import gc
import importlib.util
import os
import platform
import signal
import socket
import sys
from typing import Any

if __name__ == "__main__":
    del sys.path[0]  # workers do not import from this file's folder either

_SOURCE_LIMIT = 1 << 22
_HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def _worker_module() -> Any:
    path = os.path.join(os.path.dirname(__file__), "worker.py")
    spec = importlib.util.spec_from_file_location("onnxspec_worker", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def may_be_copied(*own: int) -> bool:
    """Return whether a copy of this process is like a started one.

    Another thread may hold a lock that would stay locked in the copy; a device accepts only the process that opened it.

    own
        Descriptors of this program itself.
    """
    if len(os.listdir("/proc/self/task")) != 1:
        return False
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # the descriptor of the listing itself
            continue
        if descriptor not in own and path.startswith("/dev/") and path not in _HARMLESS:
            return False
    return True


def serve(server: socket.socket, worker: Any) -> None:
    """Serve requests. Return only in a forked worker, with its standard streams in place."""
    worker.adapter_module(server.recv(_SOURCE_LIMIT).decode("utf-8"))
    platform.platform()  # adapters describe the platform; the module caches it
    gc.collect()
    gc.freeze()  # a garbage collection in a worker would write to, and so copy, every page that it shares
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no ended worker stays a zombie
    pid = 1
    while pid:
        mark, descriptors, _, _ = socket.recv_fds(server, 1 << 10, 3)
        if len(descriptors) < 3 or not may_be_copied(server.fileno(), *descriptors):
            os._exit(0)
        pid = os.fork()
        if pid:
            server.send(str(pid).encode("ascii"))
        else:
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
        for descriptor in descriptors:
            os.close(descriptor)
    signal.signal(signal.SIGCHLD, before)
    os.setsid()
    server.close()
    os.environ[worker.CAPTURE_VARIABLE] = mark.decode("ascii")


def main() -> None:
    """Serve until the socket is closed; in each forked process, be a worker."""
    server = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    worker = _worker_module()
    serve(server, worker)
    worker.main(*worker.take_station())


if __name__ == "__main__":
    main()

"""Cleanup of orphaned descendants of a worker, found by a mark in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

_LIMIT = 3.0  # seconds; a process that restarts faster than it is killed cannot be ended this way


def end_marked(mark: str) -> None:
    """End every process whose initial environment has the line `mark`. Needs /proc.

    It misses children of a target that kills its watcher and then clears their environment.
    """
    if not sys.platform.startswith("linux"):
        return
    deadline = time.monotonic() + _LIMIT
    while time.monotonic() < deadline:
        pids = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _is_marked(pid, mark)]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _is_marked(pid: int, mark: str) -> bool:
    if pid == os.getpid():
        return False
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # gone, or of another user
        return False

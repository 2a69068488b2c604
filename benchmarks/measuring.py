"""Measurement of processor time, which other load on the machine disturbs least.

It measures commands with all their processes, and functions.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

# Modules are compiled, as after an installation by pip; a setting of this workplace must not count.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


_PR_SET_CHILD_SUBREAPER = 36


def _adopt() -> None:
    """Make orphaned descendants of commands children of this process (Linux).

    The fork server of their pools ends after them, with the time of all its processes.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def command_seconds(words: Sequence[str], folder: Path, codes: Sequence[int] = (0, 1)) -> float:
    """Return the processor seconds of a command and all its processes. Raise RuntimeError for another exit code."""

    def work() -> None:
        done = subprocess.run(words, cwd=folder, env=_ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode not in codes:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.decode()[-300:]}")

    return child_seconds(work)


def child_seconds(work: Callable[[], object]) -> float:
    """Return the processor seconds of all processes that ``work`` starts and that have ended with it."""
    _adopt()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def onnxspec(*words: str) -> list[str]:
    """Return the command as the console script starts it."""
    start = "import sys; from onnxspec.conformance.cli.start import main; sys.argv[0] = 'onnxspec'; main()"
    return [sys.executable, "-c", start, *words]


def each_in_turn(rounds: int, *functions: Callable[[], object]) -> list[float]:
    """Return the median processor seconds of this process for each function.

    The functions are called in turn, so that varying load affects all of them.
    """
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for spent, function in zip(times, functions, strict=True):
            start = time.process_time()
            function()
            spent.append(time.process_time() - start)
    return [statistics.median(spent) for spent in times]

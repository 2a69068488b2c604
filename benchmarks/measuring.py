"""Processor time, which a busy machine disturbs least: of commands with all that they start, and of functions."""

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

# As installed by pip, modules are compiled; what a workplace has switched off is nothing that users feel.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


_PR_SET_CHILD_SUBREAPER = 36


def _adopt() -> None:
    """Have what commands leave behind become children of this process (Linux): the server of their pools ends only
    after them, with the time of all that it has forked."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def command_seconds(words: Sequence[str], folder: Path, codes: Sequence[int] = (0, 1)) -> float:
    """Processor seconds of a command and all that it starts. Raises RuntimeError where it ends with another exit
    code."""

    def work() -> None:
        done = subprocess.run(words, cwd=folder, env=_ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode not in codes:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.decode()[-300:]}")

    return child_seconds(work)


def child_seconds(work: Callable[[], object]) -> float:
    """Processor seconds of all the processes that some work starts, and that have ended with it."""
    _adopt()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def onnxspec(*words: str) -> list[str]:
    """The command as the console script starts it."""
    start = "import sys; from onnxspec.conformance.cli.start import main; sys.argv[0] = 'onnxspec'; main()"
    return [sys.executable, "-c", start, *words]


def each_in_turn(rounds: int, *functions: Callable[[], object]) -> list[float]:
    """Median processor seconds of this process for each function, all called in turn, so that they share the machine's
    moods."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for spent, function in zip(times, functions, strict=True):
            start = time.process_time()
            function()
            spent.append(time.process_time() - start)
    return [statistics.median(spent) for spent in times]

"""Processes that a target starts do not outlive it, even if they try."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.process import TargetProcess

from ..conformance.misbehaving import HANGS, adapter, gone, job, outcomes, processes_with, program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs a subreaper and /proc")

# Starts processes that try to survive: in their own session, with a dead parent, ignoring signals, with an empty
# environment. MARKED stands for a text by which the test finds them.
START = """
import ctypes, os, signal, subprocess, sys, time
def start(environment=None, **options):
    code = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(1000)"
    words = [sys.executable, "-I", "-S", "-c", code, "MARKED"]
    return subprocess.Popen(words, env=environment, start_new_session=True, stdin=-3, stdout=-3, stderr=-3, **options)
start()
start({})
if os.fork() == 0:
    os.setsid()
    start({})
    os._exit(0)
"""

ENDS = {
    "reports": "",
    "aborts": "os.abort()",
    "dies of SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
    "exits": "os._exit(0)",
    "hangs": "time.sleep(1000)",
    "hangs deaf": "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(1000)",
    "keeps its death signal off": "ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); time.sleep(1000)",
    "is gone from its session": "os.fork() or os.setsid(); time.sleep(1000)",
}


# The code finds no report in a worker, and a program has no watcher of its own.
PROGRAM_ENDS = {**ENDS, "talks nonsense": "report['status'] = 7"}
WORKER_ENDS = {
    **ENDS,
    "stops its watcher": "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(1000)",
    "asks its watcher to end": "os.kill(os.getppid(), signal.SIGTERM); time.sleep(1000)",
}


@pytest.mark.parametrize(
    ("make", "end"),
    [
        *(pytest.param(program, code, id=f"program {name}") for name, code in PROGRAM_ENDS.items()),
        *(pytest.param(adapter, code, id=f"runtime {name}") for name, code in WORKER_ENDS.items()),
    ],
)
def test_nothing_that_a_target_starts_outlives_it(tmp_path: Path, make: Callable[..., Target], end: str) -> None:
    hangs = "sleep" in end
    target = make(tmp_path, time_limit=3.0 if hangs else 60.0)
    codes = ("", START.replace("MARKED", str(tmp_path)) + end, "")
    with TargetProcess(target) as process:
        process.start()
        before, ended, after = (outcome.status for outcome in process.run(map(job, codes)))
        assert processes_with(str(tmp_path))
    assert (before, after) == ("ran", "ran")
    if "getppid" in end:
        assert ended in ("crashed", "timed-out")
    else:
        assert ended == ("timed-out" if hangs else "crashed" if end else "ran")
    assert gone(str(tmp_path))


def test_a_runtime_that_forks_and_returns_twice_costs_no_job(tmp_path: Path) -> None:
    """After a fork in the runtime, a copy of the worker returns from it too, and would report a second time."""
    ended = outcomes(adapter(tmp_path), *["os.fork()", "", "os.fork()"] * 4)
    assert [(outcome.status, outcome.again) for outcome in ended] == [("ran", "")] * 12


def test_a_program_that_reports_a_case_twice_is_no_reason_to_blame_the_next(tmp_path: Path) -> None:
    ended = outcomes(program(tmp_path), "", "send(dict(report), parts)", job(key="next"), "")
    assert [outcome.status for outcome in ended] == ["ran"] * 4
    assert [outcome.key for outcome in ended if outcome.again] == ["next"]


@pytest.mark.parametrize("code", ["os.kill(os.getpid(), signal.SIGSEGV)", "os._exit(139)"])
def test_a_crash_that_was_seen_gets_no_second_try(tmp_path: Path, code: str) -> None:
    """A shell reports a signal by an exit code such as 139."""
    count = tmp_path / "count"
    counted = f"open({str(count)!r}, 'a').write('x'); print('last words', flush=True); {code}"
    before, ended, after = outcomes(program(tmp_path), "", counted, "")
    assert (before.status, ended.status, after.status) == ("ran", "crashed", "ran")
    assert ended.signal == "SIGSEGV"
    assert "last words" in ended.captured
    assert count.read_text() == "x"


def test_a_lost_connection_gets_a_second_try_which_is_recorded(tmp_path: Path) -> None:
    """ssh exits with 255 when it loses the connection."""
    mark = str(tmp_path / "mark")
    once = f"if not os.path.exists({mark!r}):\n    open({mark!r}, 'w').close()\n    os._exit(255)"
    ended = outcomes(program(tmp_path), "", once, "os._exit(255)", "")
    assert [outcome.status for outcome in ended] == ["ran", "ran", "crashed", "ran"]
    assert ["255" in outcome.again for outcome in ended] == [False, True, True, False]


def test_a_program_lost_before_it_began_is_recorded(tmp_path: Path) -> None:
    """No job can be blamed, so the batch is sent again one by one; the first result records it."""
    mark = str(tmp_path / "mark")
    opening = f"""
if not os.path.exists({mark!r}):
    open({mark!r}, 'w').close()
    real = send
    def send(header, parts=()):
        if header["type"] == "began":
            os.abort()
        real(header, parts)
"""
    ended = outcomes(program(tmp_path, opening), "", "", "")
    assert [outcome.status for outcome in ended] == ["ran"] * 3
    assert ["SIGABRT" in outcome.again for outcome in ended] == [True, False, False]


@pytest.mark.parametrize("make", [program, adapter])
@pytest.mark.parametrize("fault", HANGS)
def test_nothing_outlives_a_caller_that_is_killed(tmp_path: Path, make: Callable[..., Target], fault: str) -> None:
    code = START.replace("MARKED", str(tmp_path)) + HANGS[fault].code
    script = f"""
import os, signal, threading, time
from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.process import Job, TargetProcess
process = TargetProcess({make(tmp_path)!r})
process.start()
run = process.run([Job('k', {code.encode()!r}, ({{'X': __import__('numpy').zeros(1)}},))])
threading.Thread(target=next, args=[run], daemon=True).start()
time.sleep(2)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    assert gone(str(tmp_path))

"""Processes that a target starts do not outlive it, even if they try."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.process import TargetProcess

from .programs import job, model, program
from .running import gone, processes_with

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
    "talks nonsense": "report['status'] = 7",
    "keeps its death signal off": "ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); time.sleep(1000)",
    "is gone from its session": "os.fork() or os.setsid(); time.sleep(1000)",
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_that_a_program_starts_outlives_it(tmp_path: Path, end: str) -> None:
    code = START.replace("MARKED", str(tmp_path)) + ENDS[end]
    limit = 3.0 if "sleep" in ENDS[end] else 60.0
    with TargetProcess(program(tmp_path, time_limit=limit)) as process:
        process.start()
        outcomes = list(process.run([job(key="before"), job(code, "the one"), job(key="after")]))
        assert processes_with(str(tmp_path))
    statuses = [outcome.status for outcome in outcomes]
    assert statuses[1] == ("ran" if end == "reports" else "timed-out" if limit == 3.0 else "crashed")
    assert [statuses[0], statuses[2]] == ["ran", "ran"]
    assert gone(str(tmp_path))


BACKEND = """
import importlib
class Prepared:
    def __init__(self, words):
        self.words = words
    def run(self, inputs):
        exec(self.words, {"os": __import__("os"), "signal": __import__("signal"), "time": __import__("time")})
        return inputs
def prepare(model, device="CPU", **options):
    return Prepared(model.producer_name)
def supports_device(device):
    return True
"""


@pytest.fixture
def backend(tmp_path: Path) -> Target:
    """Return a backend that executes the model's producer name as Python."""
    (tmp_path / "does_what_it_is_told.py").write_text(BACKEND, encoding="utf-8")
    environment = {"PYTHONPATH": str(tmp_path)}
    return Target("told", "backend", {"module": "does_what_it_is_told"}, environment=environment)


WORKER_ENDS = {
    **{name: words for name, words in ENDS.items() if name != "talks nonsense"},
    "stops its watcher": "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(1000)",
    "asks its watcher to end": "os.kill(os.getppid(), signal.SIGTERM); time.sleep(1000)",
}


@pytest.mark.parametrize("end", WORKER_ENDS)
def test_nothing_that_a_runtime_starts_outlives_its_worker(backend: Target, tmp_path: Path, end: str) -> None:
    code = START.replace("MARKED", str(tmp_path)) + WORKER_ENDS[end]
    dying = replace(job(), model=model(producer=code).SerializeToString())
    good = replace(job(), model=model().SerializeToString())
    limit = 3.0 if "sleep" in code.rpartition("\n")[2] else 60.0
    with TargetProcess(replace(backend, time_limit=limit)) as process:
        process.start()
        outcomes = list(process.run([good, dying, good]))
    assert [outcome.status for outcome in outcomes][::2] == ["ran", "ran"]
    assert outcomes[1].status == "ran" if end == "reports" else outcomes[1].status in ("crashed", "timed-out")
    assert gone(str(tmp_path))


def test_a_runtime_that_forks_and_comes_back_twice_costs_nobody_anything(backend: Target) -> None:
    """After a fork in the runtime, a copy of the worker returns from it too, and would report a second time."""
    twice = [replace(job(), model=model(producer=code).SerializeToString()) for code in ("os.fork()", "", "os.fork()")]
    with TargetProcess(backend) as process:
        process.start()
        outcomes = list(process.run(twice * 4))
    assert [(outcome.status, outcome.again) for outcome in outcomes] == [("ran", "")] * 12


def test_a_program_that_reports_a_case_twice_is_no_reason_to_blame_the_next(tmp_path: Path) -> None:
    twice = job("send(dict(report), parts)", "twice")
    with TargetProcess(program(tmp_path)) as process:
        process.start()
        outcomes = list(process.run([job(), twice, job(key="next"), job(key="last")]))
    assert [outcome.status for outcome in outcomes] == ["ran"] * 4
    again = [outcome.key for outcome in outcomes if outcome.again]
    assert again == ["next"]


@pytest.mark.parametrize(
    ("words", "name"), [("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"), ("os._exit(139)", "SIGSEGV")]
)
def test_a_crash_that_was_seen_gets_no_second_try(tmp_path: Path, words: str, name: str) -> None:
    """A shell reports a signal by an exit code such as 139 (the second parameter set)."""
    count = tmp_path / "count"
    counted = f"open({str(count)!r}, 'a').write('x'); print('last words', flush=True); {words}"
    with TargetProcess(program(tmp_path)) as process:
        process.start()
        outcomes = list(process.run([job(), job(counted), job()]))
    assert [outcome.status for outcome in outcomes] == ["ran", "crashed", "ran"]
    assert outcomes[1].signal == name
    assert "last words" in outcomes[1].captured
    assert count.read_text() == "x"


def test_a_lost_connection_gets_a_second_try_which_is_recorded(tmp_path: Path) -> None:
    """ssh exits with 255 when it loses the connection."""
    mark = str(tmp_path / "mark")
    once = f"if not os.path.exists({mark!r}):\n    open({mark!r}, 'w').close()\n    os._exit(255)"
    with TargetProcess(program(tmp_path)) as process:
        process.start()
        outcomes = list(process.run([job(), job(once, "once"), job("os._exit(255)", "always"), job()]))
    assert [outcome.status for outcome in outcomes] == ["ran", "ran", "crashed", "ran"]
    assert ["255" in outcome.again for outcome in outcomes] == [False, True, True, False]


def test_a_program_lost_before_it_began_is_told_of(tmp_path: Path) -> None:
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
    with TargetProcess(program(tmp_path, opening)) as process:
        process.start()
        outcomes = list(process.run([job(), job(), job()]))
    assert [outcome.status for outcome in outcomes] == ["ran"] * 3
    assert ["SIGABRT" in outcome.again for outcome in outcomes] == [True, False, False]


def test_nothing_outlives_a_run_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    code = START.replace("MARKED", str(tmp_path)) + "time.sleep(1000)"
    script.write_text(
        "import os, signal, sys, threading, time\n"
        "from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from onnxspec.conformance.targets.target import Target\n"
        "from onnxspec.conformance.workers.process import Job, TargetProcess\n"
        f"command = (sys.executable, '-I', '-S', {str(tmp_path / 'hostile.py')!r})\n"
        "target = Target('hostile', 'external', command=command)\n"
        "process = TargetProcess(target)\n"
        "process.start()\n"
        f"run = process.run([Job('k', {code.encode()!r}, ({{}},))])\n"
        "threading.Thread(target=next, args=[run], daemon=True).start()\n"
        "time.sleep(2)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    program(tmp_path)
    environment: Mapping[str, str] = {**os.environ, "OPENING": "", "MARK": str(tmp_path)}
    done = subprocess.run([sys.executable, str(script)], env=environment, check=False, timeout=300)
    assert done.returncode == -signal.SIGKILL
    assert gone(str(tmp_path))

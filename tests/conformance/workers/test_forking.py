"""Workers that are forked after a crash: the same answers, and newly started ones where a fork would not be safe."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.job import Outcome
from onnxspec.conformance.workers.launch import ForkServer
from onnxspec.conformance.workers.process import TargetProcess

from ..misbehaving import CRASHES, adapter, job, outcomes, running

FORKS = "FORKS = True"
DIE = CRASHES["aborts"].code
WHO = "outputs = [np.array([os.getpid() != LOADED_BY])]"
ENVIRONMENT = "outputs = [np.frombuffer(os.environ.get('OPENBLAS_NUM_THREADS', 'none').encode(), np.uint8)]"
AT_START = "outputs = [np.array([b'OPENBLAS_NUM_THREADS=1' in open('/proc/self/environ', 'rb').read()])]"


def target(folder: Path, more: str = FORKS) -> Target:
    return adapter(folder, f"LOADED_BY = os.getpid()\n{more}")


def returned(outcome: Outcome) -> object:
    return outcome.outputs[0][0][0].tolist() if outcome.status == "ran" else outcome.status


def forked(chosen: Target) -> list[object]:
    """Return whether the workers before and after a crash have a runtime that another process has loaded."""
    return [returned(outcome) for outcome in outcomes(chosen, WHO, DIE, WHO)]


def test_after_a_crash_workers_are_forked_and_the_first_is_not(tmp_path: Path) -> None:
    assert forked(target(tmp_path)) == [[False], "crashed", [True]]


def test_forked_and_started_workers_return_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    codes = ("", DIE, "", ENVIRONMENT, "os._exit(7)", DIE, "")
    by_fork = outcomes(target(tmp_path), *codes)
    started = outcomes(target(tmp_path, more=""), *codes)
    assert [returned(o) for o in by_fork] == [returned(o) for o in started]
    assert [(o.signal, o.message) for o in by_fork] == [(o.signal, o.message) for o in started]
    assert "last words" in by_fork[1].captured
    assert by_fork[5].captured.startswith("last words")


@pytest.mark.parametrize("more", ["", FORKS])
@pytest.mark.parametrize("callers", ["", "3"])
def test_numpy_loads_with_one_thread_and_the_runtime_gets_the_callers_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, callers: str
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if callers:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", callers)
    at_start, environment = outcomes(target(tmp_path, more), AT_START, ENVIRONMENT)
    assert returned(at_start) == [bool(more)]
    assert returned(environment) == [*(callers or "none").encode()]


@pytest.mark.parametrize(
    "more",
    [
        "",
        "FORKS = 1",
        "FORKS = True\nimport threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
        "FORKS = True\nheld = os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)",
        "FORKS = True\nif os.path.basename(__import__('sys').argv[0]) == 'forker.py': raise RuntimeError",
    ],
    ids=["undeclared", "not-quite-declared", "thread", "device", "loads-only-in-a-worker"],
)
def test_others_are_started(tmp_path: Path, more: str) -> None:
    assert forked(target(tmp_path, more)) == [[False], "crashed", [False]]


def test_a_process_without_a_fork_server_starts_its_workers(tmp_path: Path) -> None:
    with TargetProcess(target(tmp_path)) as process:
        process.forks = None
        assert [returned(outcome) for outcome in process.run(map(job, (DIE, WHO)))] == ["crashed", [False]]


def test_processes_of_a_target_share_a_fork_server_and_leave_no_process_behind(tmp_path: Path) -> None:
    chosen, answers, pids = target(tmp_path), [], []
    with ForkServer() as forks:
        for codes in ((WHO,), (DIE, WHO), (WHO,), (WHO,)):
            with TargetProcess(chosen) as process:
                process.forks = forks
                answers.append([returned(outcome) for outcome in process.run(map(job, codes))])
                assert process._worker is not None
                pids.append(process._worker._process.pid)
            if len(answers) == 3:
                assert forks._process is not None
                forks._process.kill()  # from then on, workers are started
                pids.append(forks._process.pid)
                forks._process.wait()
    assert answers == [[[False]], ["crashed", [True]], [[True]], [[False]]]
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(map(running, pids)):
        time.sleep(0.01)
    assert not any(map(running, pids))

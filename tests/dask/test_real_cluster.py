"""Real clusters of Dask's, on this machine: what happens to workers costs nothing of a run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import distributed
import pytest
from msgspec import structs

from onnxspec.cases import CaseSpec
from onnxspec.conformance.cluster.connection import cluster_at
from onnxspec.conformance.cluster.process import ClusterProcess
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.selection import Selection
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.events import CaseJudged
from onnxspec.conformance.running.run import Plan
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers.job import ClusterError

from ..conformance.miniatures import HEEDING, command_line, naming, pick, read_results

SPECS = [
    CaseSpec("RNN", 14, T=T, N=N, I=2, H=3, outputs=("Y", "Y_h"), lengths=lengths)
    for T in (2, 3, 4, 5)
    for N in (1, 2, 3, 4)
    for lengths in ("absent", "ragged")
]
POISON = SPECS[13]

# Ends the worker of the cluster that its machine is: the parent of the process that watches it.
KILLER = """
import zoo, os, signal
def spoil(prepared, inputs, outputs):
    if inputs["X"].shape[:2] == (%d, %d) and "sequence_lens" in inputs:
        watcher = os.getppid()
        parent = int(open(f"/proc/{watcher}/stat").read().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
    return outputs
Backend = zoo.spoiling(spoil)
"""
# Only where a variable says so.
ONLY_THERE = """
import os, zoo
assert os.environ.get("ONLY_THERE"), "no device here"
Backend = zoo.Conforming
"""

Ran = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def address(kin: dict[str, str], kin_folder: Path) -> Iterator[str]:
    """The scheduler of a cluster with two workers, which come back when they are ended."""
    (kin_folder / "killer.py").write_text(KILLER % (POISON.T, POISON.N))
    (kin_folder / "only_there.py").write_text(ONLY_THERE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", kin["PYTHONPATH"])
        with distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            scheduler_kwargs={"allowed_failures": 0},
        ) as cluster:
            yield cluster.scheduler_address


@pytest.fixture
def ran(address: str, kin: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ran:
    monkeypatch.setenv("PYTHONPATH", kin["PYTHONPATH"])
    monkeypatch.setattr("onnxspec.conformance.cluster.process.BATCH_JOBS", 4)

    def results(
        target: Target, there: bool = True, each: Callable[[int], None] = lambda number: None
    ) -> list[dict[str, Any]]:
        """The results of a run of all cases, with everything but seconds."""
        plan = Plan(Selection(), tuple(SpecProbe(spec, fresh=True) for spec in SPECS), (target,), shrinks=False)
        numbers = iter(range(len(SPECS)))

        def observe(event: object) -> None:
            if isinstance(event, CaseJudged):
                each(next(numbers))

        with RunWriter(tmp_path / f"{target.name}-{there}") as journal:
            if not there:
                (done,) = execute(plan, journal, observe).targets
            else:
                with cluster_at(address) as cluster:
                    (done,) = execute(replace(plan, process=cluster.process), journal, observe).targets
        return [{**structs.asdict(result), "seconds": 0} for result in done.results]

    return results


@contextmanager
def worker(address: str, *options: str, **variables: str) -> Iterator[None]:
    """One more worker, as somebody starts it on a machine of a farm."""
    words = ["dask", "worker", address, "--no-dashboard", "--nthreads", "1", "--no-nanny", *options]
    started = subprocess.Popen(
        [sys.executable, "-m", *words],
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        started.terminate()
        started.wait(20)


def verdicts(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["case"]: row["verdict"] for row in rows}


def test_a_worker_that_is_killed_and_one_that_comes_cost_nothing(ran: Ran, address: str) -> None:
    target = parse_target("backend:lengths_ignored")
    here = ran(target, there=False)
    with distributed.Client(address) as client:
        running = list(client.run(os.getpid).values())

        def disturb(number: int) -> None:
            if number == 5:
                os.kill(running[0], signal.SIGKILL)

        with worker(address):
            assert ran(target, each=disturb) == here
    assert {row["verdict"] for row in here} == {"pass", "wrong"}


def test_a_target_that_one_machine_has_is_run_there(ran: Ran, address: str) -> None:
    with worker(address, "--resources", "mine=1", ONLY_THERE="1"), distributed.Client(address) as client:
        client.wait_for_workers(3, timeout=30)
        outcome = ran(Target("mine", "backend", {"module": "only_there"}))
    assert set(verdicts(outcome).values()) == {"pass"}
    assert len(outcome) == len(SPECS)


def test_a_case_that_kills_every_worker_is_found_and_the_others_are_judged(ran: Ran) -> None:
    outcome = verdicts(ran(Target("poisoned", "backend", {"module": "killer"})))
    assert list(outcome) == [spec.id for spec in SPECS]
    assert {case: verdict for case, verdict in outcome.items() if verdict != "pass"} == {POISON.id: "crashed"}


def test_what_is_interrupted_goes_on(address: str, kin: dict[str, str], tmp_path: Path) -> None:
    cases = naming(pick(150))  # enough that the run still goes on when the signal comes
    plain = ("run", "-t", "backend:lengths_ignored", *cases, "--no-extra")
    words = (*plain, "--scheduler", address, "--out", str(tmp_path / "run"))
    start = command_line(*words)
    start[2] = HEEDING + start[2]
    run = subprocess.Popen(start, env=kin, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    journal = tmp_path / "run" / "results.jsonl"
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 4):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, message = run.communicate(timeout=60)
    assert run.returncode == 130
    assert message.decode().startswith("onnxspec: interrupted; what was obtained is in")
    again = subprocess.run(command_line(*words, "--resume", "--quiet"), env=kin, timeout=100, capture_output=True)
    assert again.returncode == 1, again.stderr
    subprocess.run(
        command_line(*plain, "--out", str(tmp_path / "here"), "--quiet"), env=kin, timeout=100, capture_output=True
    )
    outcome, here = read_results(tmp_path / "run"), read_results(tmp_path / "here")
    assert {row["case"]: row["verdict"] for row in outcome} == {row["case"]: row["verdict"] for row in here}


def test_a_cluster_of_this_machine_s_processors() -> None:
    with cluster_at("local:1") as cluster, cluster.process(parse_target("onnx-reference")) as process:
        assert isinstance(process, ClusterProcess)
        assert process.start()["runtime"] == "onnx-reference"


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"", "what listens there has said nothing for 1 s"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "what listens there is none"),
    ],
)
def test_what_is_no_scheduler_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, greeting: bytes, reason: str) -> None:
    """Where something else listens, one that waits to be asked, or one that answers in its own words."""
    monkeypatch.setattr("onnxspec.conformance.cluster.connection._CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            with suppress(OSError):
                for _ in range(2):  # it is looked for, and then spoken to
                    connection, _ = other.accept()
                    connection.sendall(greeting)
                    kept.append(connection)

        kept: list[socket.socket] = []
        Thread(target=greet, daemon=True).start()
        place = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no scheduler answers at {place}: {reason}"), cluster_at(place):
            pass
        for connection in kept:
            connection.close()

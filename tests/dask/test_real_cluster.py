"""Real Dask clusters on this machine, also over TLS: workers that die or join cost a run only time."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import dask
import distributed
import pytest

from onnxspec.conformance.cluster.connection import ClusterError, cluster_at
from onnxspec.conformance.cluster.shards import run_shards
from onnxspec.conformance.probes.selection import Selection
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.planning import planned
from onnxspec.conformance.running.run import Plan, Run
from onnxspec.conformance.targets.target import Target, parse_target

from ..conformance.miniatures import HEEDING, command_line, pick, read_results

TWO_WORKERS: dict[str, Any] = {
    "n_workers": 2,
    "threads_per_worker": 1,
    "host": "127.0.0.1",
    "dashboard_address": "127.0.0.1:0",
    "memory_limit": 0,
}
# Importable only where an environment variable is set.
ONLY_THERE = """
import os, zoo
assert os.environ.get("ONLY_THERE"), "no device here"
Backend = zoo.Conforming
"""


@pytest.fixture(scope="module")
def address(kin: dict[str, str], kin_folder: Path) -> Iterator[str]:
    """Yield the scheduler's address of a cluster with two workers, which are restarted when they end."""
    (kin_folder / "only_there.py").write_text(ONLY_THERE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", kin["PYTHONPATH"])
        with distributed.LocalCluster(**TWO_WORKERS, scheduler_kwargs={"allowed_failures": 2}) as cluster:
            yield cluster.scheduler_address


@pytest.fixture
def plan(kin: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setenv("PYTHONPATH", kin["PYTHONPATH"])
    monkeypatch.setattr("onnxspec.conformance.cluster.shards._CASES", 4)
    ids = (*pick(12), *pick(8, lambda spec: spec.lengths == "ragged"))
    selection = Selection(cases=tuple(dict.fromkeys(ids)))
    return replace(planned(selection, [parse_target("backend:lengths_ignored")]), shrinks=False)


@contextmanager
def worker(address: str, *options: str, **variables: str) -> Iterator[None]:
    """Add a worker, as on a machine of a cluster."""
    arguments = ["dask", "worker", address, "--no-dashboard", "--nthreads", "1", "--no-nanny", *options]
    started = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        started.terminate()
        started.wait(20)


def verdicts(run: Run) -> dict[str, str]:
    (target,) = run.targets
    return {result.case: result.verdict.value for result in target.results}


def test_a_worker_that_is_killed_and_one_that_comes_cost_time_only(plan: Plan, address: str, tmp_path: Path) -> None:
    with RunWriter(tmp_path / "here") as writer:
        local = execute(plan, writer)
    assert {*verdicts(local).values()} == {"pass", "wrong"}
    with distributed.Client(address) as client:
        running = list(client.run(os.getpid).values())

        def disturb(line: str) -> None:
            if line.startswith("1 of "):
                os.kill(running[0], signal.SIGKILL)

        with worker(address), cluster_at(address) as cluster:
            remote = run_shards(plan, tmp_path / "there", cluster, report=disturb)
    assert verdicts(remote) == verdicts(local)
    assert remote.exit_code == local.exit_code


def test_a_target_that_one_machine_has_is_run_there(plan: Plan, address: str, tmp_path: Path) -> None:
    with worker(address, "--resources", "mine=1", ONLY_THERE="1"), distributed.Client(address) as client:
        client.wait_for_workers(3, timeout=30)
        mine = replace(plan, targets=(Target("mine", "backend", {"module": "only_there"}),))
        with cluster_at(address) as cluster:
            outcome = verdicts(run_shards(mine, tmp_path / "run", cluster))
    assert {*outcome.values()} == {"pass"}
    assert {*outcome} == {probe.id for probe in plan.probes}


def test_an_interrupted_run_is_resumed(address: str, kin: dict[str, str], tmp_path: Path) -> None:
    plain = ("run", "-t", "backend:lengths_ignored", "--op", "LSTM-14", "--no-extra")  # several shards
    arguments = (*plain, "--scheduler", address, "--out", str(tmp_path / "run"))
    start = command_line(*arguments)
    start[2] = HEEDING + start[2]
    run = subprocess.Popen(start, env=kin, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    shards = tmp_path / "run" / "shards"
    while not list(shards.glob("*-of-*/run.json")):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, message = run.communicate(timeout=60)
    assert run.returncode == 130
    *_, last = message.decode().splitlines()  # behind lines on shards that were back by then
    assert last.startswith("onnxspec: interrupted; what was obtained is in")
    again = subprocess.run(command_line(*arguments, "--resume", "--quiet"), env=kin, timeout=100, capture_output=True)
    assert again.returncode == 1, again.stderr
    subprocess.run(
        command_line(*plain, "--out", str(tmp_path / "here"), "--quiet"), env=kin, timeout=100, capture_output=True
    )
    outcome, local = read_results(tmp_path / "run"), read_results(tmp_path / "here")
    assert {row["case"]: row["verdict"] for row in outcome} == {row["case"]: row["verdict"] for row in local}


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"", "no greeting within 1 s"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "another program listens there"),
    ],
)
def test_another_program_at_the_address_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, greeting: bytes, reason: str
) -> None:
    """Something else listens at the address: a server that waits for a request, or one with another protocol."""
    monkeypatch.setattr("onnxspec.conformance.cluster.connection._CONNECT_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            with suppress(OSError):
                connection, _ = other.accept()
                connection.sendall(greeting)
                kept.append(connection)

        kept: list[socket.socket] = []
        Thread(target=greet, daemon=True).start()
        url = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no scheduler answers at {url}: {reason}"), cluster_at(url):
            pass
        for connection in kept:
            connection.close()


# TLS

Certificates = dict[str, str]


def certificates() -> Certificates:
    """Return the texts of a new certificate that has signed itself, by Dask's configuration keys."""
    made = distributed.Security.temporary()
    members = {
        f"distributed.comm.tls.{role}.{part}": getattr(made, f"tls_{role}_{part}")
        for role in ("client", "scheduler", "worker")
        for part in ("cert", "key")
    }
    return {"distributed.comm.tls.ca-file": made.tls_ca_file, **members}


@pytest.fixture(scope="module")
def farm() -> Iterator[tuple[str, Certificates]]:
    """Yield the address of a scheduler with two workers, and the certificates that they accept."""
    accepted = certificates()
    with (
        dask.config.set(accepted),
        distributed.LocalCluster(
            **TWO_WORKERS, protocol="tls://", security=distributed.Security(require_encryption=True)
        ) as cluster,
    ):
        assert cluster.scheduler_address.startswith("tls://")
        yield cluster.scheduler_address, accepted


def test_a_run_over_tls_is_the_run_here(farm: tuple[str, Certificates], tmp_path: Path) -> None:
    address, accepted = farm
    plan = planned(Selection(cases=tuple(pick(6))), [parse_target("onnx-reference")])
    with RunWriter(tmp_path / "here") as writer:
        (local,) = execute(plan, writer).targets
    with dask.config.set(accepted), cluster_at(address) as cluster:
        (remote,) = run_shards(plan, tmp_path / "there", cluster).targets
    results = [{(r.case, r.verdict, r.worst) for r in done.results} for done in (remote, local)]
    assert results[0] == results[1]


@pytest.mark.parametrize("whose", ["nobody", "somebody else"])
def test_a_client_without_the_certificates_of_the_farm_is_refused(farm: tuple[str, Certificates], whose: str) -> None:
    address, accepted = farm
    others = dict.fromkeys(accepted) if whose == "nobody" else certificates()
    with (
        dask.config.set(others),
        pytest.raises(ClusterError, match="no scheduler answers") as caught,
        cluster_at(address),
    ):
        pass
    assert "\n" not in str(caught.value)
    # A client that is still open when it is collected can prevent the next one from starting.
    clients = [item for item in gc.get_objects() if type(item) is distributed.Client]
    assert {client.status for client in clients} <= {"closed"}

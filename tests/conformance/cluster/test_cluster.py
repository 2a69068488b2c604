"""More than one machine, without any: tasks are pickled and carried out in this process. tests/dask has real ones."""

from __future__ import annotations

import pickle
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from onnxspec.cases import CaseSpec
from onnxspec.conformance import run
from onnxspec.conformance.cluster.batch import Batch, Reply
from onnxspec.conformance.cluster.connection import Cluster, cluster_at
from onnxspec.conformance.cluster.machine import carry_out
from onnxspec.conformance.cluster.scheduler import Scheduler
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.selection import Selection
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.run import Plan
from onnxspec.conformance.targets.target import parse_target
from onnxspec.conformance.workers.job import ClusterError

from ..miniatures import Finished

Inside = Callable[..., Finished]
SPECS = [  # three batches
    CaseSpec("RNN", 14, T=T, N=2, I=2, H=3, outputs=("Y", "Y_h"), direction=direction, lengths=lengths)
    for T in (2, 3, 4)
    for direction in ("forward", "bidirectional")
    for lengths in ("absent", "ragged")
]


class KilledWorker(Exception):
    allowed_failures = 0


class Client:
    """Dask's, as far as a cluster asks it; every task runs here, and some end the worker."""

    def __init__(self, kills: Callable[[Batch], bool] = lambda batch: False) -> None:
        self.kills = kills
        self.sizes: list[int] = []

    def submit(self, function: Callable[[Any], Any], batch: Batch, pure: bool, resources: object) -> Any:
        sent = pickle.dumps((function, batch))

        def result() -> Any:
            self.sizes.append(len(batch.probes))
            if self.kills(batch):
                raise KilledWorker
            carry, task = pickle.loads(sent)
            return pickle.loads(pickle.dumps(carry(task)))

        return SimpleNamespace(result=result)

    def run_on_scheduler(self, function: Callable[..., Any]) -> Any:
        return function(SimpleNamespace(workers={"a": SimpleNamespace(nthreads=2, resources={})}))

    def run(self, function: Callable[..., Any], *arguments: object, on_error: str) -> None:
        function(*arguments)

    def cancel(self, futures: object, force: bool) -> None:
        pass


def cluster(client: Client) -> Cluster:
    scheduler = SimpleNamespace(KilledWorker=KilledWorker)
    names = SimpleNamespace(
        scheduler=scheduler, CancelledError=OSError, TimeoutError=OSError, wait=lambda futures: None
    )
    return Cluster(Scheduler(names, client))


@pytest.fixture
def results(
    kin: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str, Client | None], list[dict[str, Any]]]:
    """The results of a run, with everything but seconds."""
    monkeypatch.setenv("PYTHONPATH", kin["PYTHONPATH"])
    monkeypatch.setattr("onnxspec.conformance.cluster.process.BATCH_JOBS", 5)

    def of(backend: str, client: Client | None) -> list[dict[str, Any]]:
        target = parse_target(f"backend:{backend}")
        plan = Plan(Selection(), tuple(SpecProbe(spec, fresh=True) for spec in SPECS), (target,), shrinks=False)
        if client is not None:
            plan = replace(plan, process=cluster(client).process)
        with RunWriter(tmp_path / f"{backend}-{client is None}") as journal:
            (ran,) = execute(plan, journal).targets
        # What Python prints when it is aborted names its thread by an address, another one every time.
        printed = [re.sub("0x[0-9a-f]+", "0x", result.printed) for result in ran.results]
        rows = map(structs.asdict, ran.results)
        return [{**row, "seconds": 0, "printed": text} for row, text in zip(rows, printed, strict=True)]

    return of


@pytest.mark.long
@pytest.mark.parametrize("backend", ["lengths_ignored", "aborting"])
def test_results_are_those_of_a_run_here(backend: str, results: Callable[..., Any]) -> None:
    here = results(backend, None)
    assert {row["verdict"] for row in here} > {"pass"}
    assert results(backend, Client()) == here


def test_a_case_that_ends_its_machine_stands_alone_with_its_verdict(results: Callable[..., Any]) -> None:
    guilty = SPECS[7].id
    client = Client(lambda batch: guilty in [probe.id for probe in batch.probes])
    outcome = results("conforming", client)
    assert [row["case"] for row in outcome] == [spec.id for spec in SPECS]
    assert {row["case"]: row["verdict"] for row in outcome if row["verdict"] != "pass"} == {guilty: "crashed"}
    (message,) = (row["message"] for row in outcome if row["case"] == guilty)
    assert message.startswith("ended every worker of the cluster that it came to, the last times alone")


def test_a_machine_with_another_runtime_or_release_is_no_part_of_the_run() -> None:
    here = cluster(Client()).process(parse_target("onnx-reference"))
    with here:
        description = here.start()
        with pytest.raises(ClusterError, match="have different runtimes for onnx-reference: version"):
            here._accept(Reply({**description, "version": "0.1"}))
    with pytest.raises(ClusterError, match=r"a worker has onnxspec \S+, and the run was started with 0\.1"):
        carry_out(replace(here._blank, release="0.1"))


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address of this machine at which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_a_scheduler_that_is_not_there_is_told_in_a_line(inside: Inside, nobody: str, tmp_path: Path) -> None:
    done = inside("run", "--scheduler", nobody, "--out", tmp_path / "out")
    assert (done.code, done.complaint) == (3, f"onnxspec: no scheduler answers at {nobody}: Connection refused")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("tcp://192.0.2.1:8786", "is not this machine, and what is sent is executed there: use tls://"),
        ("farm.example:8786", "is not this machine, and what is sent is executed there: use tls://"),
        ("localhost", "is no address of a scheduler: tls://host:8786, or local"),
        ("tcp://localhost:99999", "is no address of a scheduler"),
        ("ftp://localhost:1", "is no address of a scheduler"),
    ],
)
def test_beyond_this_machine_only_tls_is_spoken(address: str, complaint: str) -> None:
    with pytest.raises(ClusterError, match=complaint), cluster_at(address):
        pass


def test_a_function_cannot_be_sent() -> None:
    with pytest.raises(ValueError, match="a function of this process cannot be sent to a cluster"):
        run(lambda model, inputs: {}, scheduler="local")

"""A run by shards without a cluster: tasks are pickled and run in this process. tests/dask has real clusters."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from onnxspec.conformance.cluster.connection import Cluster, ClusterError, cluster_at
from onnxspec.conformance.cluster.shards import run_shards
from onnxspec.conformance.probes.selection import Selection
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.planning import planned
from onnxspec.conformance.running.run import Plan, Run
from onnxspec.conformance.targets.adapters import adapter_source
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.reference.errors import RecordError, UserError

from ..miniatures import Finished, pick

Inside = Callable[..., Finished]


class Here(Cluster):
    """Cluster in this process. After `most` tasks its scheduler is gone."""

    def __init__(self, most: int = 99) -> None:
        self.most, self.tasks = most, list[str]()

    def results(self, function: Any, tasks: Iterable[Any], target: str) -> Iterator[tuple[Any, Any]]:
        for task in tasks:
            if len(self.tasks) == self.most:
                raise ClusterError("the scheduler does not answer any more")
            self.tasks.append(task.shard)
            yield task, pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(task)))


@pytest.fixture
def plan(kin: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setenv("PYTHONPATH", kin["PYTHONPATH"])
    monkeypatch.setattr("onnxspec.conformance.cluster.shards._CASES", 6)
    ids = (*pick(6), *pick(6, lambda spec: spec.lengths == "ragged"))
    selection = Selection(cases=tuple(dict.fromkeys(ids)))
    return replace(planned(selection, [parse_target("backend:lengths_ignored")]), shrinks=False)


def results(run: Run) -> dict[str, dict[str, Any]]:
    """Return the results of a run by case, without seconds and without diagnoses, which depend on the shard."""
    (target,) = run.targets
    left_out = ("seconds", "diagnosis")
    return {r.case: {k: v for k, v in structs.asdict(r).items() if k not in left_out} for r in target.results}


def test_shards_make_the_run_that_one_machine_makes(plan: Plan, tmp_path: Path) -> None:
    plan = replace(plan, record=True)
    with RunWriter(tmp_path / "here") as writer:
        local = execute(plan, writer)
    remote = run_shards(plan, tmp_path / "there", Here())
    assert results(remote) == results(local)
    assert {row["verdict"].value for row in results(local).values()} == {"pass", "wrong"}
    assert remote.exit_code == local.exit_code == 1
    assert not (tmp_path / "there" / "shards").exists()
    with RunWriter(tmp_path / "there", resume=True) as writer:  # a run like any other
        assert results(execute(replace(plan, targets=remote.plan.targets), writer)) == results(local)


def test_requirements_apply_to_the_merged_run(plan: Plan, tmp_path: Path) -> None:
    selection = replace(plan.selection, cases=plan.selection.cases[:2])
    passing = planned(selection, [parse_target("onnx-reference")])
    refused = frozenset({(f"{probe.op}-{probe.version}", probe.type) for probe in passing.probes})
    run = run_shards(replace(passing, require=refused), tmp_path / "run", Here())
    assert run.plan.require == refused


def test_shards_that_are_back_are_not_run_again(plan: Plan, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(ClusterError):
        run_shards(plan, folder, Here(most=1))
    with pytest.raises(RecordError, match="holds shards of a run: go on with --resume"):
        run_shards(plan, folder, Here())
    with pytest.raises(RecordError, match="holds shards of another run"):
        run_shards(replace(plan, record=True), folder, Here(), resume=True)
    rest = Here()
    run = run_shards(plan, folder, rest, resume=True)
    assert rest.tasks == ["2/2"]
    assert {*results(run)} == {probe.id for probe in plan.probes}
    with pytest.raises(RecordError, match="already holds a run: go on without --scheduler"):
        run_shards(plan, folder, Here(), resume=True)


def test_files_that_a_target_names_are_sent_along(plan: Plan, tmp_path: Path) -> None:
    adapter, expected_file = tmp_path / "mine.py", tmp_path / "known.toml"
    adapter.write_text(adapter_source("backend"), encoding="utf-8")
    expected_file.write_text('[[expected]]\nop = "LSTM"\nverdicts = ["wrong"]\nreason = "known"\n', encoding="utf-8")
    target = Target("mine", str(adapter), {"module": "lengths_ignored"}, expected=str(expected_file))

    class Far(Here):
        def results(self, function: Any, tasks: Iterable[Any], target: str) -> Iterator[tuple[Any, Any]]:
            todo = list(tasks)
            adapter.rename(tmp_path / "away.py")  # another machine does not have it
            yield from super().results(function, todo, target)
            (tmp_path / "away.py").rename(adapter)

    run = run_shards(replace(plan, targets=(target,)), tmp_path / "run", Far())
    failing = [result for result in run.targets[0].results if result.failing]
    assert failing
    assert {result.why for result in failing} == {"known"}
    assert run.exit_code == 0
    assert str(adapter) in (tmp_path / "run" / "run.json").read_text()


def test_a_plan_of_two_targets_or_of_a_shard_is_refused(plan: Plan, tmp_path: Path) -> None:
    for wrong in (
        replace(plan, targets=(*plan.targets, parse_target("onnx-reference"))),
        planned(plan.selection, plan.targets, shard="1/2"),
    ):
        with pytest.raises(UserError, match="--scheduler runs one whole run of one target"):
            run_shards(wrong, tmp_path / "run", Here())


def test_a_missing_scheduler_is_reported_in_a_line(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("onnxspec.conformance.cluster.connection._CONNECT_SECONDS", 0.5)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{held.getsockname()[1]}"
        done = inside("run", "--scheduler", address, "--out", tmp_path / "out")
    assert done.code == 3
    assert done.complaint.startswith(f"onnxspec: no scheduler answers at tcp://{address}: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("tcp://192.0.2.1:8786", "is another machine, which executes code that it is sent: use tls://"),
        ("farm.example:8786", "is another machine, which executes code that it is sent: use tls://"),
        ("localhost", "is no address of a scheduler: tls://host:8786"),
        ("tcp://localhost:99999", "is no address of a scheduler"),
        ("ftp://localhost:1", "is no address of a scheduler"),
    ],
)
def test_beyond_this_machine_only_tls_is_spoken(address: str, complaint: str) -> None:
    with pytest.raises(ClusterError, match=complaint), cluster_at(address):
        pass

"""If a target declines cases, random ones are added: the same ones wherever its results are known."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from msgspec import structs

from onnxspec.cases.profiles.random_cases import traits_of
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.results.expected.entries import Entry
from onnxspec.conformance.results.records import FillingRecord
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.running import filling, planning
from onnxspec.conformance.running.conclusion import no_longer_needed
from onnxspec.conformance.running.filling import MOST, cases_to_add, filling_record, with_filled
from onnxspec.conformance.running.run import Plan, Run, TargetRun
from onnxspec.conformance.targets.target import Target

from ..miniatures import Inside

CORE = tuple(select_probes(Selection("core", ("RNN",)), ("RNN",)))
# Features that compilers for devices lack.
DEVICE = {"lengths", "layout=1", "clip", "activations", "dimensions=symbolic", "weights=input"}
DEVICE |= {"type=float64", "type=bfloat16"}


def traits(probe: Probe) -> frozenset[str]:
    assert isinstance(probe, SpecProbe)
    return traits_of(probe.spec, probe.features)


def outcome(lacks: set[str], fails: frozenset[str] = frozenset()) -> Callable[[Probe], Verdict]:
    def verdict(probe: Probe) -> Verdict:
        if "illegal" in probe.features:
            return Verdict.PASS
        if lacks & traits(probe):
            return Verdict.UNSUPPORTED
        return Verdict.WRONG if fails & traits(probe) else Verdict.PASS

    return verdict


def filled(verdict: Callable[[Probe], Verdict], target: Target | None = None) -> tuple[Run, FillingRecord]:
    """Return a run on a target with the given verdict of each case, with added cases, and the record of adding them."""
    target = target or Target("t", "backend")
    run = Run(Plan(Selection("core", ("RNN",)), CORE, (target,), fills=True), Path(), datetime.now(timezone.utc), [])
    of_target = TargetRun(target)
    run.targets.append(of_target)

    def judge(probes: tuple[Probe, ...]) -> None:
        of_target.results += [result_of(p, target.name, Judgement(verdict(p)), 0.0, None) for p in probes]

    judge(run.plan.probes_of(target))
    done = {result.case for result in of_target.results}
    run.plan = with_filled(run.plan, target, cases_to_add(run.plan, target, of_target.results))
    judge(tuple(probe for probe in run.plan.probes_of(target) if probe.id not in done))
    of_target.filling = filling_record(run.plan, target, of_target.results)
    return run, of_target.filling


@pytest.fixture(scope="module")
def device() -> tuple[Run, FillingRecord]:
    return filled(outcome(DEVICE))


def followed(run: Run) -> tuple[Probe, ...]:
    return run.plan.filled.get("t", ())


def test_a_known_failure_that_only_a_case_that_followed_shows_is_still_needed(
    device: tuple[Run, FillingRecord],
) -> None:
    run, _ = device
    entry = Entry("of late", "RNN", verdicts=("wrong",))
    (passing,) = run.targets
    assert no_longer_needed(run.plan, [entry], passing) == [entry]
    last = followed(run)[-1].id
    results = [structs.replace(r, verdict=Verdict.WRONG) if r.case == last else r for r in passing.results]
    failing = TargetRun(passing.target, results=results)
    assert no_longer_needed(run.plan, [entry], failing) == []


def test_cases_follow_that_use_only_what_a_device_has(device: tuple[Run, FillingRecord]) -> None:
    run, record = device
    assert {"layout=1", "clip", "activations", "type=float64"} <= set(record["lacks"]["RNN"])
    assert len(record["cases"]) == len(followed(run)) == MOST
    verdicts = {result.case: result.verdict for result in run.targets[0].results}
    ran = [probe for probe in followed(run) if verdicts[probe.id] is Verdict.PASS]
    assert len(ran) >= 0.9 * MOST, "some lack shows in no trait by itself"


def test_the_same_results_give_the_same_cases_and_a_resumed_run_has_no_more(device: tuple[Run, FillingRecord]) -> None:
    run, record = device
    (target,) = run.targets
    texts = [p.text for p in followed(run)]
    again, same = filled(outcome(DEVICE))
    assert ([p.text for p in followed(again)], same) == (texts, record)
    plan = with_filled(Plan(run.plan.selection, CORE, run.plan.targets, fills=True), target.target, texts)
    assert plan.filled == run.plan.filled
    assert cases_to_add(plan, target.target, target.results) == ()
    assert filling_record(plan, target.target, target.results) == record


@pytest.mark.parametrize(
    "verdict", [outcome(set()), lambda probe: Verdict.UNSUPPORTED], ids=["all runs", "nothing runs"]
)
def test_nothing_follows_where_nothing_is_lacking_or_nothing_runs(verdict: Callable[[Probe], Verdict]) -> None:
    run, record = filled(verdict)
    assert (followed(run), record["lacks"]) == ((), {})


def test_nothing_follows_where_some_case_was_not_run() -> None:
    half, _ = filled(lambda probe: outcome({"layout=1"})(probe) if "rerun" in probe.features else Verdict.NOT_RUN)
    assert followed(half) == ()


def test_what_always_fails_does_not_hide_what_is_lacking() -> None:
    run, record = filled(outcome({"layout=1"}, fails=frozenset({"activations"})))
    assert record["lacks"] == {"RNN": ["layout1", "layout=1"]}
    assert len(followed(run)) == MOST


def test_failing_cases_are_tried_in_other_versions_for_a_certificate() -> None:
    """RNN-7 and RNN-22 are not certified with a defect that only cases of RNN-14 show."""
    target = Target("t", "backend")
    selection = Selection("core-nonce-17", ("RNN",))
    probes = tuple(select_probes(selection, ("RNN",)))
    plan = Plan(selection, probes, (target,), fills=True)
    specs = {probe.spec: probe for probe in probes if isinstance(probe, SpecProbe)}
    (wrong, *_) = [
        probe
        for spec, probe in specs.items()
        if (spec.version, spec.type, spec.layout, spec.illegal) == (14, "float32", 0, "")
        and not {replace(spec, version=7), replace(spec, version=22)} & specs.keys()
    ]

    def results(failing: Collection[str]) -> list[Result]:
        verdicts = {probe.id: Verdict.WRONG if probe.id in failing else Verdict.PASS for probe in probes}
        return [result_of(p, target.name, Judgement(verdicts[p.id]), 0.0, None) for p in probes]

    added = cases_to_add(plan, target, results([wrong.id]))
    assert {probe.version for probe in added} <= {1, 7, 22}
    assert {7, 22} <= {probe.version for probe in added}
    assert all(isinstance(p, SpecProbe) and replace(p.spec, version=14) == wrong.spec for p in added)
    assert cases_to_add(plan, target, results(())) == ()
    assert cases_to_add(replace(plan, selection=Selection("core", ("RNN",))), target, results([wrong.id])) == ()


def test_cases_follow_in_a_lane_that_it_can_take() -> None:
    run, _ = filled(outcome({"layout=1"}), Target("t", "backend", wrap="qdq-u8"))
    (target,) = run.targets
    wrapped = run.plan.probes_of(target.target)
    assert 0 < len(followed(run)) <= MOST
    assert {probe.id for probe in followed(run)} <= {probe.id for probe in wrapped}


def test_only_whole_operators_of_core_and_full_are_filled_up() -> None:
    def fills(selection: Selection) -> bool:
        return Plan(selection, CORE, ()).can_fill

    assert fills(Selection("core"))
    assert fills(Selection("full", ops=("LSTM",)))
    assert not fills(Selection("smoke"))
    assert not fills(Selection("core", types=("float32",)))
    assert not fills(Selection("core", cases=("rnn-*",)))


LACKING = """
def spoil(prepared, inputs, outputs):
    if inputs["X"].dtype != np.float32 or "clip" in prepared.node.attributes:
        raise NotImplementedError("not here")
    return outputs
"""


@pytest.mark.long
def test_the_command_fills_up_and_goes_on(
    inside: Inside, kin: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(kin["PYTHONPATH"])
    (folder / "lacking.py").write_text(
        "import os, time, numpy as np, zoo\n" + LACKING + "Backend = zoo.spoiling(spoil)\n", encoding="utf-8"
    )
    monkeypatch.setattr(filling, "MOST", 6)
    few = [p for p in CORE if "illegal" not in p.features][::4]
    monkeypatch.setattr(planning, "select_probes", lambda *words: few)
    arguments = ("run", "--target", "backend:lacking", "--op", "RNN", "--expected", "none", "--out", "out")
    done = inside(*arguments)
    info = json.loads((tmp_path / "out" / "run.json").read_text())
    record: FillingRecord = info["targets"][0]["filling"]
    assert len(record["cases"]) == 6
    assert "clip" in record["lacks"]["RNN"]
    assert info["digests"]["filled:backend:lacking"] == record["digest"]
    journal = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert b'"record":"cases"' in journal

    # A resumed run is the same; if its last lines are lost, resuming restores them.
    assert inside(*arguments, "--resume").code == done.code
    again = json.loads((tmp_path / "out" / "run.json").read_text())
    assert again["targets"][0]["filling"] == record
    resumed = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert resumed.count(b'"record":"result"') == journal.count(b'"record":"result"')
    lines = journal.splitlines(keepends=True)
    cut = next(k for k, line in enumerate(lines) if b'"record":"cases"' in line) + 2
    (tmp_path / "out" / "results.jsonl").write_bytes(b"".join(lines[:cut]))
    assert inside(*arguments, "--resume").code == done.code
    again = json.loads((tmp_path / "out" / "run.json").read_text())
    assert again["targets"][0]["filling"] == record
    assert again["digests"] == info["digests"]

    # A merged run has the same cases; if they are missing, it says so.
    assert inside("merge", "out", "--out", "merged").code == done.code
    merged = json.loads((tmp_path / "merged" / "run.json").read_text())
    assert merged["targets"][0]["filling"]["cases"] == record["cases"]
    inside(*arguments[:-1], "plain", "--no-extra")
    plain = json.loads((tmp_path / "plain" / "run.json").read_text())
    assert plain["targets"][0]["filling"]["left_out"] == "it was not asked for"

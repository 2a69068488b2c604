"""On a target that lacks features cases follow within what it has, the same ones wherever its results are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from onnxspec.conformance.border import encode
from onnxspec.conformance.judging import Judgement, Verdict
from onnxspec.conformance.probes import Probe, Selection, SpecProbe, select_probes
from onnxspec.conformance.proof import MOST_MODELS, OWED, faults_of, space_of
from onnxspec.conformance.results import NoRun, OperatorCoverage, coverage_line
from onnxspec.conformance.results.expected import Entry
from onnxspec.conformance.running import (
    Filling,
    Plan,
    Run,
    TargetRun,
    description_of,
    filling,
    judged_result,
    lacks_of,
    no_longer_needed,
    planning,
    with_filled,
)
from onnxspec.conformance.targets import Target, TargetError, parse_target

from ..miniatures import Finished

RNN = space_of("RNN")
CORE = tuple(select_probes(Selection("core", ("RNN",)), ("RNN",)))
# What compilers for devices lack, by contexts.
DEVICE = ("lengths=ragged", "lengths=full", "lengths=short", "lengths=empty", "layout=1", "clip", "activations")
DEVICE += ("dimensions=symbolic", "weights=input", "type=float64", "type=bfloat16")


def held(probe: Probe) -> set[str]:
    """The contexts of a case."""
    assert isinstance(probe, SpecProbe)
    there = RNN.held(probe.spec).any(axis=0)
    return {context.id for context, has in zip(RNN.contexts, there, strict=True) if has}


def outcome(lacks: tuple[str, ...], fails: tuple[str, ...] = ()) -> Callable[[Probe], Verdict]:
    def verdict(probe: Probe) -> Verdict:
        if getattr(probe, "spec").illegal:  # noqa: B009 - probes of other kinds have none
            return Verdict.PASS
        contexts = held(probe)
        if set(lacks) & contexts:
            return Verdict.UNSUPPORTED
        return Verdict.WRONG if set(fails) & contexts else Verdict.PASS

    return verdict


def filled(
    verdict: Callable[[Probe], Verdict], target: Target | None = None, follow: bool = True
) -> tuple[Run, OperatorCoverage]:
    """A run on a target of which each case has that verdict, filled up, and its coverage."""
    target = target or Target("t", "backend")
    run = Run(Plan(Selection("core", ("RNN",)), CORE, (target,), fills=True), Path(), datetime.now(timezone.utc), [])
    of_target = TargetRun(target)
    run.targets.append(of_target)
    batch = run.plan.probes_of(target)
    following = Filling(run.plan, target)
    while batch:
        judged = (judged_result(p, target, Judgement(verdict(p)), (), lambda p: "") for p in batch)
        of_target.results += judged
        batch = following.next(of_target.results) if follow else ()
    run.plan = following.plan
    of_target.coverage = following.record(of_target.results)
    (coverage,) = of_target.coverage["operators"]
    return run, coverage


@pytest.fixture(scope="module")
def device() -> tuple[Run, OperatorCoverage]:
    return filled(outcome(DEVICE))


def followed(run: Run) -> tuple[Probe, ...]:
    return run.plan.filled.get("t", ())


def test_a_known_failure_that_only_a_case_that_followed_shows_is_still_needed(
    device: tuple[Run, OperatorCoverage],
) -> None:
    run, _ = device
    known = Entry("of late", "RNN", verdicts=("wrong",))
    (passing,) = run.targets
    assert no_longer_needed(run.plan, [known], passing) == [known]
    last = followed(run)[-1].id
    results = [structs.replace(r, verdict=Verdict.WRONG) if r.case == last else r for r in passing.results]
    failing = TargetRun(passing.target, results=results)
    assert no_longer_needed(run.plan, [known], failing) == []


def test_what_a_device_lacks_is_named_and_what_it_has_is_filled_up(device: tuple[Run, OperatorCoverage]) -> None:
    run, coverage = device
    assert set(coverage["lacks"]) <= set(DEVICE)
    assert {"layout=1", "clip", "activations", "type=float64"} <= set(coverage["lacks"])
    assert coverage["reached"]
    for name, share in OWED.items():
        before, after = coverage["before"][name], coverage["after"][name]  # type: ignore[literal-required]
        assert before[0] < share * before[1]
        assert after[0] >= share * after[1]
        assert before[1] == after[1]
    assert 0 < coverage["models"] <= MOST_MODELS
    assert coverage["cases"] == len(followed(run))
    ran = [p for p in followed(run) if not set(DEVICE) & held(p)]
    assert 0 < len(followed(run)) - len(ran) <= 16  # those that were tried to learn what is lacking


def test_the_same_results_give_the_same_cases(device: tuple[Run, OperatorCoverage]) -> None:
    run, coverage = device
    again, same = filled(outcome(DEVICE))
    assert [p.text for p in followed(again)] == [p.text for p in followed(run)]
    assert same == coverage


def test_a_run_that_is_gone_on_with_has_the_same_cases_and_no_more(device: tuple[Run, OperatorCoverage]) -> None:
    run, coverage = device
    (target,) = run.targets
    texts = [p.text for p in followed(run)]
    plan = with_filled(Plan(run.plan.selection, CORE, run.plan.targets, fills=True), target.target, texts)
    assert plan.filled == run.plan.filled
    again = Filling(plan, target.target)
    assert again.next(target.results) == ()
    assert again.record(target.results)["operators"] == [coverage]


def test_nothing_follows_where_nothing_is_lacking() -> None:
    run, coverage = filled(outcome(()))
    assert followed(run) == ()
    assert coverage["reached"]
    assert coverage["lacks"] == coverage["avoided"] == []


def test_what_fails_always_is_kept_clear_of() -> None:
    """All that a list of functions would show is hidden where every case with one fails."""
    run, coverage = filled(outcome(("layout=1",), fails=("activations",)))
    assert coverage["lacks"] == ["layout=1"]
    assert coverage["avoided"] == ["activations"]
    assert not [p for p in followed(run) if "activations" in held(p)]
    assert coverage["reached"]


def test_a_target_that_runs_nothing_is_left_alone() -> None:
    run, coverage = filled(lambda probe: Verdict.UNSUPPORTED)
    assert followed(run) == ()
    assert not coverage["reached"]


def test_what_a_target_declares_is_taken_at_its_word() -> None:
    run, coverage = filled(outcome(()), Target("t", "backend", lacks=("clip",)))
    assert coverage["declared"] == coverage["lacks"] == ["clip"]
    assert not [p for p in followed(run) if "clip" in held(p)]


def test_what_no_case_has_in_a_lane_is_owed_by_nobody() -> None:
    lane = Target("t", "backend", wrap="qdq-u8")
    _, coverage = filled(lambda probe: Verdict.PASS, lane, follow=False)
    sessions = ("many", "kept", "reweighed", "beside", "waves", "after_refusal")
    outside = {id for id in RNN.position if id in sessions or id.startswith("type=")} - {"type=float32"} | {"version=1"}
    there = faults_of("RNN", frozenset((RNN.position[id],) for id in outside))
    assert coverage["lacks"] == []  # the target was not asked
    assert coverage["after"]["pairs"][1] == there.alone.sum()
    assert coverage["after"]["triples"][1] == there.together.sum()


def test_a_table_declares_it(tmp_path: Path) -> None:
    file = tmp_path / "targets.toml"
    file.write_text('[npu]\nadapter = "onnxruntime"\nlacks = ["layout=1", "clip"]\n')
    assert parse_target("npu", file).lacks == ("layout=1", "clip")
    file.write_text('[npu]\nadapter = "onnxruntime"\nlacks = ["layout=2"]\n')
    with pytest.raises(TargetError, match=r"targets.toml:3: \[npu\] lacks: there is no 'layout=2'.*layout=1"):
        parse_target("npu", file)


def test_only_whole_operators_of_core_and_full_are_filled_up() -> None:
    def counts(selection: Selection) -> bool:
        return Plan(selection, CORE, ()).counts_coverage

    assert counts(Selection("core"))
    assert counts(Selection("full", ops=("LSTM",)))
    assert not counts(Selection("smoke"))
    assert not counts(Selection("core", types=("float32",)))
    assert not counts(Selection("core", cases=("rnn-*",)))


def test_fresh_cases_keep_to_what_a_run_has_found(device: tuple[Run, OperatorCoverage], tmp_path: Path) -> None:
    run, _ = device
    (tmp_path / "run.json").write_text(encode(description_of(run)), encoding="utf-8")
    (tmp_path / "results.jsonl").write_text("", encoding="utf-8")
    assert set(lacks_of((), tmp_path)) == set(DEVICE)
    assert lacks_of([Target("t", "backend", lacks=("clip<1",))]) == ("clip<1",)
    with pytest.raises(NoRun):
        lacks_of((), tmp_path / "nowhere")


LACKING = """
def spoil(prepared, inputs, outputs):
    if inputs["X"].dtype != np.float32 or "clip" in prepared.node.attributes:
        raise NotImplementedError("not here")
    return outputs
"""


@pytest.mark.long
def test_the_command_fills_up_and_goes_on(
    inside: Callable[..., Finished], kin: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(kin["PYTHONPATH"])
    (folder / "lacking.py").write_text(
        "import os, time, numpy as np, zoo\n" + LACKING + "Backend = zoo.spoiling(spoil)\n", encoding="utf-8"
    )
    monkeypatch.setattr(filling, "MOST_MODELS", 6)
    few = [p for p in CORE if "illegal" not in p.features][::4]
    monkeypatch.setattr(planning, "select_probes", lambda *words: few)
    words = ("run", "--target", "backend:lacking", "--op", "RNN", "--no-shrink", "--no-expected", "--out", "out")
    done = inside(*words)
    assert "Coverage: " in done.out
    assert "added for these" in done.out
    assert "less than is due in RNN" in done.out
    info = json.loads((tmp_path / "out" / "run.json").read_text())
    coverage: dict[str, Any] = info["targets"][0]["coverage"]
    (one,) = coverage["operators"]
    assert 0 < one["models"] <= 12  # six, each of which may have a companion with all outputs
    assert one["cases"] == len(coverage["cases"])
    assert info["digests"]["filled:backend:lacking"] == coverage["digest"]
    assert coverage_line(coverage) in done.out.replace("\n", " ")  # type: ignore[arg-type]
    journal = (tmp_path / "out" / "journal.jsonl").read_bytes()
    assert b'"record":"filled"' in journal

    # Gone on with, it is the same; with its last lines lost it comes to the same.
    assert inside(*words, "--resume").code == done.code
    again = json.loads((tmp_path / "out" / "run.json").read_text())
    assert again["targets"][0]["coverage"] == coverage
    lines = journal.splitlines(keepends=True)
    cut = next(k for k, line in enumerate(lines) if b'"record":"filled"' in line) + 2
    (tmp_path / "out" / "journal.jsonl").write_bytes(b"".join(lines[:cut]))
    assert inside(*words, "--resume").code == done.code
    again = json.loads((tmp_path / "out" / "run.json").read_text())
    assert again["targets"][0]["coverage"] == coverage
    assert again["digests"] == info["digests"]

    # Merged, it has the same cases; without, it says so.
    assert inside("merge", "out", "--out", "merged").code == done.code
    merged = json.loads((tmp_path / "merged" / "run.json").read_text())
    assert merged["targets"][0]["coverage"]["cases"] == coverage["cases"]
    plain = inside(*words[:-1], "plain", "--no-fill")
    assert "no cases were added: it was not asked for" in plain.out.replace("\n", " ")

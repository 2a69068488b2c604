"""Proof of the suite: killed and surviving faults, false positives, and the command's report on them."""

import csv
import dataclasses
import os
import signal
import subprocess
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.proof import proof as proving
from onnxspec.conformance.proof.proof import Proof, prove
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import FAULTS, operator_of
from onnxspec.reference.kernels.kernel import Style, run_kernel
from onnxspec.reference.operators import Conforming

from ...recurrent import recurrent_versions
from ...reference.situations import TWO_TYPES
from ..miniatures import HEEDING, Inside, command_line, descendants

TWO = [
    CaseSpec("GRU", 14, T=4, N=3, I=2, H=5, lengths="ragged", direction="bidirectional", outputs=("Y", "Y_h"), seed=s)
    for s in (0, 1)
]


def proof_of(specs: list[CaseSpec], faults: list[str], styles: list[str] | None = None) -> Proof:
    *_, proof = prove(specs, faults, styles or [])
    assert isinstance(proof, Proof)
    return proof


def core_of(*ops: str) -> list[CaseSpec]:
    return [spec for op, version in recurrent_versions() if op in ops for spec in profile("core", op, version)]


def test_a_fault_is_caught_by_the_cases_in_which_it_shows() -> None:
    proof = proof_of(TWO, ["lengths.ignored", "clip.ignored"])
    lengths, clip = proof.rows
    assert (lengths.cases, lengths.well, lengths.clause) == (2, 2, "gru.lengths")
    assert lengths.best > 1000
    assert lengths.by in {spec.id for spec in TWO}
    assert (clip.cases, clip.best, clip.by) == (0, 0.0, "")
    assert proof.surviving == (clip,)


def test_one_case_alone_is_not_enough() -> None:
    proof = proof_of(TWO[:1], ["lengths.ignored"])
    assert proof.surviving == proof.rows


def test_a_proof_in_which_few_are_judged_together_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    again = dataclasses.replace(FAULTS["lengths.ignored"], id="lengths.ignored-again")  # with the same outputs
    monkeypatch.setitem(FAULTS._known, again.id, again)
    faults = ["lengths.ignored", again.id, "padding.state-repeated", "outputs.zero", "steps.skipped"]
    whole = proof_of(TWO, faults, ["library", "lanes"])
    monkeypatch.setattr(proving, "_TOGETHER", 2)
    parts = proof_of(TWO, faults, ["library", "lanes"])
    assert whole.rows[0] == dataclasses.replace(whole.rows[1], fault="lengths.ignored")
    for part, row in zip(parts.rows, whole.rows, strict=True):
        assert dataclasses.replace(part, best=row.best) == row
        assert part.best == pytest.approx(row.best, rel=1e-9)
    assert parts.false_positives == whole.false_positives


def test_a_broken_convention_counts_as_caught() -> None:
    (row,) = proof_of(TWO, ["padding.state-repeated"]).rows
    assert row.proved


@pytest.mark.parametrize("op", OPERATORS)
def test_drift_that_no_case_shows_is_caught_by_the_mean_in_every_type(op: str) -> None:
    drifting = [fault for fault in FAULTS.values() if fault.kind == "bias" and op in fault.operators]
    rows = proof_of([spec for spec in core_of(op) if spec.data == "numerics"], [fault.id for fault in drifting]).rows
    assert drifting
    assert {(row.fault, row.type) for row in rows} == {(fault.id, type) for fault in drifting for type in fault.types}
    assert all(row.proved for row in rows)


def test_a_forbidden_model_that_is_accepted_is_caught() -> None:
    illegal = [s for s in profile("core", "RNN", 14) if s.illegal.startswith("shapes.")]
    (row,) = proof_of(illegal, ["accepts.shapes"]).rows
    assert row.cases == len(illegal)


def test_a_kernel_that_is_accused_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    conforming = operator_of("GRU").conforming
    assert isinstance(conforming, dict)
    coarse = Conforming(partial(run_kernel, style=Style("coarse", operands="bfloat16")))
    monkeypatch.setitem(conforming, "coarse", coarse)
    accusations = proof_of(TWO, [], ["coarse", "library", "wide-state"]).false_positives
    assert [(a.style, a.case) for a in accusations] == [("coarse", spec.id) for spec in TWO]
    assert all(a.message.startswith("wrong: Y[0, 0, 0, 0] ") for a in accusations)


TIED = profile("quantized", "GRU", 14)[-8:]
"""Cases with known numbers half way between two levels."""


def test_two_quantized_cases_catch_each_fault_of_levels_and_none_accuses_a_right_kernel() -> None:
    *_, proof = prove([*profile("quantized", "GRU", 14)[:26], *TIED])
    assert isinstance(proof, Proof)
    assert (proof.false_positives, proof.internal_errors, proof.surviving) == ((), (), ())
    of_levels = {id for id, fault in FAULTS.items() if fault.layer == "levels" and "GRU" in fault.operators}
    assert {row.fault for row in proof.rows} == of_levels


def test_two_cases_of_each_type_of_integers_catch_ties_that_are_rounded_away_from_zero() -> None:
    caught: Counter[str] = Counter()
    for spec in TIED:
        judgement = judge_staged(build_case(spec), FAULTS["quantized.ties-away-from-zero"])
        caught[spec.quantization] += (judgement.verdict, judgement.accuracy) == (Verdict.INACCURATE, "qdq-1")
    assert caught == dict.fromkeys(("u8", "s8", "u16", "s16"), 2)


def test_clauses_without_a_fault_or_a_case_are_named() -> None:
    proof = proof_of(TWO, ["lengths.ignored"])
    assert "gru.linear-before-reset" in {clause.id for clause in proof.without_fault}
    assert "gru.lengths" not in {clause.id for clause in proof.without_fault}
    assert "gru.clip" in {clause.id for clause in proof.without_case}


def test_every_clause_that_can_be_broken_has_a_fault_and_core_a_case_for_every_clause() -> None:
    """The fast half of ``onnxspec prove``; the other half runs as a separate command."""
    proof = proving._proof(core_of(*OPERATORS), list(FAULTS), [])
    assert (proof.without_fault, proof.without_case) == ((), ())
    assert {row.op for row in proof.rows} == set(OPERATORS)


@pytest.mark.parametrize("type", TWO_TYPES)
@pytest.mark.parametrize("op", OPERATORS)
def test_a_small_case_of_core_catches_each_fault_well(op: str, type: str) -> None:
    """``onnxspec prove`` requires two cases, and tries quantized ones and drift, too."""
    specs = sorted((spec for spec in core_of(op) if spec.type == type), key=lambda spec: spec.size)
    versions = {(spec.version, bool(spec.illegal)) for spec in specs}
    missing = {
        fault.id
        for fault in FAULTS.values()
        if fault.kind != "bias" and fault.layer != "levels"
        if any(fault.applies(op, version, type) and fault.accepts == illegal for version, illegal in versions)
    }
    assert len(missing) > 150
    for spec in specs:
        if not missing:
            break
        shown = proving._try([spec], tuple(missing), ())
        missing -= {kill.fault for kill in shown if isinstance(kill, proving.Kill) and kill.margin >= proving.ENOUGH}
    assert not missing


def test_the_command_writes_its_table_and_tells_survivors(inside: Inside, tmp_path: Path) -> None:
    faults = ("--fault", "lengths.ignored", "--fault", "clip.ignored")
    done = inside("prove", "--profile", "smoke", "--op", "RNN-14", "--type", "float64", *faults, "--out", "table.csv")
    assert done.code == 1
    survivor = "clip.ignored survives in RNN float64: 0 cases catch it, 0 of them by at least 8 error bounds; 2 are req"
    assert survivor in " ".join(done.err.split())
    with (tmp_path / "table.csv").open(newline="") as file:
        cases = {row["fault"]: int(row["cases"]) for row in csv.DictReader(file)}
    assert cases["lengths.ignored"] >= 1
    assert cases["clip.ignored"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--op", "RNN", "--fault", "gru.linear-before-reset.ignored"), "none of the chosen cases can show gru."),
        (("--op", "RNN", "--fault", "extended.pre-activation.clipped"), "a fault in ExtendedLSTM"),
        (("--profile", "smoke", "--op", "RNN-14", "--fault", "accepts.shapes"), "forbidden models"),
        (("--op", "RNN", "--out", "nowhere/table.csv"), "there is no such folder"),
        (("--op", "RNN", "--out", "."), "is a folder"),
        (("--fault", "lengths.ignord"), "lengths.ignored"),
    ],
)
def test_what_would_prove_nothing_is_refused_before_it_is_tried(
    inside: Inside, words: tuple[str, ...], said: str
) -> None:
    done = inside("prove", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.complaint


@pytest.mark.skipif(not descendants(os.getppid()), reason="needs Linux")
def test_an_interrupted_proof_ends_without_a_trace(kin: dict[str, str], tmp_path: Path) -> None:
    arguments = command_line("prove", "--op", "GRU", "--type", "float32")
    arguments[2] = HEEDING + arguments[2]
    process = subprocess.Popen(arguments, env=kin, cwd=tmp_path, start_new_session=True, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 590
    while len(descendants(process.pid)) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)  # until both processes run, and the helpers of multiprocessing
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=590)
    assert (process.returncode, err) == (130, b"onnxspec: interrupted\n")

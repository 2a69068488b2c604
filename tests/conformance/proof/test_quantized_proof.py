"""Quantized cases detect the faults of levels, without false positives on right kernels."""

from __future__ import annotations

from collections import Counter

import pytest

from onnxspec.cases import build_case, profile
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.proof.proof import Proof, prove
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.reference import FAULTS

TIED = profile("quantized", "GRU", 14)[-8:]
"""Cases with known numbers half way between two levels."""


@pytest.fixture(scope="module")
def proof() -> Proof:
    cases = [*profile("quantized", "GRU", 14)[:26], *TIED]
    steps = [step for step in prove(cases) if isinstance(step, Proof)]
    return steps[0]


def test_two_cases_catch_each_fault_and_none_accuses_a_right_kernel(proof: Proof) -> None:
    assert not proof.false_positives
    assert not proof.internal_errors
    of_levels = {id for id, fault in FAULTS.items() if fault.layer == "levels" and "GRU" in fault.operators}
    assert {row.fault for row in proof.rows} == of_levels
    assert not proof.surviving


def test_two_cases_of_each_type_of_integers_catch_ties_that_are_rounded_away_from_zero() -> None:
    caught: Counter[str] = Counter()
    for spec in TIED:
        trial = build_case(spec).trial
        returned = staged_outcome(trial, FAULTS["quantized.ties-away-from-zero"])
        judgement = judge([trial], [returned])
        caught[spec.quantization] += judgement.verdict is Verdict.INACCURATE and judgement.accuracy == "qdq-1"
    assert caught == dict.fromkeys(("u8", "s8", "u16", "s16"), 2)

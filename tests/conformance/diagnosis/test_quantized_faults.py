"""Faults of quantized nodes have the same names as in float nodes."""

from __future__ import annotations

import pytest

from onnxspec.cases import CaseSpec, build_case, features_of
from onnxspec.cases.specs.wrapping import wrap
from onnxspec.conformance.diagnosis.failing_case import failing_case_of
from onnxspec.conformance.diagnosis.match import Matcher
from onnxspec.conformance.diagnosis.observed_case import ObservedCases
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.reference import clauses_of, faults_of

SPEC = CaseSpec("GRU", 14, T=6, N=3, I=4, H=5, bias=True, initial="all", outputs=("Y", "Y_h"))


@pytest.mark.parametrize("name", ["gates.interleaved", "bias.recurrent-half-ignored", "rows.share-first-state"])
def test_a_fault_of_the_node_is_found_between_levels(name: str) -> None:
    trial = wrap(build_case(SPEC), "qdq-u8").trial
    fault = next(fault for fault in faults_of("GRU", 14) if fault.id == name)
    outcome = staged_outcome(trial, fault)
    assert judge([trial], [outcome]).verdict is Verdict.WRONG
    clauses = tuple(clause.id for clause in clauses_of("GRU", 14, features_of(SPEC)))
    case = failing_case_of(SPEC.id, trial, outcome, clauses, SPEC.size)
    assert case is not None
    matcher = Matcher(ObservedCases(TargetEvidence("standard")), 2000)
    assert matcher.names([case]) == {SPEC.id: (name,)}

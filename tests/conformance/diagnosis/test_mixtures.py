"""Several faults at once: AMD's real kernel has many, and some show only beside others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from numpy.typing import NDArray

from onnxspec.cases import build_case
from onnxspec.cases.operators.extended_lstm.axes import B, R, W, X
from onnxspec.cases.operators.extended_lstm.spec import extended
from onnxspec.cases.profiles import written_cases
from onnxspec.conformance.diagnosis.failing_case import FailingCase, failing_case_of
from onnxspec.conformance.diagnosis.match import Matcher
from onnxspec.conformance.diagnosis.observed_case import ObservedCases
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.reference import FAULTS, Node

from ...quark import QuarkNode, shipped_kernel


def shipped(node: Node, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {"Y": shipped_kernel(QuarkNode(node.attributes, inputs))}


def failing(spec: Any) -> FailingCase:
    case, probe = build_case(spec), SpecProbe(spec)
    failing_case = failing_case_of(spec.id, case.trial, staged_outcome(case.trial, shipped), probe.clauses, probe.size)
    assert failing_case is not None
    return failing_case


def test_what_shows_only_beside_other_faults_is_named_with_them() -> None:
    """A sum wraps although each term is within its bounds: only other faults make such terms."""
    beside = ("scales.large-garbage", "pre-activation.terms-saturate", "pre-activation.wraps")
    names = ("output.wraps", "scales.sign-lost", *beside, "scales.small-vanish", "output.zero-point-one-up")
    matcher = Matcher(ObservedCases(TargetEvidence("standard")), 0, [FAULTS[f"extended.{name}"] for name in names])
    (large,) = (spec for spec in written_cases("full", "ExtendedLSTM", 1) if spec.about == "large-inputs")
    failing_case = failing(large)
    assert not failing_case.observation("standard").changes(FAULTS["extended.pre-activation.wraps"])
    explanation = matcher.by_known(failing_case)
    assert explanation is not None
    assert {fault.id for fault in explanation} == {f"extended.{name}" for name in beside}


@pytest.mark.parametrize("scale", [2.0**-8, 1.25 * 2.0**-8, 2.0**-7, 2.0**-6])
def test_coarse_outputs_go_past_zero_where_less_than_half_a_unit_is_left(scale: float) -> None:
    failing_case = failing(extended("coarse", T=3, I=3, H=20, x=X, w=W, r=R, b=B, y=(scale, 32768), seed=3))
    coarse = FAULTS["extended.output.coarse-shift"]
    assert failing_case.observation("standard").fit([coarse]) is not None

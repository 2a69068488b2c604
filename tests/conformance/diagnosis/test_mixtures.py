"""Several faults at once: AMD's real kernel has many, and some show only beside others."""

from __future__ import annotations

import pytest

from onnxspec.cases.operators.extended_lstm.axes import B, R, W, X
from onnxspec.cases.operators.extended_lstm.spec import extended
from onnxspec.cases.profiles import written_cases
from onnxspec.reference import FAULTS, Node

from ...quark import QuarkNode, shipped_kernel
from .in_process import Arrays, failing_case, matcher


def shipped(node: Node, inputs: Arrays) -> Arrays:
    return {"Y": shipped_kernel(QuarkNode(node.attributes, inputs))}


def test_what_shows_only_beside_other_faults_is_named_with_them() -> None:
    """A sum wraps although each term is within its bounds: only other faults make such terms."""
    beside = ("scales.large-garbage", "pre-activation.terms-saturate", "pre-activation.wraps")
    names = ("output.wraps", "scales.sign-lost", *beside, "scales.small-vanish", "output.zero-point-one-up")
    (large,) = (spec for spec in written_cases("full", "ExtendedLSTM", 1) if spec.about == "large-inputs")
    case = failing_case(large, shipped)
    assert not case.observation("standard").changes(FAULTS["extended.pre-activation.wraps"])
    explanation = matcher(known=[FAULTS[f"extended.{name}"] for name in names]).by_known(case)
    assert {fault.id for fault in explanation or ()} == {f"extended.{name}" for name in beside}


@pytest.mark.parametrize("scale", [2.0**-8, 1.25 * 2.0**-8, 2.0**-7, 2.0**-6])
def test_coarse_outputs_go_past_zero_where_less_than_half_a_unit_is_left(scale: float) -> None:
    case = failing_case(extended("coarse", T=3, I=3, H=20, x=X, w=W, r=R, b=B, y=(scale, 32768), seed=3), shipped)
    assert case.observation("standard").fit([FAULTS["extended.output.coarse-shift"]]) is not None

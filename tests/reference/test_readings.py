"""Readings: every combination that the document leaves open is right, also where one opens another."""

import itertools

import pytest

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.staged import judge_staged
from onnxspec.conformance.verdict import Verdict
from onnxspec.reference import Readings, evaluate, format_of, readings_touched
from onnxspec.reference.readings import OPTIONS

OPEN = [s for s in profile("core", "LSTM", 14) if readings_touched(s.node, build_case(s).trial.feeds[0].inputs)]


def test_a_reading_that_only_another_one_opens_is_touched() -> None:
    """By position ScaledTanh, third, finds neither an alpha nor a beta; by use it finds both."""
    names = ("Sigmoid", "LeakyRelu", "ScaledTanh")
    spec = CaseSpec("LSTM", 14, T=2, N=2, I=2, H=2, activations=names, alpha=(-0.5, -1.5), beta=(0.625,))
    assert readings_touched(spec.node, build_case(spec).trial.feeds[0].inputs) == {"coefficients", "defaults"}


@pytest.mark.parametrize("first", OPTIONS)
def test_whoever_follows_any_two_readings_is_right(first: str) -> None:
    for second in OPTIONS:
        for choice in itertools.product(OPTIONS[first], OPTIONS[second]):
            readings = Readings(**dict(zip((first, second), choice, strict=True)))
            for spec in OPEN[:: 1 if {first, second} == {"coefficients", "defaults"} else 7]:

                def follower(node, inputs, readings=readings):  # type: ignore[no-untyped-def]
                    dtype = format_of(inputs["X"].dtype).dtype
                    return {n: a.astype(dtype) for n, a in evaluate(node, inputs, readings).items()}

                found = judge_staged(build_case(spec), follower)
                assert found.verdict in (Verdict.PASS, Verdict.UNJUDGED), (spec.id, readings, found.message)

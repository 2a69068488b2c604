"""Tests of exact cases: a proof by the digits of all terms, and conforming kernels that return the same bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onnxspec.cases import build_case, profile
from onnxspec.cases.specs.case import Trial
from onnxspec.cases.specs.recurrent import EXACT_CASES
from onnxspec.reference import CELLS, Interpretations, compare, expect, operator_for
from onnxspec.reference.operators.quantized import as_numbers
from onnxspec.reference.recurrent.computation import computation_of
from onnxspec.reference.recurrent.rnn import run

from .dyadic import Proving

SPECS = {
    spec.id: spec
    for name in ("core", "quantized")
    for op in CELLS
    for spec in profile(name, op, 14) + profile(name, op, 22)
    if spec.id in EXACT_CASES
}


def test_every_exact_case_is_in_a_profile() -> None:
    assert SPECS.keys() == EXACT_CASES


def prove(trial: Trial) -> None:
    """Raise AssertionError where an implementation may round a number."""
    for feed in trial.feeds:
        for name, codec in trial.node.codecs.items():
            if name in feed.inputs:  # DequantizeLinear returns float32
                numbers = codec.dequantized(feed.inputs[name].astype(np.int64))
                np.testing.assert_array_equal(numbers, numbers.astype(np.float32))
        node, inputs = as_numbers(trial.node, feed.inputs)
        computation = computation_of(node, inputs)
        proofs = run(computation.configuration, computation.inputs, Proving(computation.format))
        for name in node.outputs:
            proofs[name].settled()


@pytest.mark.parametrize("id", SPECS)
def test_no_conforming_implementation_rounds_a_number_of_an_exact_case(id: str) -> None:
    for trial in build_case(SPECS[id]).trials:
        assert trial.node.exact
        prove(trial)


@pytest.mark.parametrize("id", SPECS)
def test_the_error_bound_of_an_exact_case_is_zero_and_kernels_meet_it(id: str) -> None:
    trial = build_case(SPECS[id]).trial
    operator, inputs = operator_for(trial.node), trial.feeds[-1].inputs
    for name, conforming in operator.conforming.items():
        if conforming.accuracy != "standard":
            continue
        got = conforming.run(trial.node, inputs)
        for expectation in operator.expect(trial.node, inputs, got):
            if not trial.node.codecs and not expectation.repeats_y:
                assert not expectation.number.radius.any()
            assert compare(expectation, got[expectation.output]).worst <= 1, name


def test_a_case_that_differs_from_an_exact_one_is_not_exact() -> None:
    spec = next(iter(SPECS.values()))
    trial = build_case(replace(spec, seed=spec.seed + 1000)).trial
    assert not trial.node.exact
    inputs = trial.feeds[-1].inputs
    assert any(e.number.radius.any() for e in expect(trial.node, inputs, {}))
    with pytest.raises(AssertionError):
        prove(build_case(replace(spec, data="dense")).trial)


def test_an_exact_case_has_ordinary_bounds_by_another_interpretation() -> None:
    trials = (build_case(spec).trial for spec in SPECS.values() if spec.op == "GRU" and spec.type == "float32")
    trial = next(trial for trial in trials if "coefficients" in trial.open_questions)
    inputs = trial.feeds[-1].inputs
    by_default, by_position = (
        expect(trial.node, inputs, {}, interpretations=Interpretations(coefficients=option))
        for option in ("by-use", "by-position")
    )
    assert not any(expectation.number.radius.any() for expectation in by_default)
    assert all(expectation.number.radius.any() for expectation in by_position)

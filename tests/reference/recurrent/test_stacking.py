"""Tests that runs which are judged together get the same judgement as alone."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onnxspec.cases import CaseSpec, build_case, strategies
from onnxspec.reference import Interpretations, evaluate, operator_for
from onnxspec.reference.recurrent.expectation import Expectation, expect


def returned(node, inputs, seed):
    """Return outputs of a target: numbers that are right, nearly right or far off.

    NaN and infinity are among them unless `seed` is 0.
    """
    dtype = inputs["X"].dtype
    rng = np.random.default_rng(seed)
    outputs = {}
    for name, array in evaluate(node, inputs).items():
        off = array * (1 + rng.choice([0, 1e-7, 0.5], array.shape))
        rare = rng.random(array.shape)
        if seed:
            off = np.where(rare < 0.03, np.nan, np.where(rare > 0.97, np.inf, off))
        with np.errstate(over="ignore", invalid="ignore"):
            outputs[name] = off.astype(dtype)
    return outputs


def assert_alike(one: Expectation, other: Expectation) -> None:
    """Check that two expectations are equal, except for the order in which a matrix library adds."""
    assert (one.output, one.clause) == (other.output, other.clause)
    shape = other.number.value.shape
    assert (one.about is None) == (other.about is None)
    for mask, expected in ((one.about, other.about), (one.weak, other.weak)):
        # Elements that are too wide are found for all runs at once.
        mask, expected = (np.zeros(shape, bool) if m is None else m for m in (mask, expected))
        np.testing.assert_array_equal(mask, expected)
    doubt, expected = (np.zeros(shape, bool) if n.doubt is None else n.doubt for n in (one.number, other.number))
    np.testing.assert_array_equal(doubt, expected)
    sure = ~expected
    for part, same in ((one.number.value, other.number.value), (one.number.radius, other.number.radius)):
        assert part.shape == same.shape
        scale = np.abs(same[sure]).max(initial=1e-300)
        np.testing.assert_allclose(part[sure], same[sure], rtol=1e-11, atol=1e-13 * scale)


@pytest.mark.parametrize(("op", "version"), [("LSTM", 14), ("GRU", 14), ("RNN", 14), ("DynamicQuantizeLSTM", 1)])
@settings(derandomize=True, database=None, deadline=None, max_examples=20)
@given(data=st.data())
def test_each_run_is_expected_to_return_what_it_is_alone(op, version, data):
    trial = build_case(data.draw(strategies.cases(op, version).filter(lambda s: s.quantization == "none"))).trial
    assume(trial.subject.is_lone)  # inputs of several nodes are those of a graph
    node, inputs = trial.node, trial.feeds[-1].inputs
    several = [returned(node, inputs, seed) for seed in range(3)]
    stacked = operator_for(node).expecting_each(node, inputs, several)
    for interpretations in islice(Interpretations().alternatives(trial.open_questions), 0, 30, 3):
        for outputs, expects in zip(several, stacked, strict=True):
            alone = expect(node, inputs, outputs, "standard", interpretations)
            for one, other in zip(expects("standard", interpretations), alone, strict=True):
                assert_alike(one, other)


def test_a_run_without_an_output_is_compared_by_the_others():
    trial = build_case(CaseSpec("LSTM", 14, T=2, N=1, I=2, H=3, outputs=("Y", "Y_h", "Y_c"))).trial
    node, inputs = trial.node, trial.feeds[-1].inputs
    whole = returned(node, inputs, 0)
    without = {name: array for name, array in whole.items() if name != "Y_c"}
    each = operator_for(node).expecting_each(node, inputs, [whole, without])
    named = [[a.expectation.output for a in expects.agreements("standard", None)] for expects in each]
    assert named == [["Y", "Y_h", "Y_c"], ["Y", "Y_h"]]

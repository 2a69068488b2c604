"""Runs that are judged side by side are judged as each of them is alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.cases import build_case, strategies
from onnxspec.reference import Interpretations, evaluate, operator_for
from onnxspec.reference.recurrent.expectation import Expectation, expect


def returned(node, inputs, seed):
    """What a target returns: numbers that are right, nearly right and far off, NaN and infinity among them."""
    dtype = inputs["X"].dtype
    rng = np.random.default_rng(seed)
    outputs = {}
    for name, array in evaluate(node, inputs).items():
        off = array * (1 + rng.choice([0, 1e-7, 0.5], array.shape))
        rare = rng.random(array.shape)
        off = np.where(rare < 0.03, np.nan, np.where(rare > 0.97, np.inf, off))
        with np.errstate(over="ignore", invalid="ignore"):
            outputs[name] = off.astype(dtype)
    return outputs


def assert_alike(one: Expectation, other: Expectation) -> None:
    """Equal, but for the order in which a matrix library adds."""
    assert (one.output, one.clause) == (other.output, other.clause)
    for mask, known in ((one.about, other.about), (one.weak, other.weak)):
        assert (mask is None) == (known is None)
        if mask is not None:
            np.testing.assert_array_equal(mask, known)
    shape = other.number.value.shape
    doubt, known = (np.zeros(shape, bool) if n.doubt is None else n.doubt for n in (one.number, other.number))
    np.testing.assert_array_equal(doubt, known)
    sure = ~known
    for part, same in ((one.number.value, other.number.value), (one.number.radius, other.number.radius)):
        assert part.shape == same.shape
        scale = np.abs(same[sure]).max(initial=1e-300)
        np.testing.assert_allclose(part[sure], same[sure], rtol=1e-11, atol=1e-13 * scale)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@settings(derandomize=True, database=None, deadline=None, max_examples=20)
@given(data=st.data())
def test_each_run_is_expected_to_return_what_it_is_alone(op, data):
    trial = build_case(data.draw(strategies.cases(op, 14))).trial
    node, inputs = trial.node, trial.feeds[-1].inputs
    several = [returned(node, inputs, seed) for seed in range(3)]
    stacked = operator_for(node).expecting_each(node, inputs, several)
    for interpretations in Interpretations().alternatives(trial.touched):
        for outputs, expects in zip(several, stacked, strict=True):
            alone = expect(node, inputs, outputs, "standard", interpretations)
            for one, other in zip(expects("standard", interpretations), alone, strict=True):
                assert_alike(one, other)

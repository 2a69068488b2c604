"""Tests that numbers are the same however they are computed: side by side, in part, and in a fixed order."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from onnxspec.cases import CaseSpec, build_case, strategies
from onnxspec.cases.directories.manifest import data_sets_of
from onnxspec.cases.specs.model import inputs_of
from onnxspec.reference import (
    CELLS,
    Expectation,
    Interpretations,
    evaluate,
    evaluate_in_order,
    expect,
    operator_for,
    operator_version,
    versions_of,
)
from onnxspec.reference.numbers.plain import Plain

from ..situations import OPERATORS

few = settings(derandomize=True, database=None, deadline=None, max_examples=15)


def drawn(data, op, version):
    """Draw a legal node that is not quantized, and return its trial."""
    return build_case(data.draw(strategies.cases(op, version).filter(lambda s: s.quantization == "none"))).trial


# Runs side by side


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
    doubts = (one.number.doubt, other.number.doubt)
    # Elements that are too wide are found for all runs at once.
    for pair in ((one.about, other.about), (one.weak, other.weak), doubts):
        mask, expected = (np.zeros(shape, bool) if m is None else m for m in pair)
        np.testing.assert_array_equal(mask, expected)
    sure = ~expected
    # A radius contains roundings of terms that may be larger than itself.
    for part, rtol in (("value", 1e-11), ("radius", 1e-9)):
        got, same = getattr(one.number, part), getattr(other.number, part)
        assert got.shape == same.shape
        scale = np.abs(same[sure]).max(initial=1e-300)
        np.testing.assert_allclose(got[sure], same[sure], rtol=rtol, atol=1e-13 * scale)


@pytest.mark.parametrize(("op", "version"), [("LSTM", 14), ("GRU", 14), ("RNN", 14), ("DynamicQuantizeLSTM", 1)])
@settings(few, max_examples=20)
@given(data=st.data())
def test_each_run_is_expected_to_return_what_it_is_alone(op, version, data):
    trial = drawn(data, op, version)
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


# Values without bounds: some outputs of all, and one fixed order of addition for files


@pytest.mark.parametrize(("op", "version"), [(op, v) for op in CELLS for v in versions_of(op)])
@settings(few, max_examples=25)
@given(data=st.data())
def test_an_output_does_not_depend_on_which_are_asked_for(op, version, data):
    spec = data.draw(strategies.cases(op, version, min_steps=0, min_rows=0))
    whole = evaluate(replace(spec, outputs=operator_version(op, version).outputs).node, inputs_of(spec))
    for name, value in evaluate(spec.node, inputs_of(spec)).items():
        np.testing.assert_array_equal(value, whole[name], err_msg=name)


@pytest.mark.parametrize("op", OPERATORS)
def test_the_fixed_order_differs_by_roundings_alone_and_no_library_has_part_in_it(op, monkeypatch):
    trial = build_case(CaseSpec(op, 14, "float64", T=5, N=3, I=33, H=40, bias=True)).trial
    inputs = trial.feeds[0].inputs
    in_order = evaluate_in_order(trial.node, inputs)
    for name, values in evaluate(trial.node, inputs).items():
        np.testing.assert_allclose(values, in_order[name], rtol=0, atol=1e-13)

    def product(self, x, weights):
        raise AssertionError("a product by a library")

    monkeypatch.setattr(Plain, "product", product)
    (data,) = data_sets_of(trial)
    assert data.outputs.keys() == in_order.keys()

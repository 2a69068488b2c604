"""Tests of sharing: common parts of interpretations and classes are computed once, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.cases import build_case, strategies
from onnxspec.reference import Interpretations, Node, configure, evaluate, evaluate_in_order
from onnxspec.reference.numbers.plain import Plain
from onnxspec.reference.recurrent import rnn
from onnxspec.reference.recurrent.computation import computation_of
from onnxspec.reference.recurrent.expectation import Expecting, expect
from onnxspec.reference.recurrent.rnn import run

from ..situations import OPERATORS, inputs_for, outputs_of, variants_of


def bits(expectations):
    """Return all fields of expectations as bytes, to compare them to the last bit."""
    parts = []
    for each in expectations:
        number = each.number
        arrays = (number.value, number.radius, number.doubt, each.about, each.weak)
        parts.append((each.output, each.clause, [None if a is None else (a.shape, a.tobytes()) for a in arrays]))
    return parts


@pytest.mark.parametrize(("op", "version"), [("LSTM", 14), ("LSTM", 1), ("GRU", 14), ("RNN", 1)])
@settings(derandomize=True, database=None, deadline=None, max_examples=15)
@given(data=st.data())
def test_what_is_asked_once_more_is_as_if_it_was_asked_alone(op, version, data):
    trial = build_case(data.draw(strategies.cases(op, version).filter(lambda s: s.quantization == "none"))).trial
    node, inputs = trial.node, trial.feeds[-1].inputs
    with np.errstate(all="ignore"):
        outputs = {name: array.astype(inputs["X"].dtype) for name, array in evaluate(node, inputs).items()}
    asked = Expecting(node, inputs, outputs)
    for accuracy in ("standard", "strict", "tf32"):
        for interpretations in Interpretations().alternatives(trial.open_questions):
            alone = expect(node, inputs, outputs, accuracy, interpretations)
            assert bits(asked(accuracy, interpretations)) == bits(alone)


@pytest.mark.parametrize("op", OPERATORS)
def test_sums_that_no_walk_reads_are_left_out_of_large_nodes_and_change_nothing(op, monkeypatch):
    inputs = inputs_for("float32", (9, 3, 5, 6), op=op, optional=("B", "initial_h"), lengths=[9, 4, 0])
    columns = []

    class Counting(Plain):
        def weights(self, matrix):
            columns.append(len(matrix))
            return super().weights(matrix)

    for attributes in variants_of(op):
        node = Node(op, 22, attributes, outputs_of(op))
        outputs, products = [], []
        for large in (False, True):
            monkeypatch.setattr(rnn, "is_large", lambda c, large=large: large)
            columns.clear()
            computation = computation_of(node, inputs)
            run(computation.configuration, computation.inputs, Counting())
            products.append(sum(columns))
            outputs.append((evaluate_in_order(node, inputs), expect(node, inputs, {}), evaluate(node, inputs)))
        (ordered, bounded, plain), others = outputs[0], outputs[1]
        for name in node.outputs:
            assert ordered[name].tobytes() == others[0][name].tobytes()
            np.testing.assert_allclose(plain[name], others[2][name], rtol=0, atol=1e-14)
        for one, other in zip(bounded, others[1], strict=True):
            np.testing.assert_allclose(one.number.radius, other.number.radius, rtol=1e-9)
        waits = op == "GRU" and not attributes.get("linear_before_reset")
        assert products[0] - products[1] == (6 if waits else 0) * len(configure(node, inputs).directions)

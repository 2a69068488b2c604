"""Parts that interpretations and classes of one node have in common are worked out once, and change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.cases import build_case, profile, strategies
from onnxspec.reference import Interpretations, configure, evaluate
from onnxspec.reference.numbers import Proving, provable
from onnxspec.reference.recurrent import Expecting, collect, computation_of, expect, proofs_of, trace, valid_elements


def bits(expectations):
    """All that expectations say, to the last bit."""
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
        for interpretations in Interpretations().alternatives(trial.touched):
            alone = expect(node, inputs, outputs, accuracy, interpretations)
            assert bits(asked(accuracy, interpretations)) == bits(alone)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_where_no_proof_is_begun_nothing_would_be_proved(op):
    begun = []
    for spec in profile("core", op, 14):
        if spec.illegal:
            continue
        trial = build_case(spec).trial
        node, inputs = trial.node, trial.feeds[-1].inputs
        c = configure(node, inputs)
        if not provable(c.activations, c.T * c.N * (c.I + c.H) * len(c.cell.gates) * c.H):
            continue
        computation, proving = computation_of(node, inputs), Proving(c.format)
        with np.errstate(all="ignore"):
            proofs = collect(c, trace(computation, proving), proving)
            begun.append(bool(proofs_of(computation)))
        if not begun[-1]:
            assert not (proofs["Y"].exact & valid_elements(c)).any()
            states = (proofs[name].exact for name in c.states)
            started = (c.lengths > 0)[:, np.newaxis]
            assert not any((state & (started if c.layout == 0 else started[:, np.newaxis])).any() for state in states)
    assert {*begun} == {False, True}

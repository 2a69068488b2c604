"""Tests of observations: every fault can be tried, bugs surface, and only judged elements are evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import (
    FAULTS,
    Expectation,
    Fault,
    Node,
    budget,
    compare,
    evaluate,
    operator_for,
    resolve,
    run_fault,
)
from onnxspec.reference.faults.contexts import Run
from onnxspec.reference.faults.fault import Compute, made_together
from onnxspec.reference.faults.observation import Observation
from onnxspec.reference.numbers import Bounded

from ...recurrent import recurrent_versions
from .fault_situations import situation


def observation_of(node: Node, run: Run) -> Observation:
    return Observation(operator_for(node), node, (run,), "standard")


@pytest.mark.parametrize("op", OPERATORS)
def test_every_fault_that_one_run_shows_can_be_tried_alone(op: str) -> None:
    possible = [d for d in FAULTS.values() if d.concerns(op) and "float32" in d.types and d.layer != "levels"]
    left = {d.id: d for d in possible if not d.accepts and "session" not in f"{d.id} {d.topic}"}
    specs = [s for name, version in recurrent_versions() if name == op for s in profile("core", op, version)]
    for spec in sorted((s for s in specs if s.type == "float32" and not s.illegal), key=lambda s: s.size):
        if not left:
            break
        first = build_case(spec).trial.first
        inputs = first.feeds[-1].inputs
        answer = operator_for(first.node).answering(first.node, inputs)
        right = answer(fed=inputs)
        for fault in [d for d in left.values() if d.applies(op, spec.version)]:
            outputs = answer((fault,), fed={n: a.copy() for n, a in first.feeds[-1].fed.items()}, memory={})
            try:
                np.testing.assert_equal(outputs, right)
            except AssertionError:
                # With or without a fit: it must not raise.
                observation_of(first.node, Run(inputs, outputs, first.feeds[-1].fed)).fit([fault])
                del left[fault.id]
    assert not left


def buggy(error: Exception) -> Fault:
    """Return a fault with a bug."""

    def wrong(compute: Compute, computation: Any) -> Any:
        raise error

    return replace(FAULTS["outputs.zero"], id="buggy.fault", wrong=wrong)


@pytest.fixture
def negated() -> Observation:
    """Return outputs of the wrong sign."""
    case = situation("rich", "GRU", "float32")
    node, inputs = case.trial.node, case.trial.feeds[-1].inputs
    outputs = {name: -array.astype(np.float32) for name, array in evaluate(node, inputs).items()}
    return observation_of(node, Run(inputs, outputs, inputs))


@pytest.mark.parametrize(
    "error", [TypeError("bug"), AttributeError("bug"), KeyError("bug"), ValueError("bug")], ids=repr
)
def test_a_bug_in_a_fault_surfaces(negated: Observation, error: Exception) -> None:
    with pytest.raises(type(error), match="bug"):
        negated.fit([buggy(error)])


def test_faults_that_do_not_go_together_predict_nothing(negated: Observation) -> None:
    assert negated.fit([FAULTS["outputs.last-hidden-missing"], FAULTS["padding.state-repeated"]]) is None


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_a_sum_that_owes_its_biases_goes_with_every_other_fault(op: str) -> None:
    spec = CaseSpec(op, 14, direction="bidirectional", T=2, N=2, I=2, H=3, bias=True, lengths="ragged", clip=0.5)
    spec = replace(spec, initial="all", outputs=("Y", "Y_h"), peepholes=op == "LSTM")
    inputs = build_case(spec).trial.feeds[0].inputs
    outputs = {name: -array.astype(np.float32) for name, array in evaluate(spec.node, inputs).items()}
    observation = observation_of(spec.node, Run(inputs, outputs, inputs))
    owing = FAULTS["clip.before-bias"]
    for fault in FAULTS.values():
        if fault is owing or fault.accepts or not fault.applies(op, 14, "float32"):
            continue
        if pair := made_together((owing, fault)):
            observation.fit(pair)  # explains nothing here, and raises nothing


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_what_gives_outputs_another_form_says_so(op: str) -> None:
    """Only faults of the form layer change the form of outputs: no other fault can be computed on top of them."""
    specs = [s for s in profile("smoke", op, 14) if not s.illegal and s.T * s.N * s.H < 200]
    for spec in sorted(specs, key=lambda s: (s.layout, bool(s.reruns), s.T != s.N), reverse=True)[:3]:
        trial = build_case(spec).trial
        for fault in FAULTS.values():
            if not fault.applies(op, 14) or fault.accepts or fault.layer == "form":
                continue
            memory: dict[str, Any] = {}
            for feed in trial.feeds:
                outputs = run_fault(fault, trial.node, {n: a.copy() for n, a in feed.inputs.items()}, memory=memory)
                shapes = {name: resolve(trial.node, feed.inputs).shape_of(name) for name in trial.node.outputs if name}
                assert {name: array.shape for name, array in outputs.items()} == shapes, fault.id


@pytest.mark.parametrize(("returned", "speaks"), [(np.nan, True), (np.inf, False)], ids=["nan", "infinity"])
def test_infinity_speaks_for_no_fault_that_gives_nan(returned: float, speaks: bool) -> None:
    """Outside the range of the type, bounds tell nothing, but a value either is NaN or is not."""
    spec = CaseSpec("RNN", 14, T=1, N=3, I=2, H=5, data="huge")
    inputs = build_case(spec).trial.feeds[0].inputs
    Y = evaluate(spec.node, inputs)["Y"].astype(np.float32)
    observation = observation_of(spec.node, Run(inputs, {"Y": np.where(Y > 0.5, returned, Y)}))
    fit = observation.fit([FAULTS["tanh.overflow"]])
    assert (fit is not None and fit.evidence > 0) is speaks


class _OneElement:
    """Operator whose only element is 0 by the document and 1 with a fault, according to a clause."""

    scans = False

    def __init__(self, clause: str) -> None:
        self._clause = clause

    def expect(self, node: Node, inputs: Any, outputs: Any, *rest: Any) -> list[Expectation]:
        value = np.full(1, float(bool(rest[-1])))
        return [Expectation("Y", Bounded(value, np.full(1, 2.0**-18), budget("standard", "float32")), self._clause)]

    def answer(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"Y": np.zeros(1, np.float32)}


def one_element(clause: str, returned: float) -> Observation:
    run = Run({"X": np.zeros((1, 1), np.float32)}, {"Y": np.full(1, returned, np.float32)})
    return Observation(_OneElement(clause), Node("RNN", 14, {"hidden_size": 1}, ("Y",)), (run,))


@pytest.mark.parametrize(
    ("clause", "returned", "bits"),
    [
        ("rnn.equations", 1.0, 18.0),
        ("rnn.equations", 5.0, None),
        ("rnn.padding.zero", 1.0, 0.0),
        ("rnn.padding.zero", 5.0, 0.0),
    ],
)
def test_padding_speaks_neither_for_nor_against_a_fault(clause: str, returned: float, bits: float | None) -> None:
    fit = one_element(clause, returned).fit((FAULTS["bias.ignored"],))
    assert (None if fit is None else round(fit.evidence, 3)) == bits


@pytest.mark.parametrize("id", ["gates.interleaved", "lstm.gates.icfo", "lengths.longest"])
def test_what_an_implementation_with_a_fault_returns_is_expected_of_it(id: str) -> None:
    random = np.random.default_rng(1)
    shapes = {"X": (4, 3, 2), "W": (1, 16, 2), "R": (1, 16, 4), "B": (1, 32)}
    inputs = {name: random.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    inputs["sequence_lens"] = np.array([4, 2, 3], np.int32)
    node, fault = Node("LSTM", 14, {"hidden_size": 4}, ("Y", "Y_h", "Y_c")), FAULTS[id]
    returned = run_fault(fault, node, inputs)
    expected = operator_for(node).expect(node, inputs, returned, faults=(fault,))
    assert [expectation.output for expectation in expected] == ["Y", "Y_h", "Y_c"]
    for expectation in expected:
        assert compare(expectation, returned[expectation.output]).worst <= 1
    right = operator_for(node).expect(node, inputs, returned)
    assert max(compare(expectation, returned[expectation.output]).worst for expectation in right) > 100

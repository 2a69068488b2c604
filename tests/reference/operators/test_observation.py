"""Tests of the evidence for a fault: only elements that are judged count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.reference import FAULTS, Expectation, Fault, Node, budget, compare, operator_for, run_fault
from onnxspec.reference.faults.hypothesis import Run
from onnxspec.reference.numbers import Bounded
from onnxspec.reference.operators.observation import Predicted

NODE = Node("RNN", 14, {"hidden_size": 1}, ("Y",))
FAULT = next(iter(FAULTS.values()))


def predicted(clause: str, returned: float) -> Predicted:
    """Return the prediction for one element, of which a target returned `returned`.

    The element is 0 by the document and 1 with a fault, according to `clause`.
    """

    def expect(*given: Any) -> list[Expectation]:
        faults: tuple[Fault, ...] = given[5] if len(given) > 5 else ()
        value = np.full(1, float(bool(faults)))
        return [Expectation("Y", Bounded(value, np.full(1, 2.0**-20), budget("standard", "float32")), clause)]

    def form(inputs: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        return (1,), np.dtype(np.float32)

    run = Run({"X": np.zeros((1, 1), np.float32)}, {"Y": np.full(1, returned, np.float32)})
    return Predicted(expect, lambda *_, **__: {}, form, NODE, (run,), "standard")


@pytest.mark.parametrize(("clause", "bits"), [("rnn.equations", 20.0), ("rnn.padding.zero", 0.0)])
def test_padding_speaks_for_no_fault(clause: str, bits: float) -> None:
    fit = predicted(clause, 1.0).fit((FAULT,))
    assert fit is not None
    assert fit.evidence == pytest.approx(bits)


def test_padding_speaks_against_no_fault() -> None:
    assert predicted("rnn.equations", 5.0).fit((FAULT,)) is None
    assert predicted("rnn.padding.zero", 5.0).fit((FAULT,)) is not None


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

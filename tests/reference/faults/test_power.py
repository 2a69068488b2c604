"""Tests that wrong values lie far outside the radius, and that broken conventions are no faults."""

from __future__ import annotations

import numpy as np
import pytest

from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import FAULTS, FORMATS, Fault, Node, compare, expect, run_fault
from onnxspec.reference.kernels.kernel import STYLES, run_kernel

from ..situations import OUTPUTS, inputs_for, worst_ratio
from .fault_situations import situation

CONVENTIONS = [d for d in FAULTS.values() if d.topic == "padding.zero"]


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("fault", CONVENTIONS, ids=lambda d: d.id)
def test_what_breaks_a_convention_alone_is_no_fault_but_a_finding(fault: Fault, op: str) -> None:
    for kind in FORMATS:
        case = situation("rich", op, kind)
        node, inputs = case.trial.node, case.trial.feeds[0].inputs
        outputs = run_fault(fault, node, inputs)
        assert worst_ratio(node, inputs, outputs) <= 1
        broken = [e for e in expect(node, inputs, outputs) if compare(e, outputs[e.output]).worst > 4]
        assert {e.clause for e in broken} == {fault.clause(op)}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("H", [33, 64])
def test_one_wrong_element_is_found_and_named(H: int, kind: str) -> None:
    inputs = inputs_for(
        kind, (4, 3, 5, H), directions=2, optional=("B", "P", "initial_h", "initial_c"), lengths=[2, 4, 1]
    )
    node = Node("LSTM", 22, {"direction": "bidirectional"}, OUTPUTS)
    outputs = run_kernel(node, inputs, STYLES["forward"])
    outputs["Y"][1, 0, 1, H - 1] += outputs["Y"].dtype.type(1)
    (expectation, *_) = expect(node, inputs, outputs)
    agreement = compare(expectation, outputs["Y"])
    assert agreement.worst > 4
    assert agreement.index == (1, 0, 1, H - 1)


@pytest.mark.parametrize("kind", FORMATS)
def test_long_sequences_lose_no_power(kind: str) -> None:
    T = 200
    inputs = inputs_for(kind, (T, 1, 5, 33), optional=("B",))
    node = Node("LSTM", 22, {}, OUTPUTS)
    wrong = run_fault(FAULTS["lstm.gates.ifco"], node, inputs)
    (expectation, *_) = expect(node, inputs, wrong)
    number = expectation.number
    late = slice(T - 10, None)
    beyond = np.abs(wrong["Y"][late].astype(float) - number.value[late]) > 4 * number.radius[late]
    assert beyond.mean() > 0.2

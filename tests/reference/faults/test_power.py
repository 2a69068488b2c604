"""Tests that wrong values lie far outside the radius, for every fault in every operator and type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import FAULTS, FORMATS, Fault, Node, compare, expect, run_fault
from onnxspec.reference.kernels.kernel import run_kernel
from onnxspec.reference.kernels.style import STYLES

from ..situations import FINE_AND_COARSE, OUTPUTS, inputs_for, worst_ratio
from .fault_situations import SITUATIONS, discrimination, names_of, situation

ENOUGH = 4.0
CONVENTIONS = [d for d in FAULTS.values() if d.topic == "padding.zero"]
# Drift only shows in the mean over a run, and faults of kind "accepts" compute nothing:
# tests/conformance/proof/test_staged.py. Faults of levels do not change numbers:
# tests/conformance/proof/test_quantized_proof.py.
JUDGED = [d for d in FAULTS.values() if not (d.kind in ("bias", "accepts") or d.layer == "levels" or d in CONVENTIONS)]
# These need more than two runs in a row to show: other weights, another session, a refusal, many runs, or outputs that
# are held. Only a staged session has that: tests/conformance/proof/test_staged.py.
OF_SESSIONS = {
    "session.weights-kept",
    "session.bias-kept",
    "session.weights-shared",
    "session.scratch-shared",
    "session.refusal-leaves-state",
    "session.buffers-come-round",
    "session.outputs-reused",
}


def _best(fault: Fault, op: str, kind: str, first: str | None) -> tuple[float, str | None]:
    """Return the discrimination of the first situation in which it is enough, and the situation's name.

    If it is nowhere enough, it is the largest one. `first` is tried first.
    """
    best: tuple[float, str | None] = 0.0, None
    for name in [*([first] if first else []), *names_of(op)]:
        case = situation(name, op, kind)
        if case is None or not fault.applies(op, case.spec.version, kind):
            continue
        strength = discrimination(fault, name, op, kind)
        if strength > best[0]:
            best = strength, name
        if strength >= ENOUGH:
            break
    return best


def _fine_and_coarse(fault: Fault) -> list[str]:
    """Return the types of a fault that are in FINE_AND_COARSE, or all its types if none is."""
    return [kind for kind in fault.types if kind in FINE_AND_COARSE] or list(fault.types)


def _judged() -> Iterator[Any]:
    """Yield every fault in each of its operators with all types (``long``).

    Also yield it in one of these operators, in rotation, with two types.
    """
    for number, fault in enumerate(JUDGED):
        ops = [op for op in fault.operators if op in OPERATORS]
        for position, op in enumerate(ops if fault.id not in OF_SESSIONS else []):
            yield pytest.param(op, fault, True, id=f"{op}-{fault.id}-all", marks=pytest.mark.long)
            if position == number % len(ops):
                yield pytest.param(op, fault, False, id=f"{op}-{fault.id}-two")


@pytest.mark.parametrize(("op", "fault", "whole"), list(_judged()))
def test_a_fault_is_beyond_four_times_what_two_conforming_numbers_may_differ_by(
    op: str, fault: Fault, whole: bool
) -> None:
    where: str | None = None
    for kind in fault.types if whole else _fine_and_coarse(fault):
        strength, where = _best(fault, op, kind, where)
        assert strength >= ENOUGH, (kind, where)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("fault", CONVENTIONS, ids=lambda d: d.id)
def test_what_breaks_a_convention_alone_is_no_fault_but_a_finding(fault: Fault, op: str) -> None:
    for kind in FORMATS:
        case = situation("rich", op, kind)
        assert case is not None
        node, inputs = case.trial.node, case.trial.feeds[0].inputs
        outputs = run_fault(fault, node, inputs)
        assert worst_ratio(node, inputs, outputs) <= 1
        broken = [e for e in expect(node, inputs, outputs) if compare(e, outputs[e.output]).worst > 4]
        assert {e.clause for e in broken} == {fault.clause(op)}


def test_there_are_many_faults_and_outputs_of_zero_are_one() -> None:
    assert len(FAULTS) >= 110
    assert {op: sum(op in d.operators for d in FAULTS.values()) >= 80 for op in OPERATORS} == dict.fromkeys(
        OPERATORS, True
    )
    assert "outputs.zero" in FAULTS


def test_situations_are_few_and_small() -> None:
    assert len(SITUATIONS) < 70
    for name in SITUATIONS:
        case = situation(name, "LSTM", "float32")
        assert case is None or all(a.size < 200_000 for a in case.trial.feeds[0].inputs.values())


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

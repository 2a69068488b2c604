"""What is wrong in structure lies far outside the radius: in every type, at sizes beside and at the edge of a block."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from onnxspec.reference import DEVIATIONS, FORMATS, Deviation, Node, compare, expect, run_deviation
from onnxspec.reference.kernels import STYLES, run_kernel

from .situations import OUTPUTS, Arrays, inputs_for, worst_ratio

STRUCTURAL = [d for d in DEVIATIONS.values() if d.structural]
CONVENTIONS = [d for d in STRUCTURAL if ".padding." in d.clause]

EVERYTHING = ("B", "P", "initial_h", "initial_c")
FUNCTIONS = {
    "activations": ["HardSigmoid", "ScaledTanh", "LeakyRelu", "Sigmoid", "Softsign", "Affine"],
    "activation_alpha": [0.3, 1.5, -0.5, 0.7],
    "activation_beta": [0.4, 0.8, 0.3],
}
# Attributes, layout and outputs; everything else is in all of them: both directions, ragged lengths, all inputs.
SITUATIONS: dict[str, tuple[dict[str, Any], int, tuple[str, ...]]] = {
    "plain": ({}, 0, OUTPUTS),
    "functions": (FUNCTIONS, 0, OUTPUTS),
    "clipped": ({"clip": 0.3}, 0, OUTPUTS),
    "coupled": ({"input_forget": 1}, 0, OUTPUTS),
    "batch-first": ({"layout": 1}, 1, OUTPUTS),
    "without-Y": ({}, 0, ("Y_h", "Y_c")),
}


@cache
def situation(kind: str, H: int, name: str) -> tuple[Node, Arrays]:
    attributes, layout, outputs = SITUATIONS[name]
    # Without Y every step adds to the radius, so there are few.
    sizes, lengths = ((2, 3, 5, H), [1, 2, 1]) if "Y" not in outputs else ((4, 3, 5, H), [2, 4, 1])
    inputs = inputs_for(kind, sizes, directions=2, layout=layout, optional=EVERYTHING, lengths=lengths)
    return Node("LSTM", 22, {"direction": "bidirectional", **attributes}, outputs), inputs


def power(deviation: Deviation, kind: str, H: int) -> float:
    """The largest ratio that a deviation comes to, up to the first that is large enough."""
    best = 0.0
    for name in SITUATIONS:
        node, inputs = situation(kind, H, name)
        best = max(best, worst_ratio(node, inputs, run_deviation(deviation, node, inputs)))
        if best > 4:
            break
    return best


@pytest.mark.parametrize("H", [33, 64])
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("deviation", [d for d in STRUCTURAL if d not in CONVENTIONS], ids=lambda d: d.id)
def test_a_structural_fault_is_beyond_four_radii(deviation: Deviation, kind: str, H: int) -> None:
    assert power(deviation, kind, H) > 4


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("deviation", CONVENTIONS, ids=lambda d: d.id)
def test_what_breaks_a_convention_alone_is_no_fault_but_a_finding(deviation: Deviation, kind: str) -> None:
    node, inputs = situation(kind, 33, "plain")
    outputs = run_deviation(deviation, node, inputs)
    assert worst_ratio(node, inputs, outputs) <= 1
    broken = [e for e in expect(node, inputs, outputs) if compare(e, outputs[e.output]).worst > 4]
    assert {e.clause for e in broken} == {deviation.clause}


def test_there_are_many_deviations_and_outputs_of_zero_are_one() -> None:
    assert len(STRUCTURAL) >= 20
    assert "lstm.outputs.zero" in {d.id for d in STRUCTURAL}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("H", [33, 64])
def test_one_wrong_element_is_found_and_named(H: int, kind: str) -> None:
    node, inputs = situation(kind, H, "plain")
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
    wrong = run_deviation(DEVIATIONS["lstm.gates.ifco"], node, inputs)
    (expectation, *_) = expect(node, inputs, wrong)
    number = expectation.number
    late = slice(T - 10, None)
    beyond = np.abs(wrong["Y"][late].astype(float) - number.value[late]) > 4 * number.radius[late]
    assert beyond.mean() > 0.2

"""Tests of LSTM, GRU and RNN computed by hand: several units, rows and directions, both layouts, and old versions.

Functions and letters are those of :mod:`.test_by_hand`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import IllegalNode, Interpretations, Node, configure, evaluate

from .test_by_hand import COUNTERS, COUNTING, GATES, LINES, Arrays, both, run, unit

STATE = np.array([[[1.0, 10.0]]])
SQUARE = [[1.0, 2.0], [3.0, 4.0]]  # STATE times its transpose is (21, 43), and (31, 42) times itself


def tensors(op: str, directions: int = 1, units: int = 1, **given: Any) -> Arrays:
    """Return inputs of one step with weights and an X of zeros, but for those given."""
    rows = GATES[op] * units
    zeros = {"X": (1, 1, 1), "W": (directions, rows, 1), "R": (directions, rows, units)}
    return {name: np.zeros(shape) for name, shape in zeros.items()} | {n: np.array(a) for n, a in given.items()}


def block(op: str, gate: int, matrix: Any, base: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return an R of two units with one gate's block."""
    R = np.zeros((1, 2 * GATES[op], 2)) if base is None else base
    R[0, 2 * gate : 2 * gate + 2] = matrix
    return R


def biases(op: str, *rows: Mapping[int, Any], units: int = 2) -> NDArray[Any]:
    """Return a B of a direction a row; numbers by position, of Wb and then of Rb."""
    B = np.zeros((len(rows), 2 * GATES[op] * units))
    for d, row in enumerate(rows):
        for position, numbers in row.items():
            B[d, position : position + np.size(numbers)] = numbers
    return B


def twice(lines: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes of a bidirectional node whose directions have the same functions."""
    return {"direction": "bidirectional"} | {name: values * 2 for name, values in lines.items()}


# Both derivations have one scan, and one product with R, for all operators: one row with several sequences stands for
# all three.
# fmt: off
ROWS = [
    # forward: f = Affine(2, 1), g = Relu, h = Affine(3, 0); arguments (i, o, f, c) = (1, 0, 0, 2): i = 3, o = 1,
    #   C = 3*2 = 6, H = 1*18 = 18
    # backward: f = Relu, g = Affine(0.5, 0.5), h = HardSigmoid(0.25, 0.125); arguments (1, 2, 0, 3): i = 1, o = 2,
    #   C = 0.5*3 + 0.5 = 2, H = 2*(0.5 + 0.125) = 1.25
    ("LSTM", "coefficients-of-both-directions",
     {"direction": "bidirectional", "activations": ["Affine", "Relu", "Affine", "Relu", "Affine", "HardSigmoid"],
      "activation_alpha": [2.0, 3.0, 0.5, 0.25], "activation_beta": [1.0, 0.0, 0.5, 0.125]},
     tensors("LSTM", 2, B=[[1.0, 0, 0, 2, 0, 0, 0, 0], [1.0, 2, 0, 3, 0, 0, 0, 0]]),
     {"Y": [[[[18]], [[1.25]]]], "Y_h": [[[18]], [[1.25]]], "Y_c": [[[6]], [[2]]]}),
    # The counter, sequence by sequence: X = (1, 2), (10, 20, 30), (100).
    #   forward   C = 2, 7 | 11, 22 + 21 = 43, 86 + 31 = 117 | 101
    #   backward  C = 3, 6 + 2 = 8 | 31, 62 + 21 = 83, 166 + 11 = 177 | 101
    ("LSTM", "ragged-bidirectional-batch", twice(LINES["LSTM"]),
     tensors("LSTM", 2, X=np.reshape([1.0, 10, 100, 2, 20, 200, 3, 30, 300], (3, 3, 1)),
             W=[[[0.0], [0], [0], [1]]] * 2, B=biases("LSTM", {0: (1, 1, 2)}, {0: (1, 1, 2)}, units=1),
             sequence_lens=np.array([2, 3, 1], np.int32)),
     {"Y": 2 * np.reshape([[2.0, 11, 101], [8, 177, 101], [7, 43, 0], [3, 83, 0], [0, 117, 0], [0, 31, 0]],
                          (3, 2, 3, 1)),
      "Y_h": 2 * np.reshape([7.0, 117, 101, 8, 177, 101], (2, 3, 1)),
      "Y_c": np.reshape([7.0, 117, 101, 8, 177, 101], (2, 3, 1))}),
    *(("GRU", f"r-is-transposed-{gate}-{linear}", LINES["GRU"] | {"linear_before_reset": linear},
       tensors("GRU", units=2, R=block("GRU", gate, SQUARE), B=biases("GRU", {2: (1, 1)}), initial_h=STATE),
       {"Y_h": [[h]]})
      for linear in (0, 1)
      for gate, h in (
          (0, [-20 * 1 + 21 * 1, -42 * 1 + 43 * 10]),  # h = 1: H = (1 - z) 1 + z H0
          (2, [43.0, 87.0]),  # z = 0, r = 1 by its bias: H = h = 2 (21, 43) + 1
      )),
    # r = (2, 3), z = 0, Rbh = (5, 6), Wbh = (7, 8), X = 0.
    # 0: r H0 = (2, 30), times Rh^T = (62, 126), plus 12 and 14: (74, 140): H = 2a + 1 = (149, 281)
    # 1: H0 Rh^T = (21, 43), plus Rbh = (26, 49), times r = (52, 147), plus Wbh = (59, 155): H = (119, 311)
    *(("GRU", f"reset-acts-on-each-unit-{linear}", LINES["GRU"] | {"linear_before_reset": linear},
       tensors("GRU", units=2, R=block("GRU", 2, SQUARE), B=biases("GRU", {2: (2, 3, 7, 8), 10: (5, 6)}),
               initial_h=STATE), {"Y_h": [[h]]})
      for linear, h in ((0, [149, 281]), (1, [119, 311]))),
    # H0 Ri^T = (21, 43), and 1
    ("RNN", "r-is-transposed", LINES["RNN"], tensors("RNN", units=2, R=[SQUARE], initial_h=STATE),
     {"Y_h": [[[22, 44]]]}),
]
# fmt: on


def batch_first(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an input or output of layout 0 as layout 1 has it."""
    if name == "X" or name.startswith(("initial_", "Y_")):
        return array.swapaxes(0, 1)
    return np.moveaxis(array, 2, 0) if name == "Y" else array


@both
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize(
    ("op", "attributes", "inputs", "expected"), [pytest.param(o, *row, id=f"{o}-{n}") for o, n, *row in ROWS]
)
def test_several_units_rows_and_directions(
    derivation: str, layout: int, op: str, attributes: dict[str, Any], inputs: Arrays, expected: Mapping[str, Any]
) -> None:
    if layout:
        attributes = attributes | {"layout": 1}
        inputs = {name: batch_first(name, array) for name, array in inputs.items()}
    outputs = run(derivation, op, attributes, inputs)
    for name, numbers in expected.items():
        numbers = np.array(numbers, np.float64)
        np.testing.assert_allclose(outputs[name], batch_first(name, numbers) if layout else numbers, rtol=1e-14, atol=0)


# Interpretations of single versions


@pytest.mark.parametrize(("op", "version", "gate", "linear", "transposed", "plain"), [
    # H0 = (1, 10): transposed (21, 43), plain (31, 42); biases make r = 1 or add to it.
    # Gate z: H = 1 - z + z H0.  Gate r, with h = 2 r H0 Rh + 1 and Rh the unit matrix, z = 0.  Gate h: 2a + 1.
    *(("GRU", version, gate, linear, *h)
      for version, linear in ((1, 0), (3, 0), (3, 1))
      for gate, h in enumerate((([1, 388], [1, 379]), ([43, 861], [63, 841]), ([43, 87], [63, 85])))),
    ("RNN", 1, 0, 0, [22, 44], [32, 43]),
])  # fmt: skip
def test_versions_without_the_mark_of_transposition_have_two_interpretations(
    op: str, version: int, gate: int, linear: int, transposed: list[int], plain: list[int]
) -> None:
    R = block(op, gate, SQUARE, block(op, 2, np.eye(2)) if op == "GRU" and gate == 1 else None)
    B = biases(op, {2: (1, 1)} if op == "GRU" and gate != 1 else {})
    inputs = tensors(op, units=2, R=R, B=B, initial_h=STATE)
    attributes = LINES[op] | ({"linear_before_reset": linear} if op == "GRU" and version > 1 else {})
    node = Node(op, version, attributes, ("Y_h",))
    assert configure(node, inputs).open_questions == {"recurrent_product"}
    for interpretation, h in {"transposed": transposed, "plain": plain}.items():
        outputs = evaluate(node, inputs, Interpretations(recurrent_product=interpretation))
        assert outputs["Y_h"].tolist() == [[h]], interpretation
    assert configure(Node(op, 7, LINES[op], ("Y_h",)), inputs).open_questions == frozenset()


@pytest.mark.parametrize(("op", "version"), [("GRU", 1), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize(
    ("attributes", "is_open"), [({}, True), ({"output_sequence": 0}, True), ({"output_sequence": 1}, False)]
)
def test_a_sequence_that_was_not_announced_is_an_open_question(
    op: str, version: int, attributes: dict[str, int], is_open: bool
) -> None:
    inputs = unit(op, [1.0])
    open_questions = configure(Node(op, version, attributes, ("Y", "Y_h")), inputs).open_questions
    assert ("sequence_output" in open_questions) is is_open
    assert "sequence_output" not in configure(Node(op, version, attributes, ("Y_h",)), inputs).open_questions
    with pytest.raises(IllegalNode, match="defines no attribute 'output_sequence'"):
        Node(op, 7, {"output_sequence": 1})


def test_version_1_runs_forward_by_default() -> None:
    node = Node("GRU", 1, LINES["GRU"] | COUNTING["GRU"], ("Y_h",))
    assert "direction" not in node.attributes
    assert evaluate(node, unit("GRU", [1, 2, 3], **COUNTERS["GRU"]))["Y_h"].tolist() == [[[11.0]]]


def test_version_1_does_not_say_where_coefficients_come_from() -> None:
    # g = LeakyRelu at -2: alpha 0.01 or 0; z = Relu(0) = 0.
    inputs, attributes = unit("GRU", wb=(0, 0, -2)), {"activations": ["Relu", "LeakyRelu"]}
    value, zero = -2 * float(np.float32(0.01)), Interpretations(defaults="zero")
    node, later = (Node("GRU", version, attributes, ("Y_h",)) for version in (1, 3))
    assert "defaults" in configure(node, inputs).open_questions
    assert evaluate(node, inputs)["Y_h"].tolist() == [[[value]]]
    assert evaluate(node, inputs, zero)["Y_h"].tolist() == [[[0.0]]]
    assert "defaults" not in configure(later, inputs).open_questions
    assert evaluate(later, inputs, zero)["Y_h"].tolist() == [[[value]]]
    given = Node("GRU", 1, attributes | {"activation_alpha": [0.5]}, ("Y_h",))
    assert "defaults" not in configure(given, inputs).open_questions


@pytest.mark.parametrize("version", [1, 3])
def test_a_kernel_may_know_the_defaults_of_some_functions(version: int) -> None:
    """f = ScaledTanh at 0.75 for z, g = Elu at -1: alpha is 1 in every version, except that version 1 may have none."""
    inputs = unit("GRU", wb=(0.75, 0, -1))
    node = Node("GRU", version, {"activations": ["ScaledTanh", "Elu"]}, ("Y_h",))
    elu, z = math.expm1(-1), math.tanh(0.75)
    options = ("one", "named", "affine", "scaled-tanh", "zero")
    y_h = {name: evaluate(node, inputs, Interpretations(defaults=name))["Y_h"].item() for name in options}
    assert y_h["one"] == pytest.approx((1 - z) * elu)
    assert y_h["named"] == y_h["affine"] == pytest.approx(elu)
    assert y_h["scaled-tanh"] == y_h["one"]
    assert y_h["zero"] == (0 if version == 1 else y_h["named"])

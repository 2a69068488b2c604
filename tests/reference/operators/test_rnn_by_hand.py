"""Tests of RNN computed by hand: one unit, one input, and numbers that a reader can check without running anything.

Most tests take f(x) = x + 1, that is Affine(1, 1), so that

    H = X Wi + H0 Ri + Wbi + Rbi + 1

Both the reference and the second derivation are compared with these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import IllegalNode, Interpretations, Node, configure, evaluate

from .second_document import Choices
from .second_rnn import second_rnn

Arrays = dict[str, NDArray[Any]]
Run = Callable[[dict[str, Any], Arrays], Arrays]

LINE: dict[str, Any] = {"activations": ["Affine"], "activation_alpha": [1.0], "activation_beta": [1.0]}


def run_reference(attributes: dict[str, Any], inputs: Arrays, interpretations: Interpretations | None = None) -> Arrays:
    return dict(evaluate(Node("RNN", 14, attributes, ("Y", "Y_h")), inputs, interpretations))


@pytest.fixture(params=[run_reference, second_rnn], ids=["reference", "second"])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


def unit(
    x: Sequence[float] = (0.0,),
    *,
    w: float = 0.0,
    r: float = 0.0,
    b: Sequence[float] | None = None,
    h0: float | None = None,
    length: int | None = None,
) -> Arrays:
    """Return inputs of one sequence, one input and one unit; b is (Wbi, Rbi)."""
    inputs: Arrays = {
        "X": np.array(x, dtype=np.float64).reshape(-1, 1, 1),
        "W": np.full((1, 1, 1), float(w)),
        "R": np.full((1, 1, 1), float(r)),
    }
    if b is not None:
        inputs["B"] = np.array([b], dtype=np.float64)
    if h0 is not None:
        inputs["initial_h"] = np.full((1, 1, 1), float(h0))
    if length is not None:
        inputs["sequence_lens"] = np.array([length], dtype=np.int32)
    return inputs


def expect(outputs: Arrays, *y: float, h: float | None = None) -> None:
    """Compare Y of one unit and one sequence, and Y_h, which is the last Y unless `h` is given."""
    assert outputs.keys() == {"Y", "Y_h"}
    np.testing.assert_allclose(outputs["Y"].reshape(-1), y, rtol=1e-14, atol=0)
    np.testing.assert_allclose(outputs["Y_h"].reshape(-1), [y[-1] if h is None else h], rtol=1e-14, atol=0)


def test_two_default_steps(run: Run) -> None:
    # Tanh(0.5*0.5 + 0.25*0.5 + 0.125 + 0.25) = Tanh(0.75); Tanh(-0.5 + 0.5 Tanh(0.75) + 0.375)
    inputs = unit([0.5, -1.0], w=0.5, r=0.5, b=(0.125, 0.25), h0=0.25)
    expect(run({"hidden_size": 1}, inputs), 0.6351489523872873127, 0.1902287298749928300)


def test_every_term_counts_once(run: Run) -> None:
    # 2*3 + 5*7 + 11 + 13 + 1
    expect(run(LINE, unit([2.0], w=3, r=7, b=(11, 13), h0=5)), 66.0)


def test_a_state_goes_on_into_the_next_step(run: Run) -> None:
    # X + 2 H + 1: 1 + 10 + 1 = 12, 2 + 24 + 1 = 27, 3 + 54 + 1 = 58
    expect(run(LINE, unit([1, 2, 3], w=1, r=2, h0=5)), 12, 27, 58)


def test_halves_of_b_have_the_units_in_turn(run: Run) -> None:
    # Wbi = (1, 2), Rbi = (10, 30)
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 2, 1)), "R": np.zeros((1, 2, 2))}
    outputs = run(LINE, inputs | {"B": np.array([[1.0, 2, 10, 30]])})
    np.testing.assert_array_equal(outputs["Y_h"], [[[12, 33]]])


def test_r_is_transposed(run: Run) -> None:
    # H0 = (1, 10), Ri = [[1, 2], [3, 4]]: H0 Ri^T = (21, 43), and 1
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 2, 1)), "R": np.array([[[1.0, 2], [3, 4]]])}
    outputs = run(LINE, inputs | {"initial_h": np.array([[[1.0, 10.0]]])})
    np.testing.assert_array_equal(outputs["Y_h"], [[[22, 44]]])


def test_clip_bounds_the_argument_and_no_state(run: Run) -> None:
    # Threshold 2: 5 -> 2, H = 3; 3 + 5 -> 2, H = 3; -9 + 3 -> -2, H = -1
    expect(run(LINE | {"clip": 2.0}, unit([5, 5, -9], w=1, r=1)), 3, 3, -1)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_each_direction_has_tanh_by_default(run: Run, direction: str) -> None:
    count = 2 if direction == "bidirectional" else 1
    inputs = {"X": np.ones((1, 1, 1)), "W": np.full((count, 1, 1), 0.5), "R": np.zeros((count, 1, 1))}
    outputs = run({"direction": direction}, inputs)
    np.testing.assert_allclose(outputs["Y"].reshape(-1), [0.46211715726000975850] * count, rtol=1e-15)


def test_two_activations_take_alpha_and_beta_in_turn(run: Run) -> None:
    # forward Affine(2, 3): 2*2 + 3 = 7; backward LeakyRelu(0.5) of -4: -2
    attributes = {
        "direction": "bidirectional",
        "activations": ["Affine", "LeakyRelu"],
        "activation_alpha": [2.0, 0.5],
        "activation_beta": [3.0],
    }
    inputs = {"X": np.ones((1, 1, 1)), "W": np.array([[[2.0]], [[-4.0]]]), "R": np.zeros((2, 1, 1))}
    np.testing.assert_array_equal(run(attributes, inputs)["Y"], [[[[7]], [[-2]]]])


@pytest.mark.parametrize(("direction", "names"), [
    ("forward", ["Tanh", "Tanh"]), ("forward", []), ("bidirectional", ["Tanh"]), ("bidirectional", ["Tanh"] * 3),
])  # fmt: skip
def test_a_direction_has_one_activation(direction: str, names: list[str]) -> None:
    count = 2 if direction == "bidirectional" else 1
    inputs = {"X": np.ones((1, 1, 1)), "W": np.ones((count, 1, 1)), "R": np.ones((count, 1, 1))}
    with pytest.raises(IllegalNode, match=f"RNN-14: activations are {count} names, not {len(names)}"):
        configure(Node("RNN", 14, {"direction": direction, "activations": names}), inputs)


@pytest.mark.parametrize(("direction", "length", "y", "h"), [
    # X + 2 H + 1 from H = 0; X = (1, 2, 3)
    ("forward", None, [2, 7, 18], 18),
    ("forward", 2, [2, 7, 0], 7),
    ("reverse", None, [24, 11, 4], 24),
    ("reverse", 2, [8, 3, 0], 8),
])  # fmt: skip
def test_direction_and_length(run: Run, direction: str, length: int | None, y: list[float], h: float) -> None:
    expect(run(LINE | {"direction": direction}, unit([1, 2, 3], w=1, r=2, length=length)), *y, h=h)


def test_length_zero(run: Run) -> None:
    inputs = unit([1, 2], w=1, r=2, h0=5, length=0)
    expect(run(LINE, inputs), 0, 0, h=5)
    expect(run_reference(LINE, inputs, Interpretations(empty="zero")), 0, 0, h=0)
    expect(second_rnn(LINE, inputs, Choices(empty_keeps_state=False)), 0, 0, h=0)


@pytest.mark.parametrize("layout", [0, 1])
def test_ragged_bidirectional_batch_in_both_layouts(run: Run, layout: int) -> None:
    # X + 2 H + 1; X = (1, 2) and (10, 20, 30), H0 = 1 and 2 forward, 3 and 4 backward.
    #   forward   1 + 2 + 1 = 4, 2 + 8 + 1 = 11 | 10 + 4 + 1 = 15, 20 + 30 + 1 = 51, 30 + 102 + 1 = 133
    #   backward  2 + 6 + 1 = 9, 1 + 18 + 1 = 20 | 30 + 8 + 1 = 39, 20 + 78 + 1 = 99, 10 + 198 + 1 = 209
    x = np.array([[1.0, 10], [2, 20], [3, 30]]).reshape(3, 2, 1)
    h0 = np.array([[[1.0], [2]], [[3], [4]]])
    forward, backward = np.array([[4.0, 15], [11, 51], [0, 133]]), np.array([[20.0, 209], [9, 99], [0, 39]])
    y, last = np.stack([forward, backward], axis=1)[..., np.newaxis], np.array([[[11.0], [133]], [[20], [209]]])
    attributes = {"direction": "bidirectional"} | {name: values * 2 for name, values in LINE.items()}
    if layout == 1:
        attributes["layout"] = 1
        x, h0, y, last = x.swapaxes(0, 1), h0.swapaxes(0, 1), np.moveaxis(y, 2, 0), last.swapaxes(0, 1)
    inputs = {"X": x, "W": np.ones((2, 1, 1)), "R": np.full((2, 1, 1), 2.0)}
    outputs = run(attributes, inputs | {"sequence_lens": np.array([2, 3], np.int32), "initial_h": h0})
    np.testing.assert_array_equal(outputs["Y"], y)
    np.testing.assert_array_equal(outputs["Y_h"], last)


@pytest.mark.parametrize("version", [1, 7, 14, 22])
def test_every_version_has_the_same_equation(version: int) -> None:
    attributes = LINE | ({"output_sequence": 1} if version == 1 else {})
    node = Node("RNN", version, attributes, ("Y", "Y_h"))
    expect(dict(evaluate(node, unit([2.0], w=3, r=7, b=(11, 13), h0=5))), 66.0)


def test_version_1_has_two_interpretations_of_the_recurrent_product_and_of_the_sequence() -> None:
    # H0 = (1, 10), Ri = [[1, 2], [3, 4]]: H0 Ri = (31, 42), and 1
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 2, 1)), "R": np.array([[[1.0, 2], [3, 4]]])}
    inputs["initial_h"] = np.array([[[1.0, 10.0]]])
    node = Node("RNN", 1, LINE, ("Y", "Y_h"))
    assert configure(node, inputs).open_questions == {"recurrent_product", "sequence_output"}
    for interpretation, h in {"transposed": [22, 44], "plain": [32, 43]}.items():
        assert evaluate(node, inputs, Interpretations(recurrent_product=interpretation))["Y_h"].tolist() == [[h]]
    assert configure(Node("RNN", 1, LINE, ("Y_h",)), inputs).open_questions == {"recurrent_product"}
    assert configure(Node("RNN", 1, LINE | {"output_sequence": 1}), inputs).open_questions == {"recurrent_product"}
    assert configure(Node("RNN", 7, LINE), inputs).open_questions == frozenset()

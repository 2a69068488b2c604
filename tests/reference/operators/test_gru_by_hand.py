"""Tests of GRU computed by hand: one unit, one input, and numbers that a reader can check without running anything.

Most tests replace the functions by straight lines. Unless a test says otherwise

    f(x) = x        g(x) = 2x + 1

that is, Affine twice with activation_alpha (1, 2) and activation_beta (0, 1). Gate values are written in the document's
order, (z, r, h). Then, with linear_before_reset 0 and X = 0,

    h = 2 (r H0 Rh + Rbh + Wbh) + 1        H = (1 - z) h + z H0

Both the reference and the second derivation are compared with these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import IllegalNode, Interpretations, Node, configure, evaluate

from .second_document import Choices
from .second_gru import second_gru

Arrays = dict[str, NDArray[Any]]
Run = Callable[[dict[str, Any], Arrays], Arrays]

LINES: dict[str, Any] = {
    "activations": ["Affine", "Affine"],
    "activation_alpha": [1.0, 2.0],
    "activation_beta": [0.0, 1.0],
}
NONE = (0.0, 0.0, 0.0)


def run_reference(attributes: dict[str, Any], inputs: Arrays, interpretations: Interpretations | None = None) -> Arrays:
    return dict(evaluate(Node("GRU", 14, attributes, ("Y", "Y_h")), inputs, interpretations))


@pytest.fixture(params=[run_reference, second_gru], ids=["reference", "second"])
def run(request: pytest.FixtureRequest) -> Run:
    chosen: Run = request.param
    return chosen


def unit(
    x: Sequence[float] = (0.0,),
    *,
    w: Sequence[float] = NONE,
    r: Sequence[float] = NONE,
    wb: Sequence[float] | None = None,
    rb: Sequence[float] = NONE,
    h0: float | None = None,
    length: int | None = None,
) -> Arrays:
    """Return inputs of one sequence, one input and one unit; gates in the order z, r, h."""
    inputs: Arrays = {
        "X": np.array(x, dtype=np.float64).reshape(-1, 1, 1),
        "W": np.array(w, dtype=np.float64).reshape(1, 3, 1),
        "R": np.array(r, dtype=np.float64).reshape(1, 3, 1),
    }
    if wb is not None:
        inputs["B"] = np.array([[*wb, *rb]], dtype=np.float64)
    if h0 is not None:
        inputs["initial_h"] = np.full((1, 1, 1), float(h0))
    if length is not None:
        inputs["sequence_lens"] = np.array([length], dtype=np.int32)
    return inputs


def expect(outputs: Arrays, *y: float, h: float | None = None) -> None:
    """Compare Y of one unit and one sequence, and Y_h, which is the last Y unless `h` is given."""
    assert outputs.keys() == {"Y", "Y_h"}
    np.testing.assert_allclose(outputs["Y"].reshape(-1), y, rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(outputs["Y_h"].reshape(-1), [y[-1] if h is None else h], rtol=1e-14, atol=1e-16)


# ---- the equations with their defaults


@pytest.mark.parametrize(("linear", "y"), [
    # Sigmoid and Tanh; X = (0.5, -1), H0 = 0.125, W = (0.5, -0.25, 0.75), R = (0.25, 0.5, -0.5),
    # Wb = (0.125, 0, 0.25), Rb = (0, 0.25, 0.5). Computed at 40 digits from the equations.
    # step 1: z = Sigmoid(0.40625) = 0.6001883831, r = Sigmoid(0.1875) = 0.5467381519
    #   0: h = Tanh(0.375 + 0.25 + 0.5 - r 0.0625) = Tanh(1.0908288655) = 0.7971804681
    #   1: h = Tanh(0.625 + r 0.4375) = Tanh(0.8641979415) = 0.6984142422
    (0, [0.3937455758279215465463, 0.0955141744175725601798]),
    (1, [0.3542576889817609494971, -0.0070457772307515444734]),
])  # fmt: skip
def test_two_default_steps(run: Run, linear: int, y: list[float]) -> None:
    inputs = unit(
        [0.5, -1.0], w=(0.5, -0.25, 0.75), r=(0.25, 0.5, -0.5), wb=(0.125, 0, 0.25), rb=(0, 0.25, 0.5), h0=0.125
    )
    expect(run({"hidden_size": 1, "linear_before_reset": linear}, inputs), *y)


def test_everything_absent_and_zero_weights(run: Run) -> None:
    # z = 1/2, h = Tanh(0) = 0, H0 = 0
    expect(run({}, unit([3.0])), 0.0)


def test_a_step_without_anything_halves_the_state(run: Run) -> None:
    # z = Sigmoid(0) = 1/2, h = 0: H = H0/2
    expect(run({}, unit([3.0, 3.0], h0=2.0)), 1.0, 0.5)


# ---- where each number lies in W, R and B


def test_gate_order_in_w(run: Run) -> None:
    # (z, r, h) = (3, 5, 7): H = (1 - 3)(2*7 + 1) + 3*11 = -30 + 33 = 3; r has nothing to act on.
    expect(run(LINES, unit([1.0], w=(3, 5, 7), h0=11)), 3.0)


@pytest.mark.parametrize("linear", [0, 1])
def test_gate_order_in_r(run: Run, linear: int) -> None:
    # H0 = 2: z = 6, r = 10, h = 2*(10*2*7) + 1 = 281; H = -5*281 + 12 = -1393. Without biases and with one unit both
    # forms are the same.
    expect(run(LINES | {"linear_before_reset": linear}, unit([1.0], r=(3, 5, 7), h0=2)), -1393.0)


@pytest.mark.parametrize("half", ["wb", "rb"])
def test_gate_order_in_each_half_of_b(run: Run, half: str) -> None:
    # as in W
    biases = {"wb": NONE, "rb": NONE} | {half: (3, 5, 7)}
    expect(run(LINES, unit(**biases, h0=11)), 3.0)  # type: ignore[arg-type]


def test_halves_of_b_add_up(run: Run) -> None:
    # (11, 22, 33): H = -10*(66 + 1) + 11*4 = -626
    expect(run(LINES, unit(wb=(1, 2, 3), rb=(10, 20, 30), h0=4)), -626.0)


def test_terms_of_an_argument_add_up(run: Run) -> None:
    # r = 2*3 + 5*7 + 11 + 13 = 65, z = 0: h = 2*(65*5*1) + 1 = 651
    expect(run(LINES, unit([2.0], w=(0, 3, 0), r=(0, 7, 1), h0=5, wb=(0, 11, 0), rb=(0, 13, 0))), 651.0)


def test_blocks_of_two_units(run: Run) -> None:
    # Each gate has a block of two rows; W = R = 0, H0 = (1, 1), Wb = z (3, 4), r (5, 6), h (7, 8), Rb = 0 except h of
    # the second unit: 10.
    # unit 0: H = -2*15 + 3 = -27;   unit 1: H = -3*(2*18 + 1) + 4 = -107
    b = np.array([[3.0, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 10]])
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 6, 1)), "R": np.zeros((1, 6, 2)), "B": b}
    outputs = run(LINES, inputs | {"initial_h": np.ones((1, 1, 2))})
    np.testing.assert_array_equal(outputs["Y_h"], [[[-27, -107]]])


@pytest.mark.parametrize(("gate", "h"), [
    # H0 = (1, 10), R of one gate [[1, 2], [3, 4]]: H0 R^T = (21, 43); not H0 R = (31, 42).
    (0, [-20 * 1 + 21 * 1, -42 * 1 + 43 * 10]),  # h = 1: H = (1 - z) 1 + z H0
    (2, [43.0, 87.0]),  # z = 0, r = 1 by its bias: H = h = 2 (21, 43) + 1
])  # fmt: skip
@pytest.mark.parametrize("linear", [0, 1])
def test_r_is_transposed(run: Run, linear: int, gate: int, h: list[float]) -> None:
    weights = np.zeros((1, 6, 2))
    weights[0, 2 * gate : 2 * gate + 2] = [[1, 2], [3, 4]]
    b = np.zeros((1, 12))
    b[0, 2:4] = 1
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 6, 1)), "R": weights, "B": b}
    outputs = run(LINES | {"linear_before_reset": linear}, inputs | {"initial_h": np.array([[[1.0, 10.0]]])})
    np.testing.assert_array_equal(outputs["Y_h"], [[h]])


# ---- linear_before_reset


def test_the_reset_gate_acts_on_each_unit_of_the_state(run: Run) -> None:
    # H0 = (1, 10), r = (2, 3), z = 0, Rh = [[1, 2], [3, 4]], Rbh = (5, 6), Wbh = (7, 8), X = 0.
    # 0: r H0 = (2, 30), times Rh^T = (62, 126), plus 12 and 14: (74, 140): H = 2a + 1 = (149, 281)
    # 1: H0 Rh^T = (21, 43), plus Rbh = (26, 49), times r = (52, 147), plus Wbh = (59, 155): H = (119, 311)
    weights = np.zeros((1, 6, 2))
    weights[0, 4:] = [[1, 2], [3, 4]]
    b = np.array([[0.0, 0, 2, 3, 7, 8, 0, 0, 0, 0, 5, 6]])
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 6, 1)), "R": weights, "B": b}
    inputs["initial_h"] = np.array([[[1.0, 10.0]]])
    np.testing.assert_array_equal(run(LINES, inputs)["Y_h"], [[[149, 281]]])
    np.testing.assert_array_equal(run(LINES | {"linear_before_reset": 1}, inputs)["Y_h"], [[[119, 311]]])


@pytest.mark.parametrize("linear", [1, -1, 2, 7])
def test_any_other_number_than_zero_is_linear_before_reset(run: Run, linear: int) -> None:
    # "when linear_before_reset != 0". r = 3, Rbh = 5, Wbh = 7: h = 2 (3*5 + 7) + 1 = 45; z = 0
    expect(run(LINES | {"linear_before_reset": linear}, unit(wb=(0, 3, 7), rb=(0, 0, 5), h0=1)), 45.0)


def test_by_default_the_reset_gate_leaves_biases_alone(run: Run) -> None:
    # h = 2 (5 + 7) + 1 = 25
    for attributes in (LINES, LINES | {"linear_before_reset": 0}):
        expect(run(attributes, unit(wb=(0, 3, 7), rb=(0, 0, 5), h0=1)), 25.0)


# ---- the update gate


@pytest.mark.parametrize(("z", "h"), [(0.0, 3.0), (1.0, 8.0), (0.25, 4.25), (-1.0, -2.0), (2.0, 13.0)])
def test_the_update_gate_keeps_the_old_state(run: Run, z: float, h: float) -> None:
    # h = 2*1 + 1 = 3, H0 = 8: H = 3 (1 - z) + 8 z
    expect(run(LINES, unit(wb=(z, 0, 1), h0=8)), h)


# ---- clip


def test_clip_bounds_every_argument_and_no_state(run: Run) -> None:
    # Threshold 2. z: 3 -> 2, r: -5 -> -2; h: -2*6*4 + 1 = -47 -> -2, g = -3; H = -1*(-3) + 2*6 = 15, beyond 2 itself.
    expect(run(LINES | {"clip": 2.0}, unit(r=(0, 0, 4), wb=(3, -5, 1), h0=6)), 15.0)


def test_clip_bounds_the_sum_and_not_what_the_reset_gate_acts_on(run: Run) -> None:
    # Threshold 2, linear_before_reset: r = 0.5, H0 Rh + Rbh = 6, half of it 3, with Wbh -2 it is 1: H = 2*1 + 1 = 3.
    attributes = LINES | {"clip": 2.0, "linear_before_reset": 1}
    expect(run(attributes, unit(r=(0, 0, 4), wb=(0, 0.5, -2), rb=(0, 0, 2), h0=1)), 3.0)


# ---- activations


def test_f_is_that_of_both_gates_and_g_of_the_hidden_one(run: Run) -> None:
    # f = Relu: z = Relu(-1) = 0, r = Relu(-1) = 0; g = LeakyRelu(0.5): h = 0.5*(-4) = -2
    attributes = {"activations": ["Relu", "LeakyRelu"], "activation_alpha": [0.5]}
    expect(run(attributes, unit(wb=(-1, -1, -4), r=(0, 0, 9), h0=3)), -2.0)


def test_four_activations_take_alpha_and_beta_in_turn(run: Run) -> None:
    # forward f = HardSigmoid(0.25, 0.5), g = Affine(3, 1); backward f = LeakyRelu(0.5), g = HardSigmoid(0.125, 0.25).
    # forward, arguments z 1, h 2: z = 0.75, h = 7, H = 1.75; backward, z -2, h 2: z = -1, h = 0.5, H = 2*0.5 = 1
    attributes = {
        "direction": "bidirectional",
        "activations": ["HardSigmoid", "Affine", "LeakyRelu", "HardSigmoid"],
        "activation_alpha": [0.25, 3.0, 0.5, 0.125],
        "activation_beta": [0.5, 1.0, 0.25],
    }
    b = np.array([[1.0, 0, 2, 0, 0, 0], [-2.0, 0, 2, 0, 0, 0]])
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((2, 3, 1)), "R": np.zeros((2, 3, 1)), "B": b}
    np.testing.assert_array_equal(run(attributes, inputs)["Y"], [[[[1.75]], [[1.0]]]])


# ---- time: direction, lengths, layout
#
# A counter that depends on the order of steps: z = 2 by its bias, g = Affine(-1, 0), W of the hidden gate 1. So
#   h = -Xt,  Ht = (1 - 2) h + 2 Ht-1 = Xt + 2 Ht-1.

COUNTER = {"activations": ["Affine"] * 2, "activation_alpha": [1.0, -1.0], "activation_beta": [0.0, 0.0]}


@pytest.mark.parametrize(("direction", "length", "y", "h"), [
    ("forward", None, [1, 4, 11], 11),
    ("forward", 2, [1, 4, 0], 4),
    ("forward", 1, [1, 0, 0], 1),
    ("reverse", None, [17, 8, 3], 17),
    ("reverse", 2, [5, 2, 0], 5),
    ("reverse", 1, [1, 0, 0], 1),
])  # fmt: skip
def test_direction_and_length(run: Run, direction: str, length: int | None, y: list[float], h: float) -> None:
    expect(run(COUNTER | {"direction": direction}, unit([1, 2, 3], w=(0, 0, 1), wb=(2, 0, 0), length=length)), *y, h=h)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_length_zero(run: Run, direction: str) -> None:
    inputs = unit([1, 2], w=(0, 0, 1), wb=(2, 0, 0), h0=5, length=0)
    attributes = COUNTER | {"direction": direction}
    expect(run(attributes, inputs), 0, 0, h=5)
    expect(run_reference(attributes, inputs, Interpretations(empty="zero")), 0, 0, h=0)
    expect(second_gru(attributes, inputs, Choices(empty_keeps_state=False)), 0, 0, h=0)


@pytest.mark.parametrize("layout", [0, 1])
def test_ragged_bidirectional_batch_in_both_layouts(run: Run, layout: int) -> None:
    # X = (1, 2) and (10, 20, 30), H0 = 1 and 2 forward, 3 and 4 backward.
    #   forward   1 + 2*1 = 3, 2 + 6 = 8 | 10 + 4 = 14, 20 + 28 = 48, 30 + 96 = 126
    #   backward  2 + 2*3 = 8, 1 + 16 = 17 | 30 + 8 = 38, 20 + 76 = 96, 10 + 192 = 202
    x = np.array([[1.0, 10], [2, 20], [3, 30]]).reshape(3, 2, 1)
    h0 = np.array([[[1.0], [2]], [[3], [4]]])
    forward, backward = np.array([[3.0, 14], [8, 48], [0, 126]]), np.array([[17.0, 202], [8, 96], [0, 38]])
    y = np.stack([forward, backward], axis=1)[..., np.newaxis]
    last = np.array([[[8.0], [126]], [[17], [202]]])
    attributes = {"direction": "bidirectional"} | {name: values * 2 for name, values in COUNTER.items()}
    if layout == 1:
        attributes["layout"] = 1  # type: ignore[assignment]
        x, h0, y, last = x.swapaxes(0, 1), h0.swapaxes(0, 1), np.moveaxis(y, 2, 0), last.swapaxes(0, 1)
    inputs = {
        "X": x,
        "W": np.array([[[0.0], [0], [1]]] * 2),
        "R": np.zeros((2, 3, 1)),
        "B": np.array([[2.0, 0, 0, 0, 0, 0]] * 2),
        "sequence_lens": np.array([2, 3], np.int32),
        "initial_h": h0,
    }
    outputs = run(attributes, inputs)
    np.testing.assert_array_equal(outputs["Y"], y)
    np.testing.assert_array_equal(outputs["Y_h"], last)


# ---- versions


@pytest.mark.parametrize("version", [1, 3, 7, 14, 22])
def test_every_version_has_the_default_equations(version: int) -> None:
    # test_the_reset_gate_acts_on_each_unit_of_the_state in one unit: r = 3, H0 = 2, Rh = 5, biases 12: h = 2*42 + 1
    inputs = unit(r=(0, 0, 5), wb=(0, 3, 7), rb=(0, 0, 5), h0=2)
    attributes = LINES | ({"output_sequence": 1} if version < 7 else {})
    expect(dict(evaluate(Node("GRU", version, attributes, ("Y", "Y_h")), inputs)), 85.0)


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("gate", [0, 1, 2])
@pytest.mark.parametrize("linear", [0, 1])
def test_versions_without_the_mark_of_transposition_have_two_interpretations(
    linear: int, gate: int, version: int
) -> None:
    # H0 = (1, 10), R of one gate [[1, 2], [3, 4]]: transposed (21, 43), plain (31, 42); biases make r = 1 or add to it.
    # Gate z: H = 1 - z + z H0.  Gate r, with h = 2 r H0 Rh + 1 and Rh the unit matrix, z = 0.  Gate h: 2a + 1.
    if version == 1 and linear:
        with pytest.raises(IllegalNode, match="GRU-1 defines no attribute 'linear_before_reset'"):
            Node("GRU", 1, {"linear_before_reset": 1}, ("Y_h",))
        return
    weights, b = np.zeros((1, 6, 2)), np.zeros((1, 12))
    weights[0, 2 * gate : 2 * gate + 2] = [[1, 2], [3, 4]]
    if gate == 1:
        weights[0, 4:] = np.eye(2)
    else:
        b[0, 2:4] = 1
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 6, 1)), "R": weights, "B": b}
    inputs["initial_h"] = np.array([[[1.0, 10.0]]])
    node = Node("GRU", version, LINES | ({"linear_before_reset": linear} if version > 1 else {}), ("Y_h",))
    assert "recurrent_product" in configure(node, inputs).open_questions
    for interpretation, (first, second) in {"transposed": (21, 43), "plain": (31, 42)}.items():
        h = {
            0: [1 - first + first, 1 - second + 10 * second],
            1: [2 * first + 1, 20 * second + 1],
            2: [2 * first + 1, 2 * second + 1],
        }[gate]
        outputs = evaluate(node, inputs, Interpretations(recurrent_product=interpretation))
        np.testing.assert_array_equal(outputs["Y_h"], [[h]], err_msg=interpretation)
    assert "recurrent_product" not in configure(Node("GRU", 7, LINES, ("Y_h",)), inputs).open_questions


def test_version_1_demands_y_h_and_runs_forward_by_default() -> None:
    with pytest.raises(IllegalNode, match="GRU-1 demands output Y_h"):
        Node("GRU", 1, {}, ("Y",))
    Node("GRU", 3, {}, ("Y",))
    node = Node("GRU", 1, COUNTER, ("Y_h",))
    assert "direction" not in node.attributes
    outputs = evaluate(node, unit([1, 2, 3], w=(0, 0, 1), wb=(2, 0, 0)))
    assert outputs["Y_h"].tolist() == [[[11.0]]]


def test_version_1_does_not_say_where_coefficients_come_from() -> None:
    # g = LeakyRelu at -2: alpha 0.01 or 0; z = Relu(0) = 0.
    inputs = unit(wb=(0, 0, -2))
    attributes = {"activations": ["Relu", "LeakyRelu"]}
    node = Node("GRU", 1, attributes, ("Y_h",))
    assert "defaults" in configure(node, inputs).open_questions
    value = -2 * float(np.float32(0.01))
    assert evaluate(node, inputs)["Y_h"].tolist() == [[[value]]]
    assert evaluate(node, inputs, Interpretations(defaults="zero"))["Y_h"].tolist() == [[[0.0]]]
    assert "defaults" not in configure(Node("GRU", 3, attributes, ("Y_h",)), inputs).open_questions
    assert evaluate(Node("GRU", 3, attributes), inputs, Interpretations(defaults="zero"))["Y"].tolist() == [[[[value]]]]
    given = attributes | {"activation_alpha": [0.5]}
    assert "defaults" not in configure(Node("GRU", 1, given, ("Y_h",)), inputs).open_questions


@pytest.mark.parametrize("version", [1, 3])
def test_a_kernel_may_know_the_defaults_of_some_functions(version: int) -> None:
    """f = ScaledTanh at 0.75 for z, g = Elu at -1: alpha is 1 in every version, except that version 1 may have none."""
    inputs = unit(wb=(0.75, 0, -1))
    node = Node("GRU", version, {"activations": ["ScaledTanh", "Elu"]}, ("Y_h",))
    elu, z = math.expm1(-1), math.tanh(0.75)

    def y_h(option: str) -> float:
        return float(evaluate(node, inputs, Interpretations(defaults=option))["Y_h"][0, 0, 0])

    assert y_h("one") == pytest.approx((1 - z) * elu)
    assert y_h("named") == y_h("affine") == pytest.approx(elu)
    assert y_h("scaled-tanh") == y_h("one")
    assert y_h("zero") == (0 if version == 1 else y_h("named"))


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize(
    ("attributes", "open_"), [({}, True), ({"output_sequence": 0}, True), ({"output_sequence": 1}, False)]
)
def test_a_sequence_that_was_not_announced_is_a_interpretation(
    version: int, attributes: dict[str, int], open_: bool
) -> None:
    inputs = unit([1.0])
    open_questions = configure(Node("GRU", version, attributes, ("Y", "Y_h")), inputs).open_questions
    assert ("sequence_output" in open_questions) is open_
    assert "sequence_output" not in configure(Node("GRU", version, attributes, ("Y_h",)), inputs).open_questions
    with pytest.raises(IllegalNode, match="defines no attribute 'output_sequence'"):
        Node("GRU", 7, {"output_sequence": 1})

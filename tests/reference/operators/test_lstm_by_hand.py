"""Tests of LSTM computed by hand: one unit, one input, and numbers that a reader can check without running anything.

Most tests replace the functions by straight lines, so that every number is an integer or a short fraction. Unless a
test says otherwise

    f(x) = x        g(x) = x + 1        h(x) = 2x

that is, Affine three times with activation_alpha (1, 1, 2) and activation_beta (0, 1, 0). g differs from f, so that
swapping any two gates changes the result. Gate values are written in the document's order, (i, o, f, c). Then

    C = f C0 + i (c + 1)        H = 2 o C

Both the reference and the second derivation are compared with these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import Interpretations, Node, evaluate

from .second_document import ACTIVATIONS, Choices
from .second_lstm import second_lstm

Arrays = dict[str, NDArray[Any]]
Run = Callable[[dict[str, Any], Arrays], Arrays]

LINES: dict[str, Any] = {
    "activations": ["Affine", "Affine", "Affine"],
    "activation_alpha": [1.0, 1.0, 2.0],
    "activation_beta": [0.0, 1.0, 0.0],
}
NONE = (0.0, 0.0, 0.0, 0.0)


def run_reference(attributes: dict[str, Any], inputs: Arrays, interpretations: Interpretations | None = None) -> Arrays:
    node = Node("LSTM", since_version=14, attributes=attributes, outputs=("Y", "Y_h", "Y_c"))
    return dict(evaluate(node, inputs, interpretations))


def expect_of_both(
    attributes: dict[str, Any],
    inputs: Arrays,
    interpretations: Interpretations,
    choices: Choices,
    *,
    h: float,
    c: float,
) -> None:
    """Check H and C of the reference and of the second derivation.

    Each gets the other interpretation by its own name.
    """
    expect(run_reference(attributes, inputs, interpretations), h=h, c=c)
    expect(second_lstm(attributes, inputs, choices), h=h, c=c)


@pytest.fixture(params=[run_reference, second_lstm], ids=["reference", "second"])
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
    p: Sequence[float] | None = None,
    h0: float | None = None,
    c0: float | None = None,
    length: int | None = None,
) -> Arrays:
    """Return inputs of one sequence, one input and one unit.

    Gates are in the order i, o, f, c, peepholes in the order i, o, f.
    """
    inputs: Arrays = {
        "X": np.array(x, dtype=np.float64).reshape(-1, 1, 1),
        "W": np.array(w, dtype=np.float64).reshape(1, 4, 1),
        "R": np.array(r, dtype=np.float64).reshape(1, 4, 1),
    }
    if wb is not None:
        inputs["B"] = np.array([[*wb, *rb]], dtype=np.float64)
    if p is not None:
        inputs["P"] = np.array([p], dtype=np.float64)
    if h0 is not None:
        inputs["initial_h"] = np.full((1, 1, 1), float(h0))
    if c0 is not None:
        inputs["initial_c"] = np.full((1, 1, 1), float(c0))
    if length is not None:
        inputs["sequence_lens"] = np.array([length], dtype=np.int32)
    return inputs


def close(actual: NDArray[Any], expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-14, atol=0)


def expect(
    outputs: Arrays, *, y: Sequence[float] | None = None, h: float | None = None, c: float | None = None
) -> None:
    """Compare outputs of one unit and one sequence; Y_h is the last Y unless a length says otherwise."""
    if y is not None:
        close(outputs["Y"].reshape(-1), y)
    if h is not None:
        close(outputs["Y_h"].reshape(-1), [h])
    if c is not None:
        close(outputs["Y_c"].reshape(-1), [c])


# ---- the equations with their defaults


def test_two_default_steps(run: Run) -> None:
    # Sigmoid, Tanh, Tanh; computed at 40 digits from the equations.
    # X0 = 0.5, H = 0.125, C = -0.25: arguments (i, o, f, c) = (0.28125, -0.0625, 0.3125, 0.59375), so
    #   i = 0.5698526514141571, o = 0.4843800842769844, f = 0.5774953651858118, c = 0.5325872861719195
    #   C = f (-0.25) + i c = 0.15912243583808581, H = o tanh(C) = 0.07643174253711875
    # X1 = -1: arguments (-0.480892064366, 0.288215871269, -0.788215871269, -0.942676193097), so
    #   i = 0.3820414993588706, o = 0.5715592926821075, f = 0.3125518847719556, c = -0.7364494076458456
    #   C = -0.2316202186682727, H = -0.1300670228808027
    inputs = unit([0.5, -1.0], w=(0.5, -0.25, 0.75, 1.0), r=(0.25, 0.5, -0.5, 0.75), h0=0.125, c0=-0.25)
    outputs = run({"hidden_size": 1}, inputs)
    expect(
        outputs,
        y=[0.07643174253711874448923772818, -0.1300670228808026681790178235844],
        h=-0.1300670228808026681790178235844,
        c=-0.231620218668272690746869227194,
    )


def test_everything_absent_and_zero_weights(run: Run) -> None:
    # i = f = o = Sigmoid(0) = 1/2, c = Tanh(0) = 0, C0 = 0: C = 0, H = 0.
    expect(run({}, unit([3.0])), y=[0.0], h=0.0, c=0.0)


def test_initial_c_without_initial_h(run: Run) -> None:
    # f = Sigmoid(0) = 1/2: C = 2/2 = 1; H = 1/2 tanh(1) = 0.3807970779778824.
    expect(run({}, unit([3.0], c0=2.0)), h=0.38079707797788244406, c=1.0)


def test_initial_h_without_initial_c(run: Run) -> None:
    # Only the cell gate sees H0: c = tanh(0.5 1) = 0.46211715726000976; C = c/2; H = 1/2 tanh(C).
    # tanh(0.23105857863000488) = 0.2270326087174543
    expect(run({}, unit(r=(0, 0, 0, 0.5), h0=1.0)), h=0.11351630435872715047, c=0.23105857863000487925)


# ---- where each number lies in W, R, B and P


def test_gate_order_in_w(run: Run) -> None:
    # (i, o, f, c) = (2, 3, 5, 7), C0 = 11: C = 5*11 + 2*(7 + 1) = 71, H = 2*3*71 = 426
    expect(run(LINES, unit([1.0], w=(2, 3, 5, 7), c0=11)), y=[426], h=426, c=71)


def test_gate_order_in_r(run: Run) -> None:
    # H0 = 2 doubles all: (4, 6, 10, 14): C = 10*11 + 4*15 = 170, H = 2*6*170 = 2040
    expect(run(LINES, unit([1.0], r=(2, 3, 5, 7), h0=2, c0=11)), y=[2040], h=2040, c=170)


@pytest.mark.parametrize("half", ["wb", "rb"])
def test_gate_order_in_each_half_of_b(run: Run, half: str) -> None:
    # as in W: C = 71, H = 426
    biases = {"wb": NONE, "rb": NONE} | {half: (2, 3, 5, 7)}
    expect(run(LINES, unit(**biases, c0=11)), y=[426], h=426, c=71)  # type: ignore[arg-type]


def test_halves_of_b_add_up(run: Run) -> None:
    # (11, 22, 33, 44), C0 = 11: C = 33*11 + 11*45 = 858, H = 2*22*858 = 37752
    expect(run(LINES, unit(wb=(1, 2, 3, 4), rb=(10, 20, 30, 40), c0=11)), h=37752, c=858)


def test_terms_of_an_argument_add_up(run: Run) -> None:
    # The cell gate: X W + H0 R + Wb + Rb = 2*3 + 5*7 + 11 + 13 = 65; i = 1, f = 0: C = 66. o = 1: H = 132.
    inputs = unit([2.0], w=(0, 0, 0, 3), r=(0, 0, 0, 7), h0=5, wb=(1, 1, 0, 11), rb=(0, 0, 0, 13))
    expect(run(LINES, inputs), h=132, c=66)


def test_blocks_of_two_units(run: Run) -> None:
    # Each gate has a block of two rows. W = R = 0, C0 = (1, 1), Wb = i (1, 2), o (3, 4), f (5, 6), c (7, 8),
    # Rb = 0 except o of the second unit: 10.
    # unit 0: C = 5 + 1*8 = 13, H = 2*3*13 = 78;   unit 1: o = 14, C = 6 + 2*9 = 24, H = 2*14*24 = 672
    b = np.array([[1.0, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 10, 0, 0, 0, 0]])
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 8, 1)), "R": np.zeros((1, 8, 2)), "B": b}
    outputs = run(LINES, inputs | {"initial_c": np.ones((1, 1, 2))})
    close(outputs["Y_c"], [[[13, 24]]])
    close(outputs["Y_h"], [[[78, 672]]])


def test_r_is_transposed(run: Run) -> None:
    # H0 = (1, 10), Ri = [[1, 2], [3, 4]]: i = H0 Ri^T = (1 + 20, 3 + 40) = (21, 43); not H0 Ri = (31, 42).
    # c = 0 + 1, f = 0: C = (21, 43). o = 1: H = (42, 86).
    r = np.zeros((1, 8, 2))
    r[0, 0:2] = [[1, 2], [3, 4]]
    b = np.zeros((1, 16))
    b[0, 2:4] = 1
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((1, 8, 1)), "R": r, "B": b}
    outputs = run(LINES, inputs | {"initial_h": np.array([[[1.0, 10.0]]])})
    close(outputs["Y_c"], [[[21, 43]]])
    close(outputs["Y_h"], [[[42, 86]]])


def test_two_inputs_meet_their_columns(run: Run) -> None:
    # X = (1, 10), W of the cell gate (2, 3): 2 + 30 = 32; i = 1, f = 0, o = 1: C = 33, H = 66
    w = np.zeros((1, 4, 2))
    w[0, 3] = [2, 3]
    b = np.array([[1.0, 1, 0, 0, 0, 0, 0, 0]])
    outputs = run(LINES, {"X": np.array([[[1.0, 10.0]]]), "W": w, "R": np.zeros((1, 4, 1)), "B": b})
    expect(outputs, h=66, c=33)


# ---- peepholes


def test_peephole_of_the_input_gate(run: Run) -> None:
    # C0 = 7, biases (0, 1, 1, 0): i = 2*7 = 14, f = 1: C = 7 + 14*1 = 21; o = 1: H = 42
    expect(run(LINES, unit(wb=(0, 1, 1, 0), p=(2, 0, 0), c0=7)), h=42, c=21)


def test_peephole_of_the_forget_gate(run: Run) -> None:
    # f = 5*7 = 35, i = 1: C = 35*7 + 1 = 246; o = 1: H = 492
    expect(run(LINES, unit(wb=(1, 1, 0, 0), p=(0, 0, 5), c0=7)), h=492, c=246)


def test_peephole_of_the_output_gate_sees_the_new_cell(run: Run) -> None:
    # i = f = 1: C = 7 + 1 = 8; o = 1 + 3*8 = 25: H = 2*25*8 = 400. With the old cell it would be 2*22*8 = 352.
    expect(run(LINES, unit(wb=(1, 1, 1, 0), p=(0, 3, 0), c0=7)), h=400, c=8)


def test_peephole_order(run: Run) -> None:
    # P = (i 2, o 3, f 5), no biases: i = 14, f = 35: C = 35*7 + 14 = 259; o = 3*259 = 777: H = 2*777*259 = 402486
    expect(run(LINES, unit(p=(2, 3, 5), c0=7)), h=402486, c=259)


# ---- input_forget


def test_input_forget_keeps_the_input_gate(run: Run) -> None:
    # i = 0.25, f = 1 - 0.25 whatever its own argument (5): C = 0.75*8 + 0.25*1 = 6.25; o = 1: H = 12.5
    expect(run(LINES | {"input_forget": 1}, unit(wb=(0.25, 1, 5, 0), c0=8)), h=12.5, c=6.25)


def test_input_forget_counts_the_peephole_of_the_input_gate(run: Run) -> None:
    # i = 0.25 + 8*0.03125 = 0.5: C = 0.5*8 + 0.5 = 4.5; o = 1: H = 9
    expect(run(LINES | {"input_forget": 1}, unit(wb=(0.25, 1, 5, 0), p=(0.03125, 0, 3), c0=8)), h=9, c=4.5)


def test_input_forget_of_zero_is_none(run: Run) -> None:
    # C = 5*8 + 0.25*1 = 40.25; H = 80.5
    expect(run(LINES | {"input_forget": 0}, unit(wb=(0.25, 1, 5, 0), c0=8)), h=80.5, c=40.25)


def test_the_other_interpretation_of_input_forget() -> None:
    # f = 0.25, i = 0.75 whatever its own argument (5): C = 0.25*8 + 0.75 = 2.75; o = 1: H = 5.5
    other = Interpretations(coupled_gate="forget"), Choices(coupled_keeps="f")
    expect_of_both(LINES | {"input_forget": 1}, unit(wb=(5, 1, 0.25, 0), c0=8), *other, h=5.5, c=2.75)


# ---- clip


def test_clip_bounds_every_argument(run: Run) -> None:
    # Threshold 2. Arguments (i, o, f, c) = (5, -5, 1.5, 10) become (2, -2, 1.5, 2); C = 1.5*4 + 2*3 = 12 is not bounded
    # itself, its way into h is: h = 2*2. H = -2*4 = -8.
    expect(run(LINES | {"clip": 2.0}, unit(wb=(5, -5, 1.5, 10), c0=4)), h=-8, c=12)


def test_clip_of_the_forget_gate(run: Run) -> None:
    # f = -9 becomes -2; i = 0: C = -2*4 = -8, into h as -2: 2*(-2) = -4; o = 1: H = -4
    expect(run(LINES | {"clip": 2.0}, unit(wb=(0, 1, -9, 0), c0=4)), h=-4, c=-8)


def test_clip_follows_the_peephole(run: Run) -> None:
    # Threshold 2. i: -5 + 2*4 = 3 becomes 2 (clipped before the peephole, it would be -2 + 8 = 6); f = 1.5; c: 10 -> 2.
    # C = 1.5*4 + 2*3 = 12. o: -4 + 0.25*12 = -1 (with a clipped cell, -4 + 0.5 -> -2). H = -1*4 = -4.
    expect(run(LINES | {"clip": 2.0}, unit(wb=(-5, -4, 1.5, 10), p=(2, 0.25, 0), c0=4)), h=-4, c=12)


def test_clip_bounds_the_sum_and_not_its_terms(run: Run) -> None:
    # The cell gate: 3*2 - 5 = 1 is inside the threshold 2 though its terms are not; i = 1, f = 0, o = 1: C = 2, H = 4.
    expect(run(LINES | {"clip": 2.0}, unit([3.0], w=(0, 0, 0, 2), wb=(1, 1, 0, -5))), h=4, c=2)


def test_a_wide_clip_changes_nothing(run: Run) -> None:
    # test_gate_order_in_w: no argument passes 71
    expect(run(LINES | {"clip": 128.0}, unit([1.0], w=(2, 3, 5, 7), c0=11)), h=426, c=71)


def test_clip_is_binary32(run: Run) -> None:
    # A FLOAT attribute holds 0.3 as 0.300000011920928955078125: i = c = 0.3, g = 1.3: C = 0.3 * 1.3
    # 0.300000011920928955078125 + 0.300000011920928955078125^2 = 0.390000019073486470233...
    expect(run(LINES | {"clip": 0.3}, unit(wb=(1, 0, 0, 1))), c=0.390000019073486470233)


def test_clip_does_not_touch_the_state_between_steps(run: Run) -> None:
    # Threshold 2, f = i = o = 1, c = 0 + 1. C0 = 4: C = 5, then 6; h(2) = 4 both times.
    expect(run(LINES | {"clip": 2.0}, unit([0.0, 0.0], wb=(1, 1, 1, 0), c0=4)), y=[4, 4], c=6)


def test_the_other_interpretation_of_clip() -> None:
    # as in test_clip_bounds_every_argument, but h(12) = 24: H = -48
    other = Interpretations(cell_output_clip="unclipped"), Choices(clip_cell_output=False)
    expect_of_both(LINES | {"clip": 2.0}, unit(wb=(5, -5, 1.5, 10), c0=4), *other, h=-48, c=12)


def test_both_interpretations_of_a_clip_of_zero(run: Run) -> None:
    # No clip: test_gate_order_in_w. A clip: all gates f(0) = 0, g(0) = 1: C = 0, H = 0.
    attributes, inputs = LINES | {"clip": 0.0}, unit([1.0], w=(2, 3, 5, 7), c0=11)
    expect(run(attributes, inputs), h=426, c=71)
    expect_of_both(attributes, inputs, Interpretations(zero_clip="zero"), Choices(clip_zero_is_off=False), h=0, c=0)


# ---- activations

# (name, alpha, beta, argument, value); None stands for the default, which is the default attribute of the ONNX operator
# of that name: binary32 numbers, 0.01 = 0.00999999977648258209228515625 and 0.2 = 0.20000000298023223876953125.
VALUES = [
    ("Relu", None, None, 1.5, 1.5),
    ("Relu", None, None, -1.5, 0.0),
    ("Tanh", None, None, 0.5, 0.46211715726000975850),
    ("Tanh", None, None, -1.0, -0.76159415595576488812),
    ("Sigmoid", None, None, 0.5, 0.62245933120185456464),
    ("Sigmoid", None, None, -2.0, 0.11920292202211755594),
    ("Affine", None, None, 0.75, 0.75),  # alpha 1, beta 0
    ("Affine", 2.0, 0.25, 0.75, 1.75),
    ("Affine", 2.0, 0.25, -0.75, -1.25),
    ("LeakyRelu", None, None, 2.0, 2.0),
    ("LeakyRelu", None, None, -2.0, -0.0199999995529651641845703125),
    ("LeakyRelu", 0.25, None, -2.0, -0.5),
    ("ThresholdedRelu", None, None, 1.25, 1.25),  # alpha 1
    ("ThresholdedRelu", None, None, 0.75, 0.0),
    ("ThresholdedRelu", None, None, 1.0, 1.0),  # "x if x >= alpha"
    ("ThresholdedRelu", -0.5, None, -0.25, -0.25),
    ("ThresholdedRelu", -0.5, None, -0.75, 0.0),
    ("ScaledTanh", None, None, 0.5, 0.46211715726000975850),  # alpha 1, beta 1: Tanh
    ("ScaledTanh", 2.0, 0.5, 1.0, 0.92423431452001951700),  # 2 tanh(0.5)
    ("HardSigmoid", None, None, 0.25, 0.5500000007450580596923828125),
    ("HardSigmoid", None, None, 3.0, 1.0),
    ("HardSigmoid", None, None, -3.0, 0.0),
    ("HardSigmoid", 0.5, 0.25, 0.5, 0.5),
    ("HardSigmoid", 0.5, 0.25, 2.0, 1.0),
    ("HardSigmoid", 0.5, 0.25, -1.0, 0.0),
    ("Elu", None, None, 1.0, 1.0),
    ("Elu", None, None, -1.0, -0.63212055882855767840),  # 1/e - 1
    ("Elu", 0.5, None, -1.0, -0.31606027941427883920),
    ("Softsign", None, None, -3.0, -0.75),
    ("Softsign", None, None, 1.0, 0.5),
    ("Softplus", None, None, 0.0, 0.69314718055994530942),  # log 2
    ("Softplus", None, None, -2.0, 0.12692801104297249644),
    ("Softplus", None, None, 2.0, 2.12692801104297249644),
]
ONES: dict[str, tuple[list[float], list[float]]] = {"Affine": ([1.0], [0.0]), "Relu": ([], [])}


def test_the_table_names_every_activation() -> None:
    assert {name for name, *_ in VALUES} == set(ACTIVATIONS)
    assert len(ACTIVATIONS) == 11


def _lists(alpha: float | None, beta: float | None, before: str = "Relu") -> dict[str, Any]:
    alphas, betas = ONES[before]
    lists = {
        "activation_alpha": alphas + ([] if alpha is None else [alpha]),
        "activation_beta": betas + ([] if beta is None else [beta]),
    }
    return {name: values for name, values in lists.items() if values}


@pytest.mark.parametrize(("name", "alpha", "beta", "x", "value"), VALUES)
def test_activation_as_f(run: Run, name: str, alpha: float | None, beta: float | None, x: float, value: float) -> None:
    # i = f(x); c = Relu(1) = 1, C0 = 0: C = f(x)
    attributes = {"activations": [name, "Relu", "Relu"], **_lists(alpha, beta)}
    expect(run(attributes, unit([x], w=(1, 0, 0, 0), wb=(0, 0, 0, 1))), c=value)


@pytest.mark.parametrize(("name", "alpha", "beta", "x", "value"), VALUES)
def test_activation_as_g(run: Run, name: str, alpha: float | None, beta: float | None, x: float, value: float) -> None:
    # i = Relu(1) = 1, C0 = 0: C = g(x)
    attributes = {"activations": ["Relu", name, "Relu"], **_lists(alpha, beta)}
    expect(run(attributes, unit([x], w=(0, 0, 0, 1), wb=(1, 1, 0, 0))), c=value)


@pytest.mark.parametrize(("name", "alpha", "beta", "x", "value"), VALUES)
def test_activation_as_h(run: Run, name: str, alpha: float | None, beta: float | None, x: float, value: float) -> None:
    # f = Relu(1) = 1, i = Relu(0) = 0, C0 = x: C = x; o = 1: H = h(x). g, an Affine, takes the first alpha and beta.
    attributes = {"activations": ["Relu", "Affine", name], **_lists(alpha, beta, before="Affine")}
    expect(run(attributes, unit(wb=(0, 1, 1, 0), c0=x)), h=value, c=x)


def test_alpha_and_beta_are_taken_in_order(run: Run) -> None:
    # f = LeakyRelu(0.5), g = HardSigmoid(0.25, 0.125), h = Affine(2, 5); C0 = 1. Arguments (-2, -4, 3, 1) give i = -1,
    # o = -2, f = 3, c = 0.375: C = 3 - 0.375 = 2.625; h = 10.25; H = -20.5
    attributes = {
        "activations": ["LeakyRelu", "HardSigmoid", "Affine"],
        "activation_alpha": [0.5, 0.25, 2.0],
        "activation_beta": [0.125, 5.0],
    }
    expect(run(attributes, unit(wb=(-2, -4, 3, 1), c0=1)), h=-20.5, c=2.625)


def test_the_other_interpretation_of_alpha_and_beta() -> None:
    # Each activation takes one of both: f = LeakyRelu(0.5), beta 0.125 lost; g = HardSigmoid(0.25, 5), 5.25 cut
    # to 1; h = Affine(2, default 0). C = 3 - 1 = 2, H = -2*4 = -8.
    attributes = {
        "activations": ["LeakyRelu", "HardSigmoid", "Affine"],
        "activation_alpha": [0.5, 0.25, 2.0],
        "activation_beta": [0.125, 5.0],
    }
    other = Interpretations(coefficients="by-position"), Choices(alpha_per_user=False)
    expect_of_both(attributes, unit(wb=(-2, -4, 3, 1), c0=1), *other, h=-8, c=2)


def test_the_other_interpretation_of_lost_defaults() -> None:
    # f = Relu: i = f = o = 1. g = Affine, alpha and beta 0: c = 0: C = 3. h = ScaledTanh, alpha 0: H = 0.
    other = Interpretations(defaults="zero"), Choices(defaults_of_the_lost=False)
    expect_of_both({"activations": ["Relu", "Affine", "ScaledTanh"]}, unit(wb=(1, 1, 1, 7), c0=3), *other, h=0, c=3)


def test_the_other_interpretation_of_thresholded_relu() -> None:
    # g = ThresholdedRelu(1) is 0 at 1; i = f = o = 1: C = 3; h = ThresholdedRelu(2.5): H = 3
    other = Interpretations(threshold="above"), Choices(threshold_passes=False)
    attributes = {"activations": ["Relu", "ThresholdedRelu", "ThresholdedRelu"], "activation_alpha": [1.0, 2.5]}
    expect_of_both(attributes, unit(wb=(1, 1, 1, 1), c0=3), *other, h=3, c=3)


def test_an_activation_without_alpha_takes_none(run: Run) -> None:
    # f = Sigmoid takes nothing, g = LeakyRelu(0.5), h = Tanh nothing: i = 1/2, c = 0.5*(-2) = -1: C = -0.5;
    # H = 1/2 tanh(-0.5) = -0.23105857863000488
    attributes = {"activations": ["Sigmoid", "LeakyRelu", "Tanh"], "activation_alpha": [0.5]}
    expect(run(attributes, unit(wb=(0, 0, 0, -2))), h=-0.23105857863000487925, c=-0.5)


def test_alpha_and_beta_are_counted_apart(run: Run) -> None:
    # f = Elu takes alpha 0.5 and no beta; g = ScaledTanh takes alpha 3 and beta 0.25: i = Elu(1) = 1,
    # c = 3 tanh(0.25*2) = 1.3863514717800293
    attributes = {
        "activations": ["Elu", "ScaledTanh", "Relu"],
        "activation_alpha": [0.5, 3.0],
        "activation_beta": [0.25],
    }
    expect(run(attributes, unit(wb=(1, 0, 0, 2))), c=1.38635147178002927549)


def test_defaults_where_the_list_runs_out(run: Run) -> None:
    # f = LeakyRelu(0.5), g = LeakyRelu(0.01): i = 1, c = -2 * 0.00999999977648258209228515625; f(-4) = -2 with C0 = 1
    # shows that f did take the 0.5: C = -2 - 0.0199999995529651641845703125
    attributes = {"activations": ["LeakyRelu", "LeakyRelu", "Relu"], "activation_alpha": [0.5]}
    expect(run(attributes, unit(wb=(1, 0, -4, -2), c0=1)), c=-2.0199999995529651641845703125)


def test_coefficients_are_binary32(run: Run) -> None:
    # A FLOAT attribute holds 0.1 as 0.100000001490116119384765625, and 0.3 as 0.300000011920928955078125.
    # i = 1, c = 0.1*1 + 0.3
    attributes = {"activations": ["Relu", "Affine", "Relu"], "activation_alpha": [0.1], "activation_beta": [0.3]}
    expect(run(attributes, unit(wb=(1, 0, 0, 1))), c=0.400000013411045074462890625)


def test_six_activations_take_alpha_and_beta_in_turn(run: Run) -> None:
    # forward: f = Affine(2, 1), g = Relu, h = Affine(3, 0); arguments (i, o, f, c) = (1, 0, 0, 2): i = 3, o = 1,
    #   C = 3*2 = 6, H = 1*18 = 18
    # backward: f = Relu, g = Affine(0.5, 0.5), h = HardSigmoid(0.25, 0.125); arguments (1, 2, 0, 3): i = 1, o = 2,
    #   C = 0.5*3 + 0.5 = 2, H = 2*(0.5 + 0.125) = 1.25
    attributes = {
        "direction": "bidirectional",
        "activations": ["Affine", "Relu", "Affine", "Relu", "Affine", "HardSigmoid"],
        "activation_alpha": [2.0, 3.0, 0.5, 0.25],
        "activation_beta": [1.0, 0.0, 0.5, 0.125],
    }
    b = np.array([[1.0, 0, 0, 2, 0, 0, 0, 0], [1.0, 2, 0, 3, 0, 0, 0, 0]])
    inputs = {"X": np.zeros((1, 1, 1)), "W": np.zeros((2, 4, 1)), "R": np.zeros((2, 4, 1)), "B": b}
    outputs = run(attributes, inputs)
    close(outputs["Y"], [[[[18]], [[1.25]]]])
    close(outputs["Y_h"], [[[18]], [[1.25]]])
    close(outputs["Y_c"], [[[6]], [[2]]])


# ---- time: direction, lengths, layout
#
# A counter that depends on the order of steps: biases (1, 1, 2, 0), W of the cell gate 1. So i = o = 1, f = 2,
#   Ct = 2 Ct-1 + (Xt + 1),  Ht = 2 Ct.

COUNTER: dict[str, Any] = {"w": (0, 0, 0, 1), "wb": (1, 1, 2, 0)}
TIMES = [
    # X = (1, 2, 3): C = 2, then 4 + 3 = 7, then 14 + 4 = 18
    ("forward", None, [4, 14, 36], 36, 18),
    ("forward", 3, [4, 14, 36], 36, 18),
    ("forward", 2, [4, 14, 0], 14, 7),
    ("forward", 1, [4, 0, 0], 4, 2),
    # from the end: C = 4, then 8 + 3 = 11, then 22 + 2 = 24
    ("reverse", None, [48, 22, 8], 48, 24),
    ("reverse", 3, [48, 22, 8], 48, 24),
    # from the last valid step, the second: C = 3, then 6 + 2 = 8
    ("reverse", 2, [16, 6, 0], 16, 8),
    ("reverse", 1, [4, 0, 0], 4, 2),
]


@pytest.mark.parametrize(("direction", "length", "y", "h", "c"), TIMES)
def test_direction_and_length(run: Run, direction: str, length: int | None, y: list[float], h: float, c: float) -> None:
    outputs = run(LINES | {"direction": direction}, unit([1, 2, 3], **COUNTER, length=length))
    expect(outputs, y=y, h=h, c=c)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_nothing_past_the_length_is_read(run: Run, direction: str) -> None:
    near = run(LINES | {"direction": direction}, unit([1, 2, 3], **COUNTER, length=2))
    far = run(LINES | {"direction": direction}, unit([1, 2, 1e6], **COUNTER, length=2))
    for name in near:
        np.testing.assert_array_equal(near[name], far[name])


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_length_zero(run: Run, direction: str) -> None:
    # No step is taken: Y is padding. The last value of nothing the document does not say: the initial state or 0.
    attributes, inputs = LINES | {"direction": direction}, unit([1, 2], **COUNTER, h0=5, c0=7, length=0)
    expect(run(attributes, inputs), y=[0, 0], h=5, c=7)
    expect_of_both(attributes, inputs, Interpretations(empty="zero"), Choices(empty_keeps_state=False), h=0, c=0)


def test_the_recurrence_starts_from_initial_h_in_reverse(run: Run) -> None:
    # R of the cell gate 1, H0 = 10, C0 = 1. X = (1, 2), from the end: c + 1 = 2 + 10 + 1 = 13: C = 2 + 13 = 15, H = 30;
    # then c + 1 = 1 + 30 + 1 = 32: C = 30 + 32 = 62, H = 124.
    inputs = unit([1, 2], w=(0, 0, 0, 1), r=(0, 0, 0, 1), wb=(1, 1, 2, 0), h0=10, c0=1)
    expect(run(LINES | {"direction": "reverse"}, inputs), y=[124, 30], h=124, c=62)


RAGGED_X = np.array([[1.0, 10, 100], [2, 20, 200], [3, 30, 300]])  # time by sequence
RAGGED_LENGTHS = [2, 3, 1]
# The counter, sequence by sequence: X = (1, 2), (10, 20, 30), (100).
#   forward   C = 2, 7 | 11, 22 + 21 = 43, 86 + 31 = 117 | 101
#   backward  C = 3, 6 + 2 = 8 | 31, 62 + 21 = 83, 166 + 11 = 177 | 101
FORWARD_C = np.array([[2.0, 11, 101], [7, 43, 0], [0, 117, 0]])
BACKWARD_C = np.array([[8.0, 177, 101], [3, 83, 0], [0, 31, 0]])
LAST_C = np.array([[7.0, 117, 101], [8, 177, 101]])  # direction by sequence


@pytest.mark.parametrize("layout", [0, 1])
def test_ragged_bidirectional_batch_in_both_layouts(run: Run, layout: int) -> None:
    b = np.array([[1.0, 1, 2, 0, 0, 0, 0, 0]] * 2)
    w = np.array([[[0.0], [0], [0], [1]]] * 2)
    x = RAGGED_X.reshape(3, 3, 1)
    inputs = {"W": w, "R": np.zeros((2, 4, 1)), "B": b, "sequence_lens": np.array(RAGGED_LENGTHS, dtype=np.int32)}
    attributes = {"direction": "bidirectional"} | {name: values * 2 for name, values in LINES.items()}
    y = 2 * np.stack([FORWARD_C, BACKWARD_C], axis=1)[..., np.newaxis]  # [T, D, N, 1]
    last = LAST_C[..., np.newaxis]  # [D, N, 1]
    if layout == 1:
        attributes["layout"] = 1
        # [N, T, I]; [N, T, D, H]; [N, D, H]
        x, y, last = x.swapaxes(0, 1), np.moveaxis(y, 2, 0), last.swapaxes(0, 1)
    outputs = run(attributes, inputs | {"X": x})
    close(outputs["Y"], y)
    close(outputs["Y_h"], 2 * last)
    close(outputs["Y_c"], last)


@pytest.mark.parametrize("layout", [0, 1])
def test_initial_states_follow_the_layout(run: Run, layout: int) -> None:
    # T = 1, N = 3, D = 2, H = 1: f = 1, i = 0, o = H0 by way of R: C = C0, H = 2 H0 C0, each its own.
    h0 = np.array([[[1.0], [2], [3]], [[4], [5], [6]]])  # [D, N, H]
    c0 = np.array([[[7.0], [8], [9]], [[10], [11], [12]]])
    h = np.array([[[14.0], [32], [54]], [[80], [110], [144]]])
    y = h[np.newaxis]
    x = np.zeros((1, 3, 1))
    attributes = {"direction": "bidirectional"} | {name: values * 2 for name, values in LINES.items()}
    if layout == 1:
        attributes["layout"] = 1
        x, h0, c0, h, y = x.swapaxes(0, 1), h0.swapaxes(0, 1), c0.swapaxes(0, 1), h.swapaxes(0, 1), np.moveaxis(y, 2, 0)
    inputs = {
        "X": x,
        "W": np.zeros((2, 4, 1)),
        "R": np.array([[[0.0], [1], [0], [0]]] * 2),
        "B": np.array([[0.0, 0, 1, 0, 0, 0, 0, 0]] * 2),
        "initial_h": h0,
        "initial_c": c0,
    }
    c = c0.copy()
    outputs = run(attributes, inputs)
    close(outputs["Y"], y)
    close(outputs["Y_h"], h)
    close(outputs["Y_c"], c)


def test_directions_have_their_own_weights(run: Run) -> None:
    # Every parameter of the backward direction differs: forward as in test_gate_order_in_w, C = 71, H = 426; backward
    # (i, o, f, c) = (7, 5, 3, 2), C0 = 13: C = 3*13 + 7*3 = 60, H = 2*5*60 = 600.
    inputs = {
        "X": np.ones((1, 1, 1)),
        "W": np.array([[[2.0], [3], [5], [7]], [[0], [0], [0], [0]]]),
        "R": np.array([[[0.0], [0], [0], [0]], [[6], [0], [3], [0]]]),
        "B": np.array([[0.0, 0, 0, 0, 0, 0, 0, 0], [1, 2, 0, 2, 0, 3, 0, 0]]),
        "initial_h": np.array([[[0.0]], [[1.0]]]),
        "initial_c": np.array([[[11.0]], [[13.0]]]),
    }
    attributes = {"direction": "bidirectional"} | {name: values * 2 for name, values in LINES.items()}
    outputs = run(attributes, inputs)
    close(outputs["Y_h"], [[[426]], [[600]]])
    close(outputs["Y_c"], [[[71]], [[60]]])
    close(outputs["Y"], [[[[426]], [[600]]]])


@pytest.mark.parametrize("since_version", [1, 7, 14, 22])
def test_every_version_has_the_same_equations(since_version: int) -> None:
    # test_peephole_order: C = 259, H = 402486; and R transposed, as in test_r_is_transposed
    attributes: dict[str, Any] = dict(LINES)
    if since_version == 1:
        attributes["output_sequence"] = 1
    node = Node("LSTM", since_version=since_version, attributes=attributes, outputs=("Y", "Y_h", "Y_c"))
    expect(dict(evaluate(node, unit(p=(2, 3, 5), c0=7))), y=[402486], h=402486, c=259)

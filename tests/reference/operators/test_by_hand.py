"""Tests of LSTM, GRU and RNN computed by hand: numbers that a reader can check without running anything.

Tables of cases of one unit, one input and one sequence. Most replace the functions by straight lines (Affine), so that
every number is an integer or a short fraction. Gate values are in the document's order. Unless a case says otherwise,

    LSTM  f(x) = x, g(x) = x + 1, h(x) = 2x; gates (i, o, f, c), peepholes (i, o, f):
          C = f C0 + i (c + 1), H = 2 o C
    GRU   f(x) = x, g(x) = 2x + 1; gates (z, r, h): with linear_before_reset 0 and X = 0
          h = 2 (r H0 Rh + Rbh + Wbh) + 1, H = (1 - z) h + z H0
    RNN   f(x) = x + 1: H = X Wi + H0 Ri + Wbi + Rbi + 1

No two functions are equal, so that swapping any two gates changes the result. Both the reference and the second
derivation are compared with these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import Interpretations, Node, evaluate

from .second_derivation import ACTIVATIONS, OPERATORS, Choices, second

Arrays = dict[str, NDArray[Any]]
Other = tuple[Interpretations | None, Choices | None]

OUTPUTS = {op: equations.outputs for op, equations in OPERATORS.items()}
GATES = {op: len(equations.gates) for op, equations in OPERATORS.items()}
LINES: Mapping[str, dict[str, Any]] = {
    "LSTM": {
        "activations": ["Affine"] * 3, "activation_alpha": [1.0, 1.0, 2.0], "activation_beta": [0.0, 1.0, 0.0],
    },
    "GRU": {"activations": ["Affine"] * 2, "activation_alpha": [1.0, 2.0], "activation_beta": [0.0, 1.0]},
    "RNN": {"activations": ["Affine"], "activation_alpha": [1.0], "activation_beta": [1.0]},
}  # fmt: skip


def run(derivation: str, op: str, attributes: Mapping[str, Any], inputs: Arrays, other: Other = (None, None)) -> Arrays:
    """Return the outputs of the reference or of the second derivation, each by its own form of an interpretation."""
    if derivation == "second":
        return second(op, attributes, inputs, other[1])
    return dict(evaluate(Node(op, 14, attributes, OUTPUTS[op]), inputs, other[0]))


both = pytest.mark.parametrize("derivation", ["reference", "second"])


def unit(
    op: str,
    x: Sequence[float] = (0.0,),
    *,
    w: Sequence[float] | None = None,
    r: Sequence[float] | None = None,
    wb: Sequence[float] | None = None,
    rb: Sequence[float] | None = None,
    p: Sequence[float] | None = None,
    h0: float | None = None,
    c0: float | None = None,
    length: int | None = None,
) -> Arrays:
    """Return inputs of one sequence, one input and one unit."""
    nothing = (0.0,) * GATES[op]
    inputs: Arrays = {"X": np.array(x, np.float64).reshape(-1, 1, 1)}
    for name, weights in (("W", w), ("R", r)):
        inputs[name] = np.array(weights or nothing, np.float64).reshape(1, -1, 1)
    if wb is not None or rb is not None:
        inputs["B"] = np.array([[*(wb or nothing), *(rb or nothing)]], np.float64)
    if p is not None:
        inputs["P"] = np.array([p], np.float64)
    inputs |= {f"initial_{n}": np.full((1, 1, 1), float(v)) for n, v in (("h", h0), ("c", c0)) if v is not None}
    return inputs if length is None else {**inputs, "sequence_lens": np.array([length], np.int32)}


def case(
    op: str,
    name: str,
    y: Sequence[float] | float | None = None,
    x: Sequence[float] = (0.0,),
    *,
    h: float | None = None,
    c: float | None = None,
    other: Other = (None, None),
    given: Mapping[str, Any] | None = None,
    lines: bool = True,
    **inputs: Any,
) -> Any:
    """Return a row: Y, and Y_h if that is not the last Y, and Y_c; X; attributes beside the straight lines; inputs."""
    attributes = {**(LINES[op] if lines else {}), **(given or {})}
    expected: dict[str, Any] = {} if c is None else {"Y_c": [c]}
    if y is not None:
        y = [y] if isinstance(y, (int, float)) else list(y)
        expected |= {"Y": y, "Y_h": [y[-1] if h is None else h]}
    return pytest.param(op, attributes, unit(op, x, **inputs), expected, other, id=f"{op}-{name}")


def lstm(name: str, *args: Any, **fields: Any) -> Any:
    return case("LSTM", name, *args, **fields)


def gru(name: str, *args: Any, **fields: Any) -> Any:
    return case("GRU", name, *args, **fields)


def rnn(name: str, *args: Any, **fields: Any) -> Any:
    return case("RNN", name, *args, **fields)


def defaults(*names: str) -> dict[str, Any]:
    """Return attributes with these functions and no coefficients, in place of the straight lines."""
    return {"lines": False, "given": {"activations": [*names]}}


def functions(names: Sequence[str], alpha: Sequence[float] = (), beta: Sequence[float] = ()) -> dict[str, Any]:
    lists = {"activations": names, "activation_alpha": alpha, "activation_beta": beta}
    return {"lines": False, "given": {name: [*values] for name, values in lists.items() if values}}


# fmt: off
EQUATIONS = [
    # Sigmoid, Tanh, Tanh; computed at 40 digits from the equations.
    # X0 = 0.5, H = 0.125, C = -0.25: arguments (i, o, f, c) = (0.28125, -0.0625, 0.3125, 0.59375), so
    #   i = 0.5698526514141571, o = 0.4843800842769844, f = 0.5774953651858118, c = 0.5325872861719195
    #   C = f (-0.25) + i c = 0.15912243583808581, H = o tanh(C) = 0.07643174253711875
    # X1 = -1: arguments (-0.480892064366, 0.288215871269, -0.788215871269, -0.942676193097), so
    #   i = 0.3820414993588706, o = 0.5715592926821075, f = 0.3125518847719556, c = -0.7364494076458456
    #   C = -0.2316202186682727, H = -0.1300670228808027
    lstm("two-default-steps", [0.07643174253711874448923772818, -0.1300670228808026681790178235844], [0.5, -1.0],
         c=-0.231620218668272690746869227194, lines=False, given={"hidden_size": 1},
         w=(0.5, -0.25, 0.75, 1.0), r=(0.25, 0.5, -0.5, 0.75), h0=0.125, c0=-0.25),
    # i = f = o = Sigmoid(0) = 1/2, c = Tanh(0) = 0, C0 = 0: C = 0, H = 0.
    lstm("everything-absent", 0.0, [3.0], c=0.0, lines=False),
    # f = 1/2: C = 2/2 = 1; H = 1/2 tanh(1)
    lstm("initial-c-alone", 0.38079707797788244406, [3.0], c=1.0, lines=False, c0=2.0),
    # Only the cell gate sees H0: c = tanh(0.5 1) = 0.46211715726000976; C = c/2; H = 1/2 tanh(C).
    lstm("initial-h-alone", 0.11351630435872715047, c=0.23105857863000487925, lines=False, r=(0, 0, 0, 0.5), h0=1.0),
    # Sigmoid and Tanh. Computed at 40 digits from the equations.
    # step 1: z = Sigmoid(0.40625) = 0.6001883831, r = Sigmoid(0.1875) = 0.5467381519
    #   0: h = Tanh(0.375 + 0.25 + 0.5 - r 0.0625) = Tanh(1.0908288655) = 0.7971804681
    #   1: h = Tanh(0.625 + r 0.4375) = Tanh(0.8641979415) = 0.6984142422
    *(gru(f"two-default-steps-{linear}", y, [0.5, -1.0], lines=False,
          given={"hidden_size": 1, "linear_before_reset": linear}, w=(0.5, -0.25, 0.75), r=(0.25, 0.5, -0.5),
          wb=(0.125, 0, 0.25), rb=(0, 0.25, 0.5), h0=0.125)
      for linear, y in ((0, [0.3937455758279215465463, 0.0955141744175725601798]),
                        (1, [0.3542576889817609494971, -0.0070457772307515444734]))),
    # z = 1/2, h = Tanh(0) = 0: H = H0/2
    gru("everything-absent", 0.0, [3.0], lines=False),
    gru("a-step-without-anything-halves-the-state", [1.0, 0.5], [3.0, 3.0], lines=False, h0=2.0),
    # Tanh(0.5*0.5 + 0.25*0.5 + 0.125 + 0.25) = Tanh(0.75); Tanh(-0.5 + 0.5 Tanh(0.75) + 0.375)
    rnn("two-default-steps", [0.6351489523872873127, 0.1902287298749928300], [0.5, -1.0], lines=False,
        given={"hidden_size": 1}, w=(0.5,), r=(0.5,), wb=(0.125,), rb=(0.25,), h0=0.25),
    # X + 2 H + 1: 1 + 10 + 1 = 12, 2 + 24 + 1 = 27, 3 + 54 + 1 = 58
    rnn("a-state-goes-on", [12, 27, 58], [1, 2, 3], w=(1,), r=(2,), h0=5),
]

PLACES = [
    # (i, o, f, c) = (2, 3, 5, 7), C0 = 11: C = 5*11 + 2*(7 + 1) = 71, H = 2*3*71 = 426; in either half of B as in W
    lstm("order-in-w", 426, [1.0], c=71, w=(2, 3, 5, 7), c0=11),
    lstm("order-in-wb", 426, c=71, wb=(2, 3, 5, 7), c0=11),
    lstm("order-in-rb", 426, c=71, rb=(2, 3, 5, 7), c0=11),
    # H0 = 2 doubles all: (4, 6, 10, 14): C = 10*11 + 4*15 = 170, H = 2*6*170 = 2040
    lstm("order-in-r", 2040, [1.0], c=170, r=(2, 3, 5, 7), h0=2, c0=11),
    # (11, 22, 33, 44), C0 = 11: C = 33*11 + 11*45 = 858, H = 2*22*858 = 37752
    lstm("halves-of-b-add-up", 37752, c=858, wb=(1, 2, 3, 4), rb=(10, 20, 30, 40), c0=11),
    # The cell gate: X W + H0 R + Wb + Rb = 2*3 + 5*7 + 11 + 13 = 65; i = 1, f = 0: C = 66. o = 1: H = 132.
    lstm("terms-add-up", 132, [2.0], c=66, w=(0, 0, 0, 3), r=(0, 0, 0, 7), h0=5, wb=(1, 1, 0, 11), rb=(0, 0, 0, 13)),
    # (z, r, h) = (3, 5, 7): H = (1 - 3)(2*7 + 1) + 3*11 = -30 + 33 = 3; r has nothing to act on
    gru("order-in-w", 3, [1.0], w=(3, 5, 7), h0=11),
    gru("order-in-wb", 3, wb=(3, 5, 7), h0=11),
    gru("order-in-rb", 3, rb=(3, 5, 7), h0=11),
    # H0 = 2: z = 6, r = 10, h = 2*(10*2*7) + 1 = 281; H = -5*281 + 12 = -1393. Without biases and with one unit both
    # forms are the same.
    *(gru(f"order-in-r-{linear}", -1393, [1.0], given={"linear_before_reset": linear}, r=(3, 5, 7), h0=2)
      for linear in (0, 1)),
    # (11, 22, 33): H = -10*(66 + 1) + 11*4 = -626
    gru("halves-of-b-add-up", -626, wb=(1, 2, 3), rb=(10, 20, 30), h0=4),
    # r = 2*3 + 5*7 + 11 + 13 = 65, z = 0: h = 2*(65*5*1) + 1 = 651
    gru("terms-add-up", 651, [2.0], w=(0, 3, 0), r=(0, 7, 1), h0=5, wb=(0, 11, 0), rb=(0, 13, 0)),
    # 2*3 + 5*7 + 11 + 13 + 1
    rnn("terms-add-up", 66, [2.0], w=(3,), r=(7,), wb=(11,), rb=(13,), h0=5),
]

PEEPHOLES = [
    # C0 = 7, biases (0, 1, 1, 0): i = 2*7 = 14, f = 1: C = 7 + 14*1 = 21; o = 1: H = 42
    lstm("peephole-of-i", 42, c=21, wb=(0, 1, 1, 0), p=(2, 0, 0), c0=7),
    # f = 5*7 = 35, i = 1: C = 35*7 + 1 = 246; o = 1: H = 492
    lstm("peephole-of-f", 492, c=246, wb=(1, 1, 0, 0), p=(0, 0, 5), c0=7),
    # i = f = 1: C = 7 + 1 = 8; o = 1 + 3*8 = 25: H = 2*25*8 = 400. With the old cell it would be 2*22*8 = 352.
    lstm("peephole-of-o-sees-the-new-cell", 400, c=8, wb=(1, 1, 1, 0), p=(0, 3, 0), c0=7),
    # P = (i 2, o 3, f 5), no biases: i = 14, f = 35: C = 35*7 + 14 = 259; o = 3*259 = 777: H = 2*777*259 = 402486
    lstm("peephole-order", 402486, c=259, p=(2, 3, 5), c0=7),
]

COUPLED, FORGET = {"input_forget": 1}, (Interpretations(coupled_gate="forget"), Choices(coupled_keeps="f"))
INPUT_FORGET = [
    # i = 0.25, f = 1 - 0.25 whatever its own argument (5): C = 0.75*8 + 0.25*1 = 6.25; o = 1: H = 12.5
    lstm("input-forget", 12.5, c=6.25, given=COUPLED, wb=(0.25, 1, 5, 0), c0=8),
    # i = 0.25 + 8*0.03125 = 0.5: C = 0.5*8 + 0.5 = 4.5; o = 1: H = 9
    lstm("input-forget-peephole", 9, c=4.5, given=COUPLED, wb=(0.25, 1, 5, 0), p=(0.03125, 0, 3), c0=8),
    # C = 5*8 + 0.25*1 = 40.25; H = 80.5
    lstm("input-forget-of-zero-is-none", 80.5, c=40.25, given={"input_forget": 0}, wb=(0.25, 1, 5, 0), c0=8),
    # f = 0.25, i = 0.75 whatever its own argument (5): C = 0.25*8 + 0.75 = 2.75; o = 1: H = 5.5
    lstm("input-forget-keeps-f", 5.5, c=2.75, given=COUPLED, other=FORGET, wb=(5, 1, 0.25, 0), c0=8),
]

RESET = [
    # "when linear_before_reset != 0". r = 3, Rbh = 5, Wbh = 7: h = 2 (3*5 + 7) + 1 = 45; z = 0
    *(gru(f"linear-before-reset-{linear}", 45, given={"linear_before_reset": linear}, wb=(0, 3, 7), rb=(0, 0, 5), h0=1)
      for linear in (1, -1, 2, 7)),
    # h = 2 (5 + 7) + 1 = 25
    *(gru(f"reset-leaves-biases-alone-{len(given)}", 25, given=given, wb=(0, 3, 7), rb=(0, 0, 5), h0=1)
      for given in ({}, {"linear_before_reset": 0})),
    # h = 2*1 + 1 = 3, H0 = 8: H = 3 (1 - z) + 8 z
    *(gru(f"update-gate-{z}", h, wb=(z, 0, 1), h0=8)
      for z, h in ((0.0, 3), (1.0, 8), (0.25, 4.25), (-1.0, -2), (2.0, 13))),
]

TWO: dict[str, Any] = {"clip": 2.0}
UNCLIPPED = (Interpretations(cell_output_clip="unclipped"), Choices(clip_cell_output=False))
CLIP = [
    # Threshold 2. Arguments (i, o, f, c) = (5, -5, 1.5, 10) become (2, -2, 1.5, 2); C = 1.5*4 + 2*3 = 12 is not bounded
    # itself, its way into h is: h = 2*2, H = -2*4 = -8; or h(12) = 24: H = -48
    lstm("clip-bounds-every-argument", -8, c=12, given=TWO, wb=(5, -5, 1.5, 10), c0=4),
    lstm("clip-spares-the-last-function", -48, c=12, given=TWO, other=UNCLIPPED, wb=(5, -5, 1.5, 10), c0=4),
    # f = -9 becomes -2; i = 0: C = -2*4 = -8, into h as -2: 2*(-2) = -4; o = 1: H = -4
    lstm("clip-of-f", -4, c=-8, given=TWO, wb=(0, 1, -9, 0), c0=4),
    # i: -5 + 2*4 = 3 becomes 2 (clipped before the peephole, it would be -2 + 8 = 6); f = 1.5; c: 10 -> 2.
    # C = 1.5*4 + 2*3 = 12. o: -4 + 0.25*12 = -1 (with a clipped cell, -4 + 0.5 -> -2). H = -1*4 = -4.
    lstm("clip-follows-the-peephole", -4, c=12, given=TWO, wb=(-5, -4, 1.5, 10), p=(2, 0.25, 0), c0=4),
    # The cell gate: 3*2 - 5 = 1 is inside the threshold 2 though its terms are not; i = 1, f = 0, o = 1: C = 2, H = 4.
    lstm("clip-bounds-the-sum", 4, [3.0], c=2, given=TWO, w=(0, 0, 0, 2), wb=(1, 1, 0, -5)),
    # order-in-w: no argument passes 71
    lstm("a-wide-clip-changes-nothing", 426, [1.0], c=71, given={"clip": 128.0}, w=(2, 3, 5, 7), c0=11),
    # A FLOAT attribute holds 0.3 as 0.300000011920928955078125: i = c = 0.3, g = 1.3: C = 0.3 * 1.3
    # 0.300000011920928955078125 + 0.300000011920928955078125^2 = 0.390000019073486470233...
    lstm("clip-is-binary32", c=0.390000019073486470233, given={"clip": 0.3}, wb=(1, 0, 0, 1)),
    # f = i = o = 1, c = 0 + 1. C0 = 4: C = 5, then 6; h(2) = 4 both times.
    lstm("clip-leaves-states-alone", [4, 4], [0.0, 0.0], c=6, given=TWO, wb=(1, 1, 1, 0), c0=4),
    # No clip: order-in-w. A clip: all gates f(0) = 0, g(0) = 1: C = 0, H = 0.
    lstm("clip-of-zero", 426, [1.0], c=71, given={"clip": 0.0}, w=(2, 3, 5, 7), c0=11),
    lstm("clip-of-zero-is-zero", 0, [1.0], c=0, given={"clip": 0.0}, w=(2, 3, 5, 7), c0=11,
         other=(Interpretations(zero_clip="zero"), Choices(clip_zero_is_off=False))),
    # z: 3 -> 2, r: -5 -> -2; h: -2*6*4 + 1 = -47 -> -2, g = -3; H = -1*(-3) + 2*6 = 15, beyond 2 itself.
    gru("clip-bounds-every-argument", 15, given=TWO, r=(0, 0, 4), wb=(3, -5, 1), h0=6),
    # linear_before_reset: r = 0.5, H0 Rh + Rbh = 6, half of it 3, with Wbh -2 it is 1: H = 2*1 + 1 = 3.
    gru("clip-bounds-the-sum", 3, given={**TWO, "linear_before_reset": 1}, r=(0, 0, 4), wb=(0, 0.5, -2), rb=(0, 0, 2),
        h0=1),
    # 5 -> 2, H = 3; 3 + 5 -> 2, H = 3; -9 + 3 -> -2, H = -1
    rnn("clip-bounds-the-argument", [3, 3, -1], [5, 5, -9], given=TWO, w=(1,), r=(1,)),
]

IN_ORDER = functions(("LeakyRelu", "HardSigmoid", "Affine"), (0.5, 0.25, 2.0), (0.125, 5.0))
FUNCTIONS = [
    # f = LeakyRelu(0.5), g = HardSigmoid(0.25, 0.125), h = Affine(2, 5); C0 = 1. Arguments (-2, -4, 3, 1) give i = -1,
    # o = -2, f = 3, c = 0.375: C = 3 - 0.375 = 2.625; h = 10.25; H = -20.5
    lstm("coefficients-in-order", -20.5, c=2.625, **IN_ORDER, wb=(-2, -4, 3, 1), c0=1),
    # Each activation takes one of both: f = LeakyRelu(0.5), beta 0.125 lost; g = HardSigmoid(0.25, 5), 5.25 cut
    # to 1; h = Affine(2, default 0). C = 3 - 1 = 2, H = -2*4 = -8.
    lstm("coefficients-by-position", -8, c=2, **IN_ORDER, wb=(-2, -4, 3, 1), c0=1,
         other=(Interpretations(coefficients="by-position"), Choices(alpha_per_user=False))),
    # f = Relu: i = f = o = 1. g = Affine, alpha and beta 0: c = 0: C = 3. h = ScaledTanh, alpha 0: H = 0.
    lstm("lost-defaults", 0, c=3, **defaults("Relu", "Affine", "ScaledTanh"), wb=(1, 1, 1, 7), c0=3,
         other=(Interpretations(defaults="zero"), Choices(defaults_of_the_lost=False))),
    # g = ThresholdedRelu(1) is 0 at 1; i = f = o = 1: C = 3; h = ThresholdedRelu(2.5): H = 3
    lstm("threshold-is-above", 3, c=3, **functions(("Relu", "ThresholdedRelu", "ThresholdedRelu"), (1.0, 2.5)),
         wb=(1, 1, 1, 1), c0=3, other=(Interpretations(threshold="above"), Choices(threshold_passes=False))),
    # f = Sigmoid takes nothing, g = LeakyRelu(0.5), h = Tanh nothing: i = 1/2, c = 0.5*(-2) = -1: C = -0.5;
    # H = 1/2 tanh(-0.5)
    lstm("a-function-without-alpha-takes-none", -0.23105857863000487925, c=-0.5,
         **functions(("Sigmoid", "LeakyRelu", "Tanh"), (0.5,)), wb=(0, 0, 0, -2)),
    # f = Elu takes alpha 0.5 and no beta; g = ScaledTanh takes alpha 3 and beta 0.25: i = Elu(1) = 1, c = 3 tanh(0.5)
    lstm("alpha-and-beta-are-counted-apart", c=1.38635147178002927549,
         **functions(("Elu", "ScaledTanh", "Relu"), (0.5, 3.0), (0.25,)), wb=(1, 0, 0, 2)),
    # f = LeakyRelu(0.5), g = LeakyRelu(0.01): i = 1, c = -2 * 0.00999999977648258209228515625; f(-4) = -2 with C0 = 1
    # shows that f did take the 0.5: C = -2 - 0.0199999995529651641845703125
    lstm("defaults-where-the-list-runs-out", c=-2.0199999995529651641845703125,
         **functions(("LeakyRelu", "LeakyRelu", "Relu"), (0.5,)), wb=(1, 0, -4, -2), c0=1),
    # A FLOAT attribute holds 0.1 as 0.100000001490116119384765625. i = 1, c = 0.1*1 + 0.3
    lstm("coefficients-are-binary32", c=0.400000013411045074462890625,
         **functions(("Relu", "Affine", "Relu"), (0.1,), (0.3,)), wb=(1, 0, 0, 1)),
    # f = Relu: z = Relu(-1) = 0, r = Relu(-1) = 0; g = LeakyRelu(0.5): h = 0.5*(-4) = -2
    gru("f-of-both-gates", -2, **functions(("Relu", "LeakyRelu"), (0.5,)), wb=(-1, -1, -4), r=(0, 0, 9), h0=3),
]

# Counters that depend on the order of steps. LSTM: i = o = 1, f = 2, Ct = 2 Ct-1 + (Xt + 1), Ht = 2 Ct. GRU: z = 2 and
# g = -x, Ht = Xt + 2 Ht-1. RNN: Ht = Xt + 2 Ht-1 + 1.
COUNTERS: dict[str, dict[str, Any]] = {
    "LSTM": {"w": (0, 0, 0, 1), "wb": (1, 1, 2, 0)},
    "GRU": {"w": (0, 0, 1), "wb": (2, 0, 0)},
    "RNN": {"w": (1,), "r": (2,)},
}
COUNTING = {
    "LSTM": {},
    "GRU": {"activation_alpha": [1.0, -1.0], "activation_beta": [0.0, 0.0]},
    "RNN": {},
}
EMPTY = (Interpretations(empty="zero"), Choices(empty_keeps_state=False))
TIMES = [
    case(op, f"{direction}-{length}", y, [1, 2, 3], h=h, c=h / 2 if op == "LSTM" else None,
         given={"direction": direction, **COUNTING[op]}, **COUNTERS[op], length=length)
    for op, direction, length, y, h in [
        # C = 2, then 4 + 3 = 7, then 14 + 4 = 18; from the end 4, 8 + 3 = 11, 22 + 2 = 24; from the second 3, 6 + 2 = 8
        ("LSTM", "forward", None, [4, 14, 36], 36), ("LSTM", "forward", 3, [4, 14, 36], 36),
        ("LSTM", "forward", 2, [4, 14, 0], 14), ("LSTM", "forward", 1, [4, 0, 0], 4),
        ("LSTM", "reverse", None, [48, 22, 8], 48), ("LSTM", "reverse", 3, [48, 22, 8], 48),
        ("LSTM", "reverse", 2, [16, 6, 0], 16), ("LSTM", "reverse", 1, [4, 0, 0], 4),
        # One scan serves all operators.
        ("GRU", "forward", None, [1, 4, 11], 11), ("GRU", "reverse", 2, [5, 2, 0], 5),
        ("RNN", "forward", None, [2, 7, 18], 18), ("RNN", "reverse", 2, [8, 3, 0], 8),
    ]
] + [
    # No step is taken: Y is padding. The last value of nothing the document does not say: the initial state or 0.
    case(op, f"{direction}-0-{h}", [0, 0], [1, 2], h=h, c=(7 if h else 0) if op == "LSTM" else None, other=other,
         given={"direction": direction, **COUNTING[op]}, h0=5, **({"c0": 7} if op == "LSTM" else {}), **COUNTERS[op],
         length=0)
    for op in OUTPUTS
    for direction in ("forward", "reverse")
    for h, other in ((5, (None, None)), (0, EMPTY))
] + [
    # R of the cell gate 1, H0 = 10, C0 = 1. X = (1, 2), from the end: c + 1 = 2 + 10 + 1 = 13: C = 2 + 13 = 15, H = 30;
    # then c + 1 = 1 + 30 + 1 = 32: C = 30 + 32 = 62, H = 124.
    lstm("reverse-starts-from-initial-h", [124, 30], [1, 2], h=124, c=62, given={"direction": "reverse"},
         w=(0, 0, 0, 1), r=(0, 0, 0, 1), wb=(1, 1, 2, 0), h0=10, c0=1),
]

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


def _coefficients(alpha: float | None, beta: float | None) -> list[list[float]]:
    return [[] if value is None else [value] for value in (alpha, beta)]


# H = f(X). In the other places of LSTM and GRU, both derivations are compared by `test_against_mpmath`.
ACTIVATED = [
    rnn(f"{name}-{number}", value, [x], **functions((name,), *_coefficients(alpha, beta)), w=(1,))
    for number, (name, alpha, beta, x, value) in enumerate(VALUES)
]
# fmt: on


def test_the_table_names_every_activation() -> None:
    assert {name for name, *_ in VALUES} == set(ACTIVATIONS)
    assert len(ACTIVATIONS) == 11


@both
@pytest.mark.parametrize(
    ("op", "attributes", "inputs", "expected", "other"),
    EQUATIONS + PLACES + PEEPHOLES + INPUT_FORGET + RESET + CLIP + FUNCTIONS + TIMES + ACTIVATED,
)
def test_one_unit(
    derivation: str, op: str, attributes: dict[str, Any], inputs: Arrays, expected: dict[str, Any], other: Other
) -> None:
    outputs = run(derivation, op, attributes, inputs, other)
    assert outputs.keys() == {*OUTPUTS[op]}
    for name, numbers in expected.items():
        np.testing.assert_allclose(outputs[name].reshape(-1), numbers, rtol=1e-14, atol=1e-16 if op == "GRU" else 0)

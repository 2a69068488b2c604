"""Tests of ExtendedLSTM as documented: quantization, values, and bounds that accept conforming implementations only."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import IllegalNode, Node, evaluate
from onnxspec.reference.numbers import Bounded
from onnxspec.reference.numbers.affine import Affine
from onnxspec.reference.operators.extended_lstm.arithmetic import ARITHMETICS, STATES
from onnxspec.reference.operators.extended_lstm.computation import computation_of
from onnxspec.reference.operators.extended_lstm.document import ExtendedLSTM, resolve

from ...quark import QuarkNode, quark_node, shipped_kernel


def node_of(made: QuarkNode) -> ExtendedLSTM:
    return resolve(made.attributes, made.inputs)


def must_be(node: ExtendedLSTM, Y: NDArray[Any], arithmetic: str, state: str = "quantized") -> Bounded:
    return computation_of(node, state).bounded(arithmetic, {"Y": Y})["Y"]


def worst(made: QuarkNode, Y: NDArray[Any], arithmetic: str = "fixed-point", state: str = "quantized") -> float:
    number = must_be(node_of(made), Y, arithmetic, state)
    assert number.doubt is None
    return float((np.abs(Y - number.value) / number.radius).max(initial=0.0))


# Quantization


def test_levels_are_those_of_exact_fractions() -> None:
    rng = np.random.default_rng(2)
    scale = float(np.float32(3.7e-4))
    affine = Affine(scale, 40000)
    x = np.concatenate([rng.uniform(-30, 30, 500), (np.arange(-200, 200) + 0.5) * scale]).astype(np.float32)
    expected = [min(65535, max(0, round(Fraction(float(v)) / Fraction(scale)) + 40000)) for v in x]
    assert affine.levels(x).tolist() == expected
    shortest = affine.dequantized(affine.levels(x))
    assert [Fraction(v) for v in shortest] == [(q - 40000) * Fraction(scale) for q in expected]


def test_whatever_divides_in_float32_is_undecided_where_it_differs() -> None:
    rng = np.random.default_rng(3)
    differing = 0
    for scale in (np.float32(v) for v in rng.uniform(1e-5, 1e-3, 40)):
        affine = Affine(float(scale), 32768)
        ties = ((np.arange(-30000, 30000, 7) + 0.5) * float(scale)).astype(np.float32)
        x = np.nextafter(ties, rng.choice([-np.inf, np.inf], ties.shape).astype(np.float32))
        for quotient in (x / scale, x * (np.float32(1) / scale)):
            levels = np.clip(np.rint(quotient).astype(np.int64) + 32768, 0, 65535)
            differ = levels != affine.levels(x)
            assert affine.undecided(x)[differ].all()
            differing += int(differ.sum())
    assert differing > 1000
    plain = rng.uniform(-20000, 20000, 10000) * 1e-3
    assert Affine(1e-3, 32768).undecided(plain.astype(np.float32)).mean() < 0.02


def test_what_is_far_beyond_the_range_is_decided() -> None:
    affine = Affine(1e-3, 128, bits=8)
    x = np.array([1e30, -1e30, np.inf, -np.inf], np.float32)
    assert affine.levels(x).tolist() == [255, 0, 255, 0]
    assert not affine.undecided(x).any()
    assert (affine.least, affine.greatest) == (-128 * affine.scale, 127 * affine.scale)


@pytest.mark.parametrize(
    ("scale", "zero_point"), [(0.0, 0), (-1.0, 0), (np.nan, 0), (np.inf, 0), (1.0, -1), (1.0, 65536)]
)
def test_what_is_no_quantization(scale: float, zero_point: int) -> None:
    with pytest.raises(ValueError, match=r"lies between|positive"):
        Affine(scale, zero_point)


# Values


def test_without_output_quantization_it_is_the_lstm_of_the_dequantized_tensors() -> None:
    made = quark_node(y_scale=None, y_zero_point=None)
    attributes = {n: v for n, v in made.attributes.items() if v is not None}
    node = resolve(attributes, made.inputs)
    plain = {name: operand.value for name, operand in computation_of(node).operands.items()}
    lstm = evaluate(Node("LSTM", 14, {"direction": "bidirectional"}), plain)
    np.testing.assert_allclose(computation_of(node).evaluate(), lstm["Y"], rtol=0, atol=1e-14)


def test_without_bias_it_is_zero() -> None:
    made = quark_node()
    zero = dict(made.inputs, B=np.zeros_like(made.inputs["B"]))
    without = {n: a for n, a in made.inputs.items() if n != "B"}
    first, second = (computation_of(resolve(made.attributes, i)).evaluate() for i in (zero, without))
    np.testing.assert_array_equal(first, second)


def test_rows_are_independent() -> None:
    made = quark_node()
    other = np.roll(made.inputs["X"], 1, 0)
    both = dict(made.inputs, X=np.concatenate([made.inputs["X"], other], 1))
    Y = computation_of(resolve(made.attributes, both)).evaluate()
    for row, X in enumerate((made.inputs["X"], other)):
        np.testing.assert_array_equal(
            Y[:, :, row : row + 1], computation_of(resolve(made.attributes, dict(both, X=X))).evaluate()
        )


def test_output_saturates() -> None:
    made = quark_node(reach=4, y_scale=0.2 / 65535)
    node = node_of(made)
    assert node.y is not None
    Y = computation_of(node).evaluate()
    assert (Y.min(), Y.max()) == (node.y.least, node.y.greatest)


# Bounds


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("changed", [{}, {"y_zero_point": 20000, "x_zero_point": 40000}, {"y_scale": 0.3 / 65535}])
def test_the_documented_value_is_within(arithmetic: str, state: str, changed: dict[str, Any]) -> None:
    made = quark_node(**changed)
    Y = computation_of(node_of(made), state).evaluate().astype(np.float32)
    assert worst(made, Y, arithmetic, state) <= 1


@pytest.mark.parametrize(
    ("seed", "reach", "changed", "right"),
    [
        *(
            (seed, 1, {"y_zero_point": 32768 + 37 * (seed % 3), "x_zero_point": 32768 + 900 * (seed % 4)}, True)
            for seed in range(6)
        ),
        (0, 2, {"y_zero_point": 32767}, False),
        (0, 2, {"y_scale": 0.8 / 65535}, False),  # outputs beyond the range
        (0, 2, {"x_scale": 2.0**-14, "w_scale": 2.0**-16}, False),
        (0, 2, {"x_scale": 2.0**-26}, False),
    ],
    ids=str,
)
def test_the_shipped_kernel_is_within_where_it_does_as_documented(
    seed: int, reach: float, changed: dict[str, Any], right: bool
) -> None:
    made = quark_node(seed, reach, **changed)
    error = worst(made, shipped_kernel(made))
    assert error <= 1 if right else error > 1.5


def test_radius_is_about_one_unit() -> None:
    made = quark_node()
    node = node_of(made)
    Y = computation_of(node).evaluate().astype(np.float32)
    unit = made.attributes["y_scale"]
    for arithmetic, most in (("fixed-point", 1.2), ("float32", 1.2), ("bfloat16", 5000)):
        radius = must_be(node, Y, arithmetic).radius / unit
        assert 0.5 <= radius.min() <= radius.max()
        assert np.median(radius) < most


def test_states_as_computed_are_told_from_quantized_ones() -> None:
    outside = 0
    for seed in range(6):
        made = quark_node(seed, y_scale=2 / 300, y_zero_point=32768)  # coarse levels show the difference
        Y = computation_of(node_of(made), "as-computed").evaluate().astype(np.float32)
        assert worst(made, Y, state="as-computed") <= 1
        outside += worst(made, Y, state="quantized") > 1
    assert outside == 6


def test_scale_and_zero_point_of_the_output_go_together() -> None:
    made = quark_node(y_zero_point=None)
    attributes = {n: v for n, v in made.attributes.items() if v is not None}
    with pytest.raises(IllegalNode) as error:
        resolve(attributes, made.inputs)
    assert error.value.clause == "extendedlstm.output-quantization"

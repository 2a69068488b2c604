"""Tests of formats and products: rounding once, least costs, and sums in a fixed order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onnxspec.reference import ACCURACY_CLASSES, FORMATS, Format, budget
from onnxspec.reference.numbers.activations import ACTIVATIONS, Coefficient
from onnxspec.reference.numbers.plain import ordered_product


def nearest(x: float, form: Format) -> float:
    """Return x rounded to nearest, ties to even, by definition."""
    if not np.isfinite(x):
        return x
    exponent = max(int(np.frexp(x)[1]), form.least_exponent + 1)
    unit = Fraction(2) ** (exponent - form.precision)
    # Python rounds fractions to the even neighbour, too.
    value = round(Fraction(x) / unit) * unit
    return float(value) if abs(value) <= Fraction(form.largest) else float(np.copysign(np.inf, x))


def telling(form: Format) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return numbers of all sizes, ties, their nearest neighbours, and the ends of the range."""
    random = np.random.default_rng(7)
    least, greatest = form.least_exponent - form.precision - 3, int(np.frexp(form.largest)[1]) + 2
    spread = np.ldexp(random.uniform(-2, 2, 500), random.integers(max(least, -1070), min(greatest, 1023), 500))
    half = 2 ** (form.precision - 1)
    ties = np.ldexp(
        random.integers(half, 2 * half, 200) + 0.5, random.integers(-form.precision - 8, 4 - form.precision, 200)
    )
    ends = [form.largest * (1 + form.unit / 2), form.largest * (1 + form.unit), form.least_subnormal / 2, np.nan, -0.0]
    numbers = np.concatenate([spread, ties, ends])
    return np.concatenate([numbers, np.nextafter(numbers, np.inf), np.nextafter(numbers, -np.inf)])


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_numbers_are_rounded_once(name: str) -> None:
    form = FORMATS[name]
    numbers = telling(form)
    rounded = form.nearest(numbers)
    assert rounded.dtype == form.dtype
    np.testing.assert_array_equal(rounded.astype(np.float64), [nearest(float(x), form) for x in numbers])


def test_bfloat16_is_not_rounded_by_way_of_float32() -> None:
    # Just above a tie of bfloat16 that float32 cannot tell from the tie itself.
    numbers = np.array([1 + 2.0**-8 + 2.0**-40])
    assert FORMATS["bfloat16"].nearest(numbers).astype(float).tolist() == [1 + 2.0**-7]
    assert numbers.astype(FORMATS["bfloat16"].dtype).astype(float).tolist() == [1.0]


def test_shapes_stay() -> None:
    for form in FORMATS.values():
        assert form.nearest(np.zeros((2, 0, 3))).shape == (2, 0, 3)


@pytest.mark.parametrize("shape", [(3, 5, 4), (2, 3, 7, 50), (40, 33, 64)])
def test_sums_are_added_in_order(shape: tuple[int, ...]) -> None:
    """Sums of few and of many products are computed in different ways."""
    *rows, columns, width = shape
    draw = np.random.default_rng(1)
    x, weights = draw.normal(size=(*rows, columns)), draw.normal(size=(width, columns)).T
    total = np.zeros((*rows, width))
    for k in range(columns):
        total = total + x[..., k, None] * weights[k]
    assert ordered_product(x, weights).tobytes() == total.tobytes()


LEAST = FORMATS["float64"].least_subnormal


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", ACCURACY_CLASSES)
def test_a_rounding_costs_half_the_least_number_at_least(name: str, kind: str) -> None:
    one = budget(name, kind)
    assert Fraction(one.floor) >= Fraction(FORMATS[kind].least_subnormal) / 2
    assert Fraction(one.accumulator_floor) > 0


def test_a_right_leaky_relu_of_subnormal_numbers_lies_within_its_bound() -> None:
    """Its alpha may be 0.01 in any width. The bound in float64 was once half of the least number too narrow."""
    leaky, alpha, w = ACTIVATIONS["LeakyRelu"], Coefficient.of(0.01), budget("standard", "float64")
    x = -LEAST * np.random.default_rng(1).integers(1, 2**50, 10_000).astype(np.float64)
    value = leaky.value(x, alpha.value, 0.0)
    cost = leaky.cost(x, x, np.abs(value), alpha, Coefficient(0.0), w)
    for copy in (0.01, float(np.float32(0.01))):
        assert (np.abs(copy * x - value) <= cost).all()

"""Tests of the cost of one operation below the normal range, where half of the least float64 is no float64."""

from fractions import Fraction

import numpy as np
import pytest

from onnxspec.reference import ACCURACY_CLASSES, FORMATS, budget
from onnxspec.reference.numbers.activations import ACTIVATIONS, Coefficient

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

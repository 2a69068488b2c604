"""Tests of products that are the same on every machine: each sum from its first product to its last, bit for bit."""

import numpy as np
import pytest

from onnxspec.reference.numbers.plain import ordered_product


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

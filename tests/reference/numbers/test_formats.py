"""Tests of formats: rounding once, against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from onnxspec.reference import FORMATS, Format


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

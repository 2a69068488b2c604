"""Scales and zero points of ExtendedLSTM's tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...axes.activations import finite_float32

HIGHEST, MIDDLE = 65535, 32768
"""The highest and the middle level of uint16."""

Affine = tuple[float, int]

COARSE = 2.0**-9  # a y_scale at which roundings are visible in few digits
IN_RANGE = 0.999
"""Outputs lie between -1 and 1: a range that ends below this saturates."""
PLAIN: Affine = (2.0**-15, MIDDLE)
"""Levels that reach 1 on both sides."""


def calibrated(low: float, high: float) -> Affine:
    """Return scale and zero point of a range as the producer's calibration computes them: range/65535 in float32,
    uint16."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / HIGHEST)) or 1.0  # 1 if all numbers are zero
    return scale, int(np.clip(np.rint(-low / scale), 0, HIGHEST))


# Scales that a calibration gives for tensors of usual sizes; no product of two scales is a power of two.
X, W, R, B = calibrated(-3.1, 3.3), calibrated(-0.9, 1.0), calibrated(-0.8, 0.7), calibrated(-0.4, 0.5)
Y = calibrated(-1.05, 1.03)


def is_affine(value: Any) -> bool:
    """Return whether a value is a scale and a zero point."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    scale, zero_point = value
    whole = type(zero_point) is int and 0 <= zero_point <= HIGHEST
    return whole and type(scale) is float and finite_float32(scale) and float(np.float32(scale)) > 0


def affines(st: Any) -> Any:
    """Return the strategy of scales and zero points.

    Levels of a tensor reach up to 2**(exponent + 16). In most draws numbers have usual sizes. In the others, products
    of two scales exceed what a mantissa of 16 bits and a shift of 32 can hold.
    """
    mantissas = st.sampled_from((1.0, 1.5)) | st.floats(1.0, 2.0, width=32, exclude_max=True)
    exponents = st.one_of(st.just(-15), st.integers(-17, -13), st.integers(-30, -6))
    scales = st.builds(lambda m, e: float(np.float32(m * 2.0**e)), mantissas, exponents)
    zero_points = st.sampled_from((MIDDLE, 0, 32767, HIGHEST)) | st.integers(0, HIGHEST)
    return st.just(PLAIN) | st.tuples(scales, zero_points)


def numbers(spec: Any, name: str) -> tuple[float, float]:
    """Return the middle of the interval from which a tensor's numbers are drawn, and half its length."""
    (scale, zero_point), fill = getattr(spec, name.lower()), dict(spec.fill).get(name, 1.0)
    low, high = -zero_point * scale * fill, (HIGHEST - zero_point) * scale * fill
    return (low + high) / 2, (high - low) / 2


def is_power(scale: float) -> bool:
    """Return whether a scale, as a float32 attribute, is a power of two."""
    return math.frexp(float(np.float32(scale)))[0] == 0.5


def reach(affine: Affine) -> float:
    """Return the largest absolute value that a level represents."""
    scale, zero_point = affine
    return scale * max(zero_point, HIGHEST - zero_point)


def representable(affine: Affine) -> float:
    """Return the bound up to which levels represent numbers on both sides of zero."""
    scale, zero_point = affine
    return scale * min(zero_point, HIGHEST - zero_point)

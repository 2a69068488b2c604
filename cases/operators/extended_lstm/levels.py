"""Conformance levels of ExtendedLSTM for certificates, and its fresh cases."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...profiles.random_cases import distinct
from ...specs.family import FRESH_CASES, Level
from .codec import COARSE, IN_RANGE, MIDDLE, is_power, reach, representable
from .random_cases import extended_case

_USUAL = {"x": (0.2, 16.0), **dict.fromkeys("wrb", (0.02, 16.0))}
"""Least and greatest size of a tensor's largest number."""


def _is_calibrated(spec: Any) -> bool:
    plain = spec.bias and spec.hidden_size and not (spec.illegal or spec.old or spec.fill) and spec.data == "dense"
    if not plain or spec.N != 1 or not spec.T * spec.I or spec.y is None:
        return False
    usual = all(low <= reach(getattr(spec, name)) <= high for name, (low, high) in _USUAL.items())
    # Calibrated ranges include outputs of -1, and their levels are fine.
    in_range = spec.y[1] >= MIDDLE and representable(spec.y) >= IN_RANGE and spec.y[0] < COARSE / 2
    scales = [getattr(spec, name)[0] for name in "xwrby"]
    products = (spec.x[0] * spec.w[0], spec.y[0] * spec.r[0])
    return usual and in_range and not any(is_power(scale) for scale in (*scales, *products))


EXTENDED_LEVELS: tuple[Level, ...] = (
    Level(
        "calibrated",
        "one row, with scales and zero points as calibration of tensors of usual sizes gives them, outputs in range",
        _is_calibrated,
        ("quantized-output", "initializer", "input"),
    ),
    Level(
        "complete",
        "everything that the operator's document allows: any scales, several rows, outputs and inputs out of range",
        lambda spec: not spec.illegal,
        (
            *("bias-absent", "quantized-output", "float-output", "initializer", "input"),
            *("several-rows", "saturating-input", "saturating-output", "rerun", "hidden-size-absent"),
        ),
    ),
)


def extended_challenge(nonce: str) -> Sequence[Any]:
    """Return fresh cases of both levels; the same nonce gives the same cases."""
    chosen: dict[Any, None] = {}
    for level in EXTENDED_LEVELS:
        drawn = distinct(partial(extended_case, level.name), f"challenge/{nonce}")
        chosen |= dict.fromkeys(itertools.islice(filter(level.holds, drawn), FRESH_CASES))
    return tuple(chosen)

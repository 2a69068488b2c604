"""The levels that certificates may certify of ExtendedLSTM, and fresh cases of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...specs.level import Level
from .codec import COARSE, HIGHEST, IN_RANGE, MIDDLE, Affine, calibrated, is_power, reach, representable
from .spec import extended

__all__ = ["EXTENDED_LEVELS", "extended_challenge"]

_USUAL = {"x": (0.2, 16.0), **dict.fromkeys("wrb", (0.02, 16.0))}
"""Between which sizes the largest number of a tensor lies."""


def _is_calibrated(spec: Any) -> bool:
    plain = spec.bias and spec.hidden_size and not (spec.illegal or spec.old or spec.fill) and spec.data == "dense"
    if not plain or spec.N != 1 or not spec.T * spec.I or spec.y is None:
        return False
    usual = all(low <= reach(getattr(spec, name)) <= high for name, (low, high) in _USUAL.items())
    # Outputs were as low as -1 in the range that was calibrated, and their levels are fine.
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

_FRESH = 12
"""Fresh cases of each level."""


def extended_challenge(nonce: str) -> Sequence[Any]:
    """Fresh cases of both levels, the same for everyone from the nonce."""
    return tuple(dict.fromkeys((*_calibrated(nonce), *_complete(nonce))))


class _Dice:
    """Choices that follow from a nonce, the same on every platform."""

    def __init__(self, nonce: str, part: str) -> None:
        self._key, self._count = f"ExtendedLSTM/challenge/{nonce}/{part}", 0

    def below(self, bound: int) -> int:
        self._count += 1
        digest = hashlib.sha256(f"{self._key}/{self._count}".encode()).digest()
        return int.from_bytes(digest[:8], "little") % bound


def _range(choose: _Dice, size: float) -> Affine:
    """The codec that calibration makes for a tensor whose numbers reach about `size` on both sides."""
    low, high = (size * (0.5 + choose.below(512) / 1024) for _ in range(2))
    return calibrated(-low, high)


def _sizes(choose: _Dice) -> dict[str, Any]:
    return {"T": 1 + choose.below(12), "I": 1 + choose.below(24), "H": 1 + choose.below(24)}


def _calibrated(nonce: str) -> Iterator[Any]:
    choose = _Dice(nonce, "calibrated")
    for number in range(_FRESH):
        sizes = _sizes(choose)
        gain = 1.7 / (sizes["I"] + sizes["H"]) ** 0.5
        yield extended(
            "challenge-calibrated",
            **sizes,
            x=_range(choose, 4.0),
            w=_range(choose, gain),
            r=_range(choose, gain),
            b=_range(choose, 0.6),
            # An output lies between -1 and 1, and what its largest values were decides the range.
            y=calibrated(-1.0 - (1 + choose.below(64)) / 1024, 1.0),
            weights=("initializer", "input")[number % 2],
            seed=choose.below(1 << 16),
        )


def _complete(nonce: str) -> Iterator[Any]:
    choose = _Dice(nonce, "complete")

    def any_scale() -> Affine:
        scale = float(np.float32((1 + choose.below(1 << 12) / (1 << 12)) * 2.0 ** (choose.below(10) - 19)))
        return scale, choose.below(HIGHEST + 1)

    for number in range(_FRESH):
        bias = number % 4 != 1
        given = ("X", "W", "R", "B") if bias else ("X", "W", "R")
        yield extended(
            "challenge",
            **_sizes(choose),
            N=1 + choose.below(3),
            x=any_scale(),
            w=any_scale(),
            r=any_scale(),
            b=any_scale(),
            y=None if number % 4 == 2 else any_scale(),
            fill=tuple((name, 1.5) for name in given if choose.below(4) == 0),
            bias=bias,
            hidden_size=number % 4 != 3,
            weights=("initializer", "input")[choose.below(2)],
            reruns=("none", "none", "data", "sizes")[choose.below(4)],
            seed=choose.below(1 << 16),
        )

"""Scales: calibrated, powers of 2, or such that levels saturate or vanish."""

from __future__ import annotations

from .detail import Detail

_ORDER = ("calibrated", "power", "saturating", "zeroing")

SCALES = Detail(
    "scales",
    _ORDER,
    tensors=("all", "inputs", "data", "X"),
    bound=_ORDER[2:],
    marked="scales",
    features={
        "scales-of-2": ("scales that are powers of 2", ("power",)),
        "levels-saturate": ("levels at the ends of their type", ("saturating",)),
        "scale-to-zero": ("a scale that makes all 0", ("zeroing",)),
    },
)
"""``calibrated``: of so few digits that they are the same everywhere, and no powers of 2; ``power``: powers of 2;
``saturating``: half of what X and outputs need, so that their ends saturate; ``zeroing``: so large a one of X that all
of it becomes 0."""

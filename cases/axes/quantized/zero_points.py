"""Zero points of X, states and outputs: where in their type they lie."""

from __future__ import annotations

from .detail import Detail

ZERO_POINTS = Detail(
    "zero_points",
    ("calibrated", "lowest", "highest", "middle"),
    tensors=("all", "inputs", "outputs", "data", "X", "states", "Y", "Y_h", "Y_c"),
    marked="zero",
    features={"zero-point-at-an-end": ("a zero point at an end of its type", ("lowest", "highest"))},
)
"""``calibrated``; ``lowest``, ``highest``: at an end of their type, so that numbers of one sign alone are held;
``middle``."""

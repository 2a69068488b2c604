"""The type of integers that constants are held in."""

from __future__ import annotations

from ..axis import Rule
from .detail import Detail
from .quantization import INTEGERS

WEIGHT_TYPE = Detail(
    "weight_type",
    ("same", *INTEGERS),
    tensors=("all", "inputs", "weights", "W", "R", "P"),
    marked="weights",
    features={"other-weight-type": ("weights of another integer type than X", INTEGERS)},
    rules=(
        Rule(
            "weight_type",
            "same",
            ("quantization",),
            lambda row: row["weight_type"] == row["quantization"],
            INTEGERS,
            kind="same",
        ),
    ),
)
"""``same`` as X; ``u8``, ``s8``, ``u16``, ``s16``: W, R, P and what :mod:`.bias_type` leaves to it. NPUs have X and
states in 16 bits beside weights in 8."""

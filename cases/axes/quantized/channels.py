"""Channels: the axis along which weights have scales and zero points."""

from __future__ import annotations

from .detail import Detail

CHANNELS = Detail(
    "channels",
    ("tensor", "directions", "rows"),
    tensors=("all", "inputs", "weights", "W", "R"),
    marked="by",
    features={"per-channel": ("scales per channel", ("directions", "rows"))},
)
"""``tensor``: one of each for a tensor; ``directions``: along axis 0 of W, R and P; ``rows``: along axis 1 of W and R,
shared by both directions."""

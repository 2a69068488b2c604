"""The type that B is held in."""

from __future__ import annotations

from ..axis import Rule
from .detail import Detail

_ORDER = ("same", "float", "product", "int32")
_ALONE = ("float", "product")
# Beside what B may be a number, or have the scale of a product: X and W have levels there.
_LEVELS_OF_X_AND_W = ("all", "inputs")

BIAS_TYPE = Detail(
    "bias_type",
    _ORDER,
    tensors=("all", "inputs", "weights", "B"),
    marked="bias",
    features={
        "integer-bias": ("a bias in int32", ("product", "int32")),
        "product-bias": ("a bias of the scale of products", ("product",)),
    },
    rules=(
        Rule("bias_type", "same", ("bias",), lambda row: not row["bias"], _ORDER[1:]),
        Rule(
            "bias_type",
            "same",
            ("quantized_tensors",),
            lambda row: row["quantized_tensors"] not in _LEVELS_OF_X_AND_W,
            _ALONE,
        ),
    ),
)
"""``same`` as the weights; ``float``; ``product``: int32 of the scale that products of X and W have, as integer kernels
add it; ``int32`` of a scale of its own."""

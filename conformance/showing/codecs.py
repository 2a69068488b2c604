"""Scales and zero points of a quantized node, in words."""

from __future__ import annotations

import numpy as np

from ...reference import Node
from ...reference.numbers.channels import Channels, Codec


def codecs_of(node: Node) -> dict[str, str]:
    """Codecs by name of an input or output that is held as levels: their type, and the numbers that they stand for."""
    names = [*node.operator.inputs, *node.outputs]
    return {name: codec_text(node.codecs[name]) for name in names if name in node.codecs}


def codec_text(codec: Codec) -> str:
    """A scale and a zero point; of channels how many there are, and the least and the greatest of both."""
    kind = codec.dtype.name
    scales, zeros = np.atleast_1d(codec.scales), np.atleast_1d(codec.zero_points)
    if not isinstance(codec, Channels):
        return f"{kind}, scale {scales[0]:.6g}, zero point {zeros[0]}"
    scale = f"scale {_span(f'{scales.min():.6g}', f'{scales.max():.6g}')}"
    zero = f"zero point {_span(str(zeros.min()), str(zeros.max()))}"
    return f"{kind}, {len(scales)} channels along axis {codec.axis}, {scale}, {zero}"


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"

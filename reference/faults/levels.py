"""Faults of nodes between DequantizeLinear and QuantizeLinear: of dequantizing and quantizing.

Most of them are a correct implementation of a node with other codecs. So their outputs are judged like those of a
correct one, as a free run and step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..numbers.affine import Affine, Channels, Codec
from ..recurrent.computation import Computation
from ..recurrent.node import Node
from .fault import Compute, Outputs, fault

Arrays = Mapping[str, NDArray[Any]]
Codecs = Mapping[str, Codec]
Levels = Callable[[Node, Arrays], tuple[Node, Arrays]]
"""A function from a node and its inputs, levels included, to the node and inputs that a faulty implementation
computes."""

STATE_CODEC = "state"
"""Name, among a node's codecs, of the codec that quantizes the state between steps."""


class AtLevels(Struct, frozen=True):
    """A fault of a quantized node; nodes without codecs are computed correctly."""

    change: Levels

    def __call__(self, compute: Compute, c: Computation) -> Outputs:
        return compute(c)


class Truncating(Affine):
    """Codec that truncates quotients towards zero."""

    def nearest(self, quotient: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.trunc(quotient)


class HalfAway(Affine):
    """Codec that rounds ties away from zero."""

    def nearest(self, quotient: NDArray[np.float64]) -> NDArray[np.float64]:
        rounded: NDArray[np.float64] = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
        return rounded


class Wrapping(Affine):
    """Codec that wraps around at the ends of the type."""

    ordered = False

    def within(self, levels: NDArray[np.int64]) -> NDArray[np.int64]:
        wrapped: NDArray[np.int64] = (levels - self.lowest) % 2**self.bits + self.lowest
        return wrapped


def recoded(node: Node, codecs: Codecs) -> Node:
    """Return a node with other codecs for its quantized tensors; codecs of other tensors are ignored."""
    replaced = {name: codec for name, codec in codecs.items() if name in node.codecs or name == STATE_CODEC}
    return replace(node, codecs={**node.codecs, **replaced})


level_fault = partial(fault, made=AtLevels, types=("float32",), needs="quantized", layer="levels")
"""Decorator that registers a fault of quantized nodes: a function :data:`Levels`."""


def each_channel(codec: Codec, change: Callable[[Affine], Affine]) -> Codec:
    """Return a codec with the codec of every channel changed."""
    if isinstance(codec, Affine):
        return change(codec)
    return Channels(codec.axis, tuple(map(change, codec.each)))

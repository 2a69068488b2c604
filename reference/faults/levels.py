"""Faults between DequantizeLinear and QuantizeLinear: of what levels stand for, and of how numbers become levels.

Most are a right implementation of another node: one that has other codecs. So what they return is judged as what a
right one returns, from the start and step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..numbers.affine import Affine
from ..numbers.channels import Channels, Codec
from ..recurrent.computation import Computation
from ..recurrent.node import Node
from ..recurrent.rnn import CELLS
from .fault import Compute, Fault, Outputs, enter

__all__ = ["STATE_CODEC", "AtLevels", "HalfAway", "Levels", "Truncating", "Wrapping", "level_fault", "recoded"]

Arrays = Mapping[str, NDArray[Any]]
Codecs = Mapping[str, Codec]
Levels = Callable[[Node, Arrays], tuple[Node, Arrays]]
"""A function from a node and its inputs, levels among them, to those that an implementation with a fault computes
rightly."""

STATE_CODEC = "state"
"""The name, among a node's codecs, of one that the state goes from step to step in."""


class AtLevels(Struct, frozen=True):
    """A fault of a quantized node. A node of numbers is computed as it must be."""

    change: Levels

    def __call__(self, compute: Compute, c: Computation) -> Outputs:
        return compute(c)


class Truncating(Affine):
    """Cuts quotients off towards zero."""

    def nearest(self, quotient: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.trunc(quotient)


class HalfAway(Affine):
    """Rounds ties away from zero."""

    def nearest(self, quotient: NDArray[np.float64]) -> NDArray[np.float64]:
        rounded: NDArray[np.float64] = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
        return rounded


class Wrapping(Affine):
    """Goes on at the other end of the type."""

    ordered = False

    def within(self, levels: NDArray[np.int64]) -> NDArray[np.int64]:
        wrapped: NDArray[np.int64] = (levels - self.lowest) % 2**self.bits + self.lowest
        return wrapped


def recoded(node: Node, codecs: Codecs) -> Node:
    """Return a node with other codecs for some of its tensors; for those that have one."""
    there = {name: codec for name, codec in codecs.items() if name in node.codecs or name == STATE_CODEC}
    return replace(node, codecs={**node.codecs, **there})


def level_fault(
    id: str, clause: str, words: str, change: Levels | None = None, **fields: Any
) -> Callable[[Levels], Levels]:
    """Register a fault of quantized nodes, as :func:`.fault.fault` does."""

    def register(change: Levels) -> Levels:
        more = {"operators": tuple(CELLS), "types": ("float32",), "needs": "quantized", "layer": "levels", **fields}
        enter(Fault(id, clause, words, AtLevels(change), **more))
        return change

    if change is not None:
        register(change)
    return register


def each_channel(codec: Codec, change: Callable[[Affine], Affine]) -> Codec:
    """Return a codec with every channel's changed."""
    if isinstance(codec, Affine):
        return change(codec)
    return Channels(codec.axis, tuple(map(change, codec.each)))

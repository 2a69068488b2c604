"""The DequantizeLinear and QuantizeLinear next to a node, as rules see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper

from ...reference.documents.quantizing import DEQUANTIZE, QUANTIZE, quantizes
from ..models.folding import NotConstant, constant
from ..models.scope import Scope, domain_of
from .subject import Input, NodeSubject

_VALUES = 1 << 20
"""Limit of the bytes of scales and zero points that are read."""


@dataclass(frozen=True)
class Codec:
    """A QuantizeLinear or DequantizeLinear.

    formal
        The node's tensor that it belongs to.
    scale, zero_point
        None if they are not constant; then `why` has the reason. A zero point that is absent is 0.
    """

    formal: str
    scope: Scope
    node: NodeProto
    scale: NDArray[Any] | None
    zero_point: NDArray[Any] | None
    why: str = ""

    @property
    def quantizes(self) -> bool:
        return _is(self.node, QUANTIZE)

    def __str__(self) -> str:
        return f"the {self.node.op_type} of {self.formal}"

    def input(self, place: int) -> Input | None:
        """Return its input at a position, with the known part of its type; None if it is absent."""
        name = self.node.input[place] if place < len(self.node.input) else ""
        return Input(self.formal, name, self.scope, self.scope.type_of(name)) if name else None

    @property
    def per_channel(self) -> bool:
        return self.scale is not None and self.scale.ndim == 1 and self.scale.size > 1

    @property
    def axis(self) -> int:
        """Axis of the scales, if they are per channel."""
        return int(attribute(self.node, "axis", 1))

    def differs(self, other: Codec) -> bool:
        """Return whether the two are known to give the same levels different values."""
        pairs = ((self.scale, other.scale), (self.zero_point, other.zero_point))
        return any(a is not None and b is not None and not np.array_equal(a.ravel(), b.ravel()) for a, b in pairs)

    @property
    def parameters(self) -> str:
        """Text of scale and zero point."""
        return f"scale {_shown(self.scale)} and zero point {_shown(self.zero_point)}"


def _shown(array: NDArray[Any] | None) -> str:
    if array is None:
        return "unknown"
    return str(array.ravel()[0]) if array.size == 1 else f"of {array.size} numbers"


def attribute(node: NodeProto, name: str, default: int) -> int:
    """Return an integer attribute of a node, or a default."""
    return next((int(helper.get_attribute_value(a)) for a in node.attribute if a.name == name), default)


def _is(node: NodeProto, name: str) -> bool:
    """Return whether a node quantizes, or dequantizes, as `name` asks.

    Nodes with a scale for each block do not count.
    """
    return quantizes(domain_of(node.domain), node.op_type) == name and not attribute(node, "block_size", 0)


def _codec(formal: str, scope: Scope, node: NodeProto) -> Codec:
    zero_point: NDArray[Any] | None = np.zeros((), np.int64)
    try:
        scale = constant(scope, node.input[1], _VALUES)
        if len(node.input) > 2 and node.input[2]:
            zero_point = constant(scope, node.input[2], _VALUES)
    except NotConstant as why:
        return Codec(formal, scope, node, None, None, f"it {why}")
    return Codec(formal, scope, node, scale, zero_point)


def codecs_before(subject: NodeSubject) -> Iterator[Codec]:
    """Yield, for each input, the DequantizeLinear that computes it, and the QuantizeLinear before that."""
    for source in subject.inputs.values():
        scope, name = source.scope, source.given
        for name_of in (DEQUANTIZE, QUANTIZE):
            producer = scope.producer_of(name)
            if producer is None:
                break
            scope, node = producer[0], producer[0].nodes[producer[1]]
            if not _is(node, name_of) or len(node.input) < 2:
                break
            name = node.input[0]
            yield _codec(source.name, scope, node)


def codecs_behind(subject: NodeSubject) -> Iterator[Codec]:
    """Yield, for each output, the first QuantizeLinear that reads it."""
    for formal, name in zip(subject.operator.outputs, subject.outputs, strict=False):
        users = (node for node in subject.scope.nodes if name and [*node.input][:1] == [name] and len(node.input) > 1)
        node = next((node for node in users if _is(node, QUANTIZE)), None)
        if node is not None:
            yield _codec(formal, subject.scope, node)


def readers(codec: Codec) -> Iterator[Codec]:
    """Yield the DequantizeLinear nodes that read the output of a QuantizeLinear."""
    levels = next(iter(codec.node.output), "")
    for node in codec.scope.nodes:
        if _is(node, DEQUANTIZE) and len(node.input) > 1 and node.input[0] == levels != "":
            yield _codec(codec.formal, codec.scope, node)

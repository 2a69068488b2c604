"""The DequantizeLinear and QuantizeLinear beside a node, as rules look at them."""

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
"""Bytes of scales and zero points that are looked at."""


@dataclass(frozen=True)
class Codec:
    """A QuantizeLinear or DequantizeLinear.

    formal
        The tensor beside which it stands.
    scale, zero_point
        None where they are no constants, and `why` says why not; a zero point that is left out is 0.
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
        """Return an input of it, with what is known of its type."""
        name = self.node.input[place] if place < len(self.node.input) else ""
        return Input(self.formal, name, self.scope, self.scope.type_of(name)) if name else None

    @property
    def per_channel(self) -> bool:
        return self.scale is not None and self.scale.ndim == 1 and self.scale.size > 1

    @property
    def axis(self) -> int:
        """The axis that scales go along, where they are per channel."""
        return int(attribute(self.node, "axis", 1))

    def differs(self, other: Codec) -> bool:
        """Tell whether the two are known to mean other numbers by the same levels."""
        pairs = ((self.scale, other.scale), (self.zero_point, other.zero_point))
        return any(a is not None and b is not None and not np.array_equal(a.ravel(), b.ravel()) for a, b in pairs)

    @property
    def parameters(self) -> str:
        """Scale and zero point, in words."""
        return f"scale {_shown(self.scale)} and zero point {_shown(self.zero_point)}"


def _shown(array: NDArray[Any] | None) -> str:
    if array is None:
        return "unknown"
    return str(array.ravel()[0]) if array.size == 1 else f"of {array.size} numbers"


def attribute(node: NodeProto, name: str, default: int) -> int:
    """Return an integer attribute of a node."""
    return next((int(helper.get_attribute_value(a)) for a in node.attribute if a.name == name), default)


def _is(node: NodeProto, name: str) -> bool:
    """Tell whether a node quantizes, or dequantizes; with blocks, of which each has a scale of its own, it is another
    matter."""
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
    """Yield the DequantizeLinear that gives an input, and the QuantizeLinear before that."""
    for given in subject.inputs.values():
        scope, name = given.scope, given.given
        for name_of in (DEQUANTIZE, QUANTIZE):
            producer = scope.producer_of(name)
            if producer is None:
                break
            scope, node = producer[0], producer[0].nodes[producer[1]]
            if not _is(node, name_of) or len(node.input) < 2:
                break
            name = node.input[0]
            yield _codec(given.name, scope, node)


def codecs_behind(subject: NodeSubject) -> Iterator[Codec]:
    """Yield the first QuantizeLinear that takes an output."""
    for formal, name in zip(subject.operator.outputs, subject.outputs, strict=False):
        users = (node for node in subject.scope.nodes if name and [*node.input][:1] == [name] and len(node.input) > 1)
        node = next((node for node in users if _is(node, QUANTIZE)), None)
        if node is not None:
            yield _codec(formal, subject.scope, node)


def readers(codec: Codec) -> Iterator[Codec]:
    """Yield the DequantizeLinear that read what a QuantizeLinear wrote."""
    levels = next(iter(codec.node.output), "")
    for node in codec.scope.nodes:
        if _is(node, DEQUANTIZE) and len(node.input) > 1 and node.input[0] == levels != "":
            yield _codec(codec.formal, codec.scope, node)

"""A node of a model with the DequantizeLinear and QuantizeLinear that stand right before and behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from onnx import NodeProto

from ...cases.directories.graph_reading import codec_of
from ...cases.directories.reading import NotOneNode
from ...cases.specs.quantizing import quantized_model
from ...reference import IllegalNode, Node
from ...reference.documents.quantizing import DEQUANTIZE, QUANTIZE, quantizes
from ...reference.numbers.affine import Affine
from ...reference.numbers.channels import Codec
from ..models.folding import constants_of
from ..models.scope import Scope, domain_of
from .portable import MOST_BYTES, Array, PortableNode

_EVERYWHERE = {"", "com.microsoft"}
"""Domains of quantizing operators that runtimes have without a library."""


@dataclass(frozen=True)
class QuantizedNode:
    """A node with what quantizes around it.

    model
        Serialized: levels are what it is fed, holds and returns.
    node
        With its codecs.
    constants
        By formal input; levels for those that have a codec.
    """

    model: bytes
    node: Node
    constants: Mapping[str, Array]

    def fed(self, run: Mapping[str, Array]) -> dict[str, Array]:
        """Return what the model is fed with, from the inputs that the node gets."""
        return {name: _levels(array, self.node.codecs.get(name)) for name, array in run.items()}


def quantized_node(portable: PortableNode) -> QuantizedNode | None:
    """Return a node with what quantizes around it, as far as that is per tensor and known; None without any."""
    scope, proto = portable.located.scope, portable.located.node
    codecs: dict[str, Codec] = {}
    domains: set[str] = set()
    for formal, name in zip(portable.operator.inputs, proto.input, strict=False):
        before = scope.nodes[scope.producers[name][0]] if name in scope.producers else None
        codec = _codec(scope, before, DEQUANTIZE)
        if codec is not None and before is not None:
            codecs[formal] = codec
            domains.add(domain_of(before.domain))
    for formal, name in zip(portable.operator.outputs, proto.output, strict=False):
        behind = [node for node in scope.nodes if name and name in node.input]
        codec = _codec(scope, behind[0], QUANTIZE) if len(behind) == 1 else None
        if isinstance(codec, Affine) and name not in scope.outputs:
            codecs[formal] = codec
            domains.add(domain_of(behind[0].domain))
    if not codecs:
        return None
    node = replace(portable.read.node, codecs=codecs)
    held = {name: _levels(array, codecs.get(name)) for name, array in portable.constants.items()}
    # A domain that runtimes have by a library of their own wins over those that all have.
    domain = max(domains - _EVERYWHERE, default="")
    return QuantizedNode(quantized_model(portable.model, node, held, domain=domain), node, held)


def _levels(array: Array, codec: Codec | None) -> Array:
    return array if codec is None else codec.levels(array).astype(codec.dtype)


def _codec(scope: Scope, node: NodeProto | None, operator: str) -> Codec | None:
    if node is None or quantizes(domain_of(node.domain), node.op_type) != operator:
        return None
    try:
        return codec_of(node, constants_of(scope, node.input[1:], MOST_BYTES))
    except (NotOneNode, IllegalNode):
        return None

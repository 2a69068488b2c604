"""A node of a model with the DequantizeLinear and QuantizeLinear right before and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...cases.directories.graph_reading import codec_of
from ...cases.directories.reading import NotOneNode
from ...cases.specs.quantizing import quantized_model
from ...reference import IllegalNode, Node
from ...reference.numbers.affine import Affine, Codec
from ..checking.codec import codecs_before, codecs_behind
from ..checking.subject import NodeSubject
from ..models.folding import constants_of
from ..models.scope import domain_of
from .portable import MOST_BYTES, Array, PortableNode

_EVERYWHERE = {"", "com.microsoft"}
"""Domains of quantizing operators that runtimes have without an extra library."""


@dataclass(frozen=True)
class QuantizedNode:
    """A node with the quantization around it.

    model
        Serialized: its inputs, constants and outputs are levels.
    node
        With its codecs.
    constants
        By formal input; levels for those that have a codec.
    """

    model: bytes
    node: Node
    constants: Mapping[str, Array]

    def fed(self, run: Mapping[str, Array]) -> dict[str, Array]:
        """Return the inputs of the model, from the inputs of the node."""
        return {name: _levels(array, self.node.codecs.get(name)) for name, array in run.items()}


def quantized_node(portable: PortableNode) -> QuantizedNode | None:
    """Return a node with the quantization around it, as far as that is per tensor and known; None without any."""
    subject = portable.subject
    beside = [codec for codec in codecs_before(subject) if not codec.quantizes]
    beside += [codec for codec in codecs_behind(subject) if _reads_alone(subject, codec.node.input[0])]
    codecs: dict[str, Codec] = {}
    domains: set[str] = set()
    for found in beside:
        try:
            codec = codec_of(found.node, constants_of(found.scope, found.node.input[1:], MOST_BYTES))
        except (NotOneNode, IllegalNode):
            continue
        if not found.quantizes or isinstance(codec, Affine):
            codecs[found.formal] = codec
            domains.add(domain_of(found.node.domain))
    if not codecs:
        return None
    node = replace(portable.read.node, codecs=codecs)
    constants = {name: _levels(array, codecs.get(name)) for name, array in portable.constants.items()}
    # A domain that only some runtimes have, in a library of their own, takes precedence over common ones.
    domain = max(domains - _EVERYWHERE, default="")
    return QuantizedNode(quantized_model(portable.model, node, constants, domain=domain), node, constants)


def _reads_alone(subject: NodeSubject, output: str) -> bool:
    """Return whether an output of a node has one reader."""
    return len(subject.scope.consumers[output]) == 1 and output not in subject.scope.outputs


def _levels(array: Array, codec: Codec | None) -> Array:
    return array if codec is None else codec.levels(array).astype(codec.dtype)

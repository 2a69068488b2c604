"""The surroundings of a node in a model: its DequantizeLinear and QuantizeLinear, and the layers behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import NodeProto

from ...cases.directories.graph_reading import axes_of, codec_of
from ...cases.directories.reading import NotOneNode
from ...cases.specs.graphs import add_graph, moving
from ...cases.specs.quantizing import quantized_model
from ...cases.specs.subject import MOVES, Move
from ...reference import IllegalNode, Node
from ...reference.documents.quantizing import DEQUANTIZE, QUANTIZE, quantizes
from ...reference.numbers.affine import Affine
from ...reference.numbers.channels import Codec
from ..models.folding import NotConstant, constant
from ..models.scope import Scope, domain_of
from .portable import MOST_BYTES, PortableNode

__all__ = ["Layers", "QuantizedNode", "layers_of", "quantized_node"]

Array = NDArray[Any]

_MOST_LAYERS = 16
_EVERYWHERE = {"", "com.microsoft"}


@dataclass(frozen=True)
class QuantizedNode:
    """A node with the DequantizeLinear and QuantizeLinear that stand right before and behind it.

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
        """The numbers that flow in, from those that the node gets."""
        return {name: _levels(array, self.node.codecs.get(name)) for name, array in run.items()}


def quantized_node(portable: PortableNode) -> QuantizedNode | None:
    """The node with what quantizes around it, as far as that is per tensor and known; None where nothing is."""
    scope, proto = portable.located.scope, portable.located.node
    constants = _Constants(scope)
    codecs: dict[str, Codec] = {}
    domains: set[str] = set()
    for formal, name in zip(portable.operator.inputs, proto.input, strict=False):
        before = _producer(scope, name)
        codec = _codec(before, DEQUANTIZE, constants)
        if codec is not None and before is not None:
            codecs[formal] = codec
            domains.add(domain_of(before.domain))
    for formal, name in zip(portable.operator.outputs, proto.output, strict=False):
        behind = [node for node in scope.nodes if name and name in node.input]
        codec = _codec(behind[0], QUANTIZE, constants) if len(behind) == 1 else None
        if isinstance(codec, Affine) and name not in scope.outputs:
            codecs[formal] = codec
            domains.add(domain_of(behind[0].domain))
    if not codecs:
        return None
    node = replace(portable.read.node, codecs=codecs)
    held = {name: _levels(array, codecs.get(name)) for name, array in portable.constants.items()}
    # The model gets those of a domain that runtimes have by a library of their own where there are some.
    domain = max(domains - _EVERYWHERE, default="")
    return QuantizedNode(quantized_model(portable.model, node, held, domain=domain), node, held)


def _levels(array: Array, codec: Codec | None) -> Array:
    return array if codec is None else codec.levels(array).astype(codec.dtype)


def _codec(node: NodeProto | None, operator: str, constants: Mapping[str, Array]) -> Codec | None:
    if node is None or quantizes(domain_of(node.domain), node.op_type) != operator:
        return None
    try:
        return codec_of(node, constants)
    except (NotOneNode, IllegalNode):
        return None


def _producer(scope: Scope, name: str) -> NodeProto | None:
    """The node of a scope that gives a name."""
    return scope.nodes[scope.producers[name][0]] if name in scope.producers else None


class _Constants(Mapping[str, Array]):
    """The constants that names of a scope always are."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Array:
        try:
            return constant(self._scope, name, MOST_BYTES)
        except NotConstant:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True)
class Layers:
    """Nodes of a model one behind the other, each with the Y of the one before as its X.

    model
        Serialized; every Y that the next one gets is an output of it.
    """

    nodes: tuple[PortableNode, ...]
    model: bytes

    def fed(self, runs: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        """The inputs of the graph in one run, from those of each node."""
        several = enumerate(runs)
        return {_called(k, n): array for k, run in several for n, array in run.items() if not (k and n == "X")}


def layers_of(nodes: Sequence[PortableNode]) -> list[Layers]:
    """The nodes that stand one behind the other, with nothing in between but what moves numbers."""
    before: dict[int, tuple[int, tuple[Move, ...]]] = {}
    for number, node in enumerate(nodes):
        earlier = _layer_before(node, nodes)
        if earlier is not None:
            before[number] = earlier
    behind = {first: number for number, (first, _) in before.items()}
    layers = []
    for number in range(len(nodes)):
        if number in before or number not in behind:
            continue
        chain = [number]
        while chain[-1] in behind and len(chain) < _MOST_LAYERS:
            chain.append(behind[chain[-1]])
        moves = [before[k][1] for k in chain[1:]]
        layers.append(Layers(tuple(nodes[k] for k in chain), _joined([nodes[k] for k in chain], moves)))
    return layers


def _layer_before(node: PortableNode, nodes: Sequence[PortableNode]) -> tuple[int, tuple[Move, ...]] | None:
    """The node whose Y comes to be another one's X, and how."""
    scope, name, moves = node.located.scope, node.flowing.get("X", ""), list[Move]()
    while (producer := _producer(scope, name)) is not None:
        for number, other in enumerate(nodes):
            own = other.located.scope is scope and other.located.node is producer
            if own and other.operator.domain == node.operator.domain == "" and name == producer.output[0]:
                return number, tuple(reversed(moves))
        if producer.op_type not in MOVES or domain_of(producer.domain):
            return None
        try:
            moves.append(Move(producer.op_type, axes_of(producer, _Constants(scope))))
        except NotOneNode:
            return None
        name = producer.input[0]
    return None


def _called(number: int, formal: str) -> str:
    """The name of a layer's tensor in the graph of all."""
    return f"layer{number + 1}_{formal}"


def _joined(nodes: Sequence[PortableNode], moves: Sequence[tuple[Move, ...]]) -> bytes:
    model = onnx.load_model_from_string(nodes[0].model)
    graph = onnx.GraphProto(name="layers")
    opset = model.opset_import[0].version
    for number, node in enumerate(nodes):
        other = onnx.load_model_from_string(node.model).graph
        formal = {*other.node[0].input, *other.node[0].output} - {""}
        called = {name: _called(number, name) for name in formal}
        given: set[str] = set()
        if number:
            X, Y = _called(number, "X"), _called(number - 1, "Y")
            if moves[number - 1]:
                graph.node.extend(moving(graph, moves[number - 1], Y, X, opset))
            else:
                called["X"] = Y
            given = {called["X"]}
        add_graph(graph, other, called, given)
        graph.node[-1].name = node.path
    model.graph.CopyFrom(graph)
    return bytes(model.SerializeToString(deterministic=True))

"""The surroundings of a node in a model: its DequantizeLinear and QuantizeLinear, the nodes behind and beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import onnx
from numpy.typing import NDArray
from onnx import NodeProto

from ...cases.axes.tensors.weights import CONSTANTS
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

Array = NDArray[Any]

_MOST = 16
"""Nodes that are run together."""
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
class Together:
    """Nodes of a model that have something in common: one gets the Y of another as its X, or both get the same X, or
    have the same weights.

    model
        Serialized; every Y that another node gets is an output of it.
    called
        For each node, by formal name, what its inputs are called in the graph, but for an X that is another's Y.
    """

    nodes: tuple[PortableNode, ...]
    model: bytes
    called: tuple[Mapping[str, str], ...]

    def fed(self, runs: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        """The inputs of the graph in one run, from those of each node. What several get is that of the first."""
        fed: dict[str, Array] = {}
        for called, run in zip(self.called, runs, strict=True):
            for formal, array in run.items():
                if formal in called:
                    fed.setdefault(called[formal], array)
        return fed


def nodes_together(nodes: Sequence[PortableNode]) -> list[Together]:
    """The nodes that have something in common, with nothing in between but what moves numbers."""
    own = [node for node in nodes if not node.operator.domain]
    before: dict[int, _Before] = {}
    for number, node in enumerate(own):
        earlier = _node_before(node, own)
        if earlier is not None:
            before[number] = earlier
    return [_together(own, group[:_MOST], before) for group in _groups(own, before) if len(group) > 1]


def _groups(nodes: Sequence[PortableNode], before: Mapping[int, _Before]) -> list[list[int]]:
    """The numbers of nodes that have something in common, directly or by way of others, in the order of the model."""
    of = list(range(len(nodes)))
    holders: dict[_Tensor, int] = {}
    for number, node in enumerate(nodes):
        kept = {t for t in _tensors(node).values() if t.formal == "X" or t.formal in CONSTANTS}
        linked = {holders.setdefault(tensor, number) for tensor in kept}
        linked |= {before[number][0]} if number in before else set()
        joined = {of[other] for other in linked} | {number}
        of = [min(joined) if group in joined else group for group in of]
    return [[k for k, group in enumerate(of) if group == first] for first in sorted(set(of))]


class _Tensor(NamedTuple):
    """A tensor of a model, as an input that somebody has for it."""

    scope: int
    name: str
    formal: str


def _tensors(node: PortableNode) -> dict[str, _Tensor]:
    """Inputs of a node that are there, by formal name."""
    given = zip(node.operator.inputs, node.located.node.input, strict=False)
    return {formal: _Tensor(id(node.located.scope), name, formal) for formal, name in given if name}


def _together(nodes: Sequence[PortableNode], group: Sequence[int], before: Mapping[int, _Before]) -> Together:
    model = onnx.load_model_from_string(nodes[group[0]].model)
    graph = onnx.GraphProto(name="nodes")
    names: dict[_Tensor, str] = {}
    called: list[Mapping[str, str]] = []
    for number in group:
        node, own = nodes[number], partial(_called, group.index(number))
        other = onnx.load_model_from_string(node.model).graph
        formal = {*other.node[0].input, *other.node[0].output} - {""}
        renamed = {name: own(name) for name in formal}
        given: set[str] = set()
        tensors = _tensors(node)
        if number in before:
            first, moves = before[number]
            Y = _called(group.index(first), "Y")
            if moves:
                graph.node.extend(moving(graph, moves, Y, renamed["X"], model.opset_import[0].version))
            else:
                renamed["X"] = Y
            given.add(renamed["X"])
            del tensors["X"]
        for name, tensor in tensors.items():
            if tensor in names:
                renamed[name] = names[tensor]
                given.add(renamed[name])
            else:
                names[tensor] = renamed[name]
        called.append({name: renamed[name] for name in tensors})
        add_graph(graph, other, renamed, given)
        graph.node[-1].name = node.path
    model.graph.CopyFrom(graph)
    everything = bytes(model.SerializeToString(deterministic=True))
    return Together(tuple(nodes[number] for number in group), everything, tuple(called))


_Before = tuple[int, tuple[Move, ...]]
"""The number of the node whose Y comes to be another one's X, and what it goes through."""


def _node_before(node: PortableNode, nodes: Sequence[PortableNode]) -> _Before | None:
    """The node whose Y comes to be another one's X, and how."""
    scope, name, moves = node.located.scope, node.flowing.get("X", ""), list[Move]()
    while (producer := _producer(scope, name)) is not None:
        for number, other in enumerate(nodes):
            own = other.located.scope is scope and other.located.node is producer
            if own and name == producer.output[0]:
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
    """The name of a node's tensor in the graph of all."""
    return f"layer{number + 1}_{formal}"

"""Nodes of a model in their context: connected nodes that run together, and a node with its quantization."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import onnx

from ...cases.axes.tensors import CONSTANTS
from ...cases.directories.graph_reading import axes_of, codec_of
from ...cases.directories.reading import NotOneNode
from ...cases.specs.case import MOVES, Move
from ...cases.specs.graphs import add_graph, moving
from ...cases.specs.quantizing import quantized_model
from ...reference import IllegalNode
from ...reference.numbers.affine import Affine, Codec
from ..checking.quantization import codecs_before, codecs_behind
from ..models.folding import constants_of
from ..models.scope import domain_of
from .portable import Array, PortableNode

_MOST = 16
"""Limit of the nodes that are run together."""


@dataclass(frozen=True)
class Extract:
    """Nodes as a model of their own: one node alone or with its quantization, or several connected ones.

    model
        Serialized.
    feed
        Function from the inputs of each node in one run, by formal name, to the inputs of the model.
    """

    nodes: tuple[PortableNode, ...]
    model: bytes
    feed: Callable[[Sequence[Mapping[str, Array]]], Mapping[str, Array]]
    quantized: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(node.path for node in self.nodes)

    @property
    def operator(self) -> str:
        """Its operators in words."""
        names = " + ".join(node.subject.operator.name for node in self.nodes)
        return f"{names} with what quantizes around it" if self.quantized else names


def connected_nodes(nodes: Sequence[PortableNode]) -> list[Extract]:
    """Return the groups of connected nodes, with only operators in between that move numbers.

    One gets the Y of another as its X, or both get the same X, or have the same weights.
    """
    onnx_nodes = [node for node in nodes if not node.subject.operator.domain]
    earlier = {number: _node_before(node, onnx_nodes) for number, node in enumerate(onnx_nodes)}
    before = {number: found for number, found in earlier.items() if found is not None}
    return [_connected(onnx_nodes, group[:_MOST], before) for group in _groups(onnx_nodes, before) if len(group) > 1]


def _groups(nodes: Sequence[PortableNode], before: Mapping[int, _Before]) -> list[list[int]]:
    """Return the numbers of nodes that are connected, directly or through others, in the order of the model."""
    of = list(range(len(nodes)))
    holders: dict[_Tensor, int] = {}
    for number, node in enumerate(nodes):
        shared = {tensor for formal, tensor in _tensors(node).items() if formal == "X" or formal in CONSTANTS}
        linked = {holders.setdefault(tensor, number) for tensor in shared}
        linked |= {before[number][0]} if number in before else set()
        joined = {of[member] for member in linked} | {number}
        of = [min(joined) if group in joined else group for group in of]
    return [[k for k, group in enumerate(of) if group == first] for first in sorted(set(of))]


_Tensor = tuple[int, str, str]
"""A tensor of a model as the input of a node: its scope, its name there, and its formal name."""


def _tensors(node: PortableNode) -> dict[str, _Tensor]:
    """Return the inputs of a node by formal name."""
    inputs = zip(node.subject.operator.inputs, node.subject.located.node.input, strict=False)
    return {formal: (id(node.subject.located.scope), name, formal) for formal, name in inputs if name}


def _connected(nodes: Sequence[PortableNode], group: Sequence[int], before: Mapping[int, _Before]) -> Extract:
    model = onnx.load_model_from_string(nodes[group[0]].model)
    graph = onnx.GraphProto(name="nodes")
    names: dict[_Tensor, str] = {}
    called: list[Mapping[str, str]] = []
    for number in group:
        node, name_of = nodes[number], partial(_called, group.index(number))
        member_graph = onnx.load_model_from_string(node.model).graph
        formal = {*member_graph.node[0].input, *member_graph.node[0].output} - {""}
        renamed = {name: name_of(name) for name in formal}
        defined: set[str] = set()
        tensors = _tensors(node)
        if number in before:
            first, moves = before[number]
            Y = _called(group.index(first), "Y")
            if moves:
                graph.node.extend(moving(graph, moves, Y, renamed["X"], model.opset_import[0].version))
            else:
                renamed["X"] = Y
            defined.add(renamed["X"])
            del tensors["X"]
        for name, tensor in tensors.items():
            if tensor in names:
                renamed[name] = names[tensor]
                defined.add(renamed[name])
            else:
                names[tensor] = renamed[name]
        called.append({name: renamed[name] for name in tensors})
        add_graph(graph, member_graph, renamed, defined)
        graph.node[-1].name = node.path
    model.graph.CopyFrom(graph)

    def feed(runs: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
        fed: dict[str, Array] = {}
        for name_of, run in zip(called, runs, strict=True):
            for formal, array in run.items():
                if formal in name_of:  # an X that is another node's Y is not
                    fed.setdefault(name_of[formal], array)
        return fed

    return Extract(tuple(nodes[k] for k in group), bytes(model.SerializeToString(deterministic=True)), feed)


_Before = tuple[int, tuple[Move, ...]]
"""The number of the node whose Y becomes another one's X, and the moves in between."""


def _node_before(node: PortableNode, nodes: Sequence[PortableNode]) -> _Before | None:
    """Return the node whose Y becomes the X of a node, and the moves in between; None without one."""
    scope, name, moves = node.subject.located.scope, node.flowing.get("X", ""), list[Move]()
    while name in scope.producers:
        producer = scope.nodes[scope.producers[name][0]]
        for number, candidate in enumerate(nodes):
            is_producer = candidate.subject.located.scope is scope and candidate.subject.located.node is producer
            if is_producer and name == producer.output[0]:
                return number, tuple(reversed(moves))
        if producer.op_type not in MOVES or domain_of(producer.domain):
            return None
        try:
            moves.append(Move(producer.op_type, axes_of(producer, constants_of(scope, producer.input[1:]))))
        except NotOneNode:
            return None
        name = producer.input[0]
    return None


def _called(number: int, formal: str) -> str:
    """Return the name of a node's tensor in the graph of the group."""
    return f"layer{number + 1}_{formal}"


_EVERYWHERE = {"", "com.microsoft"}
"""Domains of quantizing operators that runtimes have without an extra library."""


def quantized_node(portable: PortableNode) -> Extract | None:
    """Return a node with the quantization around it, as far as that is per tensor and known; None without any."""
    subject = portable.subject
    scope = subject.scope
    beside = [codec for codec in codecs_before(subject) if not codec.quantizes]
    for codec_behind in codecs_behind(subject):
        output = codec_behind.node.input[0]
        if len(scope.consumers[output]) == 1 and output not in scope.outputs:  # nothing else reads the float output
            beside.append(codec_behind)
    codecs: dict[str, Codec] = {}
    domains: set[str] = set()
    for found in beside:
        try:
            codec = codec_of(found.node, constants_of(found.scope, found.node.input[1:]))
        except (NotOneNode, IllegalNode):
            continue
        if not found.quantizes or isinstance(codec, Affine):
            codecs[found.formal] = codec
            domains.add(domain_of(found.node.domain))
    if not codecs:
        return None
    node = replace(portable.read.node, codecs=codecs)

    def levels(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {
            name: codecs[name].levels(array).astype(codecs[name].dtype) if name in codecs else array
            for name, array in arrays.items()
        }

    # A domain that only some runtimes have, in a library of their own, takes precedence over common ones.
    domain = max(domains - _EVERYWHERE, default="")
    model = quantized_model(portable.model, node, levels(portable.constants), domain=domain)
    return Extract((portable,), model, lambda runs: levels(runs[0]), quantized=True)

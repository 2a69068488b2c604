"""Third-party models with several recurrent nodes, or with DequantizeLinear and QuantizeLinear around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from msgspec import Struct
from numpy.typing import NDArray
from onnx import NodeProto, helper

from ...reference import IllegalNode, Node
from ...reference.documents.tensors import DEQUANTIZE, QUANTIZE, quantizes
from ...reference.numbers.affine import Affine, Channels, Codec
from ...reference.operators.asking import returned_in_order
from ..specs.case import MOVES, Bound, Feed, Move, Source, Subject, Trial
from .reading import NotOneNode, attributes_of, by_position, operator_meant, read_graph

Array = NDArray[Any]

_OWN = ("", "ai.onnx")
_BY_INPUT = {"Reshape": "shape", "Squeeze": "axes", "Unsqueeze": "axes", "Transpose": "perm"}
"""Name of each move's argument, which is an attribute or, in newer opsets, the second input."""


class OneNode(Struct, frozen=True):
    """Model of one recurrent node and constants.

    node
        Operator version, attributes, and the outputs of the graph, in the graph's order.
    inputs
        Formal input name to name of the graph input that feeds it, in the order of the node's inputs.
    constants
        Formal input name to array, for initializers and Constant nodes. An initializer that is also a graph input is
        its default, and is in both.
    outputs
        Formal output name to name of the graph output, in the order of the graph's outputs.
    """

    node: Node
    inputs: Mapping[str, str]
    constants: Mapping[str, Array]
    outputs: Mapping[str, str]

    def bind(self, fed: Mapping[str, Array]) -> dict[str, Array]:
        """Return all inputs of the node by formal name, from the graph's inputs by name.

        Raise KeyError, with their names, for graph inputs that are neither fed nor constants.
        """
        _require_fed([name for formal, name in self.inputs.items() if formal not in self.constants], fed)
        return {**self.constants, **{formal: fed[n] for formal, n in self.inputs.items() if n in fed}}


class NodeGraph(Struct, frozen=True):
    """Model of recurrent nodes and the nodes between them.

    subject
        The recurrent nodes; each input comes from a graph input, a constant or another node.
    constants
        Arrays by name.
    inputs
        Names of the graph's inputs that nodes take.
    """

    subject: Subject
    constants: Mapping[str, Array]
    inputs: tuple[str, ...]

    def bind(self, fed: Mapping[str, Array]) -> dict[str, Array]:
        """Return all given tensors by name. Raise KeyError, with their names, for graph inputs neither fed nor
        constant."""
        _require_fed([name for name in self.inputs if name not in self.constants], fed)
        return {**self.constants, **fed}

    @property
    def lone(self) -> OneNode | None:
        """The model's recurrent node, if the model consists of one such node and constants; else None."""
        bound, *others = self.subject.nodes
        sources, named = bound.inputs or {}, bound.outputs or {}
        if others or bound.node.codecs or any(source.moves for source in sources.values()):
            return None
        formal = {name: formal for formal, name in named.items()}
        outputs = {formal[name]: name for name in self.subject.shown}
        return OneNode(
            replace(bound.node, outputs=tuple(outputs)),
            {formal: source.tensor for formal, source in sources.items() if source.tensor in self.inputs},
            {f: self.constants[source.tensor] for f, source in sources.items() if source.tensor in self.constants},
            outputs,
        )


def _require_fed(names: Sequence[str], fed: Mapping[str, Array]) -> None:
    if missing := [name for name in names if name not in fed]:
        raise KeyError(f"no array for {', '.join(missing)}")


def read_model(model: onnx.ModelProto | bytes) -> OneNode:
    """Read the one recurrent node of a model.

    Raise NotOneNode if the model holds anything else but constants, and the exceptions of :func:`read_node_graph`.
    """
    graph = read_node_graph(model)
    node = graph.lone
    if node is None:
        names = ", ".join(bound.node.op_type for bound in graph.subject.nodes[:5])
        raise NotOneNode(f"the graph holds more than one node and constants: {names}")
    return node


def read_node_graph(model: onnx.ModelProto | bytes) -> NodeGraph:
    """Read the recurrent nodes of a model.

    Between them there may be nodes that only move numbers. QuantizeLinear and DequantizeLinear may be directly after
    and before them.

    model
        Model with its external data loaded, if it has any.

    Raise NotOneNode if the model holds other nodes, IllegalNode if a node has attributes or outputs that its operator
    version does not define. Types and shapes are not checked: :func:`...reference.configure` does that.
    """
    proto, constants, nodes = read_graph(model)
    auxiliary = [node for node in nodes if _is_beside(node)]
    recurrent = [node for node in nodes if not _is_beside(node)]
    if not recurrent:
        raise NotOneNode("the graph holds no recurrent node")
    reader = _Reader(proto, constants, {name: node for node in nodes for name in node.output if name}, auxiliary)
    bound = tuple(reader.bound(node, number) for number, node in enumerate(recurrent))
    shown = tuple(value.name for value in proto.graph.output)
    made = {name for node_ in bound for name in (node_.outputs or {}).values()}
    for name in shown:
        if name not in made:
            raise NotOneNode(f"the graph's output {name!r} is no output of its recurrent nodes")
    if len(set(shown)) < len(shown):
        raise NotOneNode("the graph shows an output twice")
    if unused := [node.op_type for node in auxiliary if node.output[0] not in reader.used]:
        raise NotOneNode(f"{unused[0]} stands where nothing is known of it")
    taken = {source.tensor for node_ in bound for source in (node_.inputs or {}).values()}
    inputs = tuple(value.name for value in proto.graph.input if value.name in taken)
    return NodeGraph(Subject(bound, shown), constants, inputs)


def _is_beside(node: NodeProto) -> bool:
    return bool(_role(node)) or (node.domain in _OWN and node.op_type in _MOVES)


def _role(node: NodeProto) -> str:
    return quantizes(node.domain, node.op_type)


class _Reader:
    """Reader that follows names back to their sources."""

    def __init__(
        self,
        model: onnx.ModelProto,
        constants: Mapping[str, Array],
        producers: Mapping[str, NodeProto],
        beside: Sequence[NodeProto],
    ) -> None:
        self.model, self.constants, self.producers = model, constants, producers
        self.fed = {value.name for value in model.graph.input}
        shown = [value.name for value in model.graph.output]
        taken = [name for node in model.graph.node for name in node.input] + shown
        quantizing = [node for node in beside if _role(node) == QUANTIZE]
        self.quantizing = {node.input[0]: node for node in quantizing if taken.count(node.input[0]) == 1}
        self.used: set[str] = set()
        self.names: set[str] = set()

    def bound(self, proto: NodeProto, number: int) -> Bound:
        """Return a recurrent node with the sources of its inputs and the names of its outputs."""
        operator = operator_meant(self.model, proto)
        codecs: dict[str, Codec] = {}
        inputs: dict[str, Source] = {}
        for formal, name in by_position(proto.input, operator.inputs, f"{operator.name}: inputs").items():
            inputs[formal], codec = self.source(name)
            if codec is not None:
                codecs[formal] = codec
        outputs: dict[str, str] = {}
        for formal, name in by_position(proto.output, operator.outputs, f"{operator.name}: outputs").items():
            outputs[formal] = name
            if name in self.quantizing:
                quantize = self.quantizing[name]
                codecs[formal], outputs[formal] = codec_of(quantize, self.constants), quantize.output[0]
                if not isinstance(codecs[formal], Affine):
                    raise NotOneNode(f"{formal} is quantized by channels")
                self.used.add(quantize.output[0])
        node = Node(
            operator.op_type,
            operator.since_version,
            attributes_of(proto, operator),
            tuple(outputs),
            operator.domain,
            codecs,
        )
        name = proto.name or f"{proto.op_type.lower()}_{number + 1}"
        name = next(n for n in (name, *(f"{name}~{k}" for k in range(2, number + 3))) if n not in self.names)
        self.names.add(name)
        return Bound(name, node, inputs, outputs)

    def source(self, name: str) -> tuple[Source, Codec | None]:
        """Return the source of an input, and the codec of its levels."""
        moves: list[Move] = []
        codec: Codec | None = None
        while name in self.producers:
            node = self.producers[name]
            if not _is_beside(node):
                return Source(name, tuple(reversed(moves))), codec
            self.used.add(name)
            if node.op_type in _MOVES:
                moves.append(Move(node.op_type, axes_of(node, self.constants)))
            elif _role(node) == DEQUANTIZE and codec is None:
                codec = codec_of(node, self.constants)
            elif _role(node) == QUANTIZE and codec is not None and codec == codec_of(node, self.constants):
                if node.input[0] in self.quantizing and node.input[0] in self.producers:
                    return Source(name, tuple(reversed(moves))), codec
                raise NotOneNode("numbers are quantized before they come to a node")
            else:
                raise NotOneNode(f"{node.op_type} stands where nothing is known of it")
            name = node.input[0]
        if name not in self.fed and name not in self.constants:
            raise NotOneNode(f"nothing in the graph gives {name!r}")
        return Source(name, tuple(reversed(moves))), codec


def axes_of(node: NodeProto, constants: Mapping[str, Array]) -> tuple[int, ...] | None:
    """Return the argument of a move. Raise NotOneNode if it is not constant."""
    if node.op_type == "Gather":
        return (_picked(node, constants),)
    argument = _BY_INPUT.get(node.op_type, "")
    values = next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == argument), None)
    if values is None and len(node.input) > 1 and node.input[1]:
        if node.input[1] not in constants:
            raise NotOneNode(f"{node.op_type} is told by {node.input[1]!r} what to do, which is no constant")
        values = constants[node.input[1]].ravel().tolist()
    if any(a.name == "allowzero" and a.i for a in node.attribute):
        raise NotOneNode("Reshape with allowzero")
    return None if values is None else tuple(int(axis) for axis in values)


def _picked(node: NodeProto, constants: Mapping[str, Array]) -> int:
    """Return the axis along which a Gather picks the last entry. Raise NotOneNode if it picks another entry."""
    index = constants.get(node.input[1])
    if index is None or index.shape or int(index) != -1:
        raise NotOneNode("Gather picks another place than the last")
    return next((int(a.i) for a in node.attribute if a.name == "axis"), 0)


def codec_of(node: NodeProto, constants: Mapping[str, Array]) -> Codec:
    """Return the codec of a QuantizeLinear or DequantizeLinear with 8 or 16 bits, or with 32 bits for a bias.

    Raise NotOneNode for others.
    """
    scale = constants.get(node.input[1])
    no_zero_point = np.zeros(() if scale is None else scale.shape, np.uint8)
    zero = constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else no_zero_point
    if scale is None or zero is None:
        raise NotOneNode(f"the scale or the zero point of {node.op_type} is no constant")
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if scale.shape != zero.shape or scale.ndim > 1 or attributes.get("block_size"):
        raise NotOneNode(f"{node.op_type} is neither per tensor nor per channel")
    if scale.dtype != np.float32 or zero.dtype.name not in _INTEGERS:
        raise NotOneNode(f"{node.op_type} is not between float32 and integers of 8, 16 or 32 bits")
    bits, signed = zero.dtype.itemsize * 8, zero.dtype.kind == "i"
    pairs = zip(scale.ravel().tolist(), zero.ravel().tolist(), strict=True)
    try:
        codecs = tuple(
            Affine(scale_of_channel, int(zero_point), bits, signed) for scale_of_channel, zero_point in pairs
        )
        return codecs[0] if len(codecs) == 1 else Channels(int(attributes.get("axis", 1)), codecs)
    except ValueError as error:
        raise IllegalNode(f"{node.op_type.lower()}.scale", f"{node.op_type}: {error}") from None


_INTEGERS = ("uint8", "int8", "uint16", "int16", "int32")
_MOVES = (*MOVES, "Gather")


def trials_of(key: str, model: bytes, read: NodeGraph, fed: Sequence[Mapping[str, NDArray[Any]]]) -> tuple[Trial, ...]:
    """Return the trial of a model and, if the model does not return the Y of every node, its companion with all
    outputs.

    fed
        For each run, arrays by name of graph input.

    Raise KeyError for a graph input that is neither fed nor a constant.
    """
    feeds, subject, lone_node = tuple(Feed(read.bind(arrays), arrays) for arrays in fed), read.subject, read.lone
    first, companion = subject.nodes[0], f"{key}~companion"
    if len(subject.nodes) == 1:
        formal = {name: output for output, name in (first.outputs or {}).items()}
        node = replace(first.node, outputs=tuple(formal[name] for name in subject.shown))
        own_feeds = tuple(Feed(first.inputs_from(feed.inputs), feed.fed) for feed in feeds)
        trial = Trial(key, model, node, own_feeds)
        if lone_node is None or "Y" in node.outputs:
            return (trial,)
        everything = replace(node, outputs=node.operator.outputs)
        return trial, Trial(companion, _with_all_outputs(model, node), everything, own_feeds)
    trial = Trial(key, model, first.node, feeds, graph=subject)
    shows_all = all((bound.outputs or {}).get("Y", "") in subject.shown for bound in subject.nodes)
    if shows_all or any(bound.node.codecs for bound in subject.nodes):
        return (trial,)
    made = [name for bound in subject.nodes for name in (bound.outputs or {}).values()]
    shown = (*subject.shown, *(name for name in made if name not in subject.shown))
    graph = Subject(subject.nodes, shown)
    return trial, Trial(companion, _showing(model, shown), first.node, feeds, graph=graph)


def _showing(model: bytes, names: Sequence[str]) -> bytes:
    """Return the model with additional node outputs as graph outputs. All have one type."""
    proto = onnx.load_model_from_string(model)
    kind = proto.graph.output[0].type.tensor_type.elem_type
    shown = {value.name for value in proto.graph.output}
    proto.graph.output.extend(helper.make_tensor_value_info(n, kind, None) for n in names if n not in shown)
    # Write known shapes: onnx's full check refuses outputs without a shape.
    inferred = {value.name: value for value in onnx.shape_inference.infer_shapes(proto).graph.output}
    for value in proto.graph.output:
        value.CopyFrom(inferred.get(value.name, value))
    return bytes(proto.SerializeToString(deterministic=True))


def alone(trial: Trial) -> Iterator[Trial]:
    """Yield every node of a trial as a single-node trial, with inputs computed by the specifications of earlier
    nodes."""
    if trial.graph is None:
        yield trial
        return
    tensors = [dict(feed.inputs) for feed in trial.feeds]
    for number, bound in enumerate(trial.graph.nodes, 1):
        inputs = [bound.inputs_from(named) for named in tensors]
        yield replace(trial, node=bound.node, feeds=tuple(Feed(named, {}) for named in inputs), graph=None)
        if number < len(trial.graph.nodes):
            for named, given in zip(tensors, inputs, strict=True):
                outputs = returned_in_order(bound.node, given)
                named.update({bound.called(formal): array for formal, array in outputs.items()})


def _with_all_outputs(model: bytes, asking: Node) -> bytes:
    """Return the model with every output of its node, in the operator's order."""
    proto = onnx.load_model_from_string(model)
    graph = proto.graph
    node = next(n for n in graph.node if n.op_type == asking.op_type)
    shown = {value.name: value for value in graph.output}
    layout = 1 if asking.attributes.get("layout") == 1 else 0
    kind = next(iter(shown.values())).type.tensor_type.elem_type
    taken = {name for n in graph.node for name in (*n.input, *n.output)}
    asked = dict(zip(asking.operator.outputs, node.output, strict=False))
    names, values = [], []
    for formal in asking.operator.outputs:
        name = asked.get(formal, "")
        if not name:
            name = next(n for n in (formal, *(f"{formal}_{k}" for k in range(len(taken) + 1))) if n not in taken)
            taken.add(name)
        names.append(name)
        # Sizes stay open, because symbolic sizes of the model are unknown here.
        form = asking.operator.tensors.get(formal)
        sizes = None if form is None else [None] * len(form.shape(layout))
        values.append(shown.get(name) or helper.make_tensor_value_info(name, kind, sizes))
    del node.output[:], graph.output[:]
    node.output.extend(names)
    graph.output.extend(values)
    return bytes(proto.SerializeToString(deterministic=True))

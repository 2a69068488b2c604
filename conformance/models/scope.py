"""Names and their origins: the main graph, the graphs inside its nodes, the calls of its local functions.

A scope is one of these. Every call of a function has a scope of its own, since its inputs and attributes differ from
call to call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto

from ..workers.worker import one_line
from .content import ModelContent, ModelError
from .tensor_type import UNKNOWN, Type, type_from

MOST_CALLS = 2000
"""Limit of the calls of local functions: functions that call each other twice grow without bound."""

LONGEST_CHAIN = 100
"""Limit of the operators that are followed in a row; exporters put at most ten before weights."""

_LONGEST_NAME = 200


def domain_of(text: str) -> str:
    """Return the canonical name of a domain: ONNX's own has two."""
    return "" if text == "ai.onnx" else text


def shown_name(text: str) -> str:
    """Return a name of a model as printable text of one line, cut to a maximum length."""
    return one_line(text, _LONGEST_NAME)


def graphs_of(attribute: AttributeProto) -> list[GraphProto]:
    """Return the graphs that an attribute holds."""
    return [attribute.g] if attribute.HasField("g") else list(attribute.graphs)


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield nodes, and those of the graphs inside them."""
    left = list(nodes)
    while left:
        node = left.pop()
        yield node
        for attribute in node.attribute:
            for graph in graphs_of(attribute):
                left += graph.node


def names_read(nodes: Iterable[NodeProto]) -> Iterator[str]:
    """Yield the names that nodes read, and those that the graphs inside them read or return."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            for graph in graphs_of(attribute):
                yield from names_read(graph.node)
                yield from (value.name for value in graph.output)


FunctionKey = tuple[str, str, str]
"""The domain, name and overload of a local function."""


def key_called(node: NodeProto) -> FunctionKey:
    """Return the key of the local function that a node calls, if it calls one."""
    return domain_of(node.domain), node.op_type, getattr(node, "overload", "")


def key_of(function: FunctionProto) -> FunctionKey:
    """Return the key of a local function."""
    return domain_of(function.domain), function.name, getattr(function, "overload", "")


@dataclass(frozen=True)
class Located:
    """A node, by its number in its scope.

    attribute
        For the owner of a scope, the attribute with the scope's graph; empty for the call of a function.
    """

    scope: Scope
    number: int
    attribute: str = ""

    @property
    def node(self) -> NodeProto:
        return self.scope.nodes[self.number]

    @property
    def path(self) -> str:
        """Its path: ``/If_1:else_branch/decoder/LSTM_3``."""
        return self.scope.path_of(self.number)


_RECURSION = "", "recursion"
"""Entry among the operators of a function that calls itself: more nodes than any limit."""


class Model:
    """Data that all scopes of a model share.

    infer
        Function that infers the types of all names of a scope.
    """

    def __init__(self, content: ModelContent, infer: Callable[[Scope], dict[str, Type]]) -> None:
        self.content, self.infer = content, infer
        proto = content.proto
        self.functions = {key_of(function): function for function in proto.functions}
        self.opsets = {domain_of(o.domain): o.version for o in proto.opset_import}
        self.calls = 0
        self._operators: dict[FunctionKey, Counter[tuple[str, str]]] = {}

    def operators_in(self, key: FunctionKey) -> Counter[tuple[str, str]]:
        """Return the numbers of nodes in a call, those of the calls inside it included, by domain and operator."""
        if key not in self._operators:
            self._operators[key] = Counter({_RECURSION: 1 << 62})  # until it is known
            total = Counter[tuple[str, str]]()
            for node in all_nodes(self.functions[key].node):
                total[domain_of(node.domain), node.op_type] += 1
                if self.function_of(node) is not None:
                    total += self.operators_in(key_called(node))
            self._operators[key] = total
        return self._operators[key]

    @cached_property
    def expanded(self) -> int:
        """Largest number of nodes of a call, with those of the calls inside it; huge for recursive calls."""
        return max((self.operators_in(key).total() for key in self.functions), default=0)

    def function_of(self, node: NodeProto) -> FunctionProto | None:
        """Return the local function that a node calls; None for an operator."""
        return self.functions.get(key_called(node)) if self.functions else None


class Scope:
    """One graph, or one call of a local function.

    owner
        The node that it belongs to; None for the main graph.
    path
        Its path: empty for the main graph, ``/decoder/If_1:then_branch`` for a graph inside a node.
    kind
        Its description for a person: ``the graph``, ``the body of Loop``.
    parent
        The scope whose names are visible here; None for the main graph and for functions.
    bindings
        For a call, by the function's input, the scope and the name of the argument.
    calling
        Keys of the functions whose calls enclose it.
    declared
        Declared types of this graph's inputs.
    claims
        Types that the file declares for names inside; they may be wrong.
    illegal
        Numbers of nodes that violate their documents: the shapes of their outputs are unknown.
    """

    def __init__(self, model: Model, body: GraphProto | FunctionProto, owner: Located | None = None) -> None:
        self.model, self.owner, self.path, self.kind = model, owner, "", "the graph"
        self.nodes: Sequence[NodeProto] = body.node
        self.opsets: Mapping[str, int] = model.opsets
        self.parent: Scope | None = None
        self.bindings: dict[str, tuple[Scope, str]] = {}
        self.calling: tuple[FunctionKey, ...] = () if owner is None else owner.scope.calling
        self.declared: dict[str, ValueInfoProto] = {}
        self.initializers: dict[str, TensorProto] = {}
        self.sparse: frozenset[str] = frozenset()
        claims = [*getattr(body, "value_info", ())]
        if isinstance(body, GraphProto):
            self.declared = {value.name: value for value in body.input}
            self.initializers = {tensor.name: tensor for tensor in body.initializer}
            self.sparse = frozenset(tensor.values.name for tensor in body.sparse_initializer)
            self.outputs = tuple(value.name for value in body.output)
            claims += body.output
            if owner is not None:
                self.path = f"{owner.path}:{shown_name(owner.attribute)}"
                self.kind = f"the body of {shown_name(owner.node.op_type)}"
                self.parent, self.opsets = owner.scope, owner.scope.opsets
        elif owner is not None:
            self.outputs = tuple(body.output)
            self.path, self.kind = owner.path, f"the function {_name_of(body)}"
            self.calling += (key_of(body),)
            self.nodes = _bound(body, owner.node)
            self.opsets = {domain_of(o.domain): o.version for o in body.opset_import} or model.opsets
            self.bindings = {f: (owner.scope, a) for f, a in zip(body.input, owner.node.input, strict=False) if a}
        self.claims = {value.name: value.type for value in claims}
        self._scopes: dict[tuple[int, str], Scope] = {}
        self.illegal: set[int] = set()

    @cached_property
    def producers(self) -> dict[str, tuple[int, int]]:
        """Number of the node that computes a name here, and of its output, by name."""
        return {name: (k, o) for k, node in enumerate(self.nodes) for o, name in enumerate(node.output) if name}

    @cached_property
    def read(self) -> frozenset[str]:
        """Names that are read by a node, by a graph inside one, or as an output of the graph."""
        return frozenset({*self.consumers, *self.outputs})

    @cached_property
    def consumers(self) -> dict[str, list[int]]:
        """Numbers of the nodes that read a name, themselves or in a graph inside them, by name."""
        consumers: dict[str, list[int]] = {}
        for number, node in enumerate(self.nodes):
            for name in {*node.input}.union(*(inner.read for _, inner in self.inner(number))):
                consumers.setdefault(name, []).append(number)
        return consumers

    @cached_property
    def labels(self) -> list[str]:
        """Unique names of nodes in paths: a node's own, or its operator and number."""
        counts: dict[str, int] = {}
        labels = []
        for number, node in enumerate(self.nodes):
            label = shown_name(node.name).strip("/") or f"{shown_name(node.op_type)}_{number}"
            counts[label] = counts.get(label, 0) + 1
            labels.append(label if counts[label] == 1 else f"{label}~{counts[label]}")
        return labels

    @cached_property
    def types(self) -> dict[str, Type]:
        """Inferred types of all names here."""
        return self.model.infer(self)

    def distrust(self, number: int) -> None:
        """Treat the outputs of an illegal node as unknown.

        Otherwise its error would be reported again for the nodes behind it.
        """
        self.illegal.add(number)
        self.__dict__.pop("types", None)

    def path_of(self, number: int) -> str:
        """Return the path of a node by its number."""
        return f"{self.path}/{self.labels[number]}"

    def defines(self, name: str) -> bool:
        """Return whether a name is defined here, and not in an outer scope."""
        definitions = (self.initializers, self.producers, self.declared, self.bindings, self.sparse)
        return any(name in names for names in definitions)

    def home_of(self, name: str) -> Scope | None:
        """Return the scope that defines a name, from here outwards; None if there is none."""
        scope: Scope | None = self
        while scope is not None and not scope.defines(name):
            scope = scope.parent
        return scope

    def origin_of(self, name: str) -> tuple[Scope, str] | None:
        """Return the scope that defines a name, outwards and through calls of functions, and its name there.

        None if it is not defined.
        """
        home = self.home_of(name)
        while home is not None and name in home.bindings:
            scope, name = home.bindings[name]
            home = scope.home_of(name)
        return None if home is None else (home, name)

    def producer_of(self, name: str) -> tuple[Scope, int] | None:
        """Return the scope and number of the node that computes a name, found by `origin_of`.

        None for inputs and initializers.
        """
        origin = self.origin_of(name)
        if origin is None or origin[1] not in origin[0].producers:
            return None
        return origin[0], origin[0].producers[origin[1]][0]

    def chain_before(self, name: str) -> Iterator[tuple[Scope, NodeProto]]:
        """Yield the node that computes a name, the one that computes its first input, and so on, with their scopes."""
        scope = self
        for _ in range(LONGEST_CHAIN):
            producer = scope.producer_of(name)
            if producer is None:
                return
            scope, node = producer[0], producer[0].nodes[producer[1]]
            yield scope, node
            if not node.input:
                return
            name = node.input[0]

    def type_of(self, name: str) -> Type:
        """Return the known part of the type of a name, seen from here."""
        origin = self.origin_of(name)
        if origin is None:
            return UNKNOWN
        home, name = origin
        inferred = home.types.get(name, UNKNOWN)
        claimed = type_from(home.claims[name], False) if name in home.claims else UNKNOWN
        if inferred.element is None:
            return claimed
        if inferred.shape is None and claimed.shape is not None and claimed.element in (None, inferred.element):
            return Type(inferred.element, claimed.shape, False)
        return inferred

    def inner(self, number: int) -> Iterator[tuple[str, Scope]]:
        """Yield the graphs inside a node, with the attribute that holds each."""
        for attribute in self.nodes[number].attribute:
            graphs = graphs_of(attribute)
            for position, graph in enumerate(graphs):
                name = attribute.name if len(graphs) == 1 else f"{attribute.name}[{position}]"
                if (number, name) not in self._scopes:
                    self._scopes[number, name] = Scope(self.model, graph, Located(self, number, name))
                yield name, self._scopes[number, name]

    def call(self, number: int) -> Scope:
        """Return the scope of the local function that a node calls.

        Raise ModelError if functions call themselves, or there are too many calls.
        """
        if (number, "") not in self._scopes:
            function = self.model.functions[key_called(self.nodes[number])]
            if key_of(function) in self.calling:
                raise ModelError(f"function {_name_of(function)} calls itself, which ONNX forbids")
            self.model.calls += 1
            if self.model.calls > MOST_CALLS:
                raise ModelError(f"its functions call each other more than {MOST_CALLS} times")
            self._scopes[number, ""] = Scope(self.model, function, Located(self, number))
        return self._scopes[number, ""]


def _name_of(function: FunctionProto) -> str:
    return shown_name(f"{function.domain}::{function.name}" if function.domain else function.name)


def _bound(function: FunctionProto, call: NodeProto) -> list[NodeProto]:
    """Return the nodes of a function with the attributes of a call.

    An attribute without a value in the call and without a default is left out.
    """
    values = {a.name: a for a in (*getattr(function, "attribute_proto", ()), *call.attribute)}

    def value_of(attribute: AttributeProto) -> AttributeProto:
        bound = AttributeProto()
        bound.CopyFrom(values[attribute.ref_attr_name] if attribute.ref_attr_name else attribute)
        bound.name = attribute.name
        return bound

    nodes = [NodeProto.FromString(node.SerializeToString()) for node in function.node]
    for node in all_nodes(nodes):
        if any(a.ref_attr_name for a in node.attribute):
            attributes = [value_of(a) for a in node.attribute if not a.ref_attr_name or a.ref_attr_name in values]
            del node.attribute[:]
            node.attribute.extend(attributes)
    return nodes


def nodes_of(scope: Scope, wanted: Callable[[str, str], bool]) -> Iterator[Located]:
    """Yield the nodes of operators for which `wanted(domain, op_type)` holds, in the order of the model.

    Graphs inside nodes and every call of a function are searched.

    Raise ModelError if functions call themselves, or there are too many calls.
    """
    for number, node in enumerate(scope.nodes):
        if scope.model.function_of(node) is None:
            if wanted(domain_of(node.domain), node.op_type):
                yield Located(scope, number)
        elif any(
            operator == _RECURSION or wanted(*operator) for operator in scope.model.operators_in(key_called(node))
        ):
            yield from nodes_of(scope.call(number), wanted)
        for _, inner in scope.inner(number):
            yield from nodes_of(inner, wanted)

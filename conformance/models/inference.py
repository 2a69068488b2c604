"""Types and shapes of names: onnx's shape inference over the known facts, one scope at a time.

onnx does not return the types that it infers inside the graphs of If, Loop and Scan and inside functions. So each such
scope is inferred as a model of its own, whose inputs are the names that it uses from outside.

onnx does not know the operators of other domains. For described ones, the types of outputs are worked out here, and
inference goes on behind them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import onnx
import onnx.shape_inference
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from ...cases.directories.external_data import tensors_of
from ...reference import OperatorVersion, UnknownOperator, document_meant, operator_of
from ...reference.documents.operators import version_in_opset
from ...reference.documents.tensors import Extent, quantizes, sizes_known
from ...reference.operators.described import DescribedOperator
from .content import ModelContent, ModelError, NotConstant
from .folding import constant
from .scope import Model, Scope, all_nodes, domain_of, graphs_of, names_read, shown_name
from .tensor_type import UNKNOWN, Dimension, Type, type_from

_LONGEST_WAY = 1000
"""Limit of the operators that are followed back to find where a shape is lost."""

MOST_EXPANDED = 100_000
"""Limit of the nodes of all calls inside a function.

onnx infers through each call anew, so deeply nested calls would take forever.
"""

_LONGEST_VECTOR = 1 << 20
"""Largest extent of a vector of whole numbers whose elements onnx may follow, as it does for shapes."""

_LARGE = 1 << 14
"""Bytes of a tensor from which on shape inference does not get its numbers, because it copies all that it gets."""

_SMALL = 4096
"""Limit of the bytes of a constant from outside that shape inference gets: shapes and axes, no weights."""


def infer_types(scope: Scope) -> dict[str, Type]:
    """Return the types of all names of a scope, as far as they can be inferred."""
    content = scope.model.content.proto
    model = ModelProto(ir_version=max(content.ir_version, 4))
    graph = model.graph
    graph.name = "scope"
    graph.node.extend(node for number, node in enumerate(scope.nodes) if number not in scope.illegal)
    for node in graph.node:
        _forget_claims(node)
        # onnx does not know other domains' operators; their quantizing operators have the types of ONNX's own.
        if meant := quantizes(node.domain, node.op_type):
            node.domain, node.op_type = "", meant
    lasting = [t for t in scope.initializers.values() if not _is_long(t.data_type, t.dims)]
    graph.initializer.extend(t if len(t.raw_data) < _LARGE else _without_data(t) for t in lasting)
    graph.input.extend(scope.declared.values())
    for name in scope.bindings:
        _hand_in(graph, scope, name)
    if scope.parent is not None:
        used = {name for name in names_read(scope.nodes) if name and not scope.defines(name)}
        for name in sorted(name for name in used if scope.parent.home_of(name) is not None):
            _hand_in(graph, scope, name)
    for value in graph.input:
        tensor_type = value.type.tensor_type
        if _is_long(tensor_type.elem_type, [extent.dim_value for extent in tensor_type.shape.dim]):
            tensor_type.shape.dim[0].ClearField("dim_value")
    for domain, version in scope.opsets.items():
        model.opset_import.add(domain=domain, version=version)
    if scope.model.expanded <= MOST_EXPANDED:
        model.functions.extend(content.functions)
    for tensor in tensors_of(model):
        if len(tensor.raw_data) >= _LARGE:
            tensor.CopyFrom(_without_data(tensor))
    described = set[str]()
    while True:
        graph = model.graph
        # Inference fails for an unknown opset, or for a model with an error elsewhere.
        with contextlib.suppress(Exception):
            graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        types = {value.name: type_from(value.type, True) for value in (*graph.value_info, *graph.input)}
        for tensor in (*graph.initializer, *scope.initializers.values()):
            types[tensor.name] = Type(
                tensor.data_type, tuple(extent if extent >= 0 else None for extent in tensor.dims)
            )
        found = {name: t for name, t in _described_types(scope, types) if name not in described}
        if not found:
            return types
        described |= found.keys()
        for name, found_type in found.items():
            model.graph.value_info.append(
                helper.make_tensor_value_info(name, found_type.element or 0, found_type.shape)
            )


def _described_types(scope: Scope, types: Mapping[str, Type]) -> Iterator[tuple[str, Type]]:
    """Yield the unknown types of outputs of described operators, as far as they follow from inputs and attributes."""
    for number, node in enumerate(scope.nodes):
        domain = domain_of(node.domain)
        if not domain or number in scope.illegal or not types.get(next(iter(node.input), ""), UNKNOWN).element:
            continue
        version = _described_version(node.op_type, domain, scope.opsets.get(domain, 0))
        for name, output_type in _output_types(node, version, types) if version is not None else ():
            if types.get(name, UNKNOWN).element is None:
                yield name, output_type


@cache
def _described_version(op_type: str, domain: str, opset: int) -> OperatorVersion | None:
    """Return the version of a described operator in an opset of its domain; None for other operators."""
    try:
        document = document_meant(op_type, domain)
    except UnknownOperator:
        return None
    is_described = isinstance(operator_of(document.op_type, document.domain), DescribedOperator)
    return version_in_opset(document, opset) if is_described else None


def _output_types(node: NodeProto, version: OperatorVersion, types: Mapping[str, Type]) -> Iterator[tuple[str, Type]]:
    attributes = {
        a.name: helper.get_attribute_value(a) for a in node.attribute if a.type and a.name in version.attributes
    }
    chosen = {**version.defaults, **attributes}.get
    if version.unjudged(chosen):
        return
    layout = 1 if chosen(version.rules.layout) == 1 else 0
    inputs = {formal: types.get(name, UNKNOWN) for formal, name in zip(version.inputs, node.input, strict=False)}
    inputs = {formal: input_type for formal, input_type in inputs.items() if input_type.element}
    extents: list[tuple[Extent, Dimension]] = []
    for formal, input_type in inputs.items():
        shape = input_type.shape or ()
        options = version.tensors[formal].options(len(shape), layout)
        extents += [(extent[0], actual) for extent, actual in zip(options, shape, strict=False) if len(extent) == 1]
    names = {extent.size: actual for extent, actual in reversed(extents) if extent.plain}
    stated = {size: value for size, name in version.rules.sizes.items() if isinstance(value := chosen(name), int)}
    sizes = sizes_known(extents, stated)
    for formal, name in zip(version.outputs, node.output, strict=False):
        # A type parameter without inputs has the type of the first one.
        same = [t for n, t in inputs.items() if version.kind_of(n) == version.kind_of(formal)] or [*inputs.values()]
        values = ((extent, extent.known(sizes)) for extent in version.tensors[formal].shape(layout))
        output_shape = tuple(names.get(e.size) if value is None and e.plain else value for e, value in values)
        if name:
            yield name, Type(same[0].element, output_shape)


def _without_data(tensor: TensorProto) -> TensorProto:
    light = TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
    light.data_location = TensorProto.EXTERNAL
    light.external_data.add(key="location", value="elsewhere")
    return light


def _is_long(element: int, shape: Sequence[int]) -> bool:
    """Return whether a tensor is a vector of whole numbers that is too long to follow."""
    return element in (TensorProto.INT64, TensorProto.INT32) and len(shape) == 1 and shape[0] > _LONGEST_VECTOR


def undetermined(scope: Scope, name: str) -> str:
    """Return why the shape of a name is unknown: the first operator or input on the way back that loses it."""
    for _ in range(_LONGEST_WAY):
        origin = scope.origin_of(name)
        if origin is None:
            return f"nothing gives {shown_name(name)}"
        home, name = origin
        if name not in home.producers:
            return f"{home.kind} declares none for its input {shown_name(name)}"
        number, _ = home.producers[name]
        node = home.nodes[number]
        if number in home.illegal:
            return f"{shown_name(node.op_type)} {home.path_of(number)}, which gives it, is illegal"
        before = next((n for n in node.input if n and home.type_of(n).shape is None), None)
        if before is None:
            return f"{shown_name(node.op_type)} {home.path_of(number)} decides it when the model runs"
        scope, name = home, before
    return "it comes a long way"


def _hand_in(graph: GraphProto, scope: Scope, name: str) -> None:
    """Add a name from outside to a graph, as a constant if it is a small one, otherwise as an input.

    Shapes depend on small constants.
    """
    inferred = scope.type_of(name)
    if inferred.element in (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT, None):
        try:
            array = constant(scope, name, _SMALL)
            graph.initializer.append(onnx.numpy_helper.from_array(array, name))
            return
        except (NotConstant, TypeError, ValueError, NotImplementedError):
            pass
    if inferred.element is not None and inferred.certain:
        graph.input.append(helper.make_tensor_value_info(name, inferred.element, inferred.shape))
    else:
        graph.input.add(name=name)


def _forget_claims(node: NodeProto) -> None:
    """Remove the types that the file declares for names inside the graphs of a node."""
    for attribute in node.attribute:
        for graph in graphs_of(attribute):
            del graph.value_info[:]
            for value in graph.output:
                value.type.tensor_type.ClearField("shape")
            for inner in graph.node:
                _forget_claims(inner)


def main_scope(content: ModelContent) -> Scope:
    """Return the scope of a model's main graph. Raise ModelError for a name that is no text."""
    if any(isinstance(name, bytes) for name in _names(content.proto)):  # protobuf's form of a name that is not UTF-8
        raise ModelError("is damaged: a name in it is not UTF-8")
    return Scope(Model(content, infer_types), content.proto.graph)


def _names(proto: ModelProto) -> Iterator[str]:
    """Yield the names in a model."""
    yield from (value.name for value in proto.graph.input)
    yield from (tensor.name for tensor in proto.graph.initializer)
    yield from (opset.domain for opset in proto.opset_import)
    for function in proto.functions:
        yield from (opset.domain for opset in function.opset_import)
        yield from (function.domain, function.name, *function.input, *function.output)
    for node in all_nodes([*proto.graph.node, *(node for function in proto.functions for node in function.node)]):
        yield from (node.op_type, node.domain, node.name, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)

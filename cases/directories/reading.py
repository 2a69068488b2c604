"""Readers for parts of third-party models: constants, operator versions, attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, TensorProto, helper

from ...reference import (
    IllegalNode,
    OperatorVersion,
    UnknownOperator,
    document_meant,
    document_of,
    versions_of,
)
from ...reference.documents.operators import version_in_opset
from ..specs.model import array_of


class NotOneNode(ValueError):
    """The model holds more than recurrent nodes that can be judged; the message describes it in one line."""


def read_graph(model: onnx.ModelProto | bytes) -> tuple[onnx.ModelProto, dict[str, NDArray[Any]], list[NodeProto]]:
    """Return a model, its constants by name, and its other nodes. Raise NotOneNode for bytes that are no model."""
    if isinstance(model, bytes):
        try:
            model = onnx.load_model_from_string(model)
        except Exception as error:  # protobuf's own exceptions; protobuf is an implementation detail of onnx
            raise NotOneNode(f"these bytes are no ONNX model: {error}") from None
    constants = dict(_initializers(model.graph))
    nodes = []
    for proto in model.graph.node:
        if proto.op_type == "Constant" and proto.domain in ("", "ai.onnx"):
            constants[proto.output[0]] = _constant(proto)
        else:
            nodes.append(proto)
    return model, constants, nodes


def operator_meant(model: onnx.ModelProto, proto: NodeProto) -> OperatorVersion:
    """Return the operator version of a node, under any of its names, in the opset that its model imports."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    try:
        document = document_meant(proto.op_type, domain)
    except UnknownOperator as error:
        raise NotOneNode(str(error)) from None
    opsets = [o.version for o in model.opset_import if ("" if o.domain == "ai.onnx" else o.domain) == domain]
    if not opsets:
        raise NotOneNode(f"the model imports no opset of domain {domain!r}")
    version = version_in_opset(document, opsets[0])
    if version is None:
        versions = ", ".join(map(str, versions_of(document.name)))
        raise NotOneNode(f"opset {opsets[0]} has no {proto.op_type}: its versions are {versions}")
    return version


def by_position(names: Any, formal: tuple[str, ...], what: str) -> dict[str, str]:
    """Return actual names by formal name, matched by position; an empty name skips its position."""
    if len(names) > len(formal):
        raise NotOneNode(f"{what} are {len(formal)} at most, not {len(names)}")
    return {f: name for f, name in zip(formal, names, strict=False) if name}


def attributes_of(proto: NodeProto, operator: OperatorVersion) -> dict[str, Any]:
    """Return the attributes of a node by name. Raise IllegalNode for a type other than in the document."""
    return {a.name: _attribute(a, operator) for a in proto.attribute}


def _attribute(attribute: AttributeProto, operator: OperatorVersion) -> Any:
    if attribute.ref_attr_name:
        raise NotOneNode(f"attribute {attribute.name} refers to a function's attribute")
    kind = AttributeProto.AttributeType.Name(attribute.type)
    expected = operator.attributes.get(attribute.name, kind)
    if kind != expected:
        clause = f"{document_of(operator.op_type, operator.domain).prefix}.attributes"
        raise IllegalNode(clause, f"{operator.name}: attribute {attribute.name} is {expected}, not {kind}")
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if kind == "STRINGS":
        return [item.decode("utf-8", "replace") for item in value]
    return list(value) if kind in ("INTS", "FLOATS") else value


def _initializers(graph: onnx.GraphProto) -> Any:
    if graph.sparse_initializer:
        raise NotOneNode("the graph has sparse initializers")
    for tensor in graph.initializer:
        yield tensor.name, _array(tensor)


def _constant(proto: NodeProto) -> NDArray[Any]:
    """Return the value of a Constant node."""
    if len(proto.attribute) == 1:
        (attribute,) = proto.attribute
        value = helper.get_attribute_value(attribute)
        if attribute.name == "value":
            return _array(value)
        if attribute.name in ("value_float", "value_floats"):
            return np.array(value, np.float32)
        if attribute.name in ("value_int", "value_ints"):
            return np.array(value, np.int64)
    raise NotOneNode(f"the Constant node of {proto.output[0]!r} holds no tensor of numbers")


def _array(tensor: TensorProto) -> NDArray[Any]:
    if tensor.data_location == TensorProto.EXTERNAL:
        raise NotOneNode(f"tensor {tensor.name!r} stands in another file: load the model with its external data")
    try:
        return array_of(tensor)
    except (ValueError, TypeError) as error:
        raise NotOneNode(f"tensor {tensor.name!r} {' '.join(str(error).split())}") from None

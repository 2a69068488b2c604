"""Shape inference for described operators of domains other than ONNX's, which onnx does not know.

Without it the types of all tensors after such a node are unknown: in a model of the Qwen3.5 kind, those of all queries
and keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import onnx.defs
from onnx import TypeProto
from onnx.defs import OpSchema

from ...reference import OperatorVersion, operator_names, operator_of, operator_version
from ...reference.documents.operators import document_of, versions_of
from ...reference.documents.tensors import Extent, sizes_known
from ...reference.operators.described import DescribedOperator

_TYPES = [f"tensor({name})" for name in ("float", "float16", "bfloat16", "double", "int8", "uint8", "int32", "int64")]
"""Types for which rules are implemented: a node with any other is left out."""


@contextmanager
def own_schemas() -> Iterator[None]:
    """Register schemas of these operators with onnx within the context.

    onnx's registry belongs to the whole process, and onnx.reference cannot be imported while two domains have an
    operator of the same name.
    """
    schemas = _schemas()
    for schema in schemas:
        onnx.defs.register_schema(schema)
    try:
        yield
    finally:
        for schema in schemas:
            onnx.defs.deregister_schema(schema.name, schema.since_version, schema.domain)


@cache
def _schemas() -> tuple[OpSchema, ...]:
    if not hasattr(OpSchema, "set_type_and_shape_inference_function"):  # with an older onnx, the types stay unknown
        return ()
    schemas = []
    for version in _versions():
        schema = _schema(version)
        schema.set_type_and_shape_inference_function(partial(_infer, version))
        schemas.append(schema)
    return tuple(schemas)


def _versions() -> Iterator[OperatorVersion]:
    for name in operator_names():
        document = document_of(name)
        operator = operator_of(document.op_type, document.domain)
        for number in versions_of(name) if document.domain and isinstance(operator, DescribedOperator) else ():
            if not onnx.defs.has(document.op_type, number, document.domain):
                yield operator_version(name, number)


def _schema(version: OperatorVersion) -> OpSchema:
    def parameters(names: tuple[str, ...], required: frozenset[str]) -> list[Any]:
        option = OpSchema.FormalParameterOption
        return [
            OpSchema.FormalParameter(
                name, version.kind_of(name), param_option=option.Single if name in required else option.Optional
            )
            for name in names
        ]

    kinds = dict.fromkeys(map(version.kind_of, (*version.inputs, *version.outputs)))
    return OpSchema(
        version.op_type,
        version.domain,
        version.since_version,
        inputs=parameters(version.inputs, version.required),
        outputs=parameters(version.outputs, version.required_outputs),
        type_constraints=[(kind, _TYPES, "") for kind in kinds],
        attributes=[
            OpSchema.Attribute(name, getattr(OpSchema.AttrType, kind), "", required=False)
            for name, kind in version.attributes.items()
        ],
    )


def _infer(version: OperatorVersion, context: Any) -> None:
    """Set the types of a node's outputs, as far as they follow from its inputs and attributes."""

    def chosen(name: str) -> Any:
        attribute = context.get_attribute(name) if name in version.attributes else None
        return version.defaults.get(name) if attribute is None else onnx.helper.get_attribute_value(attribute)

    if version.unjudged(chosen):
        return
    layout = 1 if chosen(version.rules.layout) == 1 else 0
    present = [i for i in range(min(context.get_num_inputs(), len(version.inputs))) if context.has_input(i)]
    types = {version.inputs[i]: context.get_input_type(i).tensor_type for i in present}
    extents: list[tuple[Extent, Any]] = []
    for name, type in types.items():
        options = version.tensors[name].options(len(type.shape.dim), layout)
        extents += [(o[0], dimension) for o, dimension in zip(options, type.shape.dim, strict=False) if len(o) == 1]
    dimensions = {extent.size: dimension for extent, dimension in reversed(extents) if extent.plain}
    stated = {size: value for size, name in version.rules.sizes.items() if isinstance(value := chosen(name), int)}
    sizes = sizes_known(((extent, d.dim_value) for extent, d in extents if d.HasField("dim_value")), stated)
    for number, name in enumerate(version.outputs[: context.get_num_outputs()]):
        kind = version.kind_of(name)
        # A type parameter without inputs has the type of the first one.
        alike = [type for other, type in types.items() if version.kind_of(other) == kind] or [*types.values()]
        made = TypeProto()
        made.tensor_type.elem_type = alike[0].elem_type
        made.tensor_type.shape.SetInParent()
        for extent in version.tensors[name].shape(layout):
            dimension = made.tensor_type.shape.dim.add()
            if (value := extent.known(sizes)) is not None:
                dimension.dim_value = value
            elif extent.plain and extent.size in dimensions:
                dimension.CopyFrom(dimensions[extent.size])
        context.set_output_type(number, made)

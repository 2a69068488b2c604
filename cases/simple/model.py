"""ONNX models of one node: inputs, initializers, and dimensions with numbers or names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from ...reference import FORMATS, Node
from ...reference.documents.tensors import Extent
from ..specs.tensor import element_type, tensor_proto

Array = NDArray[Any]

_BESIDE = 17
"""The opset of ONNX's own operators in models of an operator of another domain."""


def node_model(
    node: Node,
    inputs: Mapping[str, Array],
    constants: Collection[str],
    symbolic: Collection[str],
    types: Mapping[str, np.dtype[Any]],
    sizes: Mapping[str, int],
) -> bytes:
    """Return the serialized model of a node.

    node
        Its attributes and outputs are written unchanged, whatever its version defines.
    inputs
        Arrays by formal name; inputs that the operator does not have come after the last one.
    constants
        Names of inputs that are initializers instead of graph inputs.
    symbolic
        Sizes that shapes have by name.
    types
        Type of each output.
    sizes
        Sizes of outputs.
    """
    operator = node.operator
    layout = int(node.attributes.get(operator.rules.layout) == 1)

    def dimension(extent: Extent, actual: int | None) -> int | str:
        named = bool(extent.names & {*symbolic})
        return str(extent) if named or actual is None else actual

    def value_of(extent: Extent) -> int | None:
        known = extent.names <= sizes.keys()
        return extent.value(sizes) if known else None

    def fed(name: str) -> Any:
        array, form = inputs[name], operator.tensors.get(name)
        shape: list[int | str] = [*array.shape]
        if form is not None and len(options := form.options(array.ndim, layout)) == array.ndim:
            # If several extents are possible, take the first one with the same length.
            chosen = [
                next((e for e in extents if value_of(e) == n), None)
                for extents, n in zip(options, array.shape, strict=True)
            ]
            pairs = zip(chosen, array.shape, strict=True)
            shape = [n if extent is None else dimension(extent, n) for extent, n in pairs]
        return helper.make_tensor_value_info(name, element_type(array.dtype), shape)

    def shown(name: str) -> Any:
        form = operator.tensors.get(name) or operator.tensors[operator.outputs[0]]  # a surplus output is like the first
        dtype = types.get(name, types[operator.outputs[0]])
        shape = [dimension(extent, value_of(extent)) for extent in form.shape(layout)]
        return helper.make_tensor_value_info(name, element_type(dtype), shape)

    given, asked = in_places(operator.inputs, inputs), in_places(operator.outputs, node.outputs)
    made = helper.make_node(node.op_type, given, asked, "node", domain=node.domain or None, **node.attributes)
    graph = helper.make_graph(
        [made],
        "case",
        [fed(name) for name in given if name and name not in constants],
        [shown(name) for name in asked if name],
        [tensor_proto(name, inputs[name]) for name in given if name in constants],
    )
    opset = operator.since_version
    opsets = [helper.make_opsetid("", _BESIDE if node.domain else opset)]
    if node.domain:
        opsets.append(helper.make_opsetid(node.domain, opset))
    ir_version = helper.find_min_ir_version_for(opsets[:1])
    model = helper.make_model(graph, producer_name="onnxspec", opset_imports=opsets, ir_version=max(ir_version, 8))
    return bytes(model.SerializeToString(deterministic=True))


def in_places(formal: Sequence[str], own: Collection[str]) -> list[str]:
    """Return the names of a node's inputs or outputs, empty where an optional one is left out.

    An invalid model may have names that the operator does not define; they come last.
    """
    places = [name if name in own else "" for name in dict.fromkeys((*formal, *own))]
    while places and not places[-1]:
        places.pop()
    return places


def dtype_named(type: str) -> np.dtype[Any]:
    """Return the NumPy type of that name, bfloat16 included."""
    return FORMATS[type].dtype if type in FORMATS else np.dtype(type)

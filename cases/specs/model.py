"""ONNX models of cases: one recurrent node, its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper

from ...reference import Node
from .spec import CaseSpec
from .tensor import element_type, tensor_proto

__all__ = ["CONSTANTS", "build_model"]

CONSTANTS = ("W", "R", "B", "P")


def build_model(spec: CaseSpec, node: Node, inputs: Mapping[str, NDArray[Any]], asked: tuple[str, ...]) -> bytes:
    """The serialized model of a case.

    node
        Its attributes are written down as they are, whatever the operator version defines.
    inputs
        By formal name; constants among them become initializers where the spec says so. Others than the operator has
        take the places behind the last one.
    asked
        The outputs by position; an empty string stands for one that is not asked for.
    """
    operator = node.operator
    given = [name if name in inputs else "" for name in operator.inputs]
    given += [name for name in inputs if name not in operator.inputs]
    while given and not given[-1]:
        given.pop()
    made = helper.make_node(operator.op_type, given, list(asked), name=operator.op_type.lower(), **node.attributes)

    constant = {n for n in CONSTANTS if n in inputs} if spec.weights == "initializer" else set()
    time, batch = ("seq_length", "batch_size") if spec.dimensions == "symbolic" else (spec.T, spec.N)
    D, H = spec.directions, spec.H
    state = (D, batch, H) if spec.layout == 0 else (batch, D, H)
    changing = {
        "X": (time, batch, spec.I) if spec.layout == 0 else (batch, time, spec.I),
        "sequence_lens": (batch,),
        "Y": (time, D, batch, H) if spec.layout == 0 else (batch, time, D, H),
    }

    def info(name: str) -> onnx.ValueInfoProto:
        given_as = inputs.get(name)
        fixed = name in CONSTANTS or spec.dimensions == "static"
        shape = given_as.shape if given_as is not None and fixed else changing.get(name, state)
        return helper.make_tensor_value_info(
            name, element_type((inputs["X"] if given_as is None else given_as).dtype), shape
        )

    graph = helper.make_graph(
        [made],
        "case",
        [info(name) for name in given if name and name not in constant],
        [info(name) for name in asked if name],
        initializer=[tensor_proto(name, inputs[name]) for name in given if name in constant],
    )
    opset = operator.since_version if spec.opset == "first" else operator.last_opset
    # From IR version 4 on initializers need not be graph inputs; older versions serve no opset better. (onnx's table
    # has no opsets 2 to 4, which are as old as 5.)
    ir_version = max(4, helper.find_min_ir_version_for([helper.make_opsetid("", max(opset, 5))]))
    model = helper.make_model(
        graph, producer_name="onnxspec", opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version
    )
    return bytes(model.SerializeToString(deterministic=True))

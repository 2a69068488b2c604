"""ONNX models of cases: one recurrent node, its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from ..reference import FORMATS
from .spec import CaseSpec
from .tensor import tensor_proto

__all__ = ["CONSTANTS", "build_model"]

CONSTANTS = ("W", "R", "B", "P")


def build_model(spec: CaseSpec, inputs: Mapping[str, NDArray[Any]], outputs: tuple[str, ...] | None = None) -> bytes:
    """The serialized model of a case.

    inputs
        As :func:`.data.inputs_of` gives them; constants among them become initializers where the spec says so.
    outputs
        By position, in place of the spec's own.
    """
    operator = spec.node.operator
    asked = spec.outputs if outputs is None else outputs
    kind = FORMATS[spec.type].onnx_type
    given = [name if name in inputs else "" for name in operator.inputs]
    while given and not given[-1]:
        given.pop()
    node = helper.make_node(operator.op_type, given, list(asked), name=operator.op_type.lower(), **spec.node.attributes)

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
        shape = inputs[name].shape if name in CONSTANTS else changing.get(name, state)
        return helper.make_tensor_value_info(name, TensorProto.INT32 if name == "sequence_lens" else kind, shape)

    graph = helper.make_graph(
        [node],
        "case",
        [info(name) for name in given if name and name not in constant],
        [info(name) for name in asked if name],
        initializer=[tensor_proto(name, inputs[name]) for name in given if name in constant],
    )
    opset = operator.since_version if spec.opset == "first" else operator.last_opset
    # From IR version 4 on initializers need not be graph inputs; older versions serve no opset better.
    ir_version = max(4, helper.find_min_ir_version_for([helper.make_opsetid("", opset)]))
    model = helper.make_model(
        graph, producer_name="onnxspec", opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version
    )
    return bytes(model.SerializeToString(deterministic=True))

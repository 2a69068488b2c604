"""ONNX models of cases: one recurrent node, its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from ...reference import Node
from ...reference.documents import HIDDEN_SIZE
from ..axes.tensors.constants import OVERRIDDEN
from ..axes.tensors.weights import held
from .data import inputs_of
from .spec import RecurrentSpec
from .tensor import element_type, tensor_proto

__all__ = ["build_model", "held"]

_BESIDE = 17
"""The opset of ONNX's own operators beside one of another domain."""


def build_model(spec: RecurrentSpec, node: Node, inputs: Mapping[str, NDArray[Any]], asked: tuple[str, ...]) -> bytes:
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
    written = list(asked)
    if getattr(spec, "placeholders", False):
        written += [""] * (len(operator.outputs) - len(written))
    else:
        while given and not given[-1]:
            given.pop()
    domain, op_type = spec.called
    made = helper.make_node(op_type, given, written, op_type.lower(), domain=domain or None, **node.attributes)

    constant = spec.constants & inputs.keys()
    contents = inputs if spec.held not in OVERRIDDEN else {**inputs, **_others(spec)}
    fixed = spec.dimensions == "static"
    sizes: dict[str, Any] = {"seq_length": spec.T, "batch_size": spec.N} if fixed else {}
    sizes |= {"input_size": spec.I, HIDDEN_SIZE: spec.H, "num_directions": spec.directions}

    def info(name: str) -> onnx.ValueInfoProto:
        given_as = inputs.get(name)
        if given_as is not None and (fixed or held(operator, name)):
            return helper.make_tensor_value_info(name, element_type(given_as.dtype), given_as.shape)
        form = operator.tensors.get(name, operator.tensors["Y_h"])  # what the operator does not have is like a state
        # A size that an extent counts several times is one of weights, which is known.
        shape = [sizes.get(e.size, e.size) * e.times for e in form.shape(spec.layout)]
        dtype = (inputs["X"] if given_as is None else given_as).dtype
        return helper.make_tensor_value_info(name, element_type(dtype), shape)

    graph = helper.make_graph(
        [made],
        "case",
        [info(name) for name in given if name and (name not in constant or spec.held != "fixed")],
        [info(name) for name in asked if name],
        initializer=[tensor_proto(name, contents[name]) for name in given if name in constant],
    )
    opset = operator.since_version if spec.opset == "first" else operator.last_opset
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets, opset = [helper.make_opsetid("", _BESIDE), helper.make_opsetid(domain, opset)], _BESIDE
    # From IR version 4 on initializers need not be graph inputs; older versions serve no opset better. (onnx's table
    # has no opsets 2 to 4, which are as old as 5.)
    ir_version = max(4, helper.find_min_ir_version_for([helper.make_opsetid("", max(opset, 5))]))
    model = helper.make_model(graph, producer_name="onnxspec", opset_imports=opsets, ir_version=ir_version)
    return bytes(model.SerializeToString(deterministic=True))


def _others(spec: RecurrentSpec) -> Mapping[str, NDArray[Any]]:
    """Values that a model holds for constants that are overridden: others of the same shapes or zeros; lengths of T."""
    others = inputs_of(replace(spec, seed=spec.seed ^ 1, weights_seed=spec.weights_seed ^ 1))
    others = {name: np.zeros_like(array) for name, array in others.items()} if spec.held == "zeroed" else others
    whole = {name: np.full_like(array, spec.T) for name, array in others.items() if name == "sequence_lens"}
    return {name: array for name, array in {**others, **whole}.items() if name in spec.overridden}

"""ONNX models of cases: one recurrent node, its inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from ...reference import Node
from ...reference.documents.tensors import HIDDEN_SIZE
from ..axes.session import OVERRIDDEN, held
from .data import inputs_of
from .spec import RecurrentSpec
from .tensor import element_type, tensor_proto

_BESIDE = 17
"""The opset of ONNX's own operators in models of an operator of another domain."""


def build_model(spec: RecurrentSpec, node: Node, inputs: Mapping[str, NDArray[Any]], asked: tuple[str, ...]) -> bytes:
    """Return the serialized model of a case.

    node
        Its attributes are written unchanged, whatever the operator version defines.
    inputs
        Arrays by formal name; constants among them become initializers if the spec says so. Inputs that the operator
        does not have come last.
    asked
        The outputs by position; an empty string is an output that is not requested.
    """
    operator = node.operator
    given = [name if name in inputs else "" for name in operator.inputs]
    given += [name for name in inputs if name not in operator.inputs]
    written = asked
    if spec.placeholders:
        written += ("",) * (len(operator.outputs) - len(asked))
    else:
        while given and not given[-1]:
            given.pop()
    constant = spec.constants.intersection(inputs)
    form = _Form(
        node.key,
        node,
        *(spec.called, tuple(given), written, constant, spec.held, spec.static, spec.opset, spec.layout),
        (spec.T, spec.N, spec.I, spec.H, spec.directions),
        tuple((name, inputs[name].dtype, inputs[name].shape) for name in given if name),
    )
    bare = _bare.__wrapped__(form) if node.key is None else _bare(form)
    if not constant:
        return bare
    contents = inputs if spec.held not in OVERRIDDEN else {**inputs, **_others(spec)}
    model = onnx.ModelProto.FromString(bare)
    model.graph.initializer.extend(tensor_proto(name, contents[name]) for name in given if name in constant)
    return bytes(model.SerializeToString(deterministic=True))


@dataclass(frozen=True)
class _Form:
    """All parts of a model except the numbers of its constants.

    key
        Identity of the node.
    sizes
        Steps, rows, columns of X, units, directions.
    inputs
        Name, type and shape of each given input.
    """

    key: object
    node: Node = field(compare=False)
    called: tuple[str, str]
    given: tuple[str, ...]
    asked: tuple[str, ...]
    constant: frozenset[str]
    held: str
    static: bool
    opset: str
    layout: int
    sizes: tuple[int, ...]
    inputs: tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]


@lru_cache(maxsize=2048)  # cases of a profile have a few hundred models, and differ mostly in their numbers
def _bare(form: _Form) -> bytes:
    """Return the serialized model without its constants."""
    node, operator = form.node, form.node.operator
    domain, op_type = form.called
    made = helper.make_node(op_type, form.given, form.asked, op_type.lower(), domain=domain or None, **node.attributes)
    fixed = form.static
    T, N, I, H, D = form.sizes
    sizes: dict[str, Any] = {"seq_length": T, "batch_size": N} if fixed else {}
    sizes |= {"input_size": I, HIDDEN_SIZE: H, "num_directions": D}
    inputs = {name: (dtype, shape) for name, dtype, shape in form.inputs}

    def info(name: str) -> onnx.ValueInfoProto:
        dtype, given_as = inputs.get(name, (inputs["X"][0], None))
        if given_as is not None and (fixed or held(operator, name)):
            return helper.make_tensor_value_info(name, element_type(dtype), given_as)
        tensor = operator.tensors.get(name, operator.tensors["Y_h"])  # a surplus tensor is like a state
        # An extent with a multiple of a size belongs to weights, so it is a number.
        shape = [sizes.get(e.size, e.size) * e.times for e in tensor.shape(form.layout)]
        return helper.make_tensor_value_info(name, element_type(dtype), shape)

    graph = helper.make_graph(
        [made],
        "case",
        [info(name) for name in form.given if name and (name not in form.constant or form.held != "fixed")],
        [info(name) for name in form.asked if name],
    )
    opset = operator.since_version if form.opset == "first" else operator.last_opset
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets, opset = [helper.make_opsetid("", _BESIDE), helper.make_opsetid(domain, opset)], _BESIDE
    # From IR version 4 on, initializers need not be graph inputs; older versions have no advantage for any opset.
    # (onnx's table has no opsets 2 to 4, which are as old as 5.)
    ir_version = max(4, helper.find_min_ir_version_for([helper.make_opsetid("", max(opset, 5))]))
    model = helper.make_model(graph, producer_name="onnxspec", opset_imports=opsets, ir_version=ir_version)
    return bytes(model.SerializeToString(deterministic=True))


def finished(model: onnx.ModelProto, opset: int) -> bytes:
    """Return a serialized model with this opset of ONNX's own operators, and an IR version that supports it."""
    (onnx_entry,) = (entry for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    onnx_entry.version = opset
    model.ir_version = max(model.ir_version, helper.find_min_ir_version_for([helper.make_opsetid("", max(opset, 5))]))
    return bytes(model.SerializeToString(deterministic=True))


def announced(spec: RecurrentSpec) -> bool:
    """Return whether the document of a case has Y; version 1 has it only if ``output_sequence`` is 1."""
    return "output_sequence" not in spec.node.operator.attributes or spec.output_sequence == 1


def _others(spec: RecurrentSpec) -> Mapping[str, NDArray[Any]]:
    """Return the values that a model holds for overridden constants: other values of the same shapes, or zeros.

    Lengths are T.
    """
    others = inputs_of(replace(spec, seed=spec.seed ^ 1, weights_seed=spec.weights_seed ^ 1))
    others = {name: np.zeros_like(array) for name, array in others.items()} if spec.held == "zeroed" else others
    whole = {name: np.full_like(array, spec.T) for name, array in others.items() if name == "sequence_lens"}
    return {name: array for name, array in {**others, **whole}.items() if name in spec.overridden}

"""Wraps: other nodes in front of a case's node, for providers that reject single nodes.

Every wrap is exact: the nodes in front pass the inputs on bit for bit, and no node follows. So the case is judged like
a single node, with the inputs of its node. (:mod:`.graphs` has graphs of several judged nodes.)

===========  =======================================================================================================
``neg``      every tensor goes through Neg twice; numbers stay as they are
``cast``     every tensor is cast to another width and back, float32 and float64 by way of float16, the half types by
             way of float32; its numbers are rounded to float16 first
``qdq``      every tensor goes through QuantizeLinear and DequantizeLinear, with int8 and scales that are powers of
             two; its numbers are rounded to multiples of the scale first. Constants are int8 with a DequantizeLinear
``layers``   a layer of the same operator precedes the node; its weights are zero, so it adds zero to X
===========  =======================================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from msgspec import Struct
from numpy.typing import NDArray
from onnx import TensorProto, helper

from ...reference import FORMATS, OperatorVersion, cell_named
from ...reference.documents.tensors import LENGTHS, Levels
from .case import Case, Feed, Spec, Trial
from .family import features_of
from .graphs import AXES_ARE_INPUTS, GRAPHS, can_join, join
from .model import finished, tensor_proto
from .quantizing import QUANTIZED, can_quantize, quantize
from .spec import RecurrentSpec

Array = NDArray[Any]

EXACT = ("neg", "cast", "qdq", "layers")
"""Names of the wraps around one node."""

WRAPS = (*EXACT, *GRAPHS, *QUANTIZED)
"""Names of everything that can surround a case's node: wraps, graphs with a second judged node, and quantizing nodes
that are judged together with it."""

_INT8 = 127
_HALF = FORMATS["float16"]

# The first opset whose operators accept the type: QuantizeLinear and DequantizeLinear; then Cast (whose `to` is a
# number from 6 on), Neg and Add.
_QUANTIZES = {"float32": 10, "float16": 19, "bfloat16": 19}
_TAKES = {"float32": 6, "float64": 6, "float16": 6, "bfloat16": 13}


def can_wrap(spec: Spec, name: str) -> bool:
    """Return whether a case can have such a wrap: an opset with the operators, and numbers that pass unchanged.

    Raise KeyError for a name that is not in `WRAPS`.
    """
    if name not in WRAPS:
        raise KeyError(name)
    if isinstance(spec, RecurrentSpec) and (spec.script.needs or spec.quantized or spec.graph != "none"):
        return False  # its sessions or surrounding nodes are defined for its own model only
    if name in GRAPHS:
        return can_join(spec, name)
    if name in QUANTIZED:
        return can_quantize(spec, name)
    needed = _first_opset(spec, name)
    if spec.illegal or needed is None:
        return False
    numbers_pass, node = name in ("neg", "cast"), spec.node
    if node.domain:  # the others have an opset in common with the node
        return numbers_pass
    return needed <= node.operator.last_opset and (numbers_pass or not features_of(spec) & {"nonfinite", "size-zero"})


def _first_opset(spec: Spec, name: str) -> int | None:
    return (_QUANTIZES if name == "qdq" else _TAKES).get(spec.type)


def wrap(case: Case, name: str) -> Case:
    """Return the case, and its companion, with the node wrapped. The case must satisfy :func:`can_wrap`."""
    if name in GRAPHS:
        return join(case, name)
    if name in QUANTIZED:
        return quantize(case, name)
    spec, runs = case.spec, case.trial.feeds
    through = _numbers(spec.node.operator)
    passing = {
        formal: _passing(name, formal in through, [feed.inputs[formal] for feed in runs], spec.type)
        for formal in runs[-1].inputs
    }
    feeds = []
    for number, feed in enumerate(runs):
        inputs = {formal: arrays[number] for formal, arrays in passing.items()}
        feeds.append(Feed(inputs, {formal: inputs[formal] for formal in feed.fed}))
    return case.changed(lambda trial: _wrapped(trial, name, spec, tuple(feeds)))


def _numbers(operator: OperatorVersion) -> frozenset[str]:
    """Return the inputs that are plain numbers: neither lengths nor levels, scales and zero points."""
    forms = operator.tensors.values()
    levels = [(form.name, form.codec) for form in forms if isinstance(form.codec, Levels)]
    beside = {name for form, codec in levels for name in (form, codec.scale, codec.zero_point)}
    lengths = {form.name for form in forms if form.kind == LENGTHS}
    return frozenset(operator.inputs) - beside - lengths


def _passing(name: str, through: bool, arrays: Sequence[Array], kind: str) -> list[Array]:
    """Return an input for every run, with numbers that the wrap does not change."""
    if not through or name in ("neg", "layers"):
        return list(arrays)
    if name == "cast":
        return list(arrays) if kind in ("float16", "bfloat16") else [_halved(array) for array in arrays]
    scale = _scale(arrays, kind)
    return [_frozen((np.rint(array.astype(np.float64) / scale) * scale).astype(array.dtype)) for array in arrays]


def _halved(array: Array) -> Array:
    """Return an array rounded to float16; numbers that hardware flushes to zero are moved to the least normal
    number."""
    with np.errstate(over="ignore"):
        half = array.astype(np.float16).astype(array.dtype)
    tiny = (np.abs(half) < _HALF.least_normal) & (array != 0)
    return _frozen(np.where(tiny, np.copysign(array.dtype.type(_HALF.least_normal), array), half))


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _scale(arrays: Sequence[Array], kind: str) -> float:
    """Return the least power of two such that all numbers are within int8 multiples, but at least the type's least
    normal."""
    largest = max((float(np.abs(array.astype(np.float64)).max(initial=0)) for array in arrays), default=0.0)
    return max(float(2.0 ** np.ceil(np.log2(largest / _INT8))), FORMATS[kind].least_normal) if largest else 1.0


class _Before(Struct):
    """Nodes and constants in front of a node."""

    nodes: list[onnx.NodeProto]
    constants: list[TensorProto]

    def node(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, name: str, array: Array) -> str:
        self.constants.append(tensor_proto(name, array))
        return name


def _wrapped(trial: Trial, name: str, spec: Any, feeds: tuple[Feed, ...]) -> Trial:
    """Return a trial with its model rebuilt around the node."""
    model = onnx.load_model_from_string(trial.model)
    graph, node = model.graph, model.graph.node[0]
    opset = max(_first_opset(spec, name) or 0, *(each.version for each in model.opset_import if not each.domain))
    before = _Before([], [])
    through, held = _numbers(spec.node.operator), {constant.name for constant in graph.initializer}
    for position, formal in enumerate(node.input):
        if formal not in through or (name == "layers" and formal != "X"):
            continue
        array = feeds[-1].inputs[formal]
        constant = array if formal in held else None
        if name == "layers":
            node.input[position] = _layer(before, spec, array.dtype, opset)
        elif name == "qdq":
            scale = _scale([feed.inputs[formal] for feed in feeds], spec.type)
            node.input[position] = _quantized(before, formal, constant, scale, array.dtype)
        elif name == "cast":
            node.input[position] = _cast(before, formal, constant, spec.type)
        else:
            negated = before.node("Neg", [formal], f"{formal}_negated")
            node.input[position] = before.node("Neg", [negated], f"{formal}_again")
    taken = {name for item in (*before.nodes, node) for name in item.input}
    constants = [*(item for item in graph.initializer if item.name in taken), *before.constants]
    nodes = [*before.nodes, node]
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(constants)
    graph.node.extend(nodes)
    return replace(trial, model=finished(model, opset), feeds=feeds)


def _cast(before: _Before, formal: str, constant: Array | None, kind: str) -> str:
    """Cast a tensor to another width and back; a constant is stored in that width."""
    width, ending = ("float32", "wide") if kind in ("float16", "bfloat16") else ("float16", "narrow")
    name = f"{formal}_{ending}"
    if constant is not None:
        before.constant(name, constant.astype(width))
    else:
        before.node("Cast", [formal], name, to=FORMATS[width].onnx_type)
    return before.node("Cast", [name], f"{formal}_again", to=FORMATS[kind].onnx_type)


def _quantized(before: _Before, formal: str, constant: Array | None, scale: float, dtype: np.dtype[Any]) -> str:
    """Quantize a tensor to int8 and back; a constant is stored as int8."""
    name = f"{formal}_int8"
    parameters = [
        before.constant(f"{formal}_scale", np.array(scale, dtype)),
        before.constant(f"{formal}_zero_point", np.array(0, np.int8)),
    ]
    if constant is not None:
        before.constant(name, np.rint(constant.astype(np.float64) / scale).astype(np.int8))
    else:
        before.node("QuantizeLinear", [formal, *parameters], name)
    return before.node("DequantizeLinear", [name, *parameters], f"{formal}_again")


def _layer(before: _Before, spec: RecurrentSpec, dtype: np.dtype[Any], opset: int) -> str:
    """Add a layer's output to X; it is zero, because each cell returns zero states for zero weights."""
    gates, units = len(cell_named(spec.op).gates), spec.I
    attributes: dict[str, Any] = {"hidden_size": units, "direction": "forward"}
    if spec.layout:
        attributes["layout"] = spec.layout
    if "output_sequence" in spec.node.operator.attributes:
        attributes["output_sequence"] = 1
    weights = [before.constant(f"layer_{n}", np.zeros((1, gates * units, units), dtype)) for n in ("W", "R")]
    returned = before.node(spec.op, ["X", *weights], "layer_Y", **attributes)
    num_directions = 2 if spec.layout else 1
    if opset >= AXES_ARE_INPUTS:
        axes = before.constant("layer_axes", np.array([num_directions], np.int64))
        squeezed = before.node("Squeeze", [returned, axes], "layer_states")
    else:
        squeezed = before.node("Squeeze", [returned], "layer_states", axes=[num_directions])
    return before.node("Add", ["X", squeezed], "X_again")

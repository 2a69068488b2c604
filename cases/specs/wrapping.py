"""Wraps: other nodes in front of a case's node, for providers that reject single nodes.

Every wrap is exact: the nodes in front pass the inputs on bit for bit, and nothing stands behind the node. So the case
is judged as it would be alone, with the inputs of its node. (:mod:`.graphs` has graphs of several judged nodes.)

===========  =======================================================================================================
``neg``      every tensor goes through Neg twice; numbers stay as they are
``cast``     every tensor is cast to another width and back, float32 and float64 by way of float16, the half types by
             way of float32; its numbers are rounded to float16 first
``qdq``      every tensor goes through QuantizeLinear and DequantizeLinear, with int8 and scales that are powers of
             two; its numbers are rounded to multiples of the scale first. Constants are int8 with a DequantizeLinear
``layers``   a layer of the same operator stands before the node; its weights are zero, so it adds zero to X
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
from .graphs import GRAPHS, can_join, join
from .quantizing import QUANTIZED, can_quantize, quantize
from .spec import RecurrentSpec
from .tensor import tensor_proto

Array = NDArray[Any]

EXACT = ("neg", "cast", "qdq", "layers")
"""Names of the wraps around one node."""

WRAPS = (*EXACT, *GRAPHS, *QUANTIZED)
"""Names of all surroundings that a case's node can be put in: wraps, graphs in which a second node is judged too, and
nodes around it that are judged together with it."""

_INT8 = 127
_HALF = FORMATS["float16"]

# The first opset whose operators take the type: QuantizeLinear and DequantizeLinear; then Cast (whose `to` is a number
# from 6 on), Neg and Add.
_QUANTIZES = {"float32": 10, "float16": 19, "bfloat16": 19}
_TAKES = {"float32": 6, "float64": 6, "float16": 6, "bfloat16": 13}
_BESIDE = 17
"""The opset of ONNX's own operators beside one of another domain, where its model names none."""

_AXES_ARE_INPUTS = 13  # of Squeeze


def can_wrap(spec: Spec, name: str) -> bool:
    """Tell whether a case can have such a wrap: an opset with the operators, and numbers that pass through them
    unchanged.

    Raise KeyError for a name that is not in `WRAPS`.
    """
    if isinstance(spec, RecurrentSpec) and (spec.course.needs or spec.quantized or spec.graph != "none"):
        return False  # what its sessions do, or stands around its node already, is said of its own model alone
    if name in GRAPHS:
        return can_join(spec, name)
    if name in QUANTIZED:
        return can_quantize(spec, name)
    needed = {"neg": _TAKES, "cast": _TAKES, "qdq": _QUANTIZES, "layers": _TAKES}[name].get(spec.type)
    if spec.illegal or needed is None:
        return False
    if name in ("neg", "cast"):
        return bool(spec.node.domain) or needed <= spec.node.operator.last_opset
    # The others have an opset in common with the node, which is of ONNX's own domain.
    return (
        not spec.node.domain
        and needed <= spec.node.operator.last_opset
        and not features_of(spec) & {"nonfinite", "size-zero"}
    )


def wrap(case: Case, name: str) -> Case:
    """Return the case with its node wrapped, its companion too. :func:`can_wrap` must hold for it."""
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
    wrapped = [
        None if trial is None else _wrapped(trial, name, spec, tuple(feeds)) for trial in (case.trial, case.companion)
    ]
    assert wrapped[0] is not None
    return Case(case.spec, wrapped[0], wrapped[1])


def _numbers(operator: OperatorVersion) -> frozenset[str]:
    """Return the inputs that are plain numbers: neither lengths nor levels, scales and zero points."""
    forms = operator.tensors.values()
    levels = [(form.name, form.codec) for form in forms if isinstance(form.codec, Levels)]
    beside = {name for form, codec in levels for name in (form, codec.scale, codec.zero_point)}
    lengths = {form.name for form in forms if form.kind == LENGTHS}
    return frozenset(operator.inputs) - beside - lengths


def _passing(name: str, through: bool, arrays: Sequence[Array], kind: str) -> list[Array]:
    """Return an input of every run, made of numbers that the wrap does not change."""
    if not through or name in ("neg", "layers"):
        return list(arrays)
    if name == "cast":
        return list(arrays) if kind in ("float16", "bfloat16") else [_halved(array) for array in arrays]
    scale = _scale(arrays, kind)
    return [_frozen((np.rint(array.astype(np.float64) / scale) * scale).astype(array.dtype)) for array in arrays]


def _halved(array: Array) -> Array:
    """Rounded to float16, and away from where hardware flushes its numbers to zero."""
    with np.errstate(over="ignore"):
        half = array.astype(np.float16).astype(array.dtype)
    tiny = (np.abs(half) < _HALF.least_normal) & (array != 0)
    return _frozen(np.where(tiny, np.copysign(array.dtype.type(_HALF.least_normal), array), half))


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array


def _scale(arrays: Sequence[Array], kind: str) -> float:
    """Return the least power of two of which int8 holds enough multiples to reach all numbers, and which is a normal
    number of the type."""
    largest = max((float(np.abs(array.astype(np.float64)).max(initial=0)) for array in arrays), default=0.0)
    return max(float(2.0 ** np.ceil(np.log2(largest / _INT8))), FORMATS[kind].least_normal) if largest else 1.0


class _Graph(Struct):
    """Nodes that a wrap adds to a graph."""

    opset: int
    kind: int
    nodes: list[onnx.NodeProto]
    constants: list[TensorProto]

    def node(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, name: str, array: Array) -> str:
        kind = helper.np_dtype_to_tensor_dtype(array.dtype) if array.dtype.kind in "iu" else None
        if kind is None:
            self.constants.append(tensor_proto(name, array))
        else:
            self.constants.append(TensorProto(name=name, data_type=kind, dims=array.shape, raw_data=array.tobytes()))
        return name


def _wrapped(trial: Trial, name: str, spec: Any, feeds: tuple[Feed, ...]) -> Trial:
    """Return a trial with its model rebuilt around the node."""
    model = onnx.load_model_from_string(trial.model)
    operator = spec.node.operator
    needed = (_QUANTIZES if name == "qdq" else _TAKES)[spec.type]
    own = max((opset.version for opset in model.opset_import if not opset.domain), default=_BESIDE)
    graph = _Graph(max(needed, own), FORMATS[spec.type].onnx_type, [], [])
    node = model.graph.node[0]
    through = _numbers(operator)
    held = {constant.name for constant in model.graph.initializer}
    numbers = feeds[-1].inputs
    for place, formal in enumerate(node.input):
        if formal not in through or (name == "layers" and formal != "X"):
            continue
        array = numbers[formal]
        if name == "layers":
            node.input[place] = _layer(graph, spec, array.dtype)
        elif name == "qdq":
            scale = _scale([feed.inputs[formal] for feed in feeds], spec.type)
            node.input[place] = _quantized(graph, formal, array if formal in held else None, scale, array.dtype)
        elif name == "cast":
            node.input[place] = _cast(graph, formal, array if formal in held else None, spec.type)
        else:
            node.input[place] = graph.node("Neg", [graph.node("Neg", [formal], f"{formal}_negated")], f"{formal}_again")
    kept = [c for c in model.graph.initializer if c.name in {n for x in (*graph.nodes, node) for n in x.input}]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend([*kept, *graph.constants])
    model.graph.node.extend([*graph.nodes, node])
    opsets = [helper.make_opsetid("", graph.opset), *(o for o in model.opset_import if o.domain)]
    assert operator.domain or graph.opset <= operator.last_opset
    del model.opset_import[:]
    model.opset_import.extend(opsets)
    model.ir_version = max(model.ir_version, helper.find_min_ir_version_for(opsets[:1]))
    return replace(trial, model=bytes(model.SerializeToString(deterministic=True)), feeds=feeds)


def _cast(graph: _Graph, formal: str, constant: Array | None, kind: str) -> str:
    """Cast a tensor to another width and back; a constant is stored in that width."""
    by = TensorProto.FLOAT if kind in ("float16", "bfloat16") else TensorProto.FLOAT16
    name = f"{formal}_narrow" if by == TensorProto.FLOAT16 else f"{formal}_wide"
    if constant is not None:
        graph.constant(name, constant.astype(np.float16 if by == TensorProto.FLOAT16 else np.float32))
    else:
        graph.node("Cast", [formal], name, to=by)
    return graph.node("Cast", [name], f"{formal}_again", to=graph.kind)


def _quantized(graph: _Graph, formal: str, constant: Array | None, scale: float, dtype: np.dtype[Any]) -> str:
    """Quantize a tensor to int8 and back; a constant is stored as int8."""
    name = f"{formal}_int8"
    of = [
        graph.constant(f"{formal}_scale", np.array(scale, dtype)),
        graph.constant(f"{formal}_zero_point", np.array(0, np.int8)),
    ]
    if constant is not None:
        graph.constant(name, np.rint(constant.astype(np.float64) / scale).astype(np.int8))
    else:
        graph.node("QuantizeLinear", [formal, *of], name)
    return graph.node("DequantizeLinear", [name, *of], f"{formal}_again")


def _layer(graph: _Graph, spec: RecurrentSpec, dtype: np.dtype[Any]) -> str:
    """Add a layer's output to X: zero, since each cell makes zero states from zero weights."""
    gates, units = len(cell_named(spec.op).gates), spec.I
    attributes: dict[str, Any] = {"hidden_size": units, "direction": "forward"}
    if spec.layout:
        attributes["layout"] = spec.layout
    if "output_sequence" in spec.node.operator.attributes:
        attributes["output_sequence"] = 1
    weights = [graph.constant(f"layer_{n}", np.zeros((1, gates * units, units), dtype)) for n in ("W", "R")]
    returned = graph.node(spec.op, ["X", *weights], "layer_Y", **attributes)
    axis = 2 if spec.layout else 1  # num_directions
    if graph.opset >= _AXES_ARE_INPUTS:
        axes = graph.constant("layer_axes", np.array([axis], np.int64))
        squeezed = graph.node("Squeeze", [returned, axes], "layer_states")
    else:
        squeezed = graph.node("Squeeze", [returned], "layer_states", axes=[axis])
    return graph.node("Add", ["X", squeezed], "X_again")

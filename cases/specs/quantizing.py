"""Quantized cases: a case's node between DequantizeLinear and QuantizeLinear, as NPUs run it, and judged as one.

Every tensor of numbers is held as levels, but for sequence_lens: what is fed are levels, constants are levels, and
levels come back. Scales and zero points are those that a calibration over the case's own runs finds: of what comes in
from the least to the largest number, of what goes out likewise over what the reference computes. Y and Y_h have theirs
in common, so that it is plain which levels a state goes on with.

===========  =====================================================
``qdq-u8``   all in uint8
``qdq-s8``   all in int8, constants with a zero point of 0
``qdq-u16``  as ``qdq-u8``, in uint16: from opset 21 on
``qdq-s16``  as ``qdq-s8``, in int16: from opset 21 on
===========  =====================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from ...reference import Node, evaluate_in_order
from ...reference.numbers.affine import Affine
from ..axes.tensors.weights import CONSTANTS
from .case import Case, Feed, Spec, Trial
from .family import features_of
from .spec import CaseSpec
from .tensor import tensor_proto

__all__ = ["QUANTIZED", "can_quantize", "quantize", "quantized_model"]

Array = NDArray[Any]
Arrays = Mapping[str, Array]

QUANTIZED = ("qdq-u8", "qdq-s8", "qdq-u16", "qdq-s16")
"""Names of the ways to quantize a case."""

_FIRST_OPSET = {8: 10, 16: 21}
"""By bits, that of QuantizeLinear and DequantizeLinear."""
_DIGITS = 10
"""Bits of a scale: few enough that its last one is the same on every machine, too many for a power of two."""


def can_quantize(spec: Spec, name: str) -> bool:
    """Whether there is such a case. Raises KeyError for a name that is none of `QUANTIZED`."""
    if name not in QUANTIZED:
        raise KeyError(name)
    if not isinstance(spec, CaseSpec) or spec.illegal or spec.type != "float32":
        return False
    if spec.node.operator.last_opset < _FIRST_OPSET[_type(name)[0]] or not _announced(spec):
        return False
    # A calibration has nothing to say of what is not finite, and of no numbers at all.
    return not features_of(spec) & {"nonfinite", "size-zero"}


def _type(name: str) -> tuple[int, bool]:
    """Bits of the integers, and whether they are signed."""
    kind = name.rpartition("-")[2]
    return int(kind[1:]), kind.startswith("s")


def _announced(spec: CaseSpec) -> bool:
    return "output_sequence" not in spec.node.operator.attributes or spec.output_sequence == 1


def quantize(case: Case, name: str) -> Case:
    """The case quantized, its companion too. It must be one for which :func:`can_quantize` holds."""
    bits, signed = _type(name)
    codecs = _input_codecs(case.trial.feeds, bits, signed)
    feeds = tuple(_levels(feed, codecs) for feed in case.trial.feeds)
    everything = replace(case.trial.node, outputs=case.trial.node.operator.outputs)
    codecs |= _output_codecs(everything, feeds, codecs, bits, signed)
    trials = [None if trial is None else _quantized(trial, feeds, codecs) for trial in (case.trial, case.companion)]
    assert trials[0] is not None
    return Case(case.spec, trials[0], trials[1])


def _quantized(trial: Trial, feeds: tuple[Feed, ...], codecs: Mapping[str, Affine]) -> Trial:
    formal = {*feeds[-1].inputs, *trial.node.outputs}
    node = replace(trial.node, codecs={name: codec for name, codec in codecs.items() if name in formal})
    return replace(
        trial, model=quantized_model(trial.model, node, feeds[-1].inputs), node=node, feeds=feeds, graded=False
    )


def _input_codecs(feeds: Sequence[Feed], bits: int, signed: bool) -> dict[str, Affine]:
    names = [name for name in feeds[-1].inputs if name != "sequence_lens"]
    return {n: _codec((feed.inputs[n] for feed in feeds), bits, signed, signed and n in CONSTANTS) for n in names}


def _output_codecs(
    node: Node, feeds: Sequence[Feed], codecs: Mapping[str, Affine], bits: int, signed: bool
) -> dict[str, Affine]:
    """From what the node computes of the dequantized inputs."""
    runs = [evaluate_in_order(node, _numbers(feed.inputs, codecs)) for feed in feeds]
    of_hidden = _codec((run[name] for run in runs for name in ("Y", "Y_h")), bits, signed)
    others = [name for name in node.outputs if name not in ("Y", "Y_h")]
    return {"Y": of_hidden, "Y_h": of_hidden, **{n: _codec((run[n] for run in runs), bits, signed) for n in others}}


def _codec(arrays: Iterable[Array], bits: int, signed: bool, symmetric: bool = False) -> Affine:
    """The codec that holds all numbers from the least to the largest, 0 among them."""
    ends = [(float(array.min(initial=0.0)), float(array.max(initial=0.0))) for array in arrays]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    one = Affine(1.0, 0, bits, signed)
    lowest, highest = one.lowest, one.highest
    if low == high:
        return one
    if symmetric:
        return Affine(_short(max(-low, high) / highest), 0, bits, signed)
    scale = _short((high - low) / (highest - lowest))
    return Affine(scale, int(np.clip(lowest + np.rint(-low / scale), lowest, highest)), bits, signed)


def _short(scale: float) -> float:
    """The scale in few digits, rounded up."""
    fraction, exponent = np.frexp(scale)
    return float(np.ldexp(np.ceil(fraction * 2.0**_DIGITS - 2.0**-20), int(exponent) - _DIGITS))


def _levels(feed: Feed, codecs: Mapping[str, Affine]) -> Feed:
    inputs = {name: _held(array, codecs.get(name)) for name, array in feed.inputs.items()}
    return Feed(inputs, {name: inputs[name] for name in feed.fed})


def _held(array: Array, codec: Affine | None) -> Array:
    if codec is None:
        return array
    levels = codec.levels(array).astype(codec.dtype)
    levels.setflags(write=False)
    return levels


def _numbers(inputs: Arrays, codecs: Mapping[str, Affine]) -> dict[str, Array]:
    return {
        name: codecs[name].dequantized(array.astype(np.int64)).astype(np.float32) if name in codecs else array
        for name, array in inputs.items()
    }


def quantized_model(model: bytes, node: Node, inputs: Arrays) -> bytes:
    """A model of one float node, with DequantizeLinear before inputs and QuantizeLinear behind outputs that have a
    codec.

    inputs
        Levels by formal name, for the constants among them.
    """
    proto = onnx.load_model_from_string(model)
    graph = proto.graph
    (made,) = graph.node
    before: list[onnx.NodeProto] = []
    behind: list[onnx.NodeProto] = []
    held: list[TensorProto] = []
    for kind, names, nodes in (("Dequantize", made.input, before), ("Quantize", made.output, behind)):
        for place, name in enumerate(names):
            codec = node.codecs.get(name)
            if codec is None:
                continue
            number = f"{name}_number"
            of = [f"{name}_scale", f"{name}_zero_point"]
            held += [
                tensor_proto(of[0], np.array(codec.scale, np.float32)),
                tensor_proto(of[1], np.array(codec.zero_point, codec.dtype)),
            ]
            given, output = (name, number) if kind == "Dequantize" else (number, name)
            nodes.append(helper.make_node(f"{kind}Linear", [given, *of], [output], name=f"{name}_{kind.lower()}"))
            names[place] = number
    _retyped(graph, node, inputs)
    graph.initializer.extend(held)
    del graph.node[:]
    graph.node.extend([*before, made, *behind])
    needed = max(_FIRST_OPSET[codec.bits] for codec in node.codecs.values())
    proto.opset_import[0].version = max(needed, proto.opset_import[0].version)
    opset = helper.make_opsetid("", proto.opset_import[0].version)
    proto.ir_version = max(proto.ir_version, helper.find_min_ir_version_for([opset]))
    return bytes(proto.SerializeToString(deterministic=True))


def _retyped(graph: onnx.GraphProto, node: Node, inputs: Arrays) -> None:
    """Graph inputs, outputs and constants that have a codec are of its type."""
    for value in (*graph.input, *graph.output):
        codec = node.codecs.get(value.name)
        if codec is not None:
            value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(codec.dtype)
    constants: list[TensorProto] = [
        tensor_proto(tensor.name, inputs[tensor.name]) if tensor.name in node.codecs else tensor
        for tensor in graph.initializer
    ]
    kept = [TensorProto.FromString(tensor.SerializeToString()) for tensor in constants]
    del graph.initializer[:]
    graph.initializer.extend(kept)

"""Quantized cases: a case's node between DequantizeLinear and QuantizeLinear, as on NPUs, judged as one unit.

Quantized tensors are fed, stored and returned as levels. Scales and zero points come from a calibration: for inputs
from the least to the largest number, for outputs likewise over the reference's values. Y and Y_h share theirs, so that
the levels of a carried state are certain.

The scheme comes from axes (:mod:`..axes.quantized`), or from a wrap for the cases of a profile:

===========  =====================================================
``qdq-u8``   all in uint8
``qdq-s8``   all in int8, constants with a zero point of 0
``qdq-u16``  as ``qdq-u8``, in uint16: from opset 21 on
``qdq-s16``  as ``qdq-s8``, in int16: from opset 21 on
===========  =====================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from ...reference import Node, evaluate_in_order, versions_of
from ...reference.documents.tensors import DEQUANTIZE, QUANTIZE, quantizer_in
from ...reference.numbers.affine import Affine, Channels, Codec, product_codec
from ..axes.quantized import INTEGERS
from ..axes.quantized import QUANTIZED as QUANTIZED_AXES
from ..axes.tensors import CONSTANTS
from .case import Case, Feed, Spec, Trial
from .family import features_of
from .model import announced, finished, tensor_proto
from .spec import CaseSpec, RecurrentSpec

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Codecs = Mapping[str, Codec]
Recurrent = TypeVar("Recurrent", bound=CaseSpec)

QUANTIZED = tuple(f"qdq-{integers}" for integers in INTEGERS)
"""Names of these wraps."""

_OWN_BY_CHANNEL = 13
"""The first opset whose DequantizeLinear has an axis."""
_FIRST_OPSET = {8: 10, 16: 21, 32: 10}
"""The first opset with QuantizeLinear and DequantizeLinear of that number of bits."""
_ELSEWHERE = "com.microsoft"
"""The domain that has both operators for types that an opset of ONNX lacks."""
_DIGITS = 10
"""Bits of a scale: few enough that the last bit is the same on every machine, and enough to avoid powers of two."""
_BIAS_BITS = 24
"""Bits of levels of an int32 bias: as many as float32 holds, because DequantizeLinear converts levels before it
multiplies."""
_SATURATING, _ZEROING = 0.5, 2.5
"""The saturating share of the scale that holds all numbers; and the zeroing multiple of the largest number, which is
then less than half a level."""
_REACH = 2.0**126
"""Largest end of a calibrated range: twice this number, with scales rounded to powers of two, is still a float32."""
_LEAST_SCALE = 2.0**-149
"""The least positive number of float32."""

_STATES, _OUTPUTS = ("initial_h", "initial_c"), ("Y", "Y_h", "Y_c")
_SEVERAL: Mapping[str, tuple[str, ...]] = {
    "all": ("X", *CONSTANTS, *_STATES, *_OUTPUTS),
    "inputs": ("X", *CONSTANTS, *_STATES),
    "outputs": _OUTPUTS,
    "weights": CONSTANTS,
    "data": ("X", *_STATES, *_OUTPUTS),
    "states": _STATES,
}
"""The quantized tensors, by values of ``quantized_tensors``; other values are the name of one tensor."""


def _holds(scheme: CaseSpec, name: str) -> bool:
    """Return whether a tensor is quantized."""
    if name == "B" and scheme.bias_type == "float":
        return False
    return name in _SEVERAL.get(scheme.quantized_tensors, (scheme.quantized_tensors,))


def _type_of(scheme: CaseSpec, name: str) -> tuple[int, bool]:
    """Return the bits of a tensor's integers, and whether they are signed."""
    own = name in CONSTANTS and scheme.weight_type != "same"
    kind = scheme.weight_type if own else scheme.quantization
    return int(kind[1:]), kind.startswith("s")


def _scale(scheme: CaseSpec, name: str, scale: float, largest: float) -> float:
    """Return a tensor's scale by the scheme; `scale` is the one for all its numbers."""
    if scheme.scales == "power":
        return float(2.0 ** np.ceil(np.log2(max(scale, _LEAST_SCALE))))
    if scheme.scales == "zeroing" and name == "X":
        return _short(_ZEROING * largest)
    saturates = scheme.scales == "saturating" and name not in CONSTANTS
    return _short(_SATURATING * scale if saturates else scale)


def can_quantize(spec: Spec, name: str) -> bool:
    """Return whether a case can be quantized in this way. Raise KeyError for a name that is not in `QUANTIZED`."""
    if name not in QUANTIZED:
        raise KeyError(name)
    if not isinstance(spec, RecurrentSpec) or spec.illegal or spec.type != "float32" or spec.quantized:
        return False
    if spec.node.domain:
        return False  # the nodes around it need an opset in common with it
    bits, _ = _type_of(_lane(name), "X")
    if spec.node.operator.last_opset < _FIRST_OPSET[bits] or not announced(spec):
        return False
    # Calibration is undefined for non-finite numbers, and for no numbers. The last level of a range that ends with the
    # type's largest number may represent infinity.
    return spec.extremes != "top" and not features_of(spec) & {"nonfinite", "size-zero"}


@cache
def _lane(name: str) -> CaseSpec:
    """Return a case whose fields of :mod:`..axes.quantized` are those of a wrap."""
    op = CaseSpec.operators[0]
    return CaseSpec(op, versions_of(op)[-1], quantization=name.removeprefix("qdq-"))


def quantize(case: Case, name: str) -> Case:
    """Return the case, and its companion, quantized by a wrap. The case must satisfy :func:`can_quantize`."""
    return _quantized(case, _lane(name), case.trial.feeds, raises=True)


def quantized_case(spec: Recurrent, float_case: Callable[[Recurrent], Case]) -> Case:
    """Return a case quantized by its axes.

    Cases that differ only in seeds share models, so they are calibrated by the numbers of one of them; the numbers of
    the others may saturate.

    float_case
        Function from an unquantized case to its models and inputs.
    """
    plain = replace(spec, **{axis.name: axis.values[0] for axis in QUANTIZED_AXES})
    calibrating = replace(plain, seed=plain.weights_seed)
    case = float_case(plain)
    feeds = case.trial.feeds if calibrating == plain else float_case(calibrating).trial.feeds
    case = replace(case, spec=spec).changed(lambda trial: replace(trial, key=trial.key.replace(plain.id, spec.id)))
    return _quantized(case, spec, feeds, raises=False)


def _quantized(case: Case, scheme: CaseSpec, calibration: Sequence[Feed], *, raises: bool) -> Case:
    """Return a float case quantized by the fields of a scheme."""
    codecs = _input_codecs(calibration, scheme)
    held = [_levels(feed, codecs) for feed in calibration]
    everything = replace(case.trial.node, outputs=case.trial.node.operator.outputs)
    codecs |= _output_codecs(everything, held, codecs, scheme)
    feeds = tuple(_levels(feed, codecs) for feed in case.trial.feeds)
    return case.changed(lambda trial: _trial(trial, feeds, codecs, raises=raises))


def _trial(trial: Trial, feeds: tuple[Feed, ...], codecs: Codecs, *, raises: bool) -> Trial:
    formal = {*feeds[-1].inputs, *trial.node.outputs}
    node = replace(trial.node, codecs={name: codec for name, codec in codecs.items() if name in formal})
    model = quantized_model(trial.model, node, feeds[-1].inputs, raises=raises) if node.codecs else trial.model
    return replace(trial, model=model, node=node, feeds=feeds, graded=False)


def _input_codecs(feeds: Sequence[Feed], scheme: CaseSpec) -> dict[str, Codec]:
    """Return the codecs of quantized inputs; that of B comes last, because it may depend on others."""
    names = [name for name in feeds[-1].inputs if name != "sequence_lens" and _holds(scheme, name)]
    codecs: dict[str, Codec] = {}
    for name in sorted(names, key=lambda name: name == "B"):
        arrays = [feed.inputs[name] for feed in feeds]
        if name == "B" and scheme.bias_type in ("product", "int32"):
            codecs[name] = product_codec(codecs) if scheme.bias_type == "product" else _own_scale(arrays)
        else:
            codecs[name] = _by_channel(name, arrays, scheme)
    return codecs


def _own_scale(arrays: Sequence[Array]) -> Affine:
    """Return an int32 codec for a bias, with the precision of 16 bits."""
    largest = max(float(np.abs(array).max(initial=0.0)) for array in arrays)
    return Affine(_short(largest / 2.0**15) if largest else 1.0, 0, 32, True)


def _by_channel(name: str, arrays: Sequence[Array], scheme: CaseSpec) -> Codec:
    axis = {"directions": 0, "rows": 1}.get(scheme.channels)
    if axis is None or name not in ("W", "R", "P") or (name == "P" and axis == 1):
        return _codec(name, arrays, scheme)
    slices = (np.moveaxis(array, axis, 0) for array in arrays)
    return Channels(axis, tuple(_codec(name, parts, scheme) for parts in zip(*slices, strict=True)))


def _output_codecs(node: Node, feeds: Sequence[Feed], codecs: Codecs, scheme: CaseSpec) -> dict[str, Codec]:
    """Return the codecs of the outputs, from the node's results for the dequantized inputs."""
    names = [name for name in node.outputs if _holds(scheme, name)]
    if not names:
        return {}
    with np.errstate(over="ignore", invalid="ignore"):  # numbers may exceed float32 and saturate
        runs = [evaluate_in_order(node, _numbers(feed.inputs, codecs)) for feed in feeds]
    of_hidden = _codec("Y", (run[name] for run in runs for name in ("Y", "Y_h")), scheme)
    return {
        name: of_hidden if name in ("Y", "Y_h") else _codec(name, (run[name] for run in runs), scheme) for name in names
    }


def _codec(name: str, arrays: Iterable[Array], scheme: CaseSpec) -> Affine:
    """Return the codec for all numbers from the least to the largest, including 0; or for a part, if axes say so."""
    ends = [_ends(array) for array in arrays]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    bits, signed = _type_of(scheme, name)
    unit = Affine(1.0, 0, bits, signed)
    lowest, highest, largest = unit.lowest, unit.highest, max(-low, high)
    if low == high:
        return unit
    constant = name in CONSTANTS
    if scheme.zero_points in ("lowest", "highest") and not constant:
        # Only numbers of one sign; if there are none, all numbers are 0.
        reach = high if scheme.zero_points == "lowest" else -low
        scale = _scale(scheme, name, (reach or largest) / (highest - lowest), largest)
        return Affine(scale, lowest if scheme.zero_points == "lowest" else highest, bits, signed)
    if (constant and signed) or scheme.zero_points == "middle":
        middle = (lowest + highest + 1) // 2
        return Affine(_scale(scheme, name, largest / (highest - middle), largest), middle, bits, signed)
    needed = (high - low) / (highest - lowest)
    scale = _scale(scheme, name, needed, largest)
    zero_point = int(np.clip(lowest + np.rint(-low / max(scale, _short(needed))), lowest, highest))
    return Affine(scale, zero_point, bits, signed)


def _ends(array: Array) -> tuple[float, float]:
    """Return the least and the largest number, including 0. NaN is ignored."""
    reach = np.clip(np.nan_to_num(array.astype(np.float64), posinf=_REACH, neginf=-_REACH), -_REACH, _REACH)
    return float(reach.min(initial=0.0)), float(reach.max(initial=0.0))


def _short(scale: float) -> float:
    """Return the scale rounded up to few bits."""
    fraction, exponent = np.frexp(max(scale, _LEAST_SCALE))
    return float(np.ldexp(np.ceil(fraction * 2.0**_DIGITS - 2.0**-20), int(exponent) - _DIGITS))


def _levels(feed: Feed, codecs: Codecs) -> Feed:
    inputs = {name: _held(array, codecs.get(name)) for name, array in feed.inputs.items()}
    return Feed(inputs, {name: inputs[name] for name in feed.fed})


def _held(array: Array, codec: Codec | None) -> Array:
    if codec is None:
        return array
    whole = codec.levels(array)
    if codec.bits == 32:
        beyond = np.maximum(np.frexp(np.abs(whole).astype(np.float64))[1] - _BIAS_BITS, 0)
        whole = np.sign(whole) * (np.abs(whole) >> beyond << beyond)
    levels = whole.astype(codec.dtype)
    levels.setflags(write=False)
    return levels


def _numbers(inputs: Arrays, codecs: Codecs) -> dict[str, Array]:
    return {
        name: codecs[name].dequantized(array.astype(np.int64)).astype(np.float32) if name in codecs else array
        for name, array in inputs.items()
    }


def quantized_model(model: bytes, node: Node, inputs: Arrays, *, raises: bool = True, domain: str = "") -> bytes:
    """Return a model of one float node, with DequantizeLinear before inputs and QuantizeLinear after outputs with a
    codec.

    inputs
        Levels by formal name, for the constants among them.
    raises
        Whether the model gets the opset in which ONNX has both operators for all types. If not, com.microsoft's replace
        those that its opset lacks.
    domain
        Another domain of the operators, which accept all types.
    """
    proto = onnx.load_model_from_string(model)
    graph = proto.graph
    (made,) = graph.node
    (opset,) = (entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx"))
    needed = {name: _needed(codec) for name, codec in node.codecs.items()}
    if raises and not domain:
        opset = max(opset, *needed.values())
    before: list[onnx.NodeProto] = []
    behind: list[onnx.NodeProto] = []
    held: list[TensorProto] = []
    for kind, names, nodes in ((DEQUANTIZE, made.input, before), (QUANTIZE, made.output, behind)):
        for position, name in enumerate(names):
            codec = node.codecs.get(name)
            if codec is None:
                continue
            number = f"{name}_number"
            parameters = [
                tensor_proto(f"{name}_scale", codec.scales),
                tensor_proto(f"{name}_zero_point", codec.zero_points),
            ]
            held += parameters
            given, output = (name, number) if kind == DEQUANTIZE else (number, name)
            home = domain or (_ELSEWHERE if needed[name] > opset else "")
            quantizing = helper.make_node(
                quantizer_in(home, kind),
                [given, *(tensor.name for tensor in parameters)],
                [output],
                name=f"{name}_{kind.removesuffix('Linear').lower()}",
                domain=home or None,
            )
            if isinstance(codec, Channels):
                quantizing.attribute.append(helper.make_attribute("axis", codec.axis))
            nodes.append(quantizing)
            names[position] = number
    _retyped(graph, node, inputs)
    graph.initializer.extend(held)
    del graph.node[:]
    graph.node.extend([*before, made, *behind])
    imported = {entry.domain for entry in proto.opset_import}
    for home in sorted({quantizing.domain for quantizing in (*before, *behind)} - {"", *imported}):
        proto.opset_import.append(helper.make_opsetid(home, 1))
    return finished(proto, opset)


def _needed(codec: Codec) -> int:
    """Return the first opset whose QuantizeLinear and DequantizeLinear support a codec."""
    return max(_FIRST_OPSET[codec.bits], _OWN_BY_CHANNEL if isinstance(codec, Channels) else 0)


def _retyped(graph: onnx.GraphProto, node: Node, inputs: Arrays) -> None:
    """Give graph inputs, outputs and constants with a codec its type."""
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

"""Rules over the DequantizeLinear and QuantizeLinear right before and after a node.

Integer runtimes fuse all of these with the node. Parameters that the documents of the two operators forbid work in no
runtime. Parameters that they allow, but that a sum of integers cannot implement, are computed in float, or wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper

from ...reference.documents.tensors import (
    DEQUANTIZE,
    HIDDEN_SIZE,
    INPUT_SIZE,
    QUANTIZE,
    Extent,
    TensorForm,
    quantizes,
    units_place,
)
from ..models.content import NotConstant
from ..models.folding import constant
from ..models.scope import Scope, domain_of
from ..models.tensor_type import Type
from .subject import Broken, Input, Missing, NodeSubject, Outcome

_VALUES = 1 << 20
"""Limit of the bytes of scales and zero points that are read."""


@dataclass(frozen=True)
class Codec:
    """A QuantizeLinear or DequantizeLinear.

    formal
        The node's tensor that it belongs to.
    scale, zero_point
        None if they are not constant; then `why` has the reason. A zero point that is absent is 0.
    """

    formal: str
    scope: Scope
    node: NodeProto
    scale: NDArray[Any] | None
    zero_point: NDArray[Any] | None
    why: str = ""

    @property
    def quantizes(self) -> bool:
        return _is(self.node, QUANTIZE)

    def __str__(self) -> str:
        return f"the {self.node.op_type} of {self.formal}"

    def input(self, place: int) -> Input | None:
        """Return its input at a position, with the known part of its type; None if it is absent."""
        name = self.node.input[place] if place < len(self.node.input) else ""
        return Input(self.formal, name, self.scope, self.scope.type_of(name)) if name else None

    @property
    def per_channel(self) -> bool:
        return self.scale is not None and self.scale.ndim == 1 and self.scale.size > 1

    @property
    def axis(self) -> int:
        """Axis of the scales, if they are per channel."""
        return int(attribute(self.node, "axis", 1))

    def differs(self, other: Codec) -> bool:
        """Return whether the two are known to give the same levels different values."""
        pairs = ((self.scale, other.scale), (self.zero_point, other.zero_point))
        return any(a is not None and b is not None and not np.array_equal(a.ravel(), b.ravel()) for a, b in pairs)

    @property
    def parameters(self) -> str:
        """Text of scale and zero point."""
        return f"scale {_shown(self.scale)} and zero point {_shown(self.zero_point)}"


def _shown(array: NDArray[Any] | None) -> str:
    if array is None:
        return "unknown"
    return str(array.ravel()[0]) if array.size == 1 else f"of {array.size} numbers"


def attribute(node: NodeProto, name: str, default: int) -> int:
    """Return an integer attribute of a node, or a default."""
    return next((int(helper.get_attribute_value(a)) for a in node.attribute if a.name == name), default)


def _is(node: NodeProto, name: str) -> bool:
    """Return whether a node quantizes, or dequantizes, as `name` asks.

    Nodes with a scale for each block do not count.
    """
    return quantizes(domain_of(node.domain), node.op_type) == name and not attribute(node, "block_size", 0)


def _codec(formal: str, scope: Scope, node: NodeProto) -> Codec:
    zero_point: NDArray[Any] | None = np.zeros((), np.int64)
    try:
        scale = constant(scope, node.input[1], _VALUES)
        if len(node.input) > 2 and node.input[2]:
            zero_point = constant(scope, node.input[2], _VALUES)
    except NotConstant as why:
        return Codec(formal, scope, node, None, None, f"it {why}")
    return Codec(formal, scope, node, scale, zero_point)


def codecs_before(subject: NodeSubject) -> Iterator[Codec]:
    """Yield, for each input, the DequantizeLinear that computes it, and the QuantizeLinear before that."""
    for source in subject.inputs.values():
        chain = source.scope.chain_before(source.given)
        for name_of, (scope, node) in zip((DEQUANTIZE, QUANTIZE), chain, strict=False):
            if not _is(node, name_of) or len(node.input) < 2:
                break
            yield _codec(source.name, scope, node)


def codecs_behind(subject: NodeSubject) -> Iterator[Codec]:
    """Yield, for each output, the first QuantizeLinear that reads it."""
    for formal, name in zip(subject.operator.outputs, subject.outputs, strict=False):
        yield from list(_reading(formal, subject.scope, name, QUANTIZE))[:1]


def _reading(formal: str, scope: Scope, name: str, kind: str) -> Iterator[Codec]:
    """Yield the nodes that quantize, or dequantize, a tensor of the node."""
    for node in (scope.nodes[number] for number in scope.consumers.get(name, ()) if name):
        if _is(node, kind) and len(node.input) > 1 and node.input[0] == name and node.output:
            yield _codec(formal, scope, node)


_NEAR = 1e-5
"""A product of two float32 is off by 6e-8 of itself: scales that differ by less than this are equal."""


def quantization(subject: NodeSubject) -> Iterator[Outcome]:
    """Yield broken rules about the quantization around a node, and missing facts."""
    before, behind = list(codecs_before(subject)), list(codecs_behind(subject))
    reading = [
        (codec, reader)
        for codec in (*before, *behind)
        if codec.quantizes and codec.node.output
        for reader in _reading(codec.formal, codec.scope, codec.node.output[0], DEQUANTIZE)
    ]
    everything = (*before, *behind, *(reader for _, reader in reading))
    alone = [outcome for codec in everything for rule in (_scale, _zero_point, _count) for outcome in rule(codec)]
    yield from alone
    if any(isinstance(outcome, Broken) for outcome in alone):
        return  # codecs with invalid scales are not compared with others
    for writer, reader in reading:
        if writer.differs(reader):
            message = (
                f"levels of {writer.formal} are written with {writer.parameters}, and read with {reader.parameters}"
            )
            yield Broken("model.pair", message)
    dequantizers = {codec.formal: codec for codec in before if not codec.quantizes}
    quantizers = {codec.formal: codec for codec in behind}
    yield from _summed(subject, dequantizers)
    yield from _bias(subject, dequantizers, quantizers)
    yield from _states(dequantizers, quantizers)


def _scale(codec: Codec) -> Iterator[Outcome]:
    if codec.scale is None:
        yield Missing("model.scale", f"the scale of {codec}: {codec.why}")
        return
    scale = codec.scale.ravel()
    if not np.isfinite(scale).all():
        yield Broken("model.scale", f"the scale of {codec} is {scale[~np.isfinite(scale)][0]}")
    elif codec.quantizes and not scale.all():
        yield Broken("model.scale", f"the scale of {codec} is 0, by which every number is divided")
    elif not scale.all():
        yield Broken("model.scale-sign", f"the scale of {codec} is 0: all that it holds is 0")
    elif (scale < 0).any():
        yield Broken(
            "model.scale-sign", f"the scale of {codec} is {scale.min()}: integer kernels take scales for positive"
        )


def _zero_point(codec: Codec) -> Iterator[Outcome]:
    zero_point, levels = codec.input(2), None if codec.quantizes else codec.input(0)
    if asked := attribute(codec.node, "output_dtype", 0) if codec.quantizes else 0:
        levels = Input(codec.formal, "", codec.scope, Type(asked, None, True))
    if zero_point is None or levels is None or None in (zero_point.element, levels.element):
        return
    if zero_point.element != levels.element:
        message = f"{codec} has a zero point in {zero_point.element} for levels in {levels.element}"
        yield Broken("model.zero-point-type", message, zero_point.type.certain and levels.type.certain)


def _count(codec: Codec) -> Iterator[Outcome]:
    """Yield wrong numbers of scales and zero points."""
    scale, zero_point, numbers = codec.scale, codec.zero_point, codec.input(0)
    if scale is None:
        return
    if zero_point is not None and codec.input(2) is not None and zero_point.size != scale.size:
        yield Broken("model.scale-count", f"{codec} has {scale.size} scales and {zero_point.size} zero points")
    if scale.ndim > 1:
        yield Broken("model.scale-count", f"the scale of {codec} has {scale.ndim} dimensions; it may have one at most")
    if not codec.per_channel or numbers is None or numbers.shape is None:
        return
    rank = len(numbers.shape)
    if not -rank <= codec.axis < rank:
        message = f"{codec} goes along axis {codec.axis} of a tensor of {rank} dimensions"
        yield Broken("model.scale-count", message, numbers.type.certain)
        return
    channels = numbers.shape[codec.axis]
    if isinstance(channels, int) and channels != scale.size:
        message = f"{codec} has {scale.size} scales for {channels} channels along axis {codec.axis % rank}"
        yield Broken("model.scale-count", message, numbers.type.certain)


def _summed(subject: NodeSubject, held: Mapping[str, Codec]) -> Iterator[Outcome]:
    """Yield scales that vary along an axis over which products are summed."""
    forms = subject.operator.tensors
    units = units_place(forms, subject.operator.inputs)
    for name, codec in held.items():
        shape = forms[name].shapes[0] if name in forms else ()
        if not codec.per_channel or not -len(shape) <= codec.axis < len(shape):
            continue
        axis = codec.axis % len(shape)
        extent = shape[axis]
        if extent == Extent(INPUT_SIZE) or (name, axis) == units:
            yield Broken(
                "model.summed-axis", f"{name} has a scale for each number along axis {axis}, {extent}: sums go over it"
            )


def _bias(subject: NodeSubject, held: Mapping[str, Codec], shown: Mapping[str, Codec]) -> Iterator[Outcome]:
    """Yield each bias in int32 whose scales are not those of the sums that it is added to."""
    forms = subject.operator.tensors
    weights = _weights(forms)
    if weights is None:
        return
    of_inputs = [*_sums(weights[0], INPUT_SIZE, forms, {**held, **shown})]
    sums = [*of_inputs, *_sums(weights[1], HIDDEN_SIZE, forms, {**held, **shown})]
    both = Extent(HIDDEN_SIZE, 2 * forms[weights[0]].shapes[0][1].times)
    for name, codec in held.items():
        levels, bias_scales = codec.input(0), _spread(codec)
        if name not in forms or forms[name].shapes[0][-1] != both or bias_scales is None or not of_inputs:
            continue
        if levels is None or levels.element != "int32":
            continue
        if not all(any(_same(half, scales) for scales in sums) for half in np.split(bias_scales, 2, axis=1)):
            message = f"{name} is held in int32 with {codec.parameters}, and added to sums with the scales"
            yield Broken("model.bias-scale", f"{message} {' and '.join(dict.fromkeys(map(_range, sums)))}")


def _weights(forms: Mapping[str, TensorForm]) -> tuple[str, str] | None:
    """Return the names of the weights of X and of those of the state."""
    of_inputs = [f.name for f in forms.values() if not f.rows and Extent(INPUT_SIZE) in f.shapes[0]]
    of_units = units_place(forms, forms)
    return (of_inputs[0], of_units[0]) if of_inputs and of_units is not None else None


def _sums(
    weight: str, size: str, forms: Mapping[str, TensorForm], codecs: Mapping[str, Codec]
) -> Iterator[NDArray[np.float64]]:
    """Yield the scales that sums of levels may have, by direction and row of weights."""
    of_weight = _spread(codecs[weight]) if weight in codecs else None
    for name, codec in codecs.items():
        is_operand = name in forms and forms[name].rows and Extent(size) in forms[name].shapes[0]
        if is_operand and of_weight is not None and codec.scale is not None and codec.scale.size == 1:
            yield of_weight * float(codec.scale.item())


def _spread(codec: Codec) -> NDArray[np.float64] | None:
    """Return scales by the first two dimensions of their tensor; None if they vary along another one."""
    numbers = codec.input(0)
    if codec.scale is None or numbers is None or numbers.shape is None or codec.scale.ndim > 1:
        return None
    extents: tuple[Any, ...] = numbers.shape[:2]
    if len(extents) < 2 or not all(isinstance(extent, int) for extent in extents):
        return None
    scale, axis = codec.scale.astype(np.float64), codec.axis % len(numbers.shape)
    if codec.per_channel and (axis > 1 or scale.size != extents[axis]):
        return None
    return np.broadcast_to(scale.reshape((-1, 1) if codec.per_channel and axis == 0 else (1, -1)), extents)


def _same(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=_NEAR, atol=0.0))


def _range(scales: NDArray[np.float64]) -> str:
    least, greatest = scales.min(), scales.max()
    return f"{least:.6g}" if least == greatest else f"{least:.6g} to {greatest:.6g}"


def _states(held: Mapping[str, Codec], shown: Mapping[str, Codec]) -> Iterator[Outcome]:
    """Yield levels of a state that are returned and fed back with another meaning."""
    for name, codec in held.items():
        last, scope, levels_read = shown.get(name.replace("initial_", "Y_", 1)), codec.scope, codec.node.input[0]
        is_fed = scope.owner is None and levels_read in scope.declared and levels_read not in scope.initializers
        if last is None or not is_fed or last.scope is not scope or last.node.output[0] not in scope.outputs:
            continue
        if last.differs(codec):
            message = f"levels of {last.formal} go out with {last.parameters}, those of {name} come in with"
            yield Broken("model.state-levels", f"{message} {codec.parameters}: fed back, they mean other numbers")

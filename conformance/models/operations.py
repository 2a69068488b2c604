"""The operators that constants are computed through, on arrays: what exporters and quantizers put before weights.

Each takes a call and gives the node's outputs. Attributes that became inputs in a later version are looked for in both
places, so that one function serves all versions. What an old version does otherwise, or a form that no exporter uses,
is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper

__all__ = ["OPERATIONS", "Call", "NotFolded", "bytes_of_result"]

Array = NDArray[Any]


class NotFolded(ValueError):
    """A form of an operator that is not computed here; the text says which."""


@dataclass(frozen=True)
class Call:
    """A node with what its inputs are.

    inputs
        By position; None where one is left out.
    tensors
        Arrays of those attributes that hold tensors.
    """

    node: NodeProto
    inputs: Sequence[Array | None]
    tensors: Mapping[str, Array]

    @property
    def first(self) -> Array:
        """The first input."""
        return self.needed(0)

    def needed(self, place: int) -> Array:
        """The input at a place. Raises NotFolded where there is none."""
        array = self.optional(place)
        if array is None:
            raise NotFolded(f"has no input {place}")
        return array

    def optional(self, place: int) -> Array | None:
        return self.inputs[place] if place < len(self.inputs) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        attribute = next((a for a in self.node.attribute if a.name == name), None)
        return default if attribute is None else helper.get_attribute_value(attribute)

    def numbers(self, name: str, place: int) -> list[int] | None:
        """Whole numbers that are an attribute or, in later versions, an input; None where they are neither."""
        array = self.optional(place)
        if array is not None:
            return [int(n) for n in np.ravel(array)]
        given = self.attribute(name)
        return None if given is None else [int(n) for n in given]

    def refuse(self, *names: str) -> None:
        """Raise NotFolded where one of these attributes is there."""
        for name in names:
            if any(a.name == name for a in self.node.attribute):
                raise NotFolded(f"has the attribute {name}")


Operation = Callable[[Call], list[Array]]
OPERATIONS: dict[str, Operation] = {}
"""By name of the operator, in ONNX's own domain."""


def _operation(*names: str) -> Callable[[Operation], Operation]:
    def register(operation: Operation) -> Operation:
        OPERATIONS.update(dict.fromkeys(names, operation))
        return operation

    return register


# What moves numbers


@_operation("Identity")
def _identity(call: Call) -> list[Array]:
    return [call.first]


@_operation("Cast")
def _cast(call: Call) -> list[Array]:
    to = call.attribute("to")
    if not isinstance(to, int):  # version 1 has a name there
        raise NotFolded("is of version 1")
    kind = ml_dtypes.bfloat16 if to == TensorProto.BFLOAT16 else helper.tensor_dtype_to_np_dtype(to)
    if np.dtype(kind).kind not in "fiub" and kind is not ml_dtypes.bfloat16:
        raise NotFolded(f"casts to {TensorProto.DataType.Name(to)}")
    return [call.first.astype(kind)]


@_operation("Reshape")
def _reshape(call: Call) -> list[Array]:
    shape, x = call.numbers("shape", 1), call.first
    if shape is None:
        raise NotFolded("has no shape")
    if not call.attribute("allowzero", 0):
        shape = [x.shape[k] if extent == 0 else extent for k, extent in enumerate(shape)]
    return [x.reshape(shape)]


@_operation("Squeeze")
def _squeeze(call: Call) -> list[Array]:
    axes = call.numbers("axes", 1)
    return [np.squeeze(call.first, None if axes is None else tuple(axes))]


@_operation("Unsqueeze")
def _unsqueeze(call: Call) -> list[Array]:
    return [np.expand_dims(call.first, tuple(call.numbers("axes", 1) or ()))]


@_operation("Flatten")
def _flatten(call: Call) -> list[Array]:
    x, axis = call.first, call.attribute("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return [x.reshape(math.prod(x.shape[:axis]), -1) if x.size else x.reshape(math.prod(x.shape[:axis]), 0)]


@_operation("Transpose")
def _transpose(call: Call) -> list[Array]:
    return [np.transpose(call.first, call.attribute("perm"))]


@_operation("Concat")
def _concat(call: Call) -> list[Array]:
    return [np.concatenate([call.needed(k) for k in range(len(call.inputs))], call.attribute("axis", 1))]


@_operation("Slice")
def _slice(call: Call) -> list[Array]:
    x, starts, ends = call.first, call.numbers("starts", 1), call.numbers("ends", 2)
    if starts is None or ends is None:
        raise NotFolded("has no bounds")
    axes = call.numbers("axes", 3) or [*range(len(starts))]
    steps = call.numbers("steps", 4) or [1] * len(starts)
    chosen = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        chosen[axis] = slice(*slice(start, end, step).indices(x.shape[axis])) if step > 0 else slice(start, end, step)
    return [x[tuple(chosen)]]


@_operation("Gather")
def _gather(call: Call) -> list[Array]:
    return [np.take(call.first, call.needed(1), call.attribute("axis", 0))]


@_operation("Split")
def _split(call: Call) -> list[Array]:
    x, axis, count = call.first, call.attribute("axis", 0), len(call.node.output)
    sizes = call.numbers("split", 1)
    if sizes is None:
        each = math.ceil(x.shape[axis] / count)
        sizes = [min(each, x.shape[axis] - k * each) for k in range(count)]
    if sum(sizes) != x.shape[axis] or min(sizes) < 0:
        raise NotFolded("splits into parts that do not add up")
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@_operation("Expand")
def _expand(call: Call) -> list[Array]:
    x = call.first
    return [np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(n) for n in call.needed(1))))]


@_operation("Tile")
def _tile(call: Call) -> list[Array]:
    if len(call.inputs) > 2:
        raise NotFolded("is of version 1")
    return [np.tile(call.first, tuple(int(n) for n in call.needed(1)))]


# What makes shapes


@_operation("Size")
def _size(call: Call) -> list[Array]:
    return [np.array(call.first.size, np.int64)]


@_operation("ConstantOfShape")
def _constant_of_shape(call: Call) -> list[Array]:
    value = call.tensors.get("value", np.zeros(1, np.float32))
    return [np.broadcast_to(value.reshape(()), tuple(int(n) for n in call.first))]


@_operation("Range")
def _range(call: Call) -> list[Array]:
    start, limit, delta = (call.needed(k).reshape(()) for k in range(3))
    return [np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)]


# Arithmetic and logic, with shapes broadcast


def _divided(a: Array, b: Array) -> Array:
    """Whole numbers are divided towards zero."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    if not b.all():
        raise NotFolded("divides whole numbers by zero")
    quotient: Array = (np.abs(a) // np.abs(b) * (np.sign(a) * np.sign(b))).astype(a.dtype)
    return quotient


_OF_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divided,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
}


@_operation(*_OF_TWO)
def _of_two(call: Call) -> list[Array]:
    call.refuse("broadcast", "axis")  # before version 7 shapes were broadcast otherwise
    return [_OF_TWO[call.node.op_type](call.first, call.needed(1))]


_OF_ONE: dict[str, Callable[[Array], Array]] = {
    "Neg": np.negative,
    "Abs": np.abs,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Not": np.logical_not,
}


@_operation(*_OF_ONE)
def _of_one(call: Call) -> list[Array]:
    return [_OF_ONE[call.node.op_type](call.first)]


@_operation("Mod")
def _mod(call: Call) -> list[Array]:
    a, b = call.first, call.needed(1)
    if b.dtype.kind in "iu" and not b.all():
        raise NotFolded("divides whole numbers by zero")
    return [np.fmod(a, b) if call.attribute("fmod", 0) else np.mod(a, b)]


@_operation("Min", "Max")
def _extreme(call: Call) -> list[Array]:
    result = call.first
    for place in range(1, len(call.inputs)):
        result = (np.minimum if call.node.op_type == "Min" else np.maximum)(result, call.needed(place))
    return [result]


@_operation("Where")
def _where(call: Call) -> list[Array]:
    return [np.where(call.first, call.needed(1), call.needed(2))]


@_operation("ReduceProd")
def _reduce_prod(call: Call) -> list[Array]:
    x, axes = call.first, call.numbers("axes", 1)
    if axes == [] and call.attribute("noop_with_empty_axes", 0):
        return [x]
    keep = bool(call.attribute("keepdims", 1))
    return [np.prod(x, tuple(axes) if axes else None, dtype=x.dtype, keepdims=keep)]


# Quantized weights


def _along(x: Array, parameter: Array, axis: int) -> Array:
    """A scale or zero point in a shape that goes with the tensor's: one for all, or one for each slice of an axis."""
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim != 1:
        raise NotFolded("has a scale for each block")
    return parameter.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])


@_operation("DequantizeLinear")
def _dequantize(call: Call) -> list[Array]:
    call.refuse("block_size", "output_dtype")
    x, scale, zero_point, axis = call.first, call.needed(1), call.optional(2), call.attribute("axis", 1)
    levels = x.astype(np.int64)
    if zero_point is not None:
        levels = levels - _along(x, zero_point.astype(np.int64), axis)
    return [(levels.astype(np.float32) * _along(x, scale, axis).astype(np.float32)).astype(scale.dtype)]


@_operation("QuantizeLinear")
def _quantize(call: Call) -> list[Array]:
    call.refuse("block_size", "output_dtype", "precision")
    x, scale, zero_point, axis = call.first, call.needed(1), call.optional(2), call.attribute("axis", 1)
    zero = np.zeros((), np.uint8) if zero_point is None else zero_point
    if zero.dtype.kind not in "iu":
        raise NotFolded(f"quantizes to {zero.dtype.name}")
    limits = np.iinfo(zero.dtype)
    levels = np.rint(x / _along(x, scale, axis)) + _along(x, zero.astype(np.float64), axis)
    return [np.clip(levels, limits.min, limits.max).astype(zero.dtype)]


def bytes_of_result(call: Call) -> float:
    """At most so many bytes the outputs of a call take; looked at before anything is computed."""
    there = [array for array in call.inputs if array is not None]
    if not there:
        return 0.0
    each, op = float(max(8, *(array.itemsize for array in there))), call.node.op_type
    if op == "ConstantOfShape":
        return each * math.prod(max(int(n), 0) for n in np.ravel(call.first)[:64])
    if op in ("Expand", "Tile"):
        return each * there[0].size * math.prod(max(int(n), 1) for n in np.ravel(there[-1])[:64])
    if op == "Range":
        start, limit, delta = (float(call.needed(k).reshape(())) for k in range(3))
        return each * abs((limit - start) / delta) if delta else 0.0
    if op == "Gather":
        return each * there[0].size * max(there[1].size, 1)
    if op in _OF_TWO or op in ("Where", "Min", "Max", "Mod"):
        return each * math.prod(np.broadcast_shapes(*(array.shape for array in there)))
    return each * sum(array.size for array in there)

"""The operators that constants are computed through, on arrays: what exporters and quantizers put before weights.

Most are evaluated as onnx.reference has them. Casts are not, since it holds bfloat16 otherwise from release to release,
nor what has a tensor among its attributes, which it might read from a file.
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

    def numbers(self, name: str, place: int) -> list[int]:
        """Whole numbers that are an attribute or, in later versions, an input; none where they are neither."""
        array = self.optional(place)
        return [int(n) for n in (self.attribute(name, ()) if array is None else np.ravel(array))]

    def refuse(self, *names: str) -> None:
        """Raise NotFolded where one of these attributes is there."""
        for name in names:
            if any(a.name == name for a in self.node.attribute):
                raise NotFolded(f"has the attribute {name}")


def is_folded(op_type: str) -> bool:
    """Tell whether constants are computed through an operator of ONNX's own domain."""
    return op_type in EVALUATED or op_type in _OPERATIONS


def outputs_of(call: Call, opset: int) -> list[Array]:
    """The outputs of a call, by the version of its operator in an opset. Raises NotFolded, and whatever comes of inputs
    that do not fit."""
    operation = _OPERATIONS.get(call.node.op_type)
    return operation(call) if operation is not None else _evaluated(call, opset)


def _evaluated(call: Call, opset: int) -> list[Array]:
    from onnx.reference import ReferenceEvaluator  # which takes seconds to load

    op, there = call.node.op_type, [array for array in call.inputs if array is not None]
    if op in _BROADCASTING:
        call.refuse("broadcast", "axis")  # before version 7 shapes were broadcast otherwise
    if op in ("Div", "Mod") and call.needed(1).dtype.kind in "iu" and not call.needed(1).all():
        raise NotFolded("divides whole numbers by zero")
    sizes = call.numbers("split", 1) if op == "Split" else []
    if sizes and sum(sizes) != call.first.shape[call.attribute("axis", 0)]:
        raise NotFolded("splits into parts that do not add up")
    if op in _QUANTIZING:
        call.refuse("block_size", "output_dtype", "precision")
        if any(array.ndim > 1 for array in there[1:]):
            raise NotFolded("has a scale for each block")
        if any(array.dtype.kind not in "iu" for array in there[2:]):
            raise NotFolded("has levels that are no integers")
        opset = max(opset, _QUANTIZING_OPSET)
    names = [name for name in call.node.input if name]
    evaluator = ReferenceEvaluator(call.node, opsets={"": opset})
    given = dict(zip(names, there, strict=True))
    return [np.asarray(output) for output in evaluator.run(None, given)]


Operation = Callable[[Call], list[Array]]
_OPERATIONS: dict[str, Operation] = {}
"""Operators that are written here, by name."""

_BROADCASTING = ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or")

_QUANTIZING = ("DequantizeLinear", "QuantizeLinear")
_QUANTIZING_OPSET = 21
"""The opset whose forms of both know all types of levels; other domains have them beside older opsets."""

EVALUATED = frozenset(
    {
        *("Identity", "Reshape", "Squeeze", "Flatten", "Transpose", "Concat", "Slice", "Gather", "Split"),
        *("Expand", "Tile", "Size", "Range", "Neg", "Abs", "Floor", "Ceil", "Not", "Mod", "Min", "Max", "Where"),
        *("ReduceProd", *_BROADCASTING, *_QUANTIZING),
    }
)
"""Operators that onnx.reference evaluates: none does more work than its result has elements."""


def _operation(*names: str) -> Callable[[Operation], Operation]:
    def register(operation: Operation) -> Operation:
        _OPERATIONS.update(dict.fromkeys(names, operation))
        return operation

    return register


@_operation("Unsqueeze")  # which onnx.reference does not do for several axes that are an attribute
def _unsqueeze(call: Call) -> list[Array]:
    return [np.expand_dims(call.first, tuple(call.numbers("axes", 1)))]


@_operation("Cast")
def _cast(call: Call) -> list[Array]:
    to = call.attribute("to")
    if not isinstance(to, int):  # version 1 has a name there
        raise NotFolded("is of version 1")
    kind = ml_dtypes.bfloat16 if to == TensorProto.BFLOAT16 else helper.tensor_dtype_to_np_dtype(to)
    if np.dtype(kind).kind not in "fiub" and kind is not ml_dtypes.bfloat16:
        raise NotFolded(f"casts to {TensorProto.DataType.Name(to)}")
    return [call.first.astype(kind)]


@_operation("ConstantOfShape")
def _constant_of_shape(call: Call) -> list[Array]:
    value = call.tensors.get("value", np.zeros(1, np.float32))
    return [np.broadcast_to(value.reshape(()), tuple(int(n) for n in call.first))]


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
    if op in _BROADCASTING or op in ("Where", "Min", "Max", "Mod"):
        return each * math.prod(np.broadcast_shapes(*(array.shape for array in there)))
    return each * sum(array.size for array in there)

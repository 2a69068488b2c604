"""Operators through which constants are folded, on arrays: those that exporters and quantizers put before weights.

Most are evaluated by onnx.reference. Casts are not, because its representation of bfloat16 differs between releases.
Nodes with a tensor among their attributes are not either, because it might read that from a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper

Array = NDArray[Any]

_BROADCASTING = ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or")
_QUANTIZING = ("DequantizeLinear", "QuantizeLinear")
_QUANTIZING_OPSET = 21
"""The opset whose versions of both know all types of levels; other domains have these types with older opsets, too."""

FOLDED = frozenset(
    {
        *("Identity", "Reshape", "Squeeze", "Flatten", "Transpose", "Concat", "Slice", "Gather", "Split"),
        *("Expand", "Tile", "Size", "Range", "Neg", "Abs", "Floor", "Ceil", "Not", "Mod", "Min", "Max", "Where"),
        *("ReduceProd", "Unsqueeze", "Cast", "ConstantOfShape", *_BROADCASTING, *_QUANTIZING),
    }
)
"""Operators through which constants are folded: none does more work than its result has elements."""

_REFUSED = {
    # Before version 7, shapes were broadcast by other rules.
    **dict.fromkeys(_BROADCASTING, ("broadcast", "axis")),
    **dict.fromkeys(_QUANTIZING, ("block_size", "output_dtype", "precision")),
}
"""Attributes with which an operator is not computed here."""


class NotFolded(ValueError):
    """Form of an operator that is not computed here; the text says which."""


def outputs_of(
    node: NodeProto, inputs: Sequence[Array | None], tensors: Mapping[str, Array], opset: int
) -> list[Array]:
    """Return the outputs of a node of an operator that is folded, by its version in an opset.

    inputs
        By position; None for an absent one.
    tensors
        Arrays of those attributes that hold tensors.

    Raise NotFolded, and any error of onnx.reference for inputs that do not fit.
    """
    present = [array for array in inputs if array is not None]
    if not inputs or inputs[0] is None:
        raise NotFolded("has no input 0")
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name not in tensors}
    for name in _REFUSED.get(node.op_type, ()):
        if name in attributes:
            raise NotFolded(f"has the attribute {name}")
    if node.op_type == "Cast":
        return [_cast(inputs[0], attributes.get("to"))]
    if node.op_type == "ConstantOfShape":
        value = tensors.get("value", np.zeros(1, np.float32))
        return [np.broadcast_to(value.reshape(()), tuple(int(n) for n in inputs[0]))]
    # Whole numbers that are an attribute or, in later versions, an input.
    if node.op_type == "Unsqueeze":  # onnx.reference fails for several axes in an attribute
        axes = attributes.get("axes", ()) if len(present) < 2 else present[1].ravel()
        return [np.expand_dims(inputs[0], tuple(int(axis) for axis in axes))]
    if node.op_type == "Split":
        sizes = attributes.get("split", ()) if len(present) < 2 else present[1].ravel()
        if len(sizes) and sum(sizes) != inputs[0].shape[attributes.get("axis", 0)]:
            raise NotFolded("splits into parts that do not add up")
    if node.op_type in ("Div", "Mod") and present[1].dtype.kind in "iu" and not present[1].all():
        raise NotFolded("divides whole numbers by zero")
    if node.op_type in _QUANTIZING:
        _require_plain_codec(present)
        opset = max(opset, _QUANTIZING_OPSET)
    from onnx.reference import ReferenceEvaluator  # takes seconds to import

    feeds = dict(zip((name for name in node.input if name), present, strict=True))
    return [np.asarray(output) for output in ReferenceEvaluator(node, opsets={"": opset}).run(None, feeds)]


def _cast(array: Array, to: Any) -> Array:
    if not isinstance(to, int):  # version 1 has the type's name
        raise NotFolded("is of version 1")
    dtype = ml_dtypes.bfloat16 if to == TensorProto.BFLOAT16 else helper.tensor_dtype_to_np_dtype(to)
    if np.dtype(dtype).kind not in "fiub" and dtype is not ml_dtypes.bfloat16:
        raise NotFolded(f"casts to {TensorProto.DataType.Name(to)}")
    return array.astype(dtype)


def _require_plain_codec(inputs: Sequence[Array]) -> None:
    """Raise NotFolded for levels that are not integers, and for scales by block."""
    if any(array.ndim > 1 for array in inputs[1:]):
        raise NotFolded("has a scale for each block")
    if any(array.dtype.kind not in "iu" for array in inputs[2:]):
        raise NotFolded(f"quantizes to {inputs[2].dtype.name}")


def bytes_of_result(op_type: str, inputs: Sequence[Array | None]) -> float:
    """Return an upper bound of the bytes of an operator's outputs, to check before it is computed."""
    present = [array for array in inputs if array is not None]
    if not present:
        return 0.0
    width = float(max(8, *(array.itemsize for array in present)))
    if op_type == "ConstantOfShape":
        return width * math.prod(max(int(n), 0) for n in np.ravel(present[0])[:64])
    if op_type in ("Expand", "Tile"):
        return width * present[0].size * math.prod(max(int(n), 1) for n in np.ravel(present[-1])[:64])
    if op_type == "Range":
        start, limit, delta = (float(array.reshape(())) for array in present)
        return width * abs((limit - start) / delta) if delta else 0.0
    if op_type == "Gather":
        return width * present[0].size * max(present[1].size, 1)
    if op_type in _BROADCASTING or op_type in ("Where", "Min", "Max", "Mod"):
        return width * math.prod(np.broadcast_shapes(*(array.shape for array in present)))
    return width * sum(array.size for array in present)

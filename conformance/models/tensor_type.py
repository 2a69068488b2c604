"""Types of tensors before the model runs: element type and shape, as far as they are known."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import TensorShapeProto, TypeProto

Dimension = int | str | None
"""Extent: a number, a name, or None if it is unknown."""


@dataclass(frozen=True)
class Type:
    """The type of a tensor before the model runs.

    element
        ONNX's number of the element type; None if it is unknown.
    shape
        None if even the rank is unknown.
    certain
        Whether it follows from inputs, constants and operators; otherwise the file only declares it.
    """

    element: int | None = None
    shape: tuple[Dimension, ...] | None = None
    certain: bool = True


UNKNOWN = Type()


def type_from(proto: TypeProto, certain: bool) -> Type:
    if not proto.HasField("tensor_type") or not proto.tensor_type.elem_type:
        return UNKNOWN
    shape: tuple[Dimension, ...] | None = None
    if proto.tensor_type.HasField("shape"):
        shape = tuple(map(_dimension, proto.tensor_type.shape.dim))
    return Type(proto.tensor_type.elem_type, shape, certain)


def _dimension(declared: TensorShapeProto.Dimension) -> Dimension:
    if declared.HasField("dim_value"):
        return declared.dim_value if declared.dim_value >= 0 else None
    return declared.dim_param or None

"""Conversion of tensors between ONNX and arrays, bfloat16 included, in every version of onnx."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from ...reference import FORMATS

Array = NDArray[Any]


@cache
def element_type(dtype: np.dtype[Any]) -> int:
    """Return ONNX's number of the element type of arrays."""
    if dtype.name in FORMATS:
        return FORMATS[dtype.name].onnx_type
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def dtype_named(type: str) -> np.dtype[Any]:
    """Return the NumPy type of that name, bfloat16 included."""
    return FORMATS[type].dtype if type in FORMATS else np.dtype(type)


def tensor_proto(name: str, array: NDArray[Any]) -> TensorProto:
    """Return a tensor in ONNX's form with the bytes of an array; bfloat16 included, in every version of onnx."""
    little = np.ascontiguousarray(array)
    if little.dtype.byteorder == ">":
        little = little.astype(little.dtype.newbyteorder("<"))
    return TensorProto(name=name, data_type=element_type(array.dtype), dims=array.shape, raw_data=little.tobytes())


# Types that are fed to targets: NumPy's number types, and bfloat16.
_NUMBERS = frozenset(
    {
        *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL),
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
        *(TensorProto.COMPLEX64, TensorProto.COMPLEX128),
    }
)


def array_of(tensor: TensorProto) -> Array:
    """Return the numbers of a tensor, bfloat16 as the type of ml_dtypes in every version of onnx.

    Raise ValueError for a tensor whose data does not fit its shape, TypeError for one without numbers.
    """
    if tensor.data_type not in TensorProto.DataType.values() or tensor.data_type == TensorProto.UNDEFINED:
        raise ValueError("holds no tensor; is it cut off?")
    if tensor.data_type not in _NUMBERS:
        raise TypeError(f"holds {TensorProto.DataType.Name(tensor.data_type).lower()}, which targets are not fed")
    if any(extent < 0 for extent in tensor.dims):
        raise ValueError(f"holds a tensor of shape {tuple(tensor.dims)}")
    array: Array
    try:
        if tensor.data_type != TensorProto.BFLOAT16:
            array = numpy_helper.to_array(tensor)
            return array
        if tensor.HasField("raw_data"):
            bits = np.frombuffer(tensor.raw_data, "<u2").astype(np.uint16)
        else:
            bits = np.array(tensor.int32_data, np.int64).astype(np.uint16)
        array = bits.view(ml_dtypes.bfloat16).reshape(tuple(tensor.dims))
        return array
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"holds a tensor that is cut off or broken: {error}") from None

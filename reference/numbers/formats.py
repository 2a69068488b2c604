"""Floating-point formats of tensors: their roundings and limits."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class Format(Struct, frozen=True, dict=True):
    """One binary floating-point format.

    ``unit`` is the unit roundoff u: rounding to nearest changes a normal number x by at most u|x|. Below
    ``least_normal`` the error is at most half of ``least_subnormal`` instead, or ``least_normal`` itself where
    subnormals are flushed to zero. Numbers beyond ``largest`` round to infinity.
    """

    name: str
    precision: int
    least_exponent: int
    largest: float
    onnx_type: int

    @property
    def unit(self) -> float:
        return 2.0**-self.precision

    @property
    def least_normal(self) -> float:
        return 2.0**self.least_exponent

    @property
    def least_subnormal(self) -> float:
        return 2.0 ** (self.least_exponent - self.precision + 1)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type that holds this format (bfloat16 is that of ml_dtypes)."""
        return np.dtype(ml_dtypes.bfloat16 if self.name == "bfloat16" else self.name)

    def nearest(self, numbers: NDArray[np.float64]) -> NDArray[Any]:
        """Return float64 numbers in this format's type, rounded once: to nearest, ties to even, infinity beyond
        ``largest``."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.name != "bfloat16":
                return numbers.astype(self.dtype)
            # ml_dtypes goes through float32, which rounds twice. Rounding to odd there preserves the digits that decide
            # a tie (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Comput. 57, 2008).
            single = numbers.astype(np.float32)
            even = single.view(np.uint32) & np.uint32(1) == 0
            inexact = (single != numbers) & ~np.isnan(numbers)
            towards = np.where(numbers > single, np.float32(np.inf), np.float32(-np.inf))
            return np.where(inexact & even, np.nextafter(single, towards), single).astype(self.dtype)


# IEEE 754-2019, table 3.5, and bfloat16 (8 exponent bits of binary32, 8 bits of precision).
# The last column is the number of the type in onnx.TensorProto.DataType.
FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("float16", 11, -14, 65504.0, 10),
        Format("bfloat16", 8, -126, (2 - 2.0**-7) * 2.0**127, 16),
        Format("float32", 24, -126, (2 - 2.0**-23) * 2.0**127, 1),
        Format("float64", 53, -1022, float(np.finfo(np.float64).max), 11),
    )
}


def format_of(dtype: np.dtype[Any] | str) -> Format:
    """Return the format of a NumPy type, ml_dtypes.bfloat16 included.

    Raise ValueError for a type that no recurrent operator takes.
    """
    name = dtype if isinstance(dtype, str) else dtype.name
    try:
        return FORMATS[name]
    except KeyError:
        raise ValueError(f"{name} is no type of a recurrent operator; these are: {', '.join(FORMATS)}") from None

"""Quantization per channel: each slice of a tensor along an axis has its own scale and zero point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .affine import Affine

__all__ = ["Channels", "Codec", "product_codec"]


@dataclass(frozen=True)
class Channels:
    """Quantization along an axis.

    axis
        Axis of the tensor.
    each
        The codec of every slice; all of one type.

    Raise ValueError if there is no codec, or if they have different types.
    """

    axis: int
    each: tuple[Affine, ...]

    def __post_init__(self) -> None:
        if len({(codec.bits, codec.signed) for codec in self.each}) != 1:
            raise ValueError("channels are one or more, of one type of integers")

    @property
    def bits(self) -> int:
        """The bits of the integer type."""
        return self.each[0].bits

    @property
    def signed(self) -> bool:
        """Whether the type has negative levels."""
        return self.each[0].signed

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of arrays of levels."""
        return self.each[0].dtype

    @cached_property
    def scales(self) -> NDArray[np.float32]:
        """The scale of each channel."""
        return np.array([codec.scale for codec in self.each], np.float32)

    @cached_property
    def zero_points(self) -> NDArray[Any]:
        """The zero point of each channel, in the type of levels."""
        return np.array([codec.zero_point for codec in self.each], self.dtype)

    def levels(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """Return the levels of numbers, as int64; see :meth:`.affine.Affine.levels`."""
        return self._by_channel(x, "levels")

    def dequantized(self, levels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the numbers of levels; see :meth:`.affine.Affine.dequantized`."""
        return self._by_channel(levels, "dequantized")

    def _by_channel(self, array: NDArray[Any], does: str) -> NDArray[Any]:
        """Return the results of a method of the codecs, by slice. Raise ValueError for a tensor with another number of
        slices."""
        slices = np.moveaxis(array, self.axis, 0)
        results = [getattr(codec, does)(part) for codec, part in zip(self.each, slices, strict=True)]
        return np.moveaxis(np.stack(results), 0, self.axis)


Codec = Affine | Channels
"""Quantization of a tensor, for the whole tensor or per channel."""


def product_codec(codecs: Mapping[str, Codec]) -> Codec:
    """Return the int32 codec in which integer kernels add a bias.

    The scale is that of the products of X and W. For the second half of B it is that of X and R, because states are
    multiplied in levels like those of X. The codec is per channel if weights are.

    codecs
        Codecs of X, W and R by name.

    Raise KeyError if one of them is not quantized.
    """
    x, w, r = (codecs[name] for name in "XWR")
    assert isinstance(x, Affine)
    if isinstance(w, Affine):
        return Affine(x.scale * w.scale, 0, 32, True)
    factors = [x.scale * codec.scale for codec in w.each]
    if w.axis == 1 and isinstance(r, Channels):
        factors += [x.scale * codec.scale for codec in r.each]
    return Channels(w.axis, tuple(Affine(factor, 0, 32, True) for factor in factors))

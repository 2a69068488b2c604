"""Affine quantization to integers, as in ONNX's QuantizeLinear and AMD Quark's documents.

A number x is stored as the level ``round(x / scale) + zero_point``, rounded half to even and saturated to the type's
range. A level q represents the number ``(q - zero_point) * scale``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

# Quotients beyond this are far outside every range, but within int64.
_FAR = 2.0**40


@dataclass(frozen=True)
class Affine:
    """Per-tensor quantization: scale, zero point and integer type.

    Levels of 32 bits are used for biases only.

    scale
        A positive finite float32 value.
    bits, signed
        The integer type.
    ordered
        Whether quantization is monotone: a greater number never has a lower level.

    Raise ValueError for a scale that is not positive and finite, and for a zero point outside the type's range.
    """

    scale: float
    zero_point: int
    bits: int = 16
    signed: bool = False
    ordered: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", float(np.float32(self.scale)))
        if not 0 < self.scale < math.inf:
            raise ValueError(f"a scale is a positive finite number, not {self.scale}")
        if not self.lowest <= self.zero_point <= self.highest:
            raise ValueError(
                f"a zero point of {self.bits} bits lies between {self.lowest} and {self.highest}, not {self.zero_point}"
            )

    @property
    def scales(self) -> NDArray[np.float32]:
        """The scale, as a zero-dimensional array."""
        return np.array(self.scale, np.float32)

    @property
    def zero_points(self) -> NDArray[Any]:
        """The zero point, as a zero-dimensional array of the type of levels."""
        return np.array(self.zero_point, self.dtype)

    @property
    def highest(self) -> int:
        """The highest level."""
        return int(2 ** (self.bits - self.signed) - 1)

    @property
    def lowest(self) -> int:
        """The lowest level."""
        return -int(2 ** (self.bits - 1)) if self.signed else 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of arrays of levels."""
        return np.dtype(f"{'int' if self.signed else 'uint'}{self.bits}")

    @property
    def least(self) -> float:
        """The least number that a level represents."""
        return (self.lowest - self.zero_point) * self.scale

    @property
    def greatest(self) -> float:
        """The greatest number that a level represents."""
        return (self.highest - self.zero_point) * self.scale

    def levels(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """Return the levels of numbers, as int64. Infinities saturate; NaN, which has no level, gives the zero point.

        For float32 numbers the rounded quotient decides ties like the exact one: x/scale and a tie are equal or differ
        by at least 2^-41 of x/scale (24 bits over 24 bits against 17), and float64 resolves this.
        """
        return self._saturated(self.nearest(self._quotient(x)))

    def dequantized(self, levels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the numbers of levels. They are exact in float64 for levels of at most 29 bits, times a scale of 24
        bits."""
        numbers: NDArray[np.float64] = (levels - self.zero_point) * self.scale
        return numbers

    def rounded(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """Return numbers quantized and dequantized."""
        return self.dequantized(self.levels(x))

    def between(
        self, low: NDArray[Any], high: NDArray[Any], relative: float = 2.0**-22
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lowest and the highest possible level of a number in [low, high].

        relative
            Relative error of the quotient, in addition to the number's: see :meth:`undecided`.
        """
        ends = (self._quotient(low), -1.0), (self._quotient(high), 1.0)
        lowest, highest = (self._saturated(self.nearest(end + side * relative * np.abs(end))) for end, side in ends)
        if not self.ordered:
            apart = lowest > highest
            lowest, highest = np.where(apart, self.lowest, lowest), np.where(apart, self.highest, highest)
        return lowest, highest

    def nearest(self, quotient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return quotients rounded to whole numbers."""
        return np.rint(quotient)

    def within(self, levels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return whole numbers saturated to the type's range."""
        return np.clip(levels, self.lowest, self.highest)

    def undecided(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """Return a mask of the numbers so near to a tie that a conforming implementation may choose the other level.

        The relative error of a float32 quotient before rounding is 2^-24, or 2^-23 for a rounded reciprocal.
        """
        quotient = np.clip(self._quotient(x), -_FAR, _FAR)
        reach = np.abs(quotient) * 2.0**-23
        low, high = (self._saturated(self.nearest(quotient + side * reach)) for side in (-1, 1))
        beyond = np.abs(quotient) > 2 * self.highest
        undecided: NDArray[np.bool_] = (low != high) | (reach >= 0.5) & ~beyond
        return undecided

    def _quotient(self, x: NDArray[Any]) -> NDArray[np.float64]:
        quotient: NDArray[np.float64] = np.asarray(x, np.float64) / self.scale
        return quotient

    def _saturated(self, rounded: NDArray[np.float64]) -> NDArray[np.int64]:
        finite = np.clip(np.where(np.isnan(rounded), 0.0, rounded), -_FAR, _FAR)
        return self.within(finite.astype(np.int64) + self.zero_point)


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

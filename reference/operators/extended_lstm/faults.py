"""Faults of ExtendedLSTM: quantization and fixed-point arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...numbers.affine import Affine
from .arithmetic import Operand, Stages, Sums
from .computation import of

Integers = NDArray[np.int64]

NO_POWER = -(2**31)
"""The int that x86 converts infinity and NaN to."""


def _power_shift(count: int) -> int:
    """Return ``1 << count`` as a C int on x86, which takes any count modulo 32; 31 gives -2^31."""
    return ((1 << (count % 32)) + 2**31) % 2**32 - 2**31


def _ceil_log2(x: float) -> int | None:
    """Return the least integer e with |x| <= 2^e; None where there is none: 0, infinity and NaN.

    The kernel calls log2. The error of log2 is too small to matter, because its arguments have at most 41 bits.
    """
    if x == 0 or not math.isfinite(x):
        return None
    mantissa, exponent = math.frexp(abs(x))
    return exponent - 1 if mantissa == 0.5 else exponent


def _int16(x: float) -> int:
    """Return x rounded half away from zero, with the kernel's errors.

    The sign is that of the integer part, so numbers between -1 and -1/2 become 0 instead of -1. The limits are those of
    17 bits, so numbers between 16 and 17 bits wrap around instead of saturating.
    """
    if math.isnan(x):
        return 0  # NaN as int is -2^31, which is 0 modulo 2^16
    bounded = int(min(max(x + 0.5 if x > -1 else x - 0.5, -(2**16)), 2**16 - 1))
    return (bounded + 2**15) % 2**16 - 2**15


def shifted(x: Integers, count: int) -> Integers:
    """Return x / 2^count, rounded half away from zero and saturated to int32.

    The added half is a C int: for count 32 it is -2^31, for greater counts it is too small by 2^32.
    """
    half = 0 if count == 0 else _power_shift(count - 1)
    size = (np.abs(x) + half) >> (count % 64)
    return np.clip(np.where(x < 0, -size, size), -(2**31), 2**31 - 1)


class Factor(Struct, frozen=True):
    """A number as a 16-bit mantissa and a power of two: number = mantissa * 2^-power.

    The mantissa's size is in (2^14, 2^15] and stored in int16. There 2^15, the mantissa of every power of two, becomes
    -2^15: its sign is lost. If the power is outside 0 ... 30, a C int cannot be shifted by it, and the mantissa is
    garbage.
    """

    mantissa: int
    power: int

    @classmethod
    def of(cls, x: float) -> Factor:
        """Return the kernel's form of a number."""
        exponent = _ceil_log2(x)
        power = NO_POWER if exponent is None else 15 - exponent
        return cls(_int16(_power_shift(power) * float(x)), power)

    def times(self, x: Integers, already: int = 0) -> Integers:
        """Return integers multiplied by the number.

        `already` is the power of two by which they were divided before. The shift count is held in 8 bits.
        """
        return shifted(x * self.mantissa, (self.power - already) % 256)


ZERO = Factor(0, NO_POWER)
"""Factor for 0 as the kernel stores it: it adds nothing, although its logarithm is undefined."""


# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

Array = NDArray[np.float64]

_ONE = 2.0**24
_BOUND = 128.0

# Quantization.


def _quotient(affine: Affine, array: NDArray[Any]) -> Array:
    quotient: Array = np.nan_to_num(
        np.asarray(array, np.float64) / affine.scale, nan=0.0, posinf=2.0**40, neginf=-(2.0**40)
    )
    return np.clip(quotient, -(2.0**40), 2.0**40)


def _with_levels(stages: Stages, levels: Callable[[Affine, Array], Array]) -> Stages:
    """Return the stages that compute levels by `levels`, a function of (affine, number / scale)."""

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        return Operand.from_levels(affine, levels(affine, _quotient(affine, array)))

    return replace(stages, quantized=quantized)


def _with_operands(stages: Stages, change: Callable[[Operand, Affine, Array], Operand]) -> Stages:
    """Return the stages that change operands of products by `change`, a function of (operand, affine, numbers)."""
    below = stages.quantized

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        return change(below(name, affine, array), affine, array)

    return replace(stages, quantized=quantized)


def _truncated(stages: Stages) -> Stages:
    return _with_levels(stages, lambda y, quotient: np.clip(np.trunc(quotient) + y.zero_point, 0, y.highest))


def _zero_point_ignored(stages: Stages) -> Stages:
    return _with_operands(stages, lambda operand, affine, array: replace(
        operand, value=operand.centred * affine.scale, centre=0
    ))


def _infinity_lowest(operand: Operand, affine: Affine, array: Array) -> Operand:
    far = ~(np.abs(array.astype(np.float64) / affine.scale) < 2.0**63)
    least = Operand.from_levels(affine, np.zeros(array.shape))
    parts = {n: np.where(far, getattr(least, n), getattr(operand, n)) for n in ("value", "centred", "radius")}
    return replace(operand, **parts)


of("extended.quantization.truncated", "quantization.rounding",
    "Cuts quotients off towards zero instead of rounding them.", _truncated, kind="small")
of("extended.quantization.wraps", "quantization.saturation", "Takes levels modulo 2^16 instead of saturating them.",
    lambda stages: _with_levels(stages, lambda y, q: np.mod(np.rint(q) + y.zero_point, y.highest + 1)))
of("extended.quantization.unbounded", "quantization", "Computes with the numbers as they are, not with their levels.",
    lambda stages: _with_levels(stages, lambda y, quotient: quotient + y.zero_point))
of("extended.quantization.infinity-lowest", "quantization.saturation",
    "Takes infinity, and whatever is 2^63 scales or more, for the least number, of either sign.",
    lambda stages: _with_operands(stages, _infinity_lowest))
of("extended.quantization.zero-point-ignored", "quantization",
    "Dequantizes as if zero points were 32768, whatever they are.", _zero_point_ignored)
of("extended.quantization.signed", "zero-points.range", "Quantizes to int16: what lies above level 32767 saturates.",
    lambda stages: _with_operands(stages, lambda operand, affine, array: Operand.from_levels(
        affine, np.minimum(operand.centred + 32768, 32767), operand.radius
    )))
of("extended.quantization.bytes", "quantization", "Keeps the upper eight bits of each level only.",
    lambda stages: _with_operands(stages, lambda operand, affine, array: Operand.from_levels(
        affine, np.floor((operand.centred + 32768) / 256) * 256
    )))


def _for_one(tensor: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the change, limited to one tensor's levels."""
    return lambda c: c.with_input(tensor, change(c))


for _tensor in "XWRB":
    of(f"extended.quantization.truncated-{_tensor}", "quantization.rounding",
        f"Cuts quotients of {_tensor} off towards zero instead of rounding them.",
        _for_one(_tensor, _truncated), kind="small")
    of(f"extended.quantization.zero-point-ignored-{_tensor}", "quantization",
        f"Dequantizes {_tensor} as if its zero point were 32768, whatever it is.",
        _for_one(_tensor, _zero_point_ignored))


# Fixed-point arithmetic.


def _parts(x: Operand, w: Operand) -> tuple[Array, Array, Array]:
    """Return the exact parts of a product: sum ab and -q sum a in units of the scales, and the part that is equal in
    all steps, as a number."""
    unit, terms = x.scale * w.scale, x.value.shape[-1]
    products = x.centred @ w.centred.T
    tilt = -w.centre * x.centred.sum(-1, keepdims=True)
    constant = (terms * x.centre * w.centre - x.centre * w.centred.sum(-1)) * unit
    return products, tilt, constant


def _kind(factor: Factor, terms: int = 0) -> str:
    """Return how a 16-bit mantissa holds a factor: ``right``, ``sign`` (lost), ``small`` or ``large``."""
    if factor == ZERO:
        return "right"
    if factor.power == NO_POWER:
        return "large"
    if factor.power > 30:
        return "small"
    if factor.power - terms < 0:
        return "large"
    return "sign" if factor.mantissa == -(2**15) else "right"


def _by_factors(sums: Sums, kind: str) -> Array:
    """Return the error of products with factors of that kind in the shipped kernel's arithmetic."""
    total = np.zeros_like(sums.total)
    for x, w in ((sums.x, sums.w), (sums.h, sums.r)):
        if not x.scale or not x.value.size:
            continue
        unit = float(np.float64(np.float32(x.scale) * np.float32(w.scale)) * _ONE)
        products, tilt, _ = _parts(x, w)
        terms = max(int(np.ceil(np.log2(x.value.shape[-1]))), 0)
        exact = x.scale * w.scale
        factor = Factor.of(unit)
        if _kind(factor, terms) == kind:
            levels = np.rint(products).astype(np.int64)
            scaled = factor.times(shifted(levels, terms), terms)
            total += scaled / _ONE - products * exact
        if w.centre:
            slope = Factor.of(unit * w.centre)
            # For a negative factor, the lost sign is the correct one.
            if _kind(slope) == kind and not (kind == "sign" and w.centre < 0):
                scaled = slope.times(np.rint(tilt / -w.centre).astype(np.int64))
                total += -scaled / _ONE - tilt * exact
    return total


def shift_too(stages: Stages, more: Callable[[Sums], Any]) -> Stages:
    """Return the stages that also add `more` to pre-activations."""
    below = stages.shift
    return replace(stages, shift=lambda sums: below(sums) + more(sums))


def _scale_of_w(sums: Sums) -> Array:
    return np.asarray(sums.h.value @ sums.r.value.T * (sums.w.scale / sums.r.scale - 1))


def _saturated_terms(sums: Sums) -> Array:
    off, constant = np.zeros_like(sums.total), sums.bias
    for x, w in ((sums.x, sums.w), (sums.h, sums.r)):
        products, tilt, fixed = _parts(x, w)
        unit = float(np.float64(np.float32(x.scale) * np.float32(w.scale)) * _ONE)
        terms = max(int(np.ceil(np.log2(max(x.value.shape[-1], 1)))), 0)
        kinds = _kind(Factor.of(unit), terms), _kind(Factor.of(unit * w.centre)) if w.centre else "right"
        for part, kind in zip((products, tilt), kinds, strict=True):
            if kind != "right" and not (kind == "sign" and w.centre < 0 and part is tilt):
                continue  # other faults with their own bounds
            number = part * (x.scale * w.scale)
            off = off + np.clip(number, -_BOUND, _BOUND) - number
        constant = constant + fixed
    return np.asarray(off + np.clip(constant, -_BOUND, _BOUND) - constant)


def _wrapped(stages: Stages) -> Stages:
    below = stages.shift

    def shift(sums: Sums) -> Array:
        off = np.asarray(below(sums))
        total = sums.total + off
        return np.asarray(off + np.mod(total + _BOUND, 2 * _BOUND) - _BOUND - total)

    return replace(stages, shift=shift)


of("extended.scales.sign-lost", "scales.any",
    "Takes a product with the wrong sign whose scales multiply to a power of two.",
    lambda stages: shift_too(stages, lambda sums: _by_factors(sums, "sign")))
of("extended.scales.small-vanish", "scales.any",
    "Loses products whose scales multiply to less than 2^-40, or takes them with the wrong sign.",
    lambda stages: shift_too(stages, lambda sums: _by_factors(sums, "small")))
of("extended.scales.large-garbage", "scales.any",
    "Shifts by negative counts where scales, or a scale times a zero point's offset, multiply to more than 2^-9.",
    lambda stages: shift_too(stages, lambda sums: _by_factors(sums, "large")))
of("extended.scales.one-for-weights", "scales.any",
    "Multiplies the recurrent product with the scale of W instead of that of R.",
    lambda stages: shift_too(stages, _scale_of_w))
of("extended.pre-activation.terms-saturate", "equations",
    "Saturates each term of a pre-activation (products, corrections, constants) at +-128, whatever their sum.",
    lambda stages: shift_too(stages, _saturated_terms))
of("extended.pre-activation.wraps", "equations",
    "Lets a pre-activation that reaches +-128 wrap around to the other sign.",
    _wrapped)
of("extended.pre-activation.clipped", "equations", "Clips pre-activations to +-8, as a table of functions would.",
    lambda stages: shift_too(stages, lambda sums: np.clip(sums.total, -8.0, 8.0) - sums.total))
of("extended.functions.hard-sigmoid", "equations", "Computes gates with HardSigmoid.",
    lambda stages: replace(stages, functions=("HardSigmoid", *stages.functions[1:])))
of("extended.functions.linear-output", "equations", "Leaves out the tanh of the cell state.",
    lambda stages: replace(stages, functions=(*stages.functions[:2], "Affine")))

"""Faults of ExtendedLSTM: quantization and fixed-point arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.affine import Affine
from .computation import ExtendedComputation, of
from .kernel import NO_POWER, ZERO, Factor, shifted
from .stages import Operand, Stages, Sums

Array = NDArray[np.float64]

_ONE = 2.0**24
_INT32 = (-(2**31), 2**31 - 1)
_BOUND = 128.0

# Quantization.


def _quotient(affine: Affine, array: NDArray[Any]) -> Array:
    quotient: Array = np.nan_to_num(
        np.asarray(array, np.float64) / affine.scale, nan=0.0, posinf=2.0**40, neginf=-(2.0**40)
    )
    return np.clip(quotient, -(2.0**40), 2.0**40)


@of("extended.quantization.truncated", clause="quantization.rounding", fine=True)
def _truncated(stages: Stages) -> Stages:
    """Cuts quotients off towards zero instead of rounding them."""

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        levels = np.clip(np.trunc(_quotient(affine, array)) + affine.zero_point, 0, affine.highest)
        return Operand.from_levels(affine, levels)

    return replace(stages, quantized=quantized)


@of("extended.quantization.wraps", clause="quantization.saturation")
def _wraps(stages: Stages) -> Stages:
    """Takes levels modulo 2^16 instead of saturating them."""

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        levels = np.mod(np.rint(_quotient(affine, array)) + affine.zero_point, affine.highest + 1)
        return Operand.from_levels(affine, levels)

    return replace(stages, quantized=quantized)


@of("extended.quantization.unbounded", clause="quantization")
def _unbounded(stages: Stages) -> Stages:
    """Computes with the numbers as they are, not with their levels."""

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        return Operand.from_levels(affine, _quotient(affine, array) + affine.zero_point)

    return replace(stages, quantized=quantized)


@of("extended.quantization.infinity-lowest", clause="quantization.saturation", disagreements=("infinity-to-lowest",))
def _infinity_lowest(stages: Stages) -> Stages:
    """Takes infinity, and whatever is 2^63 scales or more, for the least number, of either sign."""
    below = stages.quantized

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        operand = below(name, affine, array)
        far = ~(np.abs(array.astype(np.float64) / affine.scale) < 2.0**63)
        least = Operand.from_levels(affine, np.zeros(array.shape))
        parts = {n: np.where(far, getattr(least, n), getattr(operand, n)) for n in ("value", "centred", "radius")}
        return replace(operand, **parts)

    return replace(stages, quantized=quantized)


@of("extended.quantization.zero-point-ignored", clause="quantization")
def _zero_point_ignored(stages: Stages) -> Stages:
    """Dequantizes as if zero points were 32768, whatever they are."""
    below = stages.quantized

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        operand = below(name, affine, array)
        return replace(operand, value=operand.centred * affine.scale, centre=0)

    return replace(stages, quantized=quantized)


@of("extended.quantization.signed", clause="zero-points.range")
def _signed(stages: Stages) -> Stages:
    """Quantizes to int16: what lies above level 32767 saturates."""
    below = stages.quantized

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        operand = below(name, affine, array)
        return Operand.from_levels(affine, np.minimum(operand.centred + 32768, 32767), operand.radius)

    return replace(stages, quantized=quantized)


@of("extended.quantization.bytes", clause="quantization")
def _bytes(stages: Stages) -> Stages:
    """Keeps the upper eight bits of each level only."""
    below = stages.quantized

    def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        operand = below(name, affine, array)
        return Operand.from_levels(affine, np.floor((operand.centred + 32768) / 256) * 256)

    return replace(stages, quantized=quantized)


# The same for one tensor alone.


def _for_one(tensor: str, change: Callable[[Any], Any], summary: str) -> Callable[[Any], Any]:
    """The change, for one tensor's levels only."""

    def one(c: ExtendedComputation) -> ExtendedComputation:
        return c.with_input(tensor, change(c))

    one.__doc__ = summary
    return one


for _tensor in "XWRB":
    of(f"extended.quantization.truncated-{_tensor}", clause="quantization.rounding", fine=True)(
        _for_one(_tensor, _truncated, f"Cuts quotients of {_tensor} off towards zero instead of rounding them.")
    )
    of(f"extended.quantization.zero-point-ignored-{_tensor}", clause="quantization")(
        _for_one(
            _tensor, _zero_point_ignored, f"Dequantizes {_tensor} as if its zero point were 32768, whatever it is."
        )
    )


# Fixed-point arithmetic.


def _parts(x: Operand, w: Operand) -> tuple[Array, Array, Array]:
    """A product's parts, exact: sum ab and -q sum a in units of the scales; and all that does not change from step to
    step, as a number."""
    unit, terms = x.scale * w.scale, x.value.shape[-1]
    products = x.centred @ w.centred.T
    tilt = -w.centre * x.centred.sum(-1, keepdims=True)
    constant = (terms * x.centre * w.centre - x.centre * w.centred.sum(-1)) * unit
    return products, tilt, constant


def _kind(factor: Factor, terms: int = 0) -> str:
    """Fates of a factor in a mantissa of 16 bits: ``right``, ``sign`` (lost), ``small``, ``large``."""
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
    """The error of products with factors of that kind in the shipped kernel's arithmetic."""
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
            scaled = factor.times(shifted(levels.copy(), terms, _INT32), terms)
            total += scaled / _ONE - products * exact
        if w.centre:
            slope = Factor.of(unit * w.centre)
            # Of a negative number the lost sign is the right one.
            if _kind(slope) == kind and not (kind == "sign" and w.centre < 0):
                scaled = slope.times(np.rint(tilt / -w.centre).astype(np.int64))
                total += -scaled / _ONE - tilt * exact
    return total


def _shift_too(stages: Stages, more: Any) -> Stages:
    below = stages.shift
    return replace(stages, shift=lambda sums: below(sums) + more(sums))


@of("extended.scales.sign-lost", clause="scales.any", disagreements=("sign-lost",))
def _sign_lost(stages: Stages) -> Stages:
    """Takes a product with the wrong sign whose scales multiply to a power of two."""
    return _shift_too(stages, lambda sums: _by_factors(sums, "sign"))


@of("extended.scales.small-vanish", clause="scales.any", disagreements=("small-scales",))
def _small(stages: Stages) -> Stages:
    """Loses products whose scales multiply to less than 2^-40, or takes them with the wrong sign."""
    return _shift_too(stages, lambda sums: _by_factors(sums, "small"))


@of("extended.scales.large-garbage", clause="scales.any", disagreements=("large-scales",))
def _large(stages: Stages) -> Stages:
    """Shifts by negative counts where scales, or a scale times a zero point's offset, multiply to more than 2^-9."""
    return _shift_too(stages, lambda sums: _by_factors(sums, "large"))


@of("extended.scales.one-for-weights", clause="scales.any")
def _one_scale(stages: Stages) -> Stages:
    """Multiplies the recurrent product with the scale of W instead of that of R."""

    def shift(sums: Sums) -> Array:
        factor = sums.w.scale / sums.r.scale - 1
        return np.asarray(sums.h.value @ sums.r.value.T * factor)

    return _shift_too(stages, shift)


@of("extended.pre-activation.terms-saturate", clause="equations", disagreements=("preactivation-wraps",))
def _terms_saturate(stages: Stages) -> Stages:
    """Saturates each term of a pre-activation (products, corrections, constants) at +-128, whatever their sum."""

    def shift(sums: Sums) -> Array:
        off, constant = np.zeros_like(sums.total), sums.bias
        for x, w in ((sums.x, sums.w), (sums.h, sums.r)):
            products, tilt, fixed = _parts(x, w)
            unit = float(np.float64(np.float32(x.scale) * np.float32(w.scale)) * _ONE)
            terms = max(int(np.ceil(np.log2(max(x.value.shape[-1], 1)))), 0)
            kinds = _kind(Factor.of(unit), terms), _kind(Factor.of(unit * w.centre)) if w.centre else "right"
            for part, kind in zip((products, tilt), kinds, strict=True):
                if kind != "right" and not (kind == "sign" and w.centre < 0 and part is tilt):
                    continue  # another fault, with bounds of its own
                number = part * (x.scale * w.scale)
                off = off + np.clip(number, -_BOUND, _BOUND) - number
            constant = constant + fixed
        return np.asarray(off + np.clip(constant, -_BOUND, _BOUND) - constant)

    return _shift_too(stages, shift)


@of("extended.pre-activation.wraps", clause="equations", disagreements=("preactivation-wraps",))
def _pre_wraps(stages: Stages) -> Stages:
    """Lets a pre-activation that reaches +-128 wrap around to the other sign."""
    below = stages.shift

    def shift(sums: Sums) -> Array:
        off = np.asarray(below(sums))
        total = sums.total + off
        return np.asarray(off + np.mod(total + _BOUND, 2 * _BOUND) - _BOUND - total)

    return replace(stages, shift=shift)


@of("extended.pre-activation.clipped", clause="equations")
def _clipped(stages: Stages) -> Stages:
    """Clips pre-activations to +-8, as a table of functions would."""
    return _shift_too(stages, lambda sums: np.clip(sums.total, -8.0, 8.0) - sums.total)


@of("extended.functions.hard-sigmoid", clause="equations")
def _hard_sigmoid(stages: Stages) -> Stages:
    """Computes gates with HardSigmoid."""
    return replace(stages, functions=("HardSigmoid", *stages.functions[1:]))


@of("extended.functions.linear-output", clause="equations")
def _linear_output(stages: Stages) -> Stages:
    """Leaves out the tanh of the cell state."""
    return replace(stages, functions=(*stages.functions[:2], "Affine"))

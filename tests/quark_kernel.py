"""ExtendedLSTM as shipped: what the CPU kernel of AMD Quark 0.13 computes, bit for bit.

A model of the fixed-point LSTM in Quark's custom-op library (``src/lstm/cpu/lstm.h``, ``src/custom_op_lstm.cc``),
written from its behaviour. Tests use it as a target where the library itself cannot be built.

The arithmetic. X, W, R and B are quantized to uint16 and shifted to int16 by taking 32768 away. Products are summed
exactly, divided by a power of two at least as large as the number of terms, and multiplied by a 16-bit mantissa of
scale_x * scale_w * 2^24 (:class:`Factor`), which leaves pre-activations with 24 fractional bits in int32. What zero
points and bias add is computed once, in float64. Gates, cell state and output are float32; the output becomes an
integer with 24 fractional bits and is brought to y_scale by a 16-bit mantissa of 1/y_scale. The level that results is
both Y and the state of the next step.

What equality rests on, beside that, is named by :func:`foundations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from onnxspec.reference.operators.extended_lstm.mantissa import (
    INT17,
    INT32,
    NO_POWER,
    ZERO,
    Factor,
    ceil_log2,
    power_shift,
    rounded,
    shifted,
)

from .tanhf import Tanhf, fdlibm

Integers = NDArray[np.int64]

FRACTION_BITS = 24
_ONE = 2.0**FRACTION_BITS
_HALF_RANGE = 32768


class KernelAttributes(Struct, frozen=True):
    """The attributes that the kernel reads: hidden_size, and scale and zero point of x, w, r, b and y.

    Scales are values of float32; zero points, int64 attributes, are taken modulo 2^16.
    """

    hidden_size: int
    scales: Mapping[str, np.float32]
    zero_points: Mapping[str, int]

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> KernelAttributes:
        """Read a node's attributes. Raises KeyError for one that the kernel demands and does not find."""
        return cls(
            int(attributes["hidden_size"]),
            {name: np.float32(attributes[f"{name}_scale"]) for name in "xwrby"},
            {name: int(attributes[f"{name}_zero_point"]) % 2**16 for name in "xwrby"},
        )

    def centre(self, name: str) -> int:
        """A zero point where levels are int16."""
        return self.zero_points[name] - _HALF_RANGE


@dataclass(frozen=True)
class _Plan:
    """Everything that is computed once.

    input_factor, input_terms, input_tilt
        scale_x * scale_w * 2^24; the power of two by which sums of products are divided first; the factor times the
        zero point of W, which weighs the sum of the inputs. ``hidden_`` likewise, of Y and R.
    constants
        (2, 4H): what zero points and bias add to the pre-activations.
    out_mantissa, out_power, out_zero
        1/scale_y as a mantissa of 16 bits without sign, and the zero point of Y as int16.
    """

    input_factor: Factor
    input_terms: int
    input_tilt: Factor
    hidden_factor: Factor
    hidden_terms: int
    hidden_tilt: Factor
    constants: Integers
    out_mantissa: int
    out_power: int
    out_zero: int

    @classmethod
    def of(cls, p: KernelAttributes, W: Integers, R: Integers, B: Integers) -> _Plan:
        """Make one from int16 weights W (2, 4H, I), R (2, 4H, H) and biases B (2, 8H)."""
        H, I = p.hidden_size, W.shape[-1]
        s = p.scales
        with np.errstate(all="ignore"):
            # The product of two scales is a float32, all that follows float64.
            input_unit = float(np.float64(s["x"] * s["w"]) * _ONE)
            hidden_unit = float(np.float64(s["y"] * s["r"]) * _ONE)
            input_tilt, hidden_tilt = input_unit * p.centre("w"), hidden_unit * p.centre("r")
            constants = np.float64(I) * input_tilt * p.centre("x") + np.float64(H) * hidden_tilt * p.centre("y")
            constants = constants - input_unit * p.centre("x") * W.sum(-1, dtype=np.float64)
            constants = constants - hidden_unit * p.centre("y") * R.sum(-1, dtype=np.float64)
            pairs = B[:, : 4 * H].astype(np.float64) + B[:, 4 * H :]
            constants = constants + np.float64(s["b"]) * _ONE * (pairs - 2.0 * p.centre("b"))
            inverse = np.float64(1) / np.float64(s["y"])
            exponent = ceil_log2(float(inverse)) if inverse > 0 else None  # only here no absolute value is taken
            out_power = NO_POWER if exponent is None else 16 - exponent
            scale = float(power_shift(out_power)) if out_power >= 0 else 1.0 / power_shift(-out_power)
            out_mantissa = int(rounded(scale * inverse, *INT17)) % 2**16
        return cls(
            input_factor=Factor.of(input_unit),
            input_terms=ceil_log2(I) or 0,
            input_tilt=Factor.of(input_tilt),
            hidden_factor=Factor.of(hidden_unit),
            hidden_terms=ceil_log2(H) or 0,
            hidden_tilt=Factor.of(hidden_tilt),
            constants=rounded(constants, *INT32),
            out_mantissa=out_mantissa,
            out_power=out_power,
            # A little is added to the zero point before it is cut, towards zero also where it is negative: a zero point
            # below 32768 becomes one more than it is.
            out_zero=int(p.centre("y") + 1e-9),
        )

    @property
    def out_shift(self) -> int:
        """The count of the output's shift, held in 8 bits."""
        return (FRACTION_BITS + self.out_power) % 256


def levels_of(x: NDArray[np.float32], scale: np.float32, zero_point: int) -> Integers:
    """The kernel's uint16 levels: the float32 quotient rounded half to even; NaN, infinity of either sign and quotients
    from 2^63 on become level 0, since converting them to int64 gives -2^63 on x86."""
    with np.errstate(all="ignore"):
        quotient = np.rint(x / scale)
        # Beyond 2^40 only the sign matters, and the addition cannot overflow.
        small = np.clip(np.where(np.abs(quotient) < 2.0**63, quotient, -np.inf), -(2.0**40), 2.0**40)
    levels: Integers = np.clip(small.astype(np.int64) + zero_point, 0, 65535)
    return levels


def run_kernel(
    X: NDArray[np.float32],
    W: NDArray[np.float32],
    R: NDArray[np.float32],
    B: NDArray[np.float32],
    parameters: KernelAttributes,
    tanhf: Tanhf = fdlibm,
) -> NDArray[np.float32]:
    """Y (T, 2, 1, H) of X (T, 1, I), W (2, 4H, I), R (2, 4H, H) and B (2, 8H), all float32.

    tanhf
        The C library's function (:mod:`.tanhf`).

    Raises ValueError for other shapes: the kernel looks at none of them, and reads and writes past the tensors or
    leaves memory unwritten where they do not fit.
    """
    p, H = parameters, parameters.hidden_size
    _check_shapes(X, W, R, B, H)
    work = _Work.of(X, W, R, B, p)
    levels = work.walk(tanhf)
    with np.errstate(all="ignore"):
        Y: NDArray[np.float32] = (levels - p.centre("y")).astype(np.float32) * p.scales["y"]
    Y[:, 1] = Y[::-1, 1].copy()
    return Y[:, :, np.newaxis]


def foundations(
    X: NDArray[np.float32],
    W: NDArray[np.float32],
    R: NDArray[np.float32],
    B: NDArray[np.float32],
    parameters: KernelAttributes,
    tanhf: Tanhf = fdlibm,
) -> frozenset[str]:
    """Behaviour that C++ leaves undefined and this case makes use of, so that another processor or compiler may differ:

    ``conversion``
        A float that no int64 holds is converted to one: NaN, an infinity, a quotient from 2^63 on; or a scale is such
        that a parameter has no exponent.
    ``shift``
        A shift by less than 0 or more than 31 bits where int has 32.
    ``overflow``
        The terms of a pre-activation, each within int32, add up to more.

    Two more are in every case, and every 64-bit compiler treats them alike: 16-bit results go through int32 and wrap,
    and a zero point of 32768 for W or R asks for the logarithm of 0, whose product with 0 is 0 whatever it is. Equality
    always rests on the C library's tanhf, and on multiplication and addition not being fused (x86-64 without FMA).
    """
    _check_shapes(X, W, R, B, parameters.hidden_size)
    undefined = set()
    with np.errstate(all="ignore"):
        for name, array in zip("xwrb", (X, W, R, B), strict=True):
            if not (np.abs(array / parameters.scales[name]) < 2.0**63).all():
                undefined.add("conversion")
    work = _Work.of(X, W, R, B, parameters)
    plan = work.plan
    for factor, terms in (
        (plan.input_factor, plan.input_terms),
        (plan.hidden_factor, plan.hidden_terms),
        (plan.input_tilt, 0),
        (plan.hidden_tilt, 0),
    ):
        if factor.power == NO_POWER and factor != ZERO:
            undefined.add("conversion")
        elif factor != ZERO and not 0 <= factor.power - terms <= factor.power <= 30:
            undefined.add("shift")
    if plan.out_power == NO_POWER:
        undefined.add("conversion")
    elif not (-FRACTION_BITS <= plan.out_power <= 31 - FRACTION_BITS):
        undefined.add("shift")
    sums = work.pre_activations(work.walk(tanhf))
    if sums.size and (sums.min() < INT32[0] or sums.max() > INT32[1]):
        undefined.add("overflow")
    return frozenset(undefined)


def _check_shapes(X: Any, W: Any, R: Any, B: Any, H: int) -> None:
    I = X.shape[-1] if X.ndim == 3 else -1
    expected = {"X": (*X.shape[:1], 1, I), "W": (2, 4 * H, I), "R": (2, 4 * H, H), "B": (2, 8 * H)}
    for (name, shape), array in zip(expected.items(), (X, W, R, B), strict=True):
        if array.shape != shape:
            raise ValueError(f"the kernel takes {name} of shape {shape} only, not {array.shape}")
        if array.dtype != np.float32:
            raise ValueError(f"the kernel takes float32 only, and {name} is {array.dtype}")


class _Work(Struct, frozen=True):
    """A case with everything computed that does not wait for states.

    input_sums
        What X and the constants add to the pre-activations: (T, 2, 4H), both directions in processing order.
    R
        (2, H, 4H) in float64.
    """

    plan: _Plan
    input_sums: Integers
    R: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any, W: Any, R: Any, B: Any, p: KernelAttributes) -> _Work:
        x, w, r, b = (
            levels_of(array, p.scales[name], p.zero_points[name]) - _HALF_RANGE
            for name, array in zip("xwrb", (X[:, 0], W, R, B), strict=True)
        )
        plan = _Plan.of(p, w, r, b)
        # Sums of int16 products stay below 2^53, so float64 products are exact in any order.
        products = x.astype(np.float64) @ w.reshape(w.shape[0] * w.shape[1], w.shape[2]).T.astype(np.float64)
        sums = products.astype(np.int64).reshape(len(x), 2, 4 * p.hidden_size)
        sums = plan.input_factor.times(shifted(sums, plan.input_terms, INT32), plan.input_terms)
        sums -= plan.input_tilt.times(x.sum(-1, dtype=np.int64))[:, np.newaxis, np.newaxis]
        sums[:, 1] = sums[::-1, 1].copy()
        sums += plan.constants
        return cls(plan, sums, np.ascontiguousarray(r.transpose(0, 2, 1), np.float64))

    def hidden_sums(self, h: NDArray[np.float64]) -> Integers:
        """The terms that states h (..., 2, 1, H) add to the pre-activations: (..., 2, 4H)."""
        plan = self.plan
        sums = np.matmul(h, self.R)[..., 0, :].astype(np.int64)
        sums = plan.hidden_factor.times(shifted(sums, plan.hidden_terms, INT32), plan.hidden_terms)
        if plan.hidden_tilt != ZERO:
            sums -= plan.hidden_tilt.times(h.sum(-1).astype(np.int64))
        return sums

    def walk(self, tanhf: Tanhf) -> Integers:
        """The int16 levels of every step, (T, 2, H) in processing order."""
        plan, (T, _, rows) = self.plan, self.input_sums.shape
        H = rows // 4
        levels = np.empty((T, 2, H), np.int64)
        h = np.full((2, 1, H), plan.out_zero, np.float64)
        c = np.zeros((2, H), np.float32)
        # sigmoid(x) = tanh(x/2)/2 + 1/2, for the gates i, o and f.
        unit = np.repeat([0.5 / _ONE, 1 / _ONE], [3 * H, H])
        zero = (plan.out_zero * 2 ** (plan.out_shift % 64) + 2**63) % 2**64 - 2**63
        half = np.float32(0.5)
        for t in range(T):
            sums = self.hidden_sums(h)
            sums += self.input_sums[t]
            values = tanhf((sums.astype(np.int32) * unit).astype(np.float32))
            gates = values[:, : 3 * H] * half
            gates += half
            i, o, f = gates[:, :H], gates[:, H : 2 * H], gates[:, 2 * H :]
            c = i * values[:, 3 * H :] + f * c
            hidden = (o * tanhf(c)) * _ONE
            state = (hidden + np.where(hidden > -1, 0.5, -0.5)).astype(np.int64)
            state *= plan.out_mantissa
            state += zero
            levels[t] = h[:, 0] = shifted(state, plan.out_shift, INT17).astype(np.int16)
        return levels

    def pre_activations(self, levels: Integers) -> Integers:
        """The pre-activations of all steps, 24 fractional bits, before int32 cuts them: (T, 2, 4H)."""
        before = np.concatenate([np.full_like(levels[:1], self.plan.out_zero), levels[:-1]])
        return self.hidden_sums(before[:, :, np.newaxis].astype(np.float64)) + self.input_sums

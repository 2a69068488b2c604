"""Floating-point formats, and accuracy classes: the arithmetic that a target claims, with the cost of its operations.

A class says which roundings a conforming implementation may make. A *budget* is a class applied to one tensor type: the
plain numbers with which :mod:`.bounded` computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
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


class AccuracyClass(Struct, frozen=True):
    """Accuracy class: the roundings that a conforming implementation may make.

    operands, accumulator, storage
        Names of formats, or None: the tensor's own type, except that half types accumulate in float32. ``tf32`` is
        allowed for operands. A format finer than the tensor's never tightens anything.
    activation
        (a, b): a primitive function (tanh, exp, sigmoid) with exact value f may have an error of (a|f| + b)u.
    float32_activation
        The same where float32 is stored. Kernels in wide use exceed (4, 4) there: the new gate of onnxruntime's GRU
        returns -5u for a Sigmoid of 0.04u, and its Tanh is 10.1u off; tract's Sigmoid stops 7.5u short of its limit,
        its Tanh 10u (docs/accuracy.md).
    division
        d: a quotient inside a function may have a relative error of du. OpenCL's full profile, WGSL and SPIR-V for
        Vulkan allow 2.5 ulp, of at most 2u each; a multiplication by such a reciprocal also rounds the product: 6u.
    flushes
        Whether subnormal numbers may become zero.
    biased
        Whether errors may lean to one side, as with truncated digits; each result is still within its bound.
    steps
        Number of levels that a quantized output may be off beyond its bounds.
    judges
        Whether numbers are judged. If not, they are compared as by ``standard`` and only reported.
    """

    name: str
    activation: tuple[int, int] = (4, 4)
    float32_activation: tuple[int, int] = (4, 8)
    division: int = 6
    operands: str | None = None
    accumulator: str | None = None
    storage: str | None = None
    flushes: bool = False
    biased: bool = True
    steps: int = 0
    judges: bool = True
    summary: str = ""


QDQ_STEPS = (1, 2, 4, 16, 64)
"""Number of levels that quantized outputs may be off in the classes ``qdq-1`` and so on.

Kernels that hold gates and states in 8 or 16 bits round internally. No specification allows this, so a target declares
it.
"""

ACCURACY_CLASSES: dict[str, AccuracyClass] = {
    c.name: c
    for c in (
        AccuracyClass(
            "strict",
            *((4, 0), (4, 0), 4),
            biased=False,
            summary="activations within 2 units in the last place, errors that average out",
        ),
        AccuracyClass(
            "standard", summary="activations within (4|f|+4)u, in float32 (4|f|+8)u; half types add up in float32"
        ),
        AccuracyClass("flushing", flushes=True, summary="standard, with subnormal numbers taken for zero"),
        AccuracyClass("f32-math", operands="float32", storage="float32", summary="float64 tensors computed in float32"),
        AccuracyClass("tf32", operands="tf32", summary="operands of matrix products rounded to 11 bits"),
        AccuracyClass("f16-math", operands="float16", summary="operands of matrix products rounded to float16"),
        AccuracyClass("bf16-math", operands="bfloat16", summary="operands of matrix products rounded to bfloat16"),
        AccuracyClass("f16-storage", operands="float16", storage="float16", summary="all but sums in float16"),
        AccuracyClass("bf16-storage", operands="bfloat16", storage="bfloat16", summary="all but sums in bfloat16"),
        *(
            AccuracyClass(
                f"qdq-{n}", steps=n, summary=f"standard, and quantized outputs up to {n} level{'s' * (n > 1)} off"
            )
            for n in QDQ_STEPS
        ),
        AccuracyClass("fast", accumulator="storage", summary="half types accumulate in the tensor's own type"),
        AccuracyClass("graded", judges=False, summary="no verdict on numbers: only how far off they are"),
    )
}

# For each tensor type, the wider classes that are tried for a result outside its declared class, narrowest first, so
# that the name tells the most. Each is an arithmetic that devices really use for that type. No device computes float64
# tensors in half types, and such a wide radius would only take wrong structure for inaccuracy.
WIDER_PRESETS: dict[str, tuple[str, ...]] = {
    "float64": ("flushing", "f32-math"),
    "float32": ("flushing", "tf32", "f16-math", "bf16-math", "f16-storage", "bf16-storage"),
    "float16": ("flushing", "bf16-math", "bf16-storage"),
    "bfloat16": ("flushing",),
}

# Rounding of the oracle's own float64 arithmetic, which is part of every radius so that float64 targets can be judged.
ORACLE_UNIT = 2.0**-53
# The same below float64's normal range. A rounding costs up to half the least subnormal, which is no float64: one half
# for the kernel's rounding, if it computes in float64, one for the oracle's, and as much for the radius itself.
ORACLE_FLOOR = 2.0**-1073
# NumPy documents its float64 transcendental functions as within 4 units in the last place: 4 ulp <= 8u of the result.
ORACLE_ACTIVATION = 8 * ORACLE_UNIT

_TF32 = Format("tf32", 11, -126, FORMATS["float32"].largest, 0)


@dataclass(frozen=True)
class Budget:
    """Errors of operations in one accuracy class and one tensor type; all are plain floats.

    unit, floor
        One storage rounding of v costs at most unit*|v| + floor.
    operand_unit, operand_floor
        Cost of rounding an operand of a matrix product before the multiplication; 0 if operands are not rounded.
    accumulator_unit, accumulator_floor
        One rounding inside a sum of products.
    input_floor
        Largest change by a flushing target of an input, weight or stored state.
    a, b
        The activation envelope.
    division
        Relative error of a quotient inside a function, in units.
    largest
        Beyond this, a sum or product may have become infinite.
    coefficient_unit
        Rounding of a coefficient or a clip threshold, which are float32 attributes.
    exact_possible
        Whether numbers that the tensors' format holds exactly are never rounded in this class.
    tensor
        The format of the tensors, in which results are returned.
    """

    name: str
    tensor: Format
    unit: float
    floor: float
    operand_unit: float
    operand_floor: float
    accumulator_unit: float
    accumulator_floor: float
    input_floor: float
    operand_largest: float
    a: float
    b: float
    division: float
    largest: float
    least_normal: float
    coefficient_unit: float
    exact_possible: bool

    def gamma(self, terms: int) -> float:
        """Return gamma_n = nu/(1-nu): the relative error of a sum of n products in any order, plus the oracle's own.

        Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1; each term passes through one product
        rounding and at most n-1 additions. A fused multiply-add only removes roundings.

        Infinity where n*u > 1/8: no useful bound exists there.
        """
        error = terms * self.accumulator_unit
        if error > 1 / 8:
            return math.inf
        oracle_error = terms * ORACLE_UNIT
        return error / (1 - error) + oracle_error / (1 - oracle_error)


def accuracy_class(name: str) -> AccuracyClass:
    """Return a class by name. Raise ValueError with the known names."""
    try:
        return ACCURACY_CLASSES[name]
    except KeyError:
        raise ValueError(f"no accuracy class {name!r}; there are: {', '.join(ACCURACY_CLASSES)}") from None


def _coarser(first: Format, second: Format | None) -> Format:
    return second if second is not None and second.precision < first.precision else first


@cache
def budget(class_name: str, type_name: str) -> Budget:
    """Return the budget of an accuracy class for a tensor type (``float32``, ...). Raise ValueError for an unknown
    class."""
    chosen = accuracy_class(class_name)
    tensor = FORMATS[type_name]
    storage = _coarser(tensor, FORMATS[chosen.storage] if chosen.storage else None)
    if chosen.accumulator == "storage":
        accumulator = storage
    else:
        accumulator = FORMATS["float32"] if storage.precision <= 24 else tensor
    operands = _TF32 if chosen.operands == "tf32" else FORMATS[chosen.operands] if chosen.operands else None
    a, b = chosen.float32_activation if storage == FORMATS["float32"] else chosen.activation
    rounds_operands = operands is not None and operands.precision < tensor.precision

    def floor(form: Format) -> float:
        return form.least_normal if chosen.flushes else form.least_subnormal / 2 + ORACLE_FLOOR

    return Budget(
        name=chosen.name,
        tensor=tensor,
        unit=storage.unit + ORACLE_UNIT,
        floor=max(floor(storage), floor(tensor)),  # bfloat16 has smaller numbers than float16 tensors
        operand_unit=operands.unit if operands and rounds_operands else 0.0,
        operand_floor=operands.least_normal if operands and rounds_operands else 0.0,
        accumulator_unit=accumulator.unit,
        accumulator_floor=floor(accumulator),
        input_floor=storage.least_normal if chosen.flushes else 0.0,
        operand_largest=operands.largest if operands and rounds_operands else tensor.largest,
        a=float(a),
        b=float(b),
        division=float(chosen.division),
        largest=min(storage.largest, tensor.largest),
        least_normal=storage.least_normal,
        # A coefficient is a float32 attribute; kernels of narrower storage round it.
        coefficient_unit=storage.unit if storage.precision < 24 else 0.0,
        exact_possible=not rounds_operands and storage == tensor and not chosen.flushes,
    )

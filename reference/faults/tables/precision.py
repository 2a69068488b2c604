"""Faults of precision: operands, sums and results that are narrower than the tensor's type allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...kernels.kernel import Kernel, Style, rounded
from ...numbers.accuracy import FORMATS, Format
from ...recurrent.computation import Computation
from ...recurrent.rnn import run
from ..alterations import for_units, rounded_state, with_hidden_state, with_recurrent_state, with_steps, with_tensors
from ..fault import ALL_BUT_BFLOAT16, WIDE, Array, Compute, Outputs, fault, fault_of_run
from .function import with_function

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

def _with_operands(c: Computation, type: str) -> Computation:
    """Return the computation with the operands of all matrix products rounded to a type."""
    c = with_steps(with_tensors(c, "WR", lambda x: rounded(x, type)), lambda x: rounded(x, type))
    return _with_state(c, type)


def _with_state(c: Computation, type: str) -> Computation:
    return with_recurrent_state(c, lambda state: rounded_state(state, lambda x: rounded(x, type)))


def _in_eight_bits(tensor: Array) -> Array:
    scale = np.abs(tensor).max(initial=0.0) / 127 or 1.0
    return np.asarray(np.round(tensor / scale) * scale)


def _normal(c: Computation) -> Computation:
    least = float(c.configuration.format.least_normal)
    return with_steps(c, lambda X: np.where(np.abs(X) < least, 0.0, X))


fault("precision.tf32-operands", "equations", "Rounds the operands of matrix products to TF32, 11 bits.",
    lambda c: _with_operands(c, "tf32"), types=WIDE, kind="rounding", layer="operands")
fault("precision.bfloat16-operands", "equations", "Rounds the operands of matrix products to bfloat16.",
    lambda c: _with_operands(c, "bfloat16"), types=ALL_BUT_BFLOAT16, kind="rounding", layer="operands")
fault("precision.float16-operands", "equations", "Rounds the operands of matrix products to float16.",
    lambda c: _with_operands(c, "float16"), types=WIDE, kind="rounding", layer="operands")
fault("precision.low-order-dropped", "equations",
    "Splits operands into bfloat16 parts and leaves out the products with the lower parts of W and R.",
    lambda c: with_tensors(c, "WR", lambda tensor: rounded(tensor, "bfloat16")), types=WIDE, kind="rounding")
fault("precision.state-in-half", "equations", "Rounds Ht-1 to float16 before it is multiplied by R.",
    lambda c: _with_state(c, "float16"), types=WIDE, kind="rounding", layer="operands")
fault("precision.weights-eight-bit", "equations",
    "Holds W and R as whole numbers of eight bits with a scale for each tensor.",
    lambda c: with_tensors(c, "WR", _in_eight_bits), types=ALL_BUT_BFLOAT16)


def _by_kernel(compute: Compute, c: Computation, types: tuple[str, ...], style: Callable[[str], Style],
               form: Format | None = None) -> Outputs:
    """Return the outputs of a kernel of a style, for tensors of these types; others are computed correctly."""
    own = c.configuration.format
    if own.name not in types:
        return compute(c)
    kernel = Kernel(style(own.name), own if form is None else form)
    outputs = run(c.configuration, c.inputs, kernel, c.reported(compute.observed))
    return {name: kernel.stored(array).astype(np.float64) for name, array in outputs.items()}


_HALF = ("float16", "bfloat16")

fault_of_run("precision.computed-in-single", "types", "Computes float64 tensors in float32.",
    lambda compute, c: _by_kernel(compute, c, ("float64",), lambda type: Style("single"), FORMATS["float32"]),
    types=("float64",), kind="rounding", layer="arithmetic", within="f32-math")
fault_of_run("precision.computed-in-half", "types", "Computes float32 and float64 tensors in float16.",
    lambda compute, c: _by_kernel(compute, c, WIDE, lambda type: Style("half"), FORMATS["float16"]),
    types=WIDE, kind="rounding", layer="arithmetic")
fault_of_run("precision.half-sums", "equations", "Sums products of half types up in the half type.",
    lambda compute, c: _by_kernel(
        compute, c, _HALF, lambda type: Style("half-sums", work="float32", accumulator=type, order="forward")
    ), types=_HALF, kind="rounding", layer="arithmetic", within="fast")
fault("precision.subnormals-lost", "types", "Takes subnormal numbers of X for zero.", _normal,
    types=ALL_BUT_BFLOAT16, within="flushing")


def _function(id: str, words: str, value: Callable[[Array], Array], types: tuple[str, ...] = WIDE) -> None:
    """Register an approximation of Tanh, of Sigmoid, or of the tanh in ScaledTanh; `words` begins with the name."""
    name, *_ = words.split()
    topic = {"Tanh": "tanh", "Sigmoid": "sigmoid", "ScaledTanh": "scaled-tanh"}[name]

    def computed(x: Array, alpha: float, beta: float) -> Array:
        return np.asarray(alpha * value(beta * x)) if name == "ScaledTanh" else value(x)

    fault(id, f"functions.{topic}", words, lambda c: with_function(c, name, computed), types=types)


def _rational(x: Array) -> Array:
    return np.asarray(np.clip(x * (27 + x * x) / (27 + 9 * x * x), -1.0, 1.0))


def _quick_exp(x: Array) -> Array:
    power = np.clip(-x / np.log(2), -1000.0, 1000.0)
    whole = np.floor(power)
    return np.asarray(1 / (1 + np.ldexp(1 + (power - whole) - 0.0430, whole.astype(np.int64))))


def _fraction(x: Array) -> Array:
    s = x * x
    above = x * (135135 + s * (17325 + s * (378 + s)))
    return np.asarray(np.clip(above / (135135 + s * (62370 + s * (3150 + 28 * s))), -1.0, 1.0))


_PLACES = np.linspace(-8.0, 8.0, 257)


def _looked_up(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return the function approximated by the usual table: 256 intervals from -8 to 8, with linear interpolation."""
    return lambda x: np.interp(x, _PLACES, function(_PLACES))


def _plan(x: Array) -> Array:
    a = np.abs(x)
    pieces = [a >= 5, a >= 2.375, a >= 1]
    y = np.select(pieces, [1.0, 0.03125 * a + 0.84375, 0.125 * a + 0.625], 0.25 * a + 0.5)
    return np.asarray(np.where(x < 0, 1 - y, y))


_function("precision.rational-tanh", "Tanh is x(27 + x^2) / (27 + 9x^2), as much as 0.02 off.", _rational)
_function("precision.quick-exp", "Sigmoid takes its e^x from the bits of a linear function, as much as 3 % off.",
    _quick_exp)
_function("precision.fraction-tanh",
    "Tanh is Lambert's continued fraction of seven terms, bounded to 1 and -1: as much as 1e-4 off near 5.", _fraction)
_function("precision.rational-scaled-tanh",
    "ScaledTanh is made of x(27 + x^2) / (27 + 9x^2) for tanh, as much as 0.02 off.", _rational)
_function("precision.fraction-scaled-tanh",
    "ScaledTanh is made of Lambert's continued fraction of seven terms for tanh, as much as 1e-4 off near 5.",
    _fraction)
_function("precision.table-tanh", "Tanh comes from a table of 256 straight pieces from -8 to 8, as much as 4e-4 off.",
    _looked_up(np.tanh))
_function("precision.table-scaled-tanh",
    "ScaledTanh is made of a table of 256 straight pieces from -8 to 8 for tanh, as much as 4e-4 off.",
    _looked_up(np.tanh))
_function("precision.table-sigmoid",
    "Sigmoid comes from a table of 256 straight pieces from -8 to 8: 5e-5 off within, 3e-4 beyond.",
    _looked_up(lambda x: 0.5 * np.tanh(0.5 * x) + 0.5))
_function("precision.plan-sigmoid",
    "Sigmoid is four straight pieces, as hardware has it (PLAN: Amin, Curtis and Hayes-Gill), as much as 0.02 off.",
    _plan)
_function("precision.softsign-sigmoid",
    "Sigmoid is 0.5 x/(1 + |x|) + 0.5, without an exponential, as much as 0.08 off.",
    lambda x: np.asarray(0.5 * x / (1 + np.abs(x)) + 0.5), types=ALL_BUT_BFLOAT16)
fault_of_run("precision.small-results-zero", "equations", "Takes results below 2^-12 for zero.",
    lambda compute, c: {name: np.where(np.abs(array) < 2.0**-12, 0.0, array) for name, array in compute(c).items()},
    types=WIDE)
fault_of_run("precision.truncated", "types",
    "Cuts digits off where it stores a result, instead of rounding to nearest.",
    lambda compute, c: _by_kernel(
        compute, c, _HALF, lambda type: Style("truncated", work="float32", truncates=True)
    ), types=_HALF, kind="bias", layer="arithmetic")


@fault_of_run("drift.one-unit-low", "equations", "Every result is one unit in the last place too low.", kind="bias")
def one_unit_low(compute: Compute, c: Computation) -> Outputs:
    form = c.configuration.format
    outputs = {}
    for name, array in compute(c).items():
        shown = array.astype(form.dtype).astype(np.float64)
        unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(shown), form.least_normal))) - form.precision + 1)
        outputs[name] = np.where(shown == 0, 0.0, shown - unit)
    return outputs


fault("drift.state-shrinks", "equations",
    "The state is 3 units too small after every step, too little to show in any one of them.",
    lambda c: with_hidden_state(
        c, lambda p, h: h * for_units(c, p, 1 - 3 * c.configuration.format.unit)
    ), kind="bias")

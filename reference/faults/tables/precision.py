"""Faults of precision: operands, sums and results that are narrower than the tensor's type allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.kernel import Kernel, rounded
from ...kernels.style import Style
from ...numbers.activations import Activation
from ...numbers.formats import FORMATS, Format
from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ...recurrent.rnn import run
from ..alterations import (
    revalued,
    rounded_state,
    with_equations,
    with_functions,
    with_recurrent_state,
    with_steps,
    with_tensors,
)
from ..fault import ALL_BUT_BFLOAT16, WIDE, Compute, Outputs, fault

__all__: list[str] = []

Array = NDArray[Any]


def _with_operands(c: Computation, rounding: Callable[[Array], Array]) -> Computation:
    """The computation with the operands of all matrix products rounded."""
    c = with_steps(with_tensors(c, "WR", rounding), rounding)
    return with_recurrent_state(c, lambda state: rounded_state(state, rounding))


def _by_kernel(compute: Compute, c: Computation, style: Style, form: Format) -> Outputs:
    """The outputs as a kernel for tensors of that format computes them."""
    kernel = Kernel(style, form)
    outputs = run(c.configuration, c.inputs, kernel, c.reported(compute.observed))
    return {name: kernel.stored(array).astype(np.float64) for name, array in outputs.items()}


@fault("precision.tf32-operands", clause="equations", types=WIDE, structural=False, layer="operands")
def tf32_operands(compute: Compute, c: Computation) -> Outputs:
    """Rounds the operands of matrix products to TF32, 11 bits."""
    return compute(_with_operands(c, lambda x: rounded(x, "tf32")))


@fault("precision.bfloat16-operands", clause="equations", types=ALL_BUT_BFLOAT16, structural=False, layer="operands")
def bfloat16_operands(compute: Compute, c: Computation) -> Outputs:
    """Rounds the operands of matrix products to bfloat16."""
    return compute(_with_operands(c, lambda x: rounded(x, "bfloat16")))


@fault("precision.float16-operands", clause="equations", types=WIDE, structural=False, layer="operands")
def float16_operands(compute: Compute, c: Computation) -> Outputs:
    """Rounds the operands of matrix products to float16."""
    return compute(_with_operands(c, lambda x: rounded(x, "float16")))


@fault("precision.low-order-dropped", clause="equations", types=WIDE, structural=False)
def low_order_dropped(compute: Compute, c: Computation) -> Outputs:
    """Splits operands into bfloat16 parts and leaves out the products with the lower parts of W and R."""
    return compute(with_tensors(c, "WR", lambda tensor: rounded(tensor, "bfloat16")))


@fault("precision.state-in-half", clause="equations", types=WIDE, structural=False, layer="operands")
def state_in_half(compute: Compute, c: Computation) -> Outputs:
    """Rounds Ht-1 to float16 before it is multiplied by R."""
    return compute(with_recurrent_state(c, lambda state: rounded_state(state, lambda x: rounded(x, "float16"))))


@fault("precision.weights-eight-bit", clause="equations", types=ALL_BUT_BFLOAT16)
def weights_eight_bit(compute: Compute, c: Computation) -> Outputs:
    """Holds W and R as whole numbers of eight bits with a scale for each tensor."""

    def held(tensor: Array) -> Array:
        scale = np.abs(tensor).max(initial=0.0) / 127 or 1.0
        return np.asarray(np.round(tensor / scale) * scale)

    return compute(with_tensors(c, "WR", held))


@fault(
    "precision.computed-in-single",
    clause="types",
    types=("float64",),
    structural=False,
    layer="arithmetic",
    within="f32-math",
)
def computed_in_single(compute: Compute, c: Computation) -> Outputs:
    """Computes float64 tensors in float32."""
    if c.configuration.format.name != "float64":
        return compute(c)
    return _by_kernel(compute, c, Style("single"), FORMATS["float32"])


@fault("precision.computed-in-half", clause="types", types=WIDE, structural=False, layer="arithmetic")
def computed_in_half(compute: Compute, c: Computation) -> Outputs:
    """Computes float32 and float64 tensors in float16."""
    if c.configuration.format.name not in WIDE:
        return compute(c)
    return _by_kernel(compute, c, Style("half"), FORMATS["float16"])


@fault(
    "precision.half-sums",
    clause="equations",
    types=("float16", "bfloat16"),
    structural=False,
    layer="arithmetic",
    within="fast",
)
def half_sums(compute: Compute, c: Computation) -> Outputs:
    """Sums products of half types up in the half type."""
    form = c.configuration.format
    if form.name in WIDE:
        return compute(c)
    return _by_kernel(compute, c, Style("half-sums", work="float32", accumulator=form.name, order="forward"), form)


@fault("precision.subnormals-lost", clause="types", types=ALL_BUT_BFLOAT16, within="flushing")
def subnormals_lost(compute: Compute, c: Computation) -> Outputs:
    """Takes subnormal numbers of X for zero."""
    least = float(c.configuration.format.least_normal)
    return compute(with_steps(c, lambda X: np.where(np.abs(X) < least, 0.0, X)))


@fault("precision.rational-tanh", clause="functions.tanh", types=WIDE)
def rational_tanh(compute: Compute, c: Computation) -> Outputs:
    """Tanh is x(27 + x^2) / (27 + 9x^2), as much as 0.02 off."""
    return compute(_approximated(c, "Tanh", _rational))


@fault("precision.quick-exp", clause="functions.sigmoid", types=WIDE)
def quick_exp(compute: Compute, c: Computation) -> Outputs:
    """Sigmoid takes its e^x from the bits of a linear function, as much as 3 % off."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        power = np.clip(-x / np.log(2), -1000.0, 1000.0)
        whole = np.floor(power)
        return np.asarray(1 / (1 + np.ldexp(1 + (power - whole) - 0.0430, whole.astype(np.int64))))

    def change(function: Activation, position: int, d: int) -> Activation:
        return revalued(function, value) if function.name == "Sigmoid" else function

    return compute(with_functions(c, change))


def _approximated(c: Computation, name: str, value: Callable[[Array], Array]) -> Computation:
    def change(function: Activation, position: int, d: int) -> Activation:
        return revalued(function, lambda x, alpha, beta: value(x)) if function.name == name else function

    return with_functions(c, change)


def _scaled(c: Computation, tanh: Callable[[Array], Array]) -> Computation:
    """The computation whose ScaledTanh, and nothing else, is made of another tanh."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.asarray(alpha * tanh(beta * x))

    def change(function: Activation, position: int, d: int) -> Activation:
        return revalued(function, value) if function.name == "ScaledTanh" else function

    return with_functions(c, change)


def _rational(x: Array) -> Array:
    return np.asarray(np.clip(x * (27 + x * x) / (27 + 9 * x * x), -1.0, 1.0))


def _fraction(x: Array) -> Array:
    s = x * x
    above = x * (135135 + s * (17325 + s * (378 + s)))
    return np.asarray(np.clip(above / (135135 + s * (62370 + s * (3150 + 28 * s))), -1.0, 1.0))


@fault("precision.fraction-tanh", clause="functions.tanh", types=WIDE)
def fraction_tanh(compute: Compute, c: Computation) -> Outputs:
    """Tanh is Lambert's continued fraction of seven terms, bounded to 1 and -1: as much as 1e-4 off near 5."""
    return compute(_approximated(c, "Tanh", _fraction))


@fault("precision.rational-scaled-tanh", clause="functions.scaled-tanh", types=WIDE)
def rational_scaled_tanh(compute: Compute, c: Computation) -> Outputs:
    """ScaledTanh is made of x(27 + x^2) / (27 + 9x^2) for tanh, as much as 0.02 off."""
    return compute(_scaled(c, _rational))


@fault("precision.fraction-scaled-tanh", clause="functions.scaled-tanh", types=WIDE)
def fraction_scaled_tanh(compute: Compute, c: Computation) -> Outputs:
    """ScaledTanh is made of Lambert's continued fraction of seven terms for tanh, as much as 1e-4 off near 5."""
    return compute(_scaled(c, _fraction))


def _looked_up(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The function by the usual table: 256 intervals from -8 to 8, straight lines between them."""
    places = np.linspace(-8.0, 8.0, 257)
    numbers = function(places)
    return lambda x: np.interp(x, places, numbers)


@fault("precision.table-tanh", clause="functions.tanh", types=WIDE)
def table_tanh(compute: Compute, c: Computation) -> Outputs:
    """Tanh comes from a table of 256 straight pieces from -8 to 8, as much as 4e-4 off."""
    return compute(_approximated(c, "Tanh", _looked_up(np.tanh)))


@fault("precision.table-scaled-tanh", clause="functions.scaled-tanh", types=WIDE)
def table_scaled_tanh(compute: Compute, c: Computation) -> Outputs:
    """ScaledTanh is made of a table of 256 straight pieces from -8 to 8 for tanh, as much as 4e-4 off."""
    return compute(_scaled(c, _looked_up(np.tanh)))


@fault("precision.table-sigmoid", clause="functions.sigmoid", types=WIDE)
def table_sigmoid(compute: Compute, c: Computation) -> Outputs:
    """Sigmoid comes from a table of 256 straight pieces from -8 to 8: 5e-5 off within, 3e-4 beyond."""
    return compute(_approximated(c, "Sigmoid", _looked_up(lambda x: 0.5 * np.tanh(0.5 * x) + 0.5)))


@fault("precision.plan-sigmoid", clause="functions.sigmoid", types=WIDE)
def plan_sigmoid(compute: Compute, c: Computation) -> Outputs:
    """Sigmoid is four straight pieces, as hardware has it (PLAN: Amin, Curtis and Hayes-Gill), as much as 0.02 off."""

    def value(x: Array) -> Array:
        a = np.abs(x)
        pieces = [a >= 5, a >= 2.375, a >= 1]
        y = np.select(pieces, [1.0, 0.03125 * a + 0.84375, 0.125 * a + 0.625], 0.25 * a + 0.5)
        return np.asarray(np.where(x < 0, 1 - y, y))

    return compute(_approximated(c, "Sigmoid", value))


@fault("precision.softsign-sigmoid", clause="functions.sigmoid", types=ALL_BUT_BFLOAT16)
def softsign_sigmoid(compute: Compute, c: Computation) -> Outputs:
    """Sigmoid is 0.5 x/(1 + |x|) + 0.5, without an exponential, as much as 0.08 off."""
    return compute(_approximated(c, "Sigmoid", lambda x: np.asarray(0.5 * x / (1 + np.abs(x)) + 0.5)))


@fault("precision.small-results-zero", clause="equations", types=WIDE)
def small_results_zero(compute: Compute, c: Computation) -> Outputs:
    """Takes results below 2^-12 for zero."""
    return {name: np.where(np.abs(array) < 2.0**-12, 0.0, array) for name, array in compute(c).items()}


@fault(
    "precision.truncated",
    clause="types",
    types=("float16", "bfloat16"),
    structural=False,
    drifts=True,
    layer="arithmetic",
)
def truncated(compute: Compute, c: Computation) -> Outputs:
    """Cuts digits off where it stores a result, instead of rounding to nearest."""
    form = c.configuration.format
    if form.name in WIDE:
        return compute(c)
    return _by_kernel(compute, c, Style("truncated", work="float32", truncates=True), form)


@fault("drift.one-unit-low", clause="equations", structural=False, drifts=True)
def one_unit_low(compute: Compute, c: Computation) -> Outputs:
    """Every result is one unit in the last place too low."""
    form = c.configuration.format
    outputs = {}
    for name, array in compute(c).items():
        shown = array.astype(form.dtype).astype(np.float64)
        unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(shown), form.least_normal))) - form.precision + 1)
        outputs[name] = np.where(shown == 0, 0.0, shown - unit)
    return outputs


@fault("drift.state-shrinks", clause="equations", structural=False, drifts=True, bounded=False)
def state_shrinks(compute: Compute, c: Computation) -> Outputs:
    """The state is 3 units too small after every step, too little to show in any one of them."""
    share, cell = 1 - 3 * c.configuration.format.unit, c.configuration.cell

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        hidden, *rest = cell.equations(p, XW, HR, H, *inner)
        return (hidden * share, *rest)

    return compute(with_equations(c, equations))

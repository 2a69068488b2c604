"""What is got wrong about precision: operands, sums and results that are narrower than the tensor's type allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .activations import Activation
from .alterations import (
    revalued,
    rounded_state,
    with_functions,
    with_recurrent_state,
    with_steps,
    with_tensors,
    with_walk,
)
from .cell import Gates, Number, Parameters, Recurrent, States
from .deviations import ALL_BUT_BFLOAT16, WIDE, Compute, Outputs, deviation
from .formats import FORMATS, Format
from .kernels import Kernel, Style, rounded
from .recurrence import Computation, collect, trace

__all__: list[str] = []

Array = NDArray[Any]


def _with_operands(c: Computation, rounding: Callable[[Array], Array]) -> Computation:
    """The computation with the operands of all matrix products rounded."""
    c = with_steps(with_tensors(c, "WR", rounding), rounding)
    return with_recurrent_state(c, lambda state: rounded_state(state, rounding))


def _by_kernel(compute: Compute, c: Computation, style: Style, form: Format) -> Outputs:
    """The outputs as a kernel for tensors of that format computes them."""
    kernel = Kernel(style, form)
    found = collect(c.configuration, trace(c, kernel, compute.observed), kernel)
    return {name: kernel.stored(array).astype(np.float64) for name, array in found.items()}


@deviation("precision.tf32-operands", clause="equations", types=WIDE, structural=False)
def tf32_operands(compute: Compute, c: Computation) -> Outputs:
    """Rounds the operands of matrix products to TF32, 11 bits."""
    return compute(_with_operands(c, lambda x: rounded(x, "tf32")))


@deviation("precision.bfloat16-operands", clause="equations", types=ALL_BUT_BFLOAT16, structural=False)
def bfloat16_operands(compute: Compute, c: Computation) -> Outputs:
    """Rounds the operands of matrix products to bfloat16."""
    return compute(_with_operands(c, lambda x: rounded(x, "bfloat16")))


@deviation("precision.float16-operands", clause="equations", types=WIDE, structural=False)
def float16_operands(compute: Compute, c: Computation) -> Outputs:
    """Rounds the operands of matrix products to float16."""
    return compute(_with_operands(c, lambda x: rounded(x, "float16")))


@deviation("precision.low-order-dropped", clause="equations", types=WIDE, structural=False)
def low_order_dropped(compute: Compute, c: Computation) -> Outputs:
    """Splits operands into bfloat16 parts and leaves out the products with the lower parts of W and R."""
    return compute(with_tensors(c, "WR", lambda tensor: rounded(tensor, "bfloat16")))


@deviation("precision.state-in-half", clause="equations", types=WIDE, structural=False)
def state_in_half(compute: Compute, c: Computation) -> Outputs:
    """Rounds Ht-1 to float16 before it is multiplied by R."""
    return compute(with_recurrent_state(c, lambda state: rounded_state(state, lambda x: rounded(x, "float16"))))


@deviation("precision.weights-eight-bit", clause="equations", types=ALL_BUT_BFLOAT16)
def weights_eight_bit(compute: Compute, c: Computation) -> Outputs:
    """Holds W and R as whole numbers of eight bits with a scale for each tensor."""

    def held(tensor: Array) -> Array:
        scale = np.abs(tensor).max(initial=0.0) / 127 or 1.0
        return np.asarray(np.round(tensor / scale) * scale)

    return compute(with_tensors(c, "WR", held))


@deviation("precision.computed-in-single", clause="types", types=("float64",), structural=False)
def computed_in_single(compute: Compute, c: Computation) -> Outputs:
    """Computes float64 tensors in float32."""
    if c.configuration.format.name != "float64":
        return compute(c)
    return _by_kernel(compute, c, Style("single"), FORMATS["float32"])


@deviation("precision.computed-in-half", clause="types", types=WIDE, structural=False)
def computed_in_half(compute: Compute, c: Computation) -> Outputs:
    """Computes float32 and float64 tensors in float16."""
    if c.configuration.format.name not in WIDE:
        return compute(c)
    return _by_kernel(compute, c, Style("half"), FORMATS["float16"])


@deviation("precision.half-sums", clause="equations", types=("float16", "bfloat16"), structural=False)
def half_sums(compute: Compute, c: Computation) -> Outputs:
    """Sums products of half types up in the half type."""
    form = c.configuration.format
    if form.name in WIDE:
        return compute(c)
    return _by_kernel(compute, c, Style("half-sums", work="float32", accumulator=form.name, order="forward"), form)


@deviation("precision.rational-tanh", clause="functions.tanh", types=WIDE)
def rational_tanh(compute: Compute, c: Computation) -> Outputs:
    """Tanh is x(27 + x^2) / (27 + 9x^2), as much as 0.02 off."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        return np.asarray(np.clip(x * (27 + x * x) / (27 + 9 * x * x), -1.0, 1.0))

    def change(function: Activation, position: int, d: int) -> Activation:
        return revalued(function, value) if function.name == "Tanh" else function

    return compute(with_functions(c, change))


@deviation("precision.quick-exp", clause="functions.sigmoid", types=WIDE)
def quick_exp(compute: Compute, c: Computation) -> Outputs:
    """Sigmoid takes its e^x from the bits of a linear function, as much as 3 % off."""

    def value(x: Array, alpha: float, beta: float) -> Array:
        power = np.clip(-x / np.log(2), -1000.0, 1000.0)
        whole = np.floor(power)
        return np.asarray(1 / (1 + np.ldexp(1 + (power - whole) - 0.0430, whole.astype(np.int64))))

    def change(function: Activation, position: int, d: int) -> Activation:
        return revalued(function, value) if function.name == "Sigmoid" else function

    return compute(with_functions(c, change))


@deviation("precision.small-results-zero", clause="equations", types=WIDE)
def small_results_zero(compute: Compute, c: Computation) -> Outputs:
    """Takes results below 2^-12 for zero."""
    return {name: np.where(np.abs(array) < 2.0**-12, 0.0, array) for name, array in compute(c).items()}


@deviation("precision.truncated", clause="types", types=("float16", "bfloat16"), structural=False, drifts=True)
def truncated(compute: Compute, c: Computation) -> Outputs:
    """Cuts digits off where it stores a result, instead of rounding to nearest."""
    form = c.configuration.format
    if form.name in WIDE:
        return compute(c)
    return _by_kernel(compute, c, Style("truncated", work="float32", truncates=True), form)


@deviation("drift.one-unit-low", clause="equations", structural=False, drifts=True)
def one_unit_low(compute: Compute, c: Computation) -> Outputs:
    """Every result is one unit in the last place too low."""
    form = c.configuration.format
    outputs = {}
    for name, array in compute(c).items():
        shown = array.astype(form.dtype).astype(np.float64)
        unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(shown), form.least_normal))) - form.precision + 1)
        outputs[name] = np.where(shown == 0, 0.0, shown - unit)
    return outputs


@deviation("drift.state-shrinks", clause="equations", structural=False, drifts=True)
def state_shrinks(compute: Compute, c: Computation) -> Outputs:
    """The state is 3 units too small after every step, too little to show in any one of them."""
    share, cell = 1 - 3 * c.configuration.format.unit, c.configuration.cell

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        hidden, *rest = cell.walk(p, X, H, inner)
        return (hidden * share, *rest)

    return compute(with_walk(c, walk))

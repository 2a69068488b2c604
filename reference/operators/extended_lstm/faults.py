"""Faults of ExtendedLSTM, as rows: quantization, arithmetic, output, state, directions, batch and interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.alterations import (
    configured,
    directions_swapped,
    first_of,
    reordered,
    with_functions,
    with_inputs,
    with_steps,
    with_tensors,
)
from ...faults.fault import Compute, Outputs, fault, fault_of_run
from ...numbers.activations import Activation, Coefficient, kind_named
from ...numbers.affine import Affine
from ...numbers.bounded import Bounded
from ...recurrent.rnn import Direction
from .arithmetic import MIDDLE, Operand
from .computation import ExtendedComputation
from .document import OP_TYPE
from .kernel import BOUND, by_factors, saturated_terms

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

Array = NDArray[np.float64]
Computation = ExtendedComputation

_of = partial(fault, operators=(OP_TYPE,), types=("float32",))
_of_run = partial(fault_of_run, operators=(OP_TYPE,), types=("float32",))


# Quantization.


def _with_operands(c: Computation, change: Callable[[Operand, Affine, Array], Operand]) -> Computation:
    """Return the computation with other quantized tensors, by `change`, a function of (operand, affine, numbers)."""
    below = c.operand

    def operand(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
        return change(below(name, affine, array), affine, array)

    return replace(c, operand=operand)


def _with_levels(c: Computation, levels: Callable[[Affine, Array], Array]) -> Computation:
    """Return the computation whose levels are `levels`, a function of (affine, number / scale)."""

    def change(operand: Operand, affine: Affine, array: Array) -> Operand:
        far = 2.0**40
        quotient = np.clip(np.nan_to_num(array / affine.scale, nan=0.0, posinf=far, neginf=-far), -far, far)
        value = affine.dequantized(levels(affine, quotient))
        return Operand(value, np.zeros_like(value), affine)

    return _with_operands(c, change)


def _truncated(c: Computation) -> Computation:
    return _with_levels(c, lambda affine, q: np.clip(np.trunc(q) + affine.zero_point, 0, affine.highest))


def _around_middle(operand: Operand) -> Operand:
    """Return an operand whose zero point is taken for 32768."""
    if operand.affine is None:
        return operand
    return replace(operand, value=operand.centred * operand.scale, affine=Affine(operand.scale, MIDDLE))


def _zero_point_ignored(c: Computation) -> Computation:
    return _with_operands(c, lambda operand, affine, array: _around_middle(operand))


def _infinity_lowest(operand: Operand, affine: Affine, array: Array) -> Operand:
    far = ~(np.abs(array / affine.scale) < 2.0**63)
    return replace(
        operand, value=np.where(far, affine.least, operand.value), radius=np.where(far, 0.0, operand.radius)
    )


def _signed(operand: Operand, affine: Affine, array: Array) -> Operand:
    return replace(operand, value=np.minimum(operand.value, affine.dequantized(np.array(MIDDLE - 1))))


def _upper_bytes(operand: Operand, affine: Affine, array: Array) -> Operand:
    value = affine.dequantized(np.floor((operand.centred + MIDDLE) / 256) * 256)
    return Operand(value, np.zeros_like(value), affine)


def _for_one(tensor: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the change, limited to one tensor's levels."""
    return lambda c: c.with_input(tensor, change(c))


_of("extended.quantization.truncated", "quantization.rounding",
    "Cuts quotients off towards zero instead of rounding them.", _truncated, kind="small")
_of("extended.quantization.wraps", "quantization.saturation", "Takes levels modulo 2^16 instead of saturating them.",
    lambda c: _with_levels(c, lambda affine, q: np.mod(np.rint(q) + affine.zero_point, affine.highest + 1)))
_of("extended.quantization.unbounded", "quantization", "Computes with the numbers as they are, not with their levels.",
    lambda c: _with_levels(c, lambda affine, q: q + affine.zero_point))
_of("extended.quantization.infinity-lowest", "quantization.saturation",
    "Takes infinity, and whatever is 2^63 scales or more, for the least number, of either sign.",
    lambda c: _with_operands(c, _infinity_lowest))
_of("extended.quantization.zero-point-ignored", "quantization",
    "Dequantizes as if zero points were 32768, whatever they are.", _zero_point_ignored)
_of("extended.quantization.signed", "zero-points.range", "Quantizes to int16: what lies above level 32767 saturates.",
    lambda c: _with_operands(c, _signed))
_of("extended.quantization.bytes", "quantization", "Keeps the upper eight bits of each level only.",
    lambda c: _with_operands(c, _upper_bytes))
for _tensor in "XWRB":
    _of(f"extended.quantization.truncated-{_tensor}", "quantization.rounding",
        f"Cuts quotients of {_tensor} off towards zero instead of rounding them.",
        _for_one(_tensor, _truncated), kind="small")
    _of(f"extended.quantization.zero-point-ignored-{_tensor}", "quantization",
        f"Dequantizes {_tensor} as if its zero point were 32768, whatever it is.",
        _for_one(_tensor, _zero_point_ignored))


# Fixed-point arithmetic.


def _shifted(c: Computation, more: Callable[[Direction, Array], Any]) -> Computation:
    """Return the computation that also adds `more` to pre-activations, a function of a direction and their faulty
    values."""
    below = c.shift

    def shift(of: Direction, total: Array) -> Array:
        off = np.asarray(below(of, total))
        return np.asarray(off + more(of, total + off))

    return replace(c, shift=shift)


def _scale_of_w(of: Direction, total: Array) -> Array:
    return np.asarray(of.before.value @ of.R.value.T * (of.W.scale / of.R.scale - 1))


def _without_single_elements(of: Direction, total: Array) -> Any:
    factors = ((of.X, of.W), (of.before, of.R))
    return -sum(a.value @ b.value.T for a, b in factors if a.value.shape[-1] == 1)


def _with_function(c: Computation, position: int, name: str, *coefficients: float) -> Computation:
    """Return the computation with another activation function at a position."""
    kind = kind_named(name)
    assert kind is not None
    function = Activation(kind, *map(Coefficient, coefficients))
    return with_functions(c, lambda f, p, d: function if p == position else f)  # type: ignore[return-value]


_of("extended.scales.sign-lost", "scales.any",
    "Takes a product with the wrong sign whose scales multiply to a power of two.",
    lambda c: _shifted(c, partial(by_factors, "sign")))
_of("extended.scales.small-vanish", "scales.any",
    "Loses products whose scales multiply to less than 2^-40, or takes them with the wrong sign.",
    lambda c: _shifted(c, partial(by_factors, "small")))
_of("extended.scales.large-garbage", "scales.any",
    "Shifts by negative counts where scales, or a scale times a zero point's offset, multiply to more than 2^-9.",
    lambda c: _shifted(c, partial(by_factors, "large")))
_of("extended.scales.one-for-weights", "scales.any",
    "Multiplies the recurrent product with the scale of W instead of that of R.",
    lambda c: _shifted(c, _scale_of_w))
_of("extended.pre-activation.terms-saturate", "equations",
    "Saturates each term of a pre-activation (products, corrections, constants) at +-128, whatever their sum.",
    lambda c: _shifted(c, saturated_terms))
_of("extended.pre-activation.wraps", "equations",
    "Lets a pre-activation that reaches +-128 wrap around to the other sign.",
    lambda c: _shifted(c, lambda of, total: np.mod(total + BOUND, 2 * BOUND) - BOUND - total))
_of("extended.pre-activation.clipped", "equations", "Clips pre-activations to +-8, as a table of functions would.",
    lambda c: _shifted(c, lambda of, total: np.clip(total, -8.0, 8.0) - total))
_of("extended.functions.hard-sigmoid", "equations", "Computes gates with HardSigmoid.",
    lambda c: _with_function(c, 0, "HardSigmoid", 0.2, 0.5))
_of("extended.functions.linear-output", "equations", "Leaves out the tanh of the cell state.",
    lambda c: _with_function(c, 2, "Affine", 1.0, 0.0))


# Output.

Shown = Callable[[Affine, Array], Array]


def _with_shown(c: Computation, change: Callable[[Shown, Affine, Array], Array]) -> Computation:
    """Return the computation that converts Ht to numbers of levels by `change`, a function of (the correct function,
    affine, Ht)."""
    return replace(c, shown=partial(change, c.shown))


def _wrapped(below: Shown, y: Affine, hidden: Array) -> Array:
    levels = hidden / y.scale + (y.zero_point - MIDDLE)
    nearest = np.where(levels < 0, np.ceil(levels - 0.5), np.floor(levels + 0.5))
    beyond = (nearest > MIDDLE - 1) | (nearest < -MIDDLE)
    bounded = np.clip(nearest, -(2.0**16), 2.0**16 - 1)
    return y.dequantized(np.where(beyond, np.mod(bounded + MIDDLE, 2 * MIDDLE), levels + MIDDLE))


def _one_up(c: Computation) -> Computation:
    before = c.state

    def shown(below: Shown, y: Affine, hidden: Array) -> Array:
        if y.zero_point >= MIDDLE:
            return below(y, hidden)
        return below(Affine(y.scale, y.zero_point + 1), hidden) + y.scale

    def state(h: Operand) -> Operand:
        operand = before(h)
        return operand if operand.centre >= 0 else operand.started(operand.value[:1] + operand.scale)

    return replace(_with_shown(c, shown), state=state)


def _coarse(below: Shown, y: Affine, hidden: Array) -> Array:
    if y.scale < 2.0**-8:
        return below(y, hidden)
    levels = hidden / y.scale + (y.zero_point - MIDDLE)
    # The added half is -2^31 for a shift of 32, and nearly nothing for greater shifts.
    less = 1.0 if y.scale < 2.0**-7 else 0.5
    # Less than half a unit goes past zero.
    return below(y, y.dequantized(levels - np.where(levels < 0, -less, less) + MIDDLE))


_of("extended.output.wraps", "output-quantization.saturation",
    "Lets outputs beyond the range of y_scale come out at its other end.", lambda c: _with_shown(c, _wrapped))
_of("extended.output.zero-point-one-up", "output-quantization.nearest",
    "Takes a y_zero_point below 32768 for one more than it is: Y and the initial state are a unit too high.",
    _one_up, kind="small")
_of("extended.output.truncated", "output-quantization.nearest",
    "Rounds Ht down to a level instead of to the nearest one.",
    lambda c: _with_shown(c, lambda below, y, hidden: below(y, hidden - y.scale / 2)), kind="small")
_of("extended.output.coarse-shift", "output-quantization.nearest",
    "Adds a half that is 2^32 too small before shifting outputs to a y_scale of 2^-8 or more: a unit towards zero.",
    lambda c: _with_shown(c, _coarse), kind="small")
_of("extended.output.zero-point-forgotten", "output-quantization.nearest",
    "Quantizes Y as if its zero point were 32768.",
    lambda c: _with_shown(c, lambda below, y, hidden: below(Affine(y.scale, MIDDLE), hidden)))
_of("extended.output.bytes", "output-quantization.nearest", "Quantizes Y to eight bits.",
    lambda c: _with_shown(
        c, lambda below, y, hidden: np.floor(below(y, hidden) / (256 * y.scale)) * 256 * y.scale
    ))


# States, tensors and directions.


def _read_as(order: str, c: Computation) -> Computation:
    gates = c.configuration.cell.gates
    return with_tensors(c, "WRB", lambda tensor: reordered(c, tensor, order, gates))  # type: ignore[return-value]


def _without_half(c: Computation) -> Computation:
    half = 4 * c.configuration.H
    return with_tensors(c, "B", lambda B: np.concatenate((B[:, :half], 0 * B[:, half:]), 1))  # type: ignore[return-value]


def _turned(array: NDArray[Any]) -> Any:
    return np.concatenate((array[:, :1], array[::-1, 1:]), axis=1)


def _bounded_turned(found: Bounded) -> Bounded:
    doubt = None if found.doubt is None else _turned(found.doubt)
    return replace(found, value=_turned(found.value), radius=_turned(found.radius), doubt=doubt)


_of("extended.state.not-fed", "equations", "Leaves out the recurrent product.",
    lambda c: replace(c, state=lambda h: replace(h, value=0 * h.value)))
_of("extended.state.stale", "equations", "Feeds back the state of two steps before.",
    lambda c: replace(c, state=lambda h: h[:1].followed_by(h[:-1])))
_of("extended.state.zero-point-forgotten", "output-quantization.nearest",
    "Feeds back levels as if y_zero_point were 32768.", lambda c: replace(c, state=_around_middle))
_of("extended.state.initial-level-zero", "initial-states",
    "Starts from level 0, which is the least number and not zero.",
    lambda c: replace(c, state=lambda h: h if h.affine is None else h.started(h.affine.least)))
for _order in ("ifoc", "ifco"):
    _of(f"extended.gates.order-{_order}", "gates.order",
        f"Takes the blocks of the weights in the order {', '.join(_order)}.", partial(_read_as, _order))
_of("extended.bias.ignored", "bias", "Adds no bias.", lambda c: with_inputs(c, B=None))
_of("extended.bias.recurrent-ignored", "bias", "Adds Wb and leaves out Rb.", _without_half)
_of("extended.bias.absent-for-ones", "bias.optional", "Takes a bias that is absent for ones.",
    lambda c: c if "B" in c.inputs else _shifted(c, lambda of, total: 1.0))
_of("extended.directions.both-forward", "directions", "Runs the second direction forward too.",
    lambda c: configured(c, directions=("forward", "forward")))
_of("extended.directions.weights-shared", "directions.weights",
    "Uses the forward direction's weights for both directions.", lambda c: with_tensors(c, "WRB", first_of))
_of("extended.directions.swapped", "directions.weights", "Uses each direction's weights for the other one.",
    lambda c: with_tensors(c, "WRB", directions_swapped))
_of("extended.directions.not-realigned", "outputs.order",
    "Leaves the second direction's outputs in the order in which they are computed.",
    lambda c: replace(c, seen=_turned, placed=_bounded_turned))
_of("extended.names.old-order", "names.old",
    "Takes the weights of a node by the old name in another order: i, f, o, c.", partial(_read_as, "ifoc"),
    needs="old-domain")


# Batch, sizes, session.


@_of("extended.batch.ignored", "batch",
    "Computes a batch as if it were one row: reads the first T*I numbers of X, and leaves most of Y unwritten.")
def _batch_ignored(c: Computation) -> Computation:
    def first(X: Array) -> Array:
        T, N, I = X.shape
        return np.broadcast_to(X.reshape(-1)[: T * I].reshape(T, 1, I), X.shape) if N else X

    def seen(Y: Array) -> Array:
        T, D, N, H = Y.shape
        return np.broadcast_to(Y.reshape(-1)[: T * D * H].reshape(T, D, 1, H), Y.shape) if N else Y

    def placed(found: Bounded) -> Bounded:
        shape, written = found.value.shape, found.value[:, :, :1].size
        rest = np.zeros(found.value.size - written)
        value, radius = (np.append(a[:, :, :1], rest).reshape(shape) for a in (found.value, found.radius))
        return replace(found, value=value, radius=radius, doubt=(np.arange(value.size) >= written).reshape(shape))

    return replace(with_steps(c, first), seen=seen, placed=placed)  # type: ignore[return-value, call-arg]


@_of_run("extended.sizes.at-least-one-step", "shapes.no-steps", "Returns one step where there is none.", layer="form")
def _one_step(compute: Compute, c: Computation) -> Outputs:
    Y = compute(c)["Y"]
    return {"Y": Y if len(Y) else np.zeros((1, *Y.shape[1:]), np.float32)}


_of("extended.batch.rows-alike", "batch", "Computes every row of the batch from the first one.",
    lambda c: with_steps(c, lambda X: np.repeat(X[:, :1], X.shape[1], axis=1)))
_of("extended.sizes.first-input-only", "shapes.one",
    "Leaves out the products of inputs and states that have one element.",
    lambda c: _shifted(c, _without_single_elements))
_of_run("extended.session.first-answer", "session.stateless", "Returns what the session's first run has computed.",
    lambda compute, c: {"Y": compute.memory.setdefault("Y", compute(c)["Y"])}, needs="rerun")


# Interface: computing what must be refused.

for _id, _clause, _words in (
    ("direction-ignored", "directions.supported", "Computes both directions whatever the attribute direction says"),
    ("direction-assumed", "directions.default", "Computes both directions where no direction is given"),
    ("hidden-size-unchecked", "hidden-size", "Does not hold hidden_size against R"),
    ("input-forget-ignored", "input-forget", "Takes an input_forget that is not supported"),
    ("layout-ignored", "layout", "Takes a layout that is not supported"),
    ("attribute-unknown", "attributes", "Takes attributes that the operator does not have, and ignores them"),
    ("attribute-type-ignored", "attributes.types", "Takes attributes of the wrong type for absent"),
    ("scale-list", "scales", "Takes a list for a scale"),
    ("scale-unchecked", "scales.range", "Computes with scales that are not positive and finite"),
    ("scale-default", "scales.required", "Takes a scale or a zero point that is not there for some default"),
    ("zero-point-modulo", "zero-points.range", "Takes zero points modulo 2^16"),
    ("inputs-unchecked", "inputs", "Takes more or fewer inputs than the operator has"),
    ("shapes-unchecked", "shapes", "Does not look at the shapes of its inputs"),
    ("outputs-unchecked", "outputs", "Takes outputs that the operator does not have"),
    ("types-unchecked", "types", "Takes tensors that are not float32"),
):
    _of(f"extended.interface.{_id}", _clause, f"{_words}.", lambda c: c, kind="accepts")

"""Faults of ExtendedLSTM: output, state, gates and direction, batch and sizes, interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.fault import Compute, Outputs
from ...numbers.affine import Affine
from ...numbers.bounded import Bounded
from .arithmetic import Operand, Stages, Sums
from .computation import of, of_run
from .faults import shift_too

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

Array = NDArray[np.float64]

# Output.


def _levels(y: Affine, hidden: Array) -> Array:
    """Return Ht in levels minus 32768, not rounded."""
    return hidden / y.scale + (y.zero_point - 32768)


def _numbers(y: Affine, levels: Array) -> Array:
    return (levels - (y.zero_point - 32768)) * y.scale


def _wrapped(y: Affine, hidden: Array) -> Array:
    levels = _levels(y, hidden)
    nearest = np.where(levels < 0, np.ceil(levels - 0.5), np.floor(levels + 0.5))
    beyond = (nearest > 32767) | (nearest < -32768)
    bounded = np.clip(nearest, -(2.0**16), 2.0**16 - 1)
    return np.where(beyond, _numbers(y, np.mod(bounded + 32768, 65536) - 32768), _numbers(y, levels))


def _one_up(stages: Stages) -> Stages:
    below, before = stages.shown, stages.state

    def shown(y: Affine, hidden: Array) -> Array:
        if y.zero_point >= 32768:
            return below(y, hidden)
        return below(Affine(y.scale, y.zero_point + 1), hidden) + y.scale

    def state(h: Operand) -> Operand:
        operand = before(h)
        first = operand.value[:1] + operand.scale
        return operand if operand.centre >= 0 else operand.started(operand.centred[:1] + 1, first)

    return replace(stages, shown=shown, state=state)


Shown = Callable[[Affine, Array], Array]


def _with_shown(stages: Stages, change: Callable[[Shown, Affine, Array], Array]) -> Stages:
    """Return the stages that convert Ht to numbers of levels by `change`, a function of (the correct function, affine,
    Ht)."""
    return replace(stages, shown=partial(change, stages.shown))


def _coarse(below: Shown, y: Affine, hidden: Array) -> Array:
    if y.scale < 2.0**-8:
        return below(y, hidden)
    levels = _levels(y, hidden)
    # The added half is -2^31 for a shift of 32, and nearly nothing for greater shifts.
    less = 1.0 if y.scale < 2.0**-7 else 0.5
    return below(y, _numbers(y, levels - np.where(levels < 0, -less, less)))  # less than half a unit goes past zero


of("extended.output.wraps", "output-quantization.saturation",
    "Lets outputs beyond the range of y_scale come out at its other end.",
    lambda stages: replace(stages, shown=_wrapped))
of("extended.output.zero-point-one-up", "output-quantization.nearest",
    "Takes a y_zero_point below 32768 for one more than it is: Y and the initial state are a unit too high.",
    _one_up, kind="small")
of("extended.output.truncated", "output-quantization.nearest",
    "Rounds Ht down to a level instead of to the nearest one.",
    lambda stages: _with_shown(stages, lambda below, y, hidden: below(y, hidden - y.scale / 2)),
    kind="small")
of("extended.output.coarse-shift", "output-quantization.nearest",
    "Adds a half that is 2^32 too small before shifting outputs to a y_scale of 2^-8 or more: a unit towards zero.",
    lambda stages: _with_shown(stages, _coarse), kind="small")
of("extended.output.zero-point-forgotten", "output-quantization.nearest",
    "Quantizes Y as if its zero point were 32768.",
    lambda stages: _with_shown(stages, lambda below, y, hidden: below(Affine(y.scale, 32768), hidden)))
of("extended.output.bytes", "output-quantization.nearest", "Quantizes Y to eight bits.",
    lambda stages: _with_shown(
        stages, lambda below, y, hidden: np.floor(below(y, hidden) / (256 * y.scale)) * 256 * y.scale
    ))


def _stage(id: str, clause: str, words: str, *, of_fault: Mapping[str, Any] = {}, **stages: Any) -> None:
    """Register a fault that replaces stages."""
    of(f"extended.{id}", clause, f"{words}.", lambda c: replace(c, **stages), **of_fault)


_stage("state.not-fed", "equations", "Leaves out the recurrent product",
    state=lambda h: replace(h, value=0 * h.value, centred=0 * h.centred + h.centre))
_stage("state.stale", "equations", "Feeds back the state of two steps before",
    state=lambda h: h[:1].followed_by(h[:-1]) if len(h.value) else h)
_stage("state.zero-point-forgotten", "output-quantization.nearest", "Feeds back levels as if y_zero_point were 32768",
    state=lambda h: replace(h, value=h.centred * h.scale if h.scale else h.value, centre=0))
_stage("state.initial-level-zero", "initial-states", "Starts from level 0, which is the least number and not zero",
    state=lambda h: h.started(-32768, (-32768 - h.centre) * h.scale) if h.scale else h)
for _order in ("ifoc", "ifco"):
    _words = f"Takes the blocks of the weights in the order {', '.join(_order)}"
    _stage(f"gates.order-{_order}", "gates.order", _words, gates=_order)
_stage("bias.ignored", "bias", "Adds no bias", biases=lambda b: (0 * b[0], 0 * b[1]))
_stage("bias.recurrent-ignored", "bias", "Adds Wb and leaves out Rb", biases=lambda b: (b[0], 0 * b[1]))
_stage("directions.both-forward", "directions", "Runs the second direction forward too", backwards=(False, False))
_stage("directions.weights-shared", "directions.weights", "Uses the forward direction's weights for both directions",
    weights=(0, 0))
_stage("directions.swapped", "directions.weights", "Uses each direction's weights for the other one", weights=(1, 0))
_stage("directions.not-realigned", "outputs.order",
    "Leaves the second direction's outputs in the order in which they are computed", realigned=False)


# Batch.


def _first_row(a: Array) -> Array:
    return np.broadcast_to(a[:, :1], a.shape) if a.shape[1] else a


_stage("batch.rows-alike", "batch", "Computes every row of the batch from the first one",
    rows=lambda x: x.each(_first_row))


@of("extended.batch.ignored", "batch",
    "Computes a batch as if it were one row: reads the first T*I numbers of X, and leaves most of Y unwritten.")
def _batch_ignored(stages: Stages) -> Stages:
    def first(a: Array) -> Array:
        T, N, I = a.shape
        return np.broadcast_to(a.reshape(-1)[: T * I].reshape(T, 1, I), a.shape) if N else a

    def seen(Y: Array) -> Array:
        T, D, N, H = Y.shape
        return np.broadcast_to(Y.reshape(-1)[: T * D * H].reshape(T, D, 1, H), Y.shape) if N else Y

    def placed(found: Bounded) -> Bounded:
        shape, written = found.value.shape, found.value[:, :, :1].size
        rest = np.zeros(found.value.size - written)
        value, radius = (np.append(a[:, :, :1], rest).reshape(shape) for a in (found.value, found.radius))
        return replace(found, value=value, radius=radius, doubt=(np.arange(value.size) >= written).reshape(shape))

    return replace(stages, rows=lambda x: x.each(first), seen=seen, placed=placed)


# Sizes.


def _without_single_elements(sums: Sums) -> Array:
    one = [a.value @ b.value.T for a, b in ((sums.x, sums.w), (sums.h, sums.r)) if a.value.shape[-1] == 1]
    return np.asarray(-sum(one) if one else 0.0)


of("extended.sizes.first-input-only", "shapes.one",
    "Leaves out the products of inputs and states that have one element.",
    lambda stages: shift_too(stages, _without_single_elements))


@of_run("extended.sizes.at-least-one-step", "shapes.no-steps", "Returns one step where there is none.", layer="form")
def _one_step(compute: Compute, stages: Stages) -> Outputs:
    Y = compute(stages)["Y"]
    return {"Y": Y if len(Y) else np.zeros((1, *Y.shape[1:]), np.float32)}


_stage("bias.absent-for-ones", "bias.optional", "Takes a bias that is absent for ones", absent_bias=1.0)


@of_run("extended.session.first-answer", "session.stateless", "Returns what the session's first run has computed.",
    needs="rerun")
def _first_answer(compute: Compute, stages: Stages) -> Outputs:
    return {"Y": compute.memory.setdefault("Y", compute(stages)["Y"])}


_stage("names.old-order", "names.old",
    "Takes the weights of a node by the old name in another order: i, f, o, c",
    gates="ifoc", of_fault={"needs": "old-domain"})

# Interface: computing what must be refused.

_INTERFACE = (
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
)

for _id, _clause, _summary in _INTERFACE:
    _stage(f"interface.{_id}", _clause, _summary,
        of_fault={"kind": "accepts"})

"""Faults of ExtendedLSTM: output, state, gates and direction, batch and sizes, interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.fault import Compute, Outputs
from ...numbers.affine import Affine
from ...numbers.bounded import Bounded
from .computation import of
from .stages import Operand, Stages, Sums

Array = NDArray[np.float64]

# Output.


def _levels(y: Affine, hidden: Array) -> Array:
    """Ht in levels less 32768, not rounded."""
    return hidden / y.scale + (y.zero_point - 32768)


def _numbers(y: Affine, levels: Array) -> Array:
    return (levels - (y.zero_point - 32768)) * y.scale


@of("extended.output.wraps", clause="output-quantization.saturation", disagreements=("output-wraps",))
def _output_wraps(stages: Stages) -> Stages:
    """Lets outputs beyond the range of y_scale come out at its other end."""

    def shown(y: Affine, hidden: Array) -> Array:
        levels = _levels(y, hidden)
        nearest = np.where(levels < 0, np.ceil(levels - 0.5), np.floor(levels + 0.5))
        beyond = (nearest > 32767) | (nearest < -32768)
        bounded = np.clip(nearest, -(2.0**16), 2.0**16 - 1)
        return np.where(beyond, _numbers(y, np.mod(bounded + 32768, 65536) - 32768), _numbers(y, levels))

    return replace(stages, shown=shown)


@of(
    "extended.output.zero-point-one-up",
    clause="output-quantization.nearest",
    disagreements=("zero-point-one-up",),
    fine=True,
)
def _one_up(stages: Stages) -> Stages:
    """Takes a y_zero_point below 32768 for one more than it is: Y and the initial state are a unit too high."""
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


@of("extended.output.truncated", clause="output-quantization.nearest", disagreements=("coarse-output",), fine=True)
def _output_truncated(stages: Stages) -> Stages:
    """Rounds Ht down to a level instead of to the nearest one."""
    below = stages.shown
    return replace(stages, shown=lambda y, hidden: below(y, hidden - y.scale / 2))


@of("extended.output.coarse-shift", clause="output-quantization.nearest", disagreements=("coarse-output",), fine=True)
def _coarse(stages: Stages) -> Stages:
    """Adds a half that is 2^32 too small before shifting outputs to a y_scale of 2^-8 or more: a unit towards zero."""
    below = stages.shown

    def shown(y: Affine, hidden: Array) -> Array:
        if y.scale < 2.0**-8:
            return below(y, hidden)
        levels = _levels(y, hidden)
        # The half is -2^31 where the shift is 32, and nearly nothing where it is more.
        less = 1.0 if y.scale < 2.0**-7 else 0.5
        return below(y, _numbers(y, levels - np.where(levels < 0, -less, less)))  # less than half a unit goes past zero

    return replace(stages, shown=shown)


@of("extended.output.zero-point-forgotten", clause="output-quantization.nearest")
def _forgotten(stages: Stages) -> Stages:
    """Quantizes Y as if its zero point were 32768."""
    below = stages.shown
    return replace(stages, shown=lambda y, hidden: below(Affine(y.scale, 32768), hidden))


@of("extended.output.bytes", clause="output-quantization.nearest")
def _output_bytes(stages: Stages) -> Stages:
    """Quantizes Y to eight bits."""
    below = stages.shown
    return replace(stages, shown=lambda y, h: np.floor(below(y, h) / (256 * y.scale)) * 256 * y.scale)


# State.


@of("extended.state.not-fed", clause="equations")
def _not_fed(stages: Stages) -> Stages:
    """Leaves out the recurrent product."""
    return replace(stages, state=lambda h: replace(h, value=0 * h.value, centred=0 * h.centred + h.centre))


@of("extended.state.stale", clause="equations")
def _stale(stages: Stages) -> Stages:
    """Feeds back the state of two steps before."""

    return replace(stages, state=lambda h: h[:1].followed_by(h[:-1]) if len(h.value) else h)


@of("extended.state.zero-point-forgotten", clause="output-quantization.nearest")
def _state_centred(stages: Stages) -> Stages:
    """Feeds back levels as if y_zero_point were 32768."""
    return replace(stages, state=lambda h: replace(h, value=h.centred * h.scale if h.scale else h.value, centre=0))


@of("extended.state.initial-level-zero", clause="initial-states")
def _initial(stages: Stages) -> Stages:
    """Starts from level 0, which is the least number and not zero."""

    return replace(stages, state=lambda h: h.started(-32768, (-32768 - h.centre) * h.scale) if h.scale else h)


# Gates, bias, direction and sizes: one stage in the place of another.


def _placing(id: str, clause: str, summary: str, stage: Mapping[str, Any], **said: Any) -> None:
    def placed(stages: Stages) -> Stages:
        return replace(stages, **stage)

    placed.__doc__ = f"{summary}."
    of(f"extended.{id}", clause=clause, **said)(placed)


for _order in ("ifoc", "ifco"):
    _summary = f"Takes the blocks of the weights in the order {', '.join(_order)}"
    _placing(f"gates.order-{_order}", "gates.order", _summary, {"gates": _order})
_placing("bias.ignored", "bias", "Adds no bias", {"biases": lambda b: (0 * b[0], 0 * b[1])})
_placing("bias.recurrent-ignored", "bias", "Adds Wb and leaves out Rb", {"biases": lambda b: (b[0], 0 * b[1])})
_placing(
    "directions.both-forward", "directions", "Runs the second direction forward too", {"backwards": (False, False)}
)
_placing(
    "directions.weights-shared",
    "directions.weights",
    "Uses the forward direction's weights for both directions",
    {"weights": (0, 0)},
)
_placing(
    "directions.swapped", "directions.weights", "Uses each direction's weights for the other one", {"weights": (1, 0)}
)
_placing(
    "directions.not-realigned",
    "outputs.order",
    "Leaves the second direction's outputs in the order in which they are computed",
    {"realigned": False},
)


# Batch.


@of("extended.batch.rows-alike", clause="batch")
def _rows_alike(stages: Stages) -> Stages:
    """Computes every row of the batch from the first one."""

    def alike(a: Array) -> Array:
        return np.broadcast_to(a[:, :1], a.shape) if a.shape[1] else a

    return replace(stages, rows=lambda x: x.each(alike))


@of("extended.batch.ignored", clause="batch", disagreements=("batch",))
def _batch_ignored(stages: Stages) -> Stages:
    """Computes a batch as if it were one row: reads the first T*I numbers of X, and leaves most of Y unwritten."""

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


@of("extended.sizes.first-input-only", clause="shapes.one")
def _one_input(stages: Stages) -> Stages:
    """Leaves out the products of inputs and states that have one element."""

    def shift(sums: Sums) -> Array:
        one = [a.value @ b.value.T for a, b in ((sums.x, sums.w), (sums.h, sums.r)) if a.value.shape[-1] == 1]
        return np.asarray(-sum(one) if one else 0.0)

    below = stages.shift
    return replace(stages, shift=lambda sums: below(sums) + shift(sums))


@of("extended.sizes.at-least-one-step", clause="shapes.no-steps", layer="form")
def _one_step(compute: Compute, stages: Stages) -> Outputs:
    """Returns one step where there is none."""
    Y = compute(stages)["Y"]
    return {"Y": Y if len(Y) else np.zeros((1, *Y.shape[1:]), np.float32)}


_placing("bias.absent-for-ones", "bias.optional", "Takes a bias that is absent for ones", {"absent_bias": 1.0})


@of("extended.session.first-answer", clause="session.stateless", needs="rerun")
def _first_answer(compute: Compute, stages: Stages) -> Outputs:
    """Returns what the session's first run has computed."""
    return {"Y": compute.memory.setdefault("Y", compute(stages)["Y"])}


_placing(
    "names.old-order",
    "names.old",
    "Takes the weights of a node by the old name in another order: i, f, o, c",
    {"gates": "ifoc"},
    needs="old-domain",
)


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

# The shipped kernel's part of it, where that has another name than here.
_SEEN = {
    "direction-assumed": ("direction-ignored",),
    "hidden-size-unchecked": ("shapes-unchecked",),
    "attribute-unknown": ("unknown-attribute",),
    "attribute-type-ignored": ("optional-attribute-type",),
    "shapes-unchecked": ("shapes-unchecked", "rank"),
    **{id: (id,) for id in ("direction-ignored", "scale-unchecked", "zero-point-modulo")},
}


for _id, _clause, _summary in _INTERFACE:
    _placing(f"interface.{_id}", _clause, _summary, {}, accepts=True, disagreements=_SEEN.get(_id, ()))

"""Cases of com.microsoft::DynamicQuantizeLSTM: LSTM's axes, and axes for the quantization of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from ..axes.axis import Axis, Feature, Rule
from ..axes.generator import gain, integers, uniform
from ..axes.quantized import QUANTIZED
from ..axes.violation import Draft, Violation
from ..profiles.recurrent import CellFamily
from ..specs.family import register
from ..specs.features import Observed, inherited_violations
from ..specs.model import TensorDraft
from ..specs.spec import RECURRENT_AXES, CaseSpec

OP = "DynamicQuantizeLSTM"
_WITHOUT = ("layout", "linear_before_reset", "output_sequence", "opset")


def _one_scale_more(draft: Draft) -> None:
    for name in ("W_scale", "R_scale"):
        draft.inputs[name] = np.concatenate((draft.inputs[name], draft.inputs[name][:1]))


def _other_sign(draft: Draft) -> None:
    for name in ("W_zero_point", "R_zero_point"):
        zero = draft.inputs[name]
        draft.inputs[name] = zero.astype(np.uint8 if zero.dtype == np.int8 else np.int8)


def _fill_levels(spec: Any, draft: TensorDraft) -> None:
    kind = np.iinfo(spec.levels)
    raised = 8 if spec.extremes == "subnormal" else 0  # so that no product of steps is subnormal
    for name, columns in (("W", draft.I), ("R", draft.H)):
        key, channels = f"{OP}/{name}/{spec.weights_seed}", 4 * draft.H
        by = {"direction": (draft.D,), "channel": (draft.D, channels)}
        of_scale, of_zero = by[spec.scales], by[spec.scales if spec.zero_points == "zero" else spec.zero_points]
        # Dense weights lie between -2^gain and 2^gain: about 90 levels to either side.
        larger = 5 if spec.extremes == "weights" else draft.of_weights + raised
        step = 2.0 ** (gain(columns) + larger - 6)
        scale = ((np.abs(uniform(f"{key}/scale", of_scale, 20, 0)) + 1) / 2 * step).astype(np.float32)
        middle = (int(kind.min) + int(kind.max) + 1) // 2
        zero = np.full(of_zero, middle, np.int64)
        if spec.zero_points != "zero":
            zero += integers(f"{key}/zero-point", zero.size, -32, 32).reshape(of_zero)
        held = draft.inputs[name].astype(np.float64).swapaxes(1, 2) * 2.0**raised
        levels = np.rint(held / scale.reshape(draft.D, 1, -1)) + zero.reshape(draft.D, 1, -1)
        draft.inputs[name] = np.clip(levels, kind.min, kind.max).astype(kind.dtype)
        draft.inputs[f"{name}_scale"], draft.inputs[f"{name}_zero_point"] = scale, zero.astype(kind.dtype)
    if raised:  # Half of X is larger: the step is about the least normal number, so some other elements are one level.
        draft.X.reshape(-1)[...] *= np.resize((256.0, 2.0), draft.X.size)
    if spec.ties and draft.X.size > 1:
        flat = draft.X.reshape(-1)
        levels = integers(f"{draft.key('X')}/ties", flat.size, -100, 100) + 0.5 * (np.arange(flat.size) % 2)
        levels[:2] = (-100, 155)  # a level is 2^-6 exactly
        draft.X[...] = (levels / 64).reshape(draft.X.shape)


def _ranks(o: Observed, suffix: str) -> list[int]:
    return [o.inputs[f"{name}_{suffix}"].ndim for name in "WR"]


def _of_type(kind: str) -> Feature:
    return Feature(
        f"{kind}-weights", f"{kind} weights", lambda o: o.inputs["W"].dtype.name == kind, column=kind == "uint8"
    )


def _mark(spec: Any) -> str:
    points = "" if spec.zero_points == "zero" else f"-zero-points-by-{spec.zero_points}"
    return f"{spec.levels}-by-{spec.scales}{points}{'-ties' if spec.ties else ''}"


_LEVELS = (
    # The type of the weights' levels.
    Axis(
        name="levels",
        values=("int8", "uint8"),
        forbidden=(
            Violation("shapes.scales", "load", "there is one scale more than there are directions", _one_scale_more),
            Violation("types.zero-points", "check", "zero points have not the type of their levels", _other_sign),
        ),
        features=(
            Feature("per-channel", "a scale for each channel", lambda o: 2 in _ranks(o, "scale"), column=True),
            Feature(
                "mixed-shapes",
                "scales by channel and zero points by direction",
                lambda o: _ranks(o, "scale") != _ranks(o, "zero_point"),
            ),
            *map(_of_type, ("int8", "uint8")),
            Feature("ties", case=lambda spec: spec.ties),
            Feature("one-sign", case=lambda spec: spec.data == "one-sign"),
        ),
        marked=_mark,
        fill=_fill_levels,
    ),
    # A scale for each direction or channel. Zero points likewise, or the middle of the type for all ("zero").
    Axis(name="scales", values=("direction", "channel")),
    Axis(name="zero_points", values=("zero", "direction", "channel"), rare=("channel",)),
    # Half of X lies midway between two levels.
    Axis(
        name="ties",
        values=(False, True),
        rare=(True,),
        rules=(Rule(("data",), lambda data: data != "dense"),),
    ),
)
_ALL_ZERO = Rule((), lambda: True, ("subnormal-weights",))  # the levels of such weights
_SHARED = (axis for axis in RECURRENT_AXES if axis not in QUANTIZED and axis.name not in _WITHOUT)


@dataclass(frozen=True, repr=False)
class QuantizedSpec(CaseSpec):
    """One model of DynamicQuantizeLSTM and its inputs. Fields of LSTM without an axis here keep their defaults."""

    axes = (
        *(replace(axis, rules=(*axis.rules, _ALL_ZERO)) if axis.name == "extremes" else axis for axis in _SHARED),
        *_LEVELS,
    )
    operators = (OP,)
    lacking = tuple(axis for axis in RECURRENT_AXES if axis.name in _WITHOUT)

    levels: str = "int8"
    scales: str = "direction"
    zero_points: str = "zero"
    ties: bool = False

    __hash__ = CaseSpec.__hash__


class _Dynamic(CellFamily):
    """Cases of DynamicQuantizeLSTM."""

    operators, spec = (OP,), QuantizedSpec

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        return inherited_violations(op, version, QuantizedSpec)


register(_Dynamic())

"""Cases of com.microsoft::DynamicQuantizeLSTM: LSTM's axes, and one of their own for what weights are held in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...reference import OperatorVersion
from ..axes.axis import Axis, Domain, Field, Rule, but
from ..axes.generator import integers, uniform
from ..axes.observed import Observed
from ..axes.recurrent import RECURRENT_AXES
from ..axes.tensors.draft import TensorDraft, gain
from ..axes.tensors.extremes import EXTREMES
from ..axes.violation import Draft, Violation
from ..profiles.recurrent import CellFamily
from ..specs.illegal import inherited_violations
from ..specs.spec import RecurrentSpec, spec_class

OP = "DynamicQuantizeLSTM"
_WITHOUT = ("layout", "linear_before_reset", "output_sequence", "opset")


def _one_scale_more(draft: Draft) -> None:
    for name in ("W_scale", "R_scale"):
        draft.inputs[name] = np.concatenate((draft.inputs[name], draft.inputs[name][:1]))


def _other_sign(draft: Draft) -> None:
    for name in ("W_zero_point", "R_zero_point"):
        zero = draft.inputs[name]
        draft.inputs[name] = zero.astype(np.uint8 if zero.dtype == np.int8 else np.int8)


class _Levels(Axis):
    """The type of the weights' levels; a scale for each direction or channel; the same of zero points, which may be
    zero (the middle of uint8) throughout. With ``ties`` half of X lies midway between two levels."""

    name = "levels"
    fields = (
        Field("levels", str, "int8"),
        Field("scales", str, "direction"),
        Field("zero_points", str, "zero"),
        Field("ties", bool, False),
    )
    part = "model"
    forbidden = (
        Violation("shapes.scales", "load", "there is one scale more than there are directions", _one_scale_more),
        Violation("types.zero-points", "check", "zero points have not the type of their levels", _other_sign),
    )
    rules = (Rule("ties", False, ("data",), lambda row: row["data"] != "dense"),)
    words = MappingProxyType({
        "per-channel": "a scale for each channel", "mixed-shapes": "scales by channel and zero points by direction",
        **{f"{kind}-weights": f"{kind} weights" for kind in ("int8", "uint8")},
    })  # fmt: skip
    columns = ("per-channel", "uint8-weights")

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        kinds = Domain(("direction", "channel"))
        points = Domain(("zero", "direction"), rare=("channel",))
        ties = Domain((False,), rare=(True,))
        return {"levels": Domain(("int8", "uint8")), "scales": kinds, "zero_points": points, "ties": ties}

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        kind = np.iinfo(spec.levels)
        raised = 8 if spec.extremes == "subnormal" else 0  # so that no product of steps is subnormal
        for name, columns in (("W", draft.I), ("R", draft.H)):
            key, channels = f"{OP}/{name}/{spec.weights_seed}", 4 * draft.H
            by = {"direction": (draft.D,), "channel": (draft.D, channels)}
            of_scale, of_zero = by[spec.scales], by[spec.scales if spec.zero_points == "zero" else spec.zero_points]
            # Dense weights lie between -2^gain and 2^gain: some 90 levels to either side.
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
        if raised:  # Half of X is larger: the step is about the least normal number, so some of the rest are a level.
            draft.X.reshape(-1)[...] *= np.resize((256.0, 2.0), draft.X.size)
        if spec.ties and draft.X.size > 1:
            flat = draft.X.reshape(-1)
            levels = integers(f"{draft.key('X')}/ties", flat.size, -100, 100) + 0.5 * (np.arange(flat.size) % 2)
            levels[:2] = (-100, 155)  # a level is 2^-6 exactly
            draft.X[...] = (levels / 64).reshape(draft.X.shape)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        scales = [observed.inputs[f"{name}_scale"].ndim for name in "WR"]
        zeros = [observed.inputs[f"{name}_zero_point"].ndim for name in "WR"]
        return {
            "per-channel": 2 in scales,
            "mixed-shapes": scales != zeros,
            **{f"{name}-weights": observed.inputs["W"].dtype.name == name for name in ("int8", "uint8")},
        }

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"ties": spec.ties, "one-sign": spec.data == "one-sign"}

    def mark(self, spec: Any) -> str:
        points = "" if spec.zero_points == "zero" else f"-zero-points-by-{spec.zero_points}"
        return f"{spec.levels}-by-{spec.scales}{points}{'-ties' if spec.ties else ''}"


_ALL_ZERO = Rule("extremes", "none", (), lambda row: True, ("subnormal-weights",))  # the levels of such weights
_EXTREMES = but(EXTREMES, rules=(*EXTREMES.rules, _ALL_ZERO))
_SHARED = (axis for axis in RECURRENT_AXES if not axis.block and axis.name not in _WITHOUT)
_AXES = (*(_EXTREMES if axis is EXTREMES else axis for axis in _SHARED), _Levels())


class _DynamicQuantizeBase(RecurrentSpec):
    """One model of DynamicQuantizeLSTM and its inputs; its fields are those of LSTM's axes and of :class:`_Levels`."""

    operators = (OP,)
    lacking = tuple(axis for axis in RECURRENT_AXES if axis.name in _WITHOUT)
    layout, opset, quantization = 0, "first", "none"


QuantizedSpec: Any = spec_class("QuantizedSpec", _AXES, _DynamicQuantizeBase, __name__)


class _Dynamic(CellFamily):
    """Cases of DynamicQuantizeLSTM."""

    operators, spec = (OP,), QuantizedSpec

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        return inherited_violations(op, version, QuantizedSpec)


DYNAMIC_QUANTIZE_FAMILY = _Dynamic()

"""What constants are held in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .quantization import BLOCK, INTEGERS, can_be_quantized, depends

__all__ = ["WEIGHT_TYPE"]

_WITHOUT_WEIGHTS = ("outputs", "data", "X", "B", "states", "Y", "Y_h", "Y_c")


class _WeightType(Axis):
    """``same`` as X; ``u8``, ``s8``, ``u16``, ``s16``: W, R, P and what :mod:`.bias_type` leaves to it. NPUs have
    X and states in 16 bits beside weights in 8."""

    name = "weight_type"
    fields = (Field("weight_type", str, "same"),)
    part = "model"
    block = BLOCK
    order = ("same", *INTEGERS)
    rules = (
        depends("weight_type", "same", order[1:]),
        Rule(
            "weight_type",
            "same",
            ("quantization",),
            lambda row: row["weight_type"] == row["quantization"],
            INTEGERS,
            kind="same",
        ),
        Rule(
            "weight_type",
            "same",
            ("quantized_tensors",),
            lambda row: row["quantized_tensors"] in _WITHOUT_WEIGHTS,
            INTEGERS,
        ),
    )
    words = {"other-weight-type": "weights of another integer type than X"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        return {"weight_type": Domain(("same",), rare=self.order[1:], often=("same", *self.order), share=0.5)}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"other-weight-type": spec.weight_type != "same"}

    def mark(self, spec: Any) -> str:
        return "" if spec.weight_type == "same" else f"weights-{spec.weight_type}"


WEIGHT_TYPE = _WeightType()

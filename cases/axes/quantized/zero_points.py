"""Where the zero points of X, states and outputs lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .quantization import BLOCK, can_be_quantized, depends

__all__ = ["ZERO_POINTS"]


class _ZeroPoints(Axis):
    """``calibrated``; ``lowest``, ``highest``: at an end of their type, so that numbers of one sign alone are held;
    ``middle``."""

    name = "zero_points"
    fields = (Field("zero_points", str, "calibrated"),)
    part = "model"
    block = BLOCK
    order = ("calibrated", "lowest", "highest", "middle")
    rules = (
        depends("zero_points", "calibrated", order[1:]),
        Rule(
            "zero_points",
            "calibrated",
            ("quantized_tensors",),
            lambda row: row["quantized_tensors"] in ("weights", "W", "R", "B", "P"),
            order[1:],
        ),
    )
    words = {"zero-point-at-an-end": "a zero point at an end of its type"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        return {
            "zero_points": Domain(("calibrated",), rare=self.order[1:], often=("calibrated", *self.order), share=0.5)
        }

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"zero-point-at-an-end": spec.zero_points in ("lowest", "highest")}

    def mark(self, spec: Any) -> str:
        return "" if spec.zero_points == "calibrated" else f"zero-{spec.zero_points}"


ZERO_POINTS = _ZeroPoints()

"""What scales are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .quantization import BLOCK, can_be_quantized, depends

__all__ = ["SCALES"]

_WITH_X = ("all", "inputs", "data", "X")


class _Scales(Axis):
    """``calibrated``: of so few digits that they are the same everywhere, and no powers of 2; ``power``: powers of
    2; ``saturating``: half of what X and outputs need, so that their ends saturate; ``zeroing``: so large a one of X
    that all of it becomes 0."""

    name = "scales"
    fields = (Field("scales", str, "calibrated"),)
    part = "model"
    block = BLOCK
    order = ("calibrated", "power", "saturating", "zeroing")
    rules = (
        depends("scales", "calibrated", order[1:]),
        Rule(
            "scales",
            "calibrated",
            ("quantized_tensors",),
            lambda row: row["quantized_tensors"] not in _WITH_X,
            order[2:],
        ),
    )
    words = {
        "scales-of-2": "scales that are powers of 2",
        "levels-saturate": "levels at the ends of their type",
        "scale-to-zero": "a scale that makes all 0",
    }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        return {"scales": Domain(("calibrated",), rare=self.order[1:], often=("calibrated", *self.order), share=0.5)}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {
            "scales-of-2": spec.scales == "power",
            "levels-saturate": spec.scales == "saturating",
            "scale-to-zero": spec.scales == "zeroing",
        }

    def mark(self, spec: Any) -> str:
        return "" if spec.scales == "calibrated" else f"scales-{spec.scales}"


SCALES = _Scales()

"""Along which axis weights have scales and zero points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .quantization import BLOCK, can_be_quantized, depends

__all__ = ["CHANNELS"]

_WITH_WEIGHTS = ("all", "inputs", "weights", "W", "R")


class _Channels(Axis):
    """``tensor``: one of each for a tensor; ``directions``: along axis 0 of W, R and P; ``rows``: along axis 1 of W
    and R, shared by both directions."""

    name = "channels"
    fields = (Field("channels", str, "tensor"),)
    part = "model"
    block = BLOCK
    order = ("tensor", "directions", "rows")
    rules = (
        depends("channels", "tensor", order[1:]),
        Rule(
            "channels",
            "tensor",
            ("quantized_tensors",),
            lambda row: row["quantized_tensors"] not in _WITH_WEIGHTS,
            order[1:],
        ),
    )
    words = {"per-channel": "scales per channel"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        return {"channels": Domain(("tensor",), rare=self.order[1:], often=("tensor", *self.order), share=0.5)}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"per-channel": spec.channels != "tensor"}

    def mark(self, spec: Any) -> str:
        return "" if spec.channels == "tensor" else f"by-{spec.channels}"


CHANNELS = _Channels()

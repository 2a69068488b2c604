"""What B is held in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .quantization import BLOCK, can_be_quantized, depends

__all__ = ["BIAS_TYPE"]

_WITH_B = ("all", "inputs", "weights", "B")


class _BiasType(Axis):
    """``same`` as the weights; ``float``; ``product``: int32 of the scale that products of X and W have, as integer
    kernels add it; ``int32`` of a scale of its own."""

    name = "bias_type"
    fields = (Field("bias_type", str, "same"),)
    part = "model"
    block = BLOCK
    order = ("same", "float", "product", "int32")
    rules = (
        depends("bias_type", "same", order[1:]),
        Rule("bias_type", "same", ("bias",), lambda row: not row["bias"], order[1:]),
        Rule(
            "bias_type", "same", ("quantized_tensors",), lambda row: row["quantized_tensors"] not in _WITH_B, order[1:]
        ),
        Rule(
            "bias_type",
            "same",
            ("quantized_tensors",),
            lambda row: row["quantized_tensors"] not in ("all", "inputs"),
            ("float", "product"),
        ),
    )
    words = {"integer-bias": "a bias in int32", "product-bias": "a bias of the scale of products"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        return {"bias_type": Domain(("same",), rare=self.order[1:], often=("same", *self.order), share=0.5)}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {
            "integer-bias": spec.bias_type in ("product", "int32"),
            "product-bias": spec.bias_type == "product",
        }

    def mark(self, spec: Any) -> str:
        return "" if spec.bias_type == "same" else f"bias-{spec.bias_type}"


BIAS_TYPE = _BiasType()

"""Empty names behind the last input and output of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import SELDOM, Axis, Domain, Field, Rule


class _Placeholders(Axis):
    """What is left out at the end of inputs and outputs stands there by an empty name, as some exporters write it.
    Kernels count inputs to see whether one is there."""

    name = "placeholders"
    fields = (Field("placeholders", bool, False),)
    part = "model"
    rules = (Rule("placeholders", False, ("quantization",), lambda row: row["quantization"] != "none", (True,)),)
    levels = {"basic": (False,), "sequence": (False,)}
    words = {"placeholders": "empty names for what is left out at the end"}
    marked = "placeholders"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"placeholders": SELDOM}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.illegal and spec.placeholders:
            return "placeholders", "False in a forbidden model"
        return None

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"placeholders": spec.placeholders}


PLACEHOLDERS = _Placeholders()

"""Coupled gates: input_forget of LSTM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..observed import Observed
from ..violation import Violation, has, set_to, unknown_attribute


class _InputForget(Axis):
    """The attribute ``input_forget``."""

    name = "input_forget"
    fields = (Field("input_forget", int | None, None),)
    part = "model"
    forbidden = (
        Violation(
            "input-forget.two",
            "load",
            "input_forget is 2",
            set_to("input_forget", 2),
            applies=has("input_forget"),
            open=True,
        ),
        unknown_attribute("input_forget", "only LSTM defines"),
    )
    levels = {"basic": (None,), "sequence": (None,)}
    required = {"complete": ("input-forget",)}
    words = {"input-forget": "input_forget", "uncoupled": "input_forget off"}
    columns = ("input-forget",)

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if "input_forget" not in operator.attributes:
            return {}
        return {"input_forget": Domain((None, 1), rare=(0,), often=(None, None, 1, 1, 0))}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.input_forget is None else {"input_forget": spec.input_forget}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        coupled = bool(observed.attributes.get("input_forget"))
        return {"input-forget": coupled, "uncoupled": not coupled}

    def mark(self, spec: Any) -> str:
        return "coupled" if spec.input_forget else ""


INPUT_FORGET = _InputForget()

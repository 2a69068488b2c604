"""Coupled gates: input_forget of LSTM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Having
from ..context import Context, having_each
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
    having = {"input_forget": Having(("input_forget",), lambda row: row.input_forget == 1)}
    levels = {"basic": (None,), "sequence": (None,)}
    required = {"complete": ("input-forget",)}
    words = {"input-forget": "input_forget", "uncoupled": "input_forget off"}
    columns = ("input-forget",)
    lacked = (9, (None,))
    seldom = (1,)

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if "input_forget" not in operator.attributes:
            return {}
        return {"input_forget": Domain((None, 1), rare=(0,), often=(None, None, 1, 1, 0))}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.input_forget is None else {"input_forget": spec.input_forget}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        if any("input_forget" in operator.attributes for operator in operators):
            yield from having_each("input_forget", "input_forget", bool)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        coupled = bool(observed.attributes.get("input_forget"))
        return {"input-forget": coupled, "uncoupled": not coupled}

    def mark(self, spec: Any) -> str:
        return "coupled" if spec.input_forget else ""


INPUT_FORGET = _InputForget()

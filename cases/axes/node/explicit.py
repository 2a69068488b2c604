"""The writing down of attributes that have their default value."""

from __future__ import annotations

from collections.abc import Mapping

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..condition import of_values
from ..violation import Violation, set_to


class _Explicit(Axis):
    """Defaults, in words or not. The attributes of other axes replace them."""

    name = "explicit"
    fields = (Field("explicit", bool, False),)
    part = "model"
    # Two ways to write a node at a time make a refusal hard to read.
    rules = (Rule("explicit", False, ("hidden_size",), lambda row: not row["hidden_size"], (True,), kind="open"),)
    forbidden = (
        Violation(
            "attributes.unknown",
            "check",
            "there is an attribute batch_first, which ONNX does not define",
            set_to("batch_first", 1),
        ),
    )
    conditions = {True: (of_values("defaults written down", "explicit", True),)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"explicit": Domain((False, True), often=(False, False, True))}


EXPLICIT = _Explicit()

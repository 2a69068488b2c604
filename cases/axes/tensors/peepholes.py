"""Peepholes, there or not, where the operator knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion, cell_named
from ..axis import Axis, Domain, Field
from ..condition import of_values
from ..observed import Observed
from ..violation import Violation, has, sized
from .draft import TensorDraft


class _Peepholes(Axis):
    """The input P of LSTM."""

    name = "peepholes"
    fields = (Field("peepholes", bool, False),)
    part = "model"
    forbidden = (
        Violation(
            "shapes.P-length",
            "load",
            "P has weights for four gates, not three",
            sized("P", 1, lambda n: n // 3 * 4),
            {"peepholes": True, "initial": "all"},
            has("P"),
        ),
    )
    levels = {"basic": (False,), "sequence": (False,)}
    required = {"complete": ("peepholes",)}
    words = {"peepholes": "peepholes P"}
    columns = ("peepholes",)
    conditions = {True: (of_values(words["peepholes"], "peepholes", True),)}
    marked = "peepholes"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not cell_named(operator.known_as).peepholes:
            return {}
        return {"peepholes": Domain((False, True), often=(True, True, False))}

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        if spec.peepholes:
            draft.hold("P", (draft.D, len(draft.cell.peepholes) * draft.H), 0)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"peepholes": "P" in observed.inputs}


PEEPHOLES = _Peepholes()

"""Peepholes, there or not, where the operator knows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion, cell_named
from ..axis import Axis, Domain, Field, Having
from ..condition import of_values
from ..context import Context, values_of
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
    having = {"P": Having(("peepholes",), lambda row: row.peepholes)}
    levels = {"basic": (False,), "sequence": (False,)}
    required = {"complete": ("peepholes",)}
    words = {"peepholes": "peepholes P"}
    columns = ("peepholes",)
    lacked = (8, (False,))
    conditions = {True: (of_values(words["peepholes"], "peepholes", True),)}
    seldom = (True,)
    marked = "peepholes"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not cell_named(operator.known_as).peepholes:
            return {}
        return {"peepholes": Domain((False, True), often=(True, True, False))}

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        if spec.peepholes:
            draft.hold("P", (draft.D, len(draft.cell.peepholes) * draft.H), 0)

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        if self.domains(operators[-1]):
            yield from values_of("peepholes", (False, True))

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"peepholes": "P" in observed.inputs}


PEEPHOLES = _Peepholes()

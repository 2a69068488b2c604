"""Another session that is alive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import SELDOM, Axis, Domain, Field
from ..context import Context, eventful
from .turns import CourseDraft, Turn


class _Beside(Axis):
    """A session of the same node with other weights is made and run between two runs of the case's own: neither may
    know of the other."""

    name = "beside"
    fields = (Field("beside", bool, False),)
    part = "session"
    levels = {"basic": (False,), "sequence": (False,)}
    words = {"two-sessions": "another session at the same time"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"beside": SELDOM}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.beside:
            draft.needs.add("several")
            draft.turns[:0] = [Turn(0), Turn(0, weights=1, session=1)]

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield eventful("beside")

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"two-sessions": spec.beside}

    def mark(self, spec: Any) -> str:
        return "beside" if spec.beside else ""


BESIDE = _Beside()

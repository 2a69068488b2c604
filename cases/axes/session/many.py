"""Many runs of the session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import SELDOM, Axis, Domain, Field
from ..context import Context, eventful
from .turns import CourseDraft, Turn

_OTHER = 4  # number of a run with other data
_TIMES = 16


class _Many(Axis):
    """The runs of the session, two at least, take turns sixteen times: counters, pools and caches come round."""

    name = "many"
    fields = (Field("many", bool, False),)
    part = "session"
    levels = {"basic": (False,), "sequence": (False,)}
    words = {"many-runs": "many earlier runs"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"many": SELDOM}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.many:
            draft.needs.add("many")
            if len(set(draft.turns)) == 1:
                draft.turns.insert(0, Turn(_OTHER))
            draft.turns *= _TIMES

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield eventful("many")

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"many-runs": spec.many}

    def mark(self, spec: Any) -> str:
        return "many" if spec.many else ""


MANY = _Many()

"""A refusal of inputs by the session before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import SELDOM, Axis, Domain, Field
from ..context import Context, eventful
from .turns import CourseDraft


class _AfterRefusal(Axis):
    """The case's own inputs run, then X comes with a column too many, which cannot be right, then its own run again."""

    name = "after_refusal"
    fields = (Field("after_refusal", bool, False),)
    part = "session"
    levels = {"basic": (False,), "sequence": (False,)}
    words = {"after-refusal": "an earlier run that was refused"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"after_refusal": SELDOM}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.after_refusal:
            draft.needs.add("refusals")
            draft.refused = True

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield eventful("after_refusal")

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"after-refusal": spec.after_refusal}

    def mark(self, spec: Any) -> str:
        return "refusal" if spec.after_refusal else ""


AFTER_REFUSAL = _AfterRefusal()

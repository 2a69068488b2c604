"""A run of the session with other weights before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import SELDOM, Axis, Domain, Field, Rule
from ..context import Context, eventful
from .turns import CourseDraft, Turn


class _Reweighed(Axis):
    """Weights are fed, and are others in the run before: what a kernel packs or remembers of them must not stay."""

    name = "reweighed"
    fields = (Field("reweighed", bool, False),)
    part = "session"
    # Weights that are constants cannot change.
    rules = (Rule("reweighed", False, ("weights",), lambda row: row["weights"] == "initializer", (True,)),)
    levels = {"basic": (False,), "sequence": (False,)}
    words = {"other-weights": "an earlier run with other weights"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"reweighed": SELDOM}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.reweighed:
            draft.needs.add("weights")
            draft.turns.insert(0, Turn(0, weights=1))

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield eventful("reweighed")

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"other-weights": spec.reweighed}

    def mark(self, spec: Any) -> str:
        return "reweighed" if spec.reweighed else ""

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        return {**row, "weights": "input"} if row.get("reweighed") else row


REWEIGHED = _Reweighed()

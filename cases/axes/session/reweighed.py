"""A run of the session with other weights before."""

from __future__ import annotations

from typing import Any

from ....reference import OperatorVersion
from ..axis import Rule
from .event import Event
from .turns import CourseDraft, Turn


class _Reweighed(Event):
    """Weights are fed, and are others in the run before: what a kernel packs or remembers of them must not stay."""

    name = "reweighed"
    # Weights that are constants cannot change.
    rules = (Rule("reweighed", False, ("weights",), lambda row: row["weights"] == "initializer", (True,)),)
    words = {"other-weights": "an earlier run with other weights"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.reweighed:
            draft.needs.add("weights")
            draft.turns.insert(0, Turn(0, weights=1))

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        return {**row, "weights": "input"} if row.get("reweighed") else row


REWEIGHED = _Reweighed()

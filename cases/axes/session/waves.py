"""Runs of the session that grow, shrink and grow again."""

from __future__ import annotations

from typing import Any

from ....reference import OperatorVersion
from ..axis import Rule
from ..tensors.draft import TensorDraft
from .event import Event
from .turns import CourseDraft, Turn

_UP, _DOWN = 2, 3  # numbers of runs; those of `reruns` are 0 and 1


class _Waves(Event):
    """Before the case's own run there are runs of more steps and rows, of fewer, and of more again."""

    name = "waves"
    # Inputs of another size have no place in a model whose dimensions are numbers.
    rules = (Rule("waves", False, ("dimensions",), lambda row: row["dimensions"] == "static", (True,)),)
    words = {"waves": "earlier runs of sizes that go up and down"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.waves:
            draft.needs.add("sizes")
            draft.turns[:0] = [Turn(_UP), Turn(_DOWN), Turn(_UP)]

    def resize(self, spec: Any, draft: TensorDraft) -> None:
        if draft.run == _UP:
            draft.T, draft.N = draft.T + 3, draft.N + 2
        if draft.run == _DOWN:
            draft.T, draft.N = max(draft.T - 2, 1), max(draft.N - 1, 1)

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        return {**row, "dimensions": "symbolic"} if row.get("waves") else row


WAVES = _Waves()

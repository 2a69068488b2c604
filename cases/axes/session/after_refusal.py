"""A refusal of inputs by the session before."""

from __future__ import annotations

from typing import Any

from .event import Event
from .turns import CourseDraft


class _AfterRefusal(Event):
    """The case's own inputs run, then X comes with a column too many, which cannot be right, then its own run again."""

    name = "after_refusal"
    marked = "refusal"
    words = {"after-refusal": "an earlier run that was refused"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.after_refusal:
            draft.needs.add("refusals")
            draft.refused = True


AFTER_REFUSAL = _AfterRefusal()

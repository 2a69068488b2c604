"""Another session that is alive."""

from __future__ import annotations

from typing import Any

from .event import Event
from .turns import CourseDraft, Turn


class _Beside(Event):
    """A session of the same node with other weights is made and run between two runs of the case's own: neither may
    know of the other."""

    name = "beside"
    words = {"two-sessions": "another session at the same time"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.beside:
            draft.needs.add("several")
            draft.turns[:0] = [Turn(0), Turn(0, weights=1, session=1)]


BESIDE = _Beside()

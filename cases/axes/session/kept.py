"""Outputs that are held while the session runs again."""

from __future__ import annotations

from typing import Any

from .event import Event
from .turns import CourseDraft, Turn

_AFTER = 5  # number of a run with other data


class _Kept(Event):
    """The outputs of every run are held by who asked for them, and looked at again once other data has been run."""

    name = "kept"
    words = {"held-outputs": "outputs held during later runs"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.kept:
            draft.needs.add("held")
            draft.turns.append(Turn(_AFTER))
            draft.looks = True


KEPT = _Kept()

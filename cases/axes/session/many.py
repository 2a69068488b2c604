"""Many runs of the session."""

from __future__ import annotations

from typing import Any

from .event import Event
from .turns import CourseDraft, Turn

_OTHER = 4  # number of a run with other data
_TIMES = 16


class _Many(Event):
    """The runs of the session, two at least, take turns sixteen times: counters, pools and caches come round."""

    name = "many"
    words = {"many-runs": "many earlier runs"}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.many:
            draft.needs.add("many")
            if len(set(draft.turns)) == 1:
                draft.turns.insert(0, Turn(_OTHER))
            draft.turns *= _TIMES


MANY = _Many()

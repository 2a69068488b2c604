"""Outputs that are held while the session runs again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import SELDOM, Axis, Domain, Field
from ..context import Context, eventful
from .turns import CourseDraft, Turn

_AFTER = 5  # number of a run with other data


class _Kept(Axis):
    """The outputs of every run are held by who asked for them, and looked at again once other data has been run."""

    name = "kept"
    fields = (Field("kept", bool, False),)
    part = "session"
    levels = {"basic": (False,), "sequence": (False,)}
    words = {"held-outputs": "outputs held during later runs"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"kept": SELDOM}

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.kept:
            draft.needs.add("held")
            draft.turns.append(Turn(_AFTER))
            draft.looks = True

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield eventful("kept")

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"held-outputs": spec.kept}

    def mark(self, spec: Any) -> str:
        return "kept" if spec.kept else ""


KEPT = _Kept()

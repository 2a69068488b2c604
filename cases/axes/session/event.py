"""Things that a session does beside the case's own run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import SELDOM, Axis, Domain, Field
from ..context import Context


class Event(Axis):
    """Something that a session does or does not do, and seldom does. It has one feature, in its ``words``."""

    part = "session"
    levels = {"basic": (False,), "sequence": (False,)}

    def __init__(self) -> None:
        self.fields = (Field(self.name, bool, False),)
        self.marked = self.marked or self.name

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {self.name: SELDOM}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        """Six of these with all pairs of others would be most of what is counted, and what they break seldom depends on
        two more: they count in faults of one context."""
        yield Context(self.name, (self.name,), lambda row: bool(getattr(row, self.name)), pairs_only=True)

    def used(self, spec: Any) -> Mapping[str, bool]:
        return dict.fromkeys(self.words, getattr(spec, self.name))

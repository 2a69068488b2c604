"""Things that a session does beside the case's own run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import SELDOM, Axis, Domain, Field


class Event(Axis):
    """Something that a session does or does not do, and seldom does. It has one feature, in its ``words``."""

    part = "session"
    levels = {"basic": (False,), "sequence": (False,)}

    def __init__(self) -> None:
        self.fields = (Field(self.name, bool, False),)
        self.marked = self.marked or self.name

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {self.name: SELDOM}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return dict.fromkeys(self.words, getattr(spec, self.name))

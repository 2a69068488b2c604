"""A node as a model contains it, which may be illegal, and its diagnostics."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol

from ..documents.operators import OperatorVersion


class Written(Protocol):
    """A node that may violate its document."""

    @property
    def operator(self) -> OperatorVersion: ...
    @property
    def attributes(self) -> Collection[str]:
        """Names of the attributes that the node has."""

    @property
    def inputs(self) -> Collection[str]:
        """Formal names of the inputs that the node has."""

    def given(self, name: str) -> Any:
        """Return the value of an attribute; None if it is absent or of the wrong kind."""

    def chosen(self, name: str) -> Any:
        """Return the value of an attribute, or its default."""


class Diagnostic(NamedTuple):
    """A violation of a document: the topic of the clause, and a message."""

    topic: str
    message: str


class StatedSize(NamedTuple):
    """A size that an attribute states: its value, and the attribute in words."""

    value: int
    by: str

"""A node as a model holds it, before anything runs: what an operator looks at to say what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, Protocol

from ..documents.operators import OperatorVersion


class Written(Protocol):
    """A node that may break its document."""

    @property
    def operator(self) -> OperatorVersion: ...
    @property
    def attributes(self) -> Collection[str]:
        """Names of the attributes that are written down."""

    @property
    def inputs(self) -> Collection[str]:
        """Formal names of the inputs that are given."""

    def given(self, name: str) -> Any:
        """The value of an attribute where it is there and of its kind, None elsewhere."""

    def chosen(self, name: str) -> Any:
        """The value of an attribute, its default where it is not there."""


class Diagnostic(NamedTuple):
    """A breach of a document: the topic of a clause, and a message."""

    topic: str
    message: str


class Said(NamedTuple):
    """A size that something else than a shape says: its value, and in words what says it."""

    value: int
    by: str

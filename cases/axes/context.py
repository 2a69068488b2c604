"""Contexts: what may be there when a part of an operator goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

HALVES = ("forward", "reverse")
"""The ways in which one direction of a node runs: where both are there, each is a half of the case."""


class Context(Struct, frozen=True):
    """One thing that may be so in a case.

    fields
        The fields of a case that ``holds`` asks for.
    holds
        Whether it is so, for a case or a row with these fields.
    half
        Whether it is about one direction of the node alone, which rows have as the field ``half``.
    pairs_only
        Whether it counts in faults of one context alone: it is one of a long list whose classes count in all.
    """

    id: str
    fields: tuple[str, ...]
    holds: Callable[[Any], bool]
    half: bool = False
    pairs_only: bool = False


@dataclass(frozen=True)
class Need:
    """The needs for a part to show; see :class:`Context`."""

    name: str
    fields: tuple[str, ...]
    holds: Callable[[Any], bool]


def values_of(field: str, values: Sequence[Any]) -> Iterator[Context]:
    """A context for each value of a field."""
    for value in values:
        yield Context(f"{field}={value}", (field,), lambda row, value=value: getattr(row, field) == value)  # type: ignore[misc]


def having_each(id: str, field: str, holds: Callable[[Any], bool]) -> Iterator[Context]:
    """A context of which a field decides whether it is there, and one that it is not."""
    yield Context(id, (field,), lambda row: holds(getattr(row, field)))
    yield Context(f"no {id}", (field,), lambda row: not holds(getattr(row, field)))

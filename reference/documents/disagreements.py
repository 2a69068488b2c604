"""Disagreements of a shipped kernel with its operator's document, as a table that is loaded and checked."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from .clauses import clause_named

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DISAGREEMENT_KINDS = ("numbers", "state", "interface", "memory", "producer")


class Disagreement(Struct, frozen=True):
    """One place where document and kernel part.

    clause
        Id of the clause that is broken or left open.
    kind
        One of DISAGREEMENT_KINDS.
    kernel
        What the kernel does.
    source
        Files and lines of the kernel where it stands.
    when, size
        The condition under which it shows, and how much it is.
    foundation
        What of C++ it rests on, where that leaves it undefined.
    cases
        Patterns of the ids of cases that show it; none where a fault tells it from what is returned.
    bounded
        Whether it stays within what the arithmetic allows: every case that passes shows it.
    """

    id: str
    clause: str
    kind: str
    kernel: str
    source: tuple[str, ...]
    when: str
    size: str
    foundation: str = ""
    cases: tuple[str, ...] = ()
    bounded: bool = False


@cache
def read_disagreements(path: Path) -> tuple[Disagreement, ...]:
    """The table. Raises ValueError for a row that repeats an id or has a kind that there is not, KeyError for a clause
    that there is not, TypeError for a key that there is not."""
    by_id: dict[str, Disagreement] = {}
    for row in tomllib.loads(path.read_text(encoding="utf-8"))["disagreement"]:
        fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}
        one = Disagreement(**fields)
        if one.id in by_id or one.kind not in DISAGREEMENT_KINDS:
            raise ValueError(f"{path.name}: {one.id}: stands there twice, or is of no known kind")
        clause_named(one.clause)
        by_id[one.id] = one
    return tuple(by_id.values())

"""Where ExtendedLSTM as shipped in amd-quark 0.13 parts from its document, as a table that is loaded and checked."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from .clauses import clause_named

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["DISAGREEMENT_KINDS", "Disagreement", "disagreements"]

DISAGREEMENT_KINDS = ("numbers", "state", "interface", "memory", "producer")


@dataclass(frozen=True)
class Disagreement:
    """One place where document and kernel part.

    clause
        Id of the clause that is broken or left open.
    kind
        One of DISAGREEMENT_KINDS.
    kernel
        What the kernel does.
    source
        Files and lines of amd-quark 0.13 where it stands.
    when, size
        The condition under which it shows, and how much it is.
    foundation
        What of C++ it rests on, where that leaves it undefined.
    cases
        Patterns of the ids of cases that show it; none where a deviation tells it from what is returned.
    bounded
        Whether it stays within what the fixed-point class allows: every case that passes shows it.
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
def disagreements() -> tuple[Disagreement, ...]:
    """The table. Raises ValueError for a row that repeats an id or has a kind that there is not, KeyError for a clause
    that there is not, TypeError for a key that there is not."""
    text = resources.files(__package__ or "onnxspec.reference").joinpath("extended_lstm_disagreements.toml")
    found: dict[str, Disagreement] = {}
    for row in tomllib.loads(text.read_text(encoding="utf-8"))["disagreement"]:
        fields: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}
        one = Disagreement(**fields)
        if one.id in found or one.kind not in DISAGREEMENT_KINDS:
            raise ValueError(f"extended_lstm_disagreements.toml: {one.id}: stands there twice, or is of no known kind")
        clause_named(one.clause)
        found[one.id] = one
    return tuple(found.values())

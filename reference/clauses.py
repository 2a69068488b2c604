"""Clauses: what the documents say, statement by statement, in our own words, as tables that are loaded and checked."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from .operators import OPERATORS, versions_of
from .readings import OPTIONS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["STATUSES", "Clause", "ClauseError", "clause_named", "clauses_of", "parse_clauses"]

STATUSES = ("stated", "implied", "convention", "undefined")
_KEYS = {"id", "text", "status", "versions", "source", "needs", "reading", "implementers"}


class ClauseError(ValueError):
    """A clause table says something that cannot be: the message names the table, the clause and the key."""


@dataclass(frozen=True)
class Clause:
    """One statement about an operator.

    status
        ``stated``: the document says it; ``implied``: it follows from its equations; ``convention``: the document is
        silent and implementers agree; ``undefined``: it leaves it open.
    versions
        since_versions for which it holds.
    source
        Where it stands.
    needs
        Features (see onnxspec.cases) that a case must have to exercise it.
    reading
        The field of Readings that holds its meanings, where there is more than one to compute with.
    implementers
        For a convention: who follows it.
    """

    id: str
    text: str
    status: str
    versions: tuple[int, ...]
    source: str
    needs: frozenset[str]
    reading: str | None = None
    implementers: tuple[str, ...] = ()

    @property
    def may_fail(self) -> bool:
        """Whether a target that breaks it fails. Conventions are findings of their own kind."""
        return self.status in ("stated", "implied")


def parse_clauses(text: str, op_type: str, place: str) -> tuple[Clause, ...]:
    """The clauses of a TOML table. Raises ClauseError, naming `place`, for anything unknown, missing or repeated."""
    try:
        rows: list[dict[str, Any]] = tomllib.loads(text).get("clause", [])
    except tomllib.TOMLDecodeError as error:
        raise ClauseError(f"{place}: {error}") from None
    found: dict[str, Clause] = {}
    known = versions_of(op_type)
    for number, row in enumerate(rows, 1):
        where = f"{place}: clause {row.get('id', f'number {number}')}"
        if unknown := set(row) - _KEYS:
            raise ClauseError(f"{where}: unknown key {', '.join(sorted(unknown))}")
        if missing := {"id", "text", "status", "source"} - set(row):
            raise ClauseError(f"{where}: missing key {', '.join(sorted(missing))}")
        if row["id"] in found:
            raise ClauseError(f"{where}: stands there twice")
        if not row["id"].startswith(f"{op_type.lower()}."):
            raise ClauseError(f"{where}: an id starts with {op_type.lower()}.")
        if row["status"] not in STATUSES:
            raise ClauseError(f"{where}: status is one of {', '.join(STATUSES)}, not {row['status']!r}")
        versions = tuple(row.get("versions", known))
        if strange := set(versions) - set(known):
            raise ClauseError(f"{where}: there is no {op_type} version {', '.join(map(str, sorted(strange)))}")
        if row.get("reading") is not None and row["reading"] not in OPTIONS:
            raise ClauseError(f"{where}: unknown reading {row['reading']!r}; there are: {', '.join(OPTIONS)}")
        if row["status"] == "convention" and len(row.get("implementers", ())) < 2:
            raise ClauseError(f"{where}: a convention names two implementers at least")
        found[row["id"]] = Clause(
            id=row["id"],
            text=" ".join(row["text"].split()),
            status=row["status"],
            versions=versions,
            source=row["source"],
            needs=frozenset(row.get("needs", ())),
            reading=row.get("reading"),
            implementers=tuple(row.get("implementers", ())),
        )
    return tuple(found.values())


@cache
def _table(op_type: str) -> dict[str, Clause]:
    name = f"{op_type.lower()}_clauses.toml"
    text = resources.files(__package__ or "onnxspec.reference").joinpath(name).read_text(encoding="utf-8")
    return {clause.id: clause for clause in parse_clauses(text, op_type, name)}


def clauses_of(op_type: str, since_version: int | None = None, features: Iterable[str] | None = None) -> list[Clause]:
    """The clauses of an operator: all, those of one version, those that a case with these features exercises."""
    has = None if features is None else frozenset(features)
    return [
        clause
        for clause in _table(op_type).values()
        if (since_version is None or since_version in clause.versions) and (has is None or clause.needs <= has)
    ]


def clause_named(id: str) -> Clause:
    """The clause of that id. Raises KeyError."""
    for op_type in OPERATORS:
        if id.startswith(f"{op_type.lower()}."):
            return _table(op_type)[id]
    raise KeyError(id)

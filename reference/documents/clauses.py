"""Clauses: the statements of the documents in our own words, as tables that are loaded and checked."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import replace

from .interpretations import QUESTIONS
from .operators import Document, document_of, operator_names, prefix_of, versions_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Status = Literal["stated", "implied", "convention", "undefined", "arithmetic"]
STATUSES = get_args(Status)

# The beginning of the feature of a model that breaks a clause and must be refused: `illegal:layout` breaks <op>.layout.
ILLEGAL = "illegal:"

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+")

_Text = Annotated[str, Meta(pattern=r"\S")]


class ClauseError(ValueError):
    """An invalid clause table. The message names the table, and the clause or the key."""


class Clause(Struct, frozen=True, forbid_unknown_fields=True):
    """One statement about an operator, as a ``[[clause]]`` of a table has it.

    status
        ``stated``: the document says it; ``implied``: it follows from its equations; ``convention``: the document is
        silent and implementers agree; ``undefined``: the document leaves it open; ``arithmetic``: it follows from the
        format of numbers (NaN, infinity, overflow), and no document speaks of it.
    versions
        since_versions for which it holds; in a table, all of them if it has none.
    source
        Section of the document.
    needs
        Features (see onnxspec.cases) that a case must have to exercise it.
    or_needs
        Features that exercise it as well, all together; empty if there is no second way. So a clause about both a
        computation and invalid models knows its negative cases.
    interpretation
        The field of Interpretations that has its meanings, if there are several to compute with.
    implementers
        For a convention: the runtimes that follow it.
    advice
        Remedy for a node that breaks it, if it differs from that of other operators.
    """

    id: _Text
    text: _Text
    status: Status
    source: _Text
    versions: Annotated[tuple[int, ...], Meta(min_length=1)] = ()
    needs: frozenset[str] = frozenset()
    or_needs: frozenset[str] = frozenset()
    interpretation: _Text | None = None
    implementers: tuple[str, ...] = ()
    advice: str = ""

    @property
    def may_fail(self) -> bool:
        """Whether a target that breaks it fails. Conventions are findings of their own kind."""
        return self.status in ("stated", "implied")

    def exercised_by(self, features: frozenset[str]) -> bool:
        """Return whether a case with these features tries it. An invalid model tries only the clause that it breaks."""
        illegal = _broken(features)
        ways = (self.needs, self.or_needs) if self.or_needs else (self.needs,)
        return any(way <= features and (not illegal or way & illegal) for way in ways)


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """A clause table, see :func:`parse_clauses`."""

    extends: str | None = None
    version: int | None = None
    without: list[str] = []
    clause: list[Clause] = []


@lru_cache(maxsize=1024)  # asked for every clause of a case, and the same for all of them
def _broken(features: frozenset[str]) -> frozenset[str]:
    """Return the features that name the violations of an invalid model."""
    return frozenset(feature for feature in features if feature.startswith(ILLEGAL))


def parse_clauses(text: str, op_type: str, place: str) -> tuple[Clause, ...]:
    """Return the clauses of a TOML table.

    A table that ``extends`` another operator has the clauses of its ``version`` (default: the newest) except for the
    topics ``without``; its own clauses replace those of the same topic.

    Raise ClauseError, naming `place`, for anything unknown, missing, repeated or of the wrong type.
    """
    table = _read(text, place)
    by_id: dict[str, Clause] = {}
    for row in table.clause:
        if row.id in by_id:
            raise ClauseError(f"{place}: clause {row.id} is there twice")
        by_id[row.id] = _clause(row, op_type, place)
    return tuple((_inherited(table, op_type, place) | by_id).values())


def _read(text: str, place: str) -> _Table:
    try:
        return convert(tomllib.loads(text), _Table)
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise ClauseError(f"{place}: {error}") from None


def _base(table: _Table, op_type: str, place: str) -> tuple[str, int] | None:
    """Return the operator and version that a table extends; None if it extends none."""
    if table.extends is None:
        if table.version is not None or table.without:
            raise ClauseError(f"{place}: a table with version or without extends another one")
        return None
    others = [name for name in operator_names() if name != document_of(op_type).name]
    of = next((name for name in others if prefix_of(name) == table.extends), None)
    if of is None:
        raise ClauseError(f"{place}: extends is the prefix of a known operator's clauses, not {table.extends!r}")
    version = versions_of(of)[-1] if table.version is None else table.version
    if version not in versions_of(of):
        raise ClauseError(f"{place}: version is one of {of}: {', '.join(map(str, versions_of(of)))}, not {version!r}")
    return of, version


def _inherited(table: _Table, op_type: str, place: str) -> dict[str, Clause]:
    """Return the clauses of the operator that a table extends, under its own operator's ids."""
    base, without = _base(table, op_type, place), table.without
    if base is None:
        return {}
    of, version = base
    clauses: dict[str, Clause] = {}
    left = set(without)
    for clause in clauses_of(of, version):
        topic = clause.id.removeprefix(f"{document_of(of).prefix}.")
        if topic in without:
            left.discard(topic)
            continue
        source = f"As {of}-{version}: {clause.source}"
        id = f"{document_of(op_type).prefix}.{topic}"
        clauses[id] = replace(clause, id=id, source=source, versions=versions_of(op_type))
    if left:
        raise ClauseError(f"{place}: without {min(left)}: {of}-{version} has no such clause")
    return clauses


def _clause(row: Clause, op_type: str, place: str) -> Clause:
    def wrong(message: str) -> ClauseError:
        return ClauseError(f"{place}: clause {row.id}: {message}")

    prefix, known = document_of(op_type).prefix, versions_of(op_type)
    if not row.id.startswith(f"{prefix}.") or not _ID.fullmatch(row.id):
        raise wrong(f"an id starts with {prefix}. and is of small letters, digits, hyphens and dots")
    versions = row.versions or known
    if strange := set(versions) - set(known):
        raise wrong(f"there is no {op_type} version {', '.join(map(str, sorted(strange)))}")
    if row.interpretation is not None and row.interpretation not in QUESTIONS:
        raise wrong(f"unknown interpretation {row.interpretation!r}; there are: {', '.join(QUESTIONS)}")
    if row.interpretation is not None and row.status != "undefined":
        raise wrong(f"a clause with an interpretation is undefined, not {row.status}")
    if row.status == "convention" and len(set(row.implementers)) < 2:
        raise wrong("a convention names two implementers at least")
    return replace(row, text=" ".join(row.text.split()), versions=tuple(sorted(set(versions))))


@cache
def _table(op_type: str) -> dict[str, Clause]:
    path = document_of(op_type).clauses
    place = "/".join(path.parts[-3:])
    return {clause.id: clause for clause in parse_clauses(path.read_text(encoding="utf-8"), op_type, place)}


@cache
def base_of(op_type: str) -> tuple[str, int] | None:
    """Return the operator that another one extends, and its version; None if it extends none."""
    path = document_of(op_type).clauses
    place = "/".join(path.parts[-3:])
    return _base(_read(path.read_text(encoding="utf-8"), place), op_type, place)


def clauses_of(op_type: str, since_version: int | None = None, features: Iterable[str] | None = None) -> list[Clause]:
    """Return the clauses of an operator: all, those of one version, or those that a case with these features tries."""
    return list(_chosen(op_type, since_version, None if features is None else frozenset(features)))


@lru_cache(maxsize=4096)  # few cases of a profile have features that no other has
def _chosen(op_type: str, since_version: int | None, has: frozenset[str] | None) -> tuple[Clause, ...]:
    return tuple(
        clause
        for clause in _table(op_type).values()
        if (since_version is None or since_version in clause.versions) and (has is None or clause.exercised_by(has))
    )


@cache  # every comparison asks for its own
def clause_named(id: str) -> Clause:
    """Return a clause by id. Raise KeyError."""
    document = document_saying(id)
    if document is None:
        raise KeyError(id)
    return _table(document.name)[id]


def topic_of(id: str) -> str:
    """Return the topic of a clause: its id without the operator."""
    document = document_saying(id)
    return id.partition(".")[2] if document is None else id.removeprefix(f"{document.prefix}.")


def document_saying(id: str) -> Document | None:
    """Return the document of a clause by the clause's id; None if no known document has it."""
    name = next((name for name in operator_names() if id.startswith(f"{prefix_of(name)}.")), None)
    return None if name is None else document_of(name)

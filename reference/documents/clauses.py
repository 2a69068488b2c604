"""Clauses: what the documents say, statement by statement, in our own words, as tables that are loaded and checked."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

from .interpretations import QUESTIONS
from .operators import Document, document_of, operator_names, versions_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STATUSES = ("stated", "implied", "convention", "undefined", "arithmetic")

# The beginning of the feature of a model that breaks a clause and must be refused: `illegal:layout` breaks <op>.layout.
ILLEGAL = "illegal:"

_TEXTS = ("id", "text", "status", "source", "interpretation", "advice")
_LISTS = ("needs", "or_needs", "implementers")
_TABLE = {"extends", "version", "without", "clause"}
_KEYS = {*_TEXTS, *_LISTS, "versions"}
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+")


class ClauseError(ValueError):
    """A clause table says something that cannot be: the message names the table, its line, the clause and the key."""


@dataclass(frozen=True)
class Clause:
    """One statement about an operator.

    status
        ``stated``: the document says it; ``implied``: it follows from its equations; ``convention``: the document is
        silent and implementers agree; ``undefined``: it leaves it open; ``arithmetic``: it follows from the format of
        numbers, as what NaN, infinity and overflow come to does, and no document speaks of it.
    versions
        since_versions for which it holds.
    source
        Where it stands.
    needs
        Features (see onnxspec.cases) that a case must have to exercise it.
    or_needs
        Features that exercise it as well, all together; empty where there is no second way. So a clause that says both
        what is computed and what is illegal knows its negative cases.
    interpretation
        The field of Interpretations that holds its meanings, where there is more than one to compute with.
    implementers
        For a convention: who follows it.
    advice
        What to do about a node that breaks it, where that is another thing than for other operators.
    """

    id: str
    text: str
    status: str
    versions: tuple[int, ...]
    source: str
    needs: frozenset[str]
    or_needs: frozenset[str] = frozenset()
    interpretation: str | None = None
    implementers: tuple[str, ...] = ()
    advice: str = ""

    @property
    def may_fail(self) -> bool:
        """Tell whether a target that breaks it fails. Conventions are findings of their own kind."""
        return self.status in ("stated", "implied")

    def exercised_by(self, features: frozenset[str]) -> bool:
        """Tell whether a case with these features tries it. A model that must be refused tries only what it breaks."""
        illegal = _broken(features)
        ways = (self.needs, self.or_needs) if self.or_needs else (self.needs,)
        return any(way <= features and (not illegal or way & illegal) for way in ways)


@lru_cache(maxsize=1024)  # asked for every clause of a case, and the same for all of them
def _broken(features: frozenset[str]) -> frozenset[str]:
    """The features that say what a model breaks."""
    return frozenset(feature for feature in features if feature.startswith(ILLEGAL))


def parse_clauses(text: str, op_type: str, place: str) -> tuple[Clause, ...]:
    """The clauses of a TOML table.

    A table that ``extends`` another operator has that one's clauses of a ``version``, its newest without it, but for
    the topics ``without``; what it lists itself takes the place of a clause of that topic.

    Raises ClauseError, naming `place` and the line, for anything unknown, missing, repeated or of the wrong type.
    """
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClauseError(f"{place}: {error}") from None
    if unknown := set(table) - _TABLE:
        raise ClauseError(f"{place}: unknown key {', '.join(sorted(unknown))}; every clause is a [[clause]]")
    inherited = _inherited(table, op_type, place)
    rows = table.get("clause", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ClauseError(f"{place}: every clause is a [[clause]]")
    lines = _Lines(text, place)
    by_id: dict[str, Clause] = {}
    for number, row in enumerate(rows):
        clause = _clause(row, op_type, partial(lines.error, number, row))
        if clause.id in by_id:
            raise lines.error(number, row, "id", "stands there twice")
        by_id[clause.id] = clause
    return tuple((inherited | by_id).values())


def _base(table: dict[str, Any], op_type: str, place: str) -> tuple[str, int] | None:
    """The operator and version that a table extends; None where it stands by itself."""
    base = table.get("extends")
    if base is None:
        if strange := {"version", "without"} & set(table):
            raise ClauseError(f"{place}: {min(strange)} belongs to a table that extends another one")
        return None
    others = [name for name in operator_names() if name != document_of(op_type).name]
    of = next((name for name in others if document_of(name).prefix == base), None)
    if of is None:
        raise ClauseError(f"{place}: extends is the prefix of a known operator's clauses, not {base!r}")
    version = table.get("version", versions_of(of)[-1])
    if version not in versions_of(of):
        raise ClauseError(f"{place}: version is one of {of}: {', '.join(map(str, versions_of(of)))}, not {version!r}")
    return of, version


def _inherited(table: dict[str, Any], op_type: str, place: str) -> dict[str, Clause]:
    """The clauses of the operator that a table extends, under its own operator's ids."""
    base, without = _base(table, op_type, place), table.get("without", [])
    if base is None:
        return {}
    of, version = base
    if not isinstance(without, list) or not all(isinstance(topic, str) for topic in without):
        raise ClauseError(f"{place}: without is a list of topics, not {without!r}")
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


def _clause(row: dict[str, Any], op_type: str, wrong: Callable[[str, str], ClauseError]) -> Clause:
    """One clause from its row. `wrong` makes the error about a key."""
    if unknown := set(row) - _KEYS:
        raise wrong(min(unknown), f"unknown key {', '.join(sorted(unknown))}")
    if missing := {"id", "text", "status", "source"} - set(row):
        raise wrong("id", f"missing key {', '.join(sorted(missing))}")
    for key in row:
        if key in _TEXTS and not (isinstance(row[key], str) and row[key].strip()):
            raise wrong(key, f"{key} is a text, not {row[key]!r}")
        if key in _LISTS and not (isinstance(row[key], list) and all(isinstance(v, str) for v in row[key])):
            raise wrong(key, f"{key} is a list of texts, not {row[key]!r}")
    prefix = document_of(op_type).prefix
    if not row["id"].startswith(f"{prefix}.") or not _ID.fullmatch(row["id"]):
        raise wrong("id", f"an id starts with {prefix}. and is of small letters, digits, hyphens and dots")
    if row["status"] not in STATUSES:
        raise wrong("status", f"status is one of {', '.join(STATUSES)}, not {row['status']!r}")
    known = versions_of(op_type)
    versions = row.get("versions", list(known))
    if not isinstance(versions, list) or not versions or not all(type(v) is int for v in versions):
        raise wrong("versions", f"versions is a list of numbers, not {versions!r}")
    if strange := set(versions) - set(known):
        raise wrong("versions", f"there is no {op_type} version {', '.join(map(str, sorted(strange)))}")
    interpretation = row.get("interpretation")
    if interpretation is not None and interpretation not in QUESTIONS:
        raise wrong("interpretation", f"unknown interpretation {interpretation!r}; there are: {', '.join(QUESTIONS)}")
    if interpretation is not None and row["status"] != "undefined":
        raise wrong("interpretation", f"what has interpretations is undefined, not {row['status']}")
    if row["status"] == "convention" and len(set(row.get("implementers", ()))) < 2:
        raise wrong("status", "a convention names two implementers at least")
    return Clause(
        id=row["id"],
        text=" ".join(row["text"].split()),
        status=row["status"],
        versions=tuple(sorted(set(versions))),
        source=row["source"],
        needs=frozenset(row.get("needs", ())),
        or_needs=frozenset(row.get("or_needs", ())),
        interpretation=interpretation,
        implementers=tuple(row.get("implementers", ())),
        advice=row.get("advice", ""),
    )


class _Lines:
    """The lines where the keys of a table stand: a TOML parser does not say."""

    def __init__(self, text: str, place: str) -> None:
        self._lines = text.splitlines()
        self._starts = [n for n, line in enumerate(self._lines, 1) if re.match(r"\s*\[\[\s*clause\s*\]\]", line)]
        self._place = place

    def error(self, number: int, row: dict[str, Any], key: str, message: str) -> ClauseError:
        """The error about a key of the clause of that number, from 0, or about the clause where it has no such key."""
        who = row["id"] if isinstance(row.get("id"), str) else f"number {number + 1}"
        if number >= len(self._starts):  # written as an inline table: legal, and of unknown place
            return ClauseError(f"{self._place}: clause {who}: {message}")
        start, end = (*self._starts, len(self._lines) + 1)[number : number + 2]
        within = (n for n in range(start + 1, end) if re.match(rf"\s*{re.escape(key)}\s*=", self._lines[n - 1]))
        return ClauseError(f"{self._place}:{next(within, start)}: clause {who}: {message}")


@cache
def _table(op_type: str) -> dict[str, Clause]:
    path = document_of(op_type).clauses
    place = "/".join(path.parts[-3:])
    return {clause.id: clause for clause in parse_clauses(path.read_text(encoding="utf-8"), op_type, place)}


@cache
def base_of(op_type: str) -> tuple[str, int] | None:
    """The operator that another one extends, and the version of it; None where its document stands by itself."""
    path = document_of(op_type).clauses
    return _base(tomllib.loads(path.read_text(encoding="utf-8")), op_type, "/".join(path.parts[-3:]))


def clauses_of(op_type: str, since_version: int | None = None, features: Iterable[str] | None = None) -> list[Clause]:
    """The clauses of an operator: all, those of one version, those that a case with these features exercises."""
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
    """The clause of that id. Raises KeyError."""
    document = document_saying(id)
    if document is None:
        raise KeyError(id)
    return _table(document.name)[id]


def topic_of(id: str) -> str:
    """The topic of a clause, by its id: what stands behind the operator."""
    document = document_saying(id)
    return id.partition(".")[2] if document is None else id.removeprefix(f"{document.prefix}.")


def document_saying(id: str) -> Document | None:
    """The document that a clause is of, by the clause's id; None where no known one has it."""
    documents = map(document_of, operator_names())
    return next((document for document in documents if id.startswith(f"{document.prefix}.")), None)

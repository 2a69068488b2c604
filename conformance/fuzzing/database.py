"""Database of earlier searches of a target, in one file. The next search starts from it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from msgspec import Struct

from ...reference.errors import RecordError
from ..border.strict_json import MalformedJson, decode, encode

FORMAT = 1


class Known(Struct, frozen=True):
    """A failure that was found: its title, and its smallest case as a line of text."""

    title: str
    case: str
    verdict: str


class Database(Struct, frozen=True):
    """All failures that were found on one target, and the cases nearest to a failure, as starting points."""

    format: int
    target: str
    found: tuple[Known, ...] = ()
    near: tuple[str, ...] = ()


def read_database(path: Path, target: str) -> Database:
    """Return the database in a file; an empty one where there is no file. Raise RecordError."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Database(FORMAT, target)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from None
    try:
        database = decode(text, Database)
    except MalformedJson as error:
        raise RecordError(f"{path} is no database of a search: {error}") from None
    if database.format != FORMAT:
        raise RecordError(
            f"{path} is of format {database.format}, this version has {FORMAT}: move it away, or name another"
        )
    if database.target != target:
        raise RecordError(f"{path} is about {database.target}, not about {target}: name another file")
    return database


def write_database(path: Path, database: Database) -> None:
    """Write a database to a file, atomically. Raise OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.new")
    try:
        unfinished.write_text(encode(database, indent=2) + "\n", encoding="ascii")
        unfinished.replace(path)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)

"""Foreign TOML into typed records; errors name the line of the key."""

from __future__ import annotations

import difflib
import sys
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import FieldInfo, fields

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LONGEST_NAME = 200
_MOST_LINES = 2000  # every beginning is parsed, which takes as many seconds for twice as many

Key = str | int
"""A key of a table, or the number of a table of an array, from 0."""

T = TypeVar("T", bound=msgspec.Struct)


class TomlDocument:
    """TOML document of anybody.

    text
        The whole of it.
    place
        Its name for the reader, mostly a path.
    error
        The exception for an error, with its place, in one line.
    entry
        A table of an array in words, by the array's name and the table's number.
    """

    def __init__(self, text: str, place: str, error: type[ValueError], *, entry: str = "entry {number}") -> None:
        """Raise `error` for a text that is no TOML, is nested too deeply, or holds a whole number of more than TOML's
        64 bits."""
        self._text, self.place, self._error, self._entry = text, place, error, entry
        try:
            self.content: dict[str, Any] = tomllib.loads(text)
            _require_small(self.content)
        except tomllib.TOMLDecodeError as fault:
            raise error(f"{place}: is not TOML: {ascii(str(fault))[1:-1]}") from None
        except (RecursionError, ValueError) as fault:  # the latter: a number of thousands of digits
            complaint = f"is nested too deeply, or holds a number too long: {fault}"
            raise error(f"{place}: {complaint}") from None

    @classmethod
    def read(cls, path: Path, error: type[ValueError], *, entry: str = "entry {number}") -> TomlDocument:
        """Return the document of a file. Raise `error`, also for a file that cannot be read."""
        try:
            text = path.read_bytes().decode("utf-8")
        except OSError as fault:
            raise error(f"{path}: cannot be read: {fault.strerror or fault}") from None
        except UnicodeDecodeError as fault:
            raise error(f"{path}: is not TOML: {fault}") from None
        return cls(text.replace("\r\n", "\n"), str(path), error, entry=entry)

    def wrong(self, path: Sequence[Key], complaint: str) -> ValueError:
        """Return the exception for an error of a key, with the line of the key or of its table."""
        lines = (line_of(self._text, path[:length]) for length in range(len(path), 0, -1))
        line = next((number for number in lines if number is not None), None)
        place = self.place if line is None else f"{self.place}:{line}"
        return self._error(f"{place}: {self._words(path)}{complaint}")

    def record(self, kind: type[T], path: Sequence[Key]) -> T:
        """Return the table at a path as a record. The description (``msgspec.Meta``) of a field's type says what it
        must be. Raise the document's exception if it is no table, and for keys that are unknown, wrong or missing."""
        table: Any = self.content
        for key in path:
            table = table[key]
        return self.typed(table, kind, path)

    def typed(self, table: object, kind: type[T], path: Sequence[Key]) -> T:
        """Return a table that was changed after reading as a record."""
        if not isinstance(table, dict):
            raise self.wrong(path, f"must be a table, is {table!r}")
        known = _fields_of(kind)
        for key, value in table.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
                raise self.wrong((*path, key), f"unknown key; {hint}")
            self._require(value, known[key], (*path, key))
        for key, field in known.items():
            if field.required and key not in table:
                raise self.wrong((*path, key), f"is missing; it is {_described(field.type)}")
        return msgspec.convert(table, kind)

    def tables(self, name: str) -> list[dict[str, Any]]:
        """Return the tables of an array, none if it is missing; the document may hold nothing else. Raise its
        exception."""
        rows = self.content.get(name, [])
        strange = next((key for key in self.content if key != name), None)
        if strange is not None:
            raise self.wrong((strange,), f"unknown key; the document holds tables [[{name}]], and nothing else")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.wrong((name,), f"the document holds tables [[{name}]], and nothing else")
        return rows

    def _require(self, value: Any, field: FieldInfo, path: Sequence[Key]) -> None:
        if _fits(value, field.type):
            return
        within = typing.get_args(field.type)
        if typing.get_origin(field.type) is dict and isinstance(value, dict):
            key = next(key for key, inner in value.items() if not _fits({key: inner}, field.type))
            if _fits(value[key], within[1]):
                raise self.wrong(path, f"no key can be {key!r}; it must be {_described(within[0])}")
            raise self.wrong((*path, key), f"must be {_described(within[1])}, is {value[key]!r}")
        raise self.wrong(path, f"must be {_described(field.type)}, is {value!r}")

    def _words(self, path: Sequence[Key]) -> str:
        """Return the beginning of an error message: the table, and the key in it."""
        name, *rest = path
        if rest and isinstance(rest[0], int):
            words = self._entry.format(name=name, number=rest[0] + 1) + ": "
            rest = rest[1:]
        else:
            words = f"[{shown(str(name))}] " if rest else f"{shown(str(name))}: "
        return words + (f"{shown('.'.join(map(str, rest)))}: " if rest else "")


@cache
def _fields_of(kind: type[msgspec.Struct]) -> Mapping[str, FieldInfo]:
    """Return the fields of a record by their keys. Finding them evaluates all annotations: a seventh of a millisecond
    for each of the hundreds of entries that every run reads."""
    return {field.encode_name: field for field in fields(kind)}


def line_of(text: str, path: Sequence[Key]) -> int | None:
    """Return the number of the line in which a key begins, from 1; None if the document does not have it, or is too
    long.

    path
        Keys from the outermost on, and numbers for entries of arrays, like ``("box", "options", "provider")``.

    A beginning of the document that ends between two statements is a document of its own. The statement with the key
    therefore begins behind the last such beginning without it.
    """
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        return None
    begins = 0
    for number in range(1, len(lines) + 1):
        try:
            content = tomllib.loads("\n".join(lines[:number]))
        except (ValueError, RecursionError):
            continue  # in the middle of a statement
        if _has(content, path):
            return begins + 1
        begins = number
    return None


def shown(name: str) -> str:
    """Return a foreign name as part of a line."""
    printable = name if name.isprintable() else ascii(name)[1:-1]
    return printable if len(printable) <= _LONGEST_NAME else f"{printable[:_LONGEST_NAME]}..."


def _has(content: Any, path: Sequence[Key]) -> bool:
    for key in path:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _require_small(content: Any) -> None:
    if isinstance(content, int) and not -(2**63) <= content < 2**63:
        raise ValueError("more than 64 bits")
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        for inner in content:
            _require_small(inner)


def _fits(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _described(kind: Any) -> str:
    """Return words for the values of a type, from its description or that of a member of a union."""
    for each in (kind, *typing.get_args(kind)):
        for meta in getattr(each, "__metadata__", ()):
            if isinstance(meta, msgspec.Meta) and meta.description:
                return meta.description
    return str(getattr(kind, "__name__", kind))

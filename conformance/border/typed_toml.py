"""TOML files of users into typed records; errors name file, line of the table, and key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .strict_json import MalformedJson, require_bounded

_LONGEST_NAME = 200

Key = str | int
"""A key of a table, or the number of a table of an array, from 0."""

T = TypeVar("T", bound=msgspec.Struct)


class TomlDocument:
    """TOML document. ``content`` has its tables; errors are of the given class and name `place`, mostly a path."""

    def __init__(self, text: str, place: str, error: type[ValueError]) -> None:
        """Raise `error` for a text that is no TOML, is nested too deeply, or holds an integer of more than 64 bits."""
        self.text, self.place, self._error = text, place, error
        try:
            self.content: dict[str, Any] = msgspec.toml.decode(text)
            require_bounded(self.content)
        except MalformedJson as fault:
            raise error(f"{place}: {fault}") from None
        except (msgspec.DecodeError, ValueError, RecursionError) as fault:
            raise error(f"{place}: is not TOML: {ascii(str(fault))[1:-1]}") from None

    @classmethod
    def read(cls, path: Path, error: type[ValueError]) -> TomlDocument:
        """Return the document of a file. Raise `error`, also for a file that cannot be read."""
        try:
            text = path.read_bytes().decode("utf-8")
        except OSError as fault:
            raise error(f"{path}: cannot be read: {fault.strerror or fault}") from None
        except UnicodeDecodeError as fault:
            raise error(f"{path}: is not TOML: {fault}") from None
        return cls(text.replace("\r\n", "\n"), str(path), error)

    def wrong(self, path: Sequence[Key], complaint: str) -> ValueError:
        """Return the exception for an error of a key: ``targets.toml:3: [box] options.provider: ...``."""
        name, *keys = map(str, path)
        number = int(keys.pop(0)) if isinstance(path[1:2] and path[1], int) else None
        table = f"[{shown(name)}] " if number is None else f"entry {number + 1} of {shown(name)}: "
        lines = table_lines(self.text, name)[number or 0 :]
        key = f"{shown('.'.join(keys))}: " if keys else ""
        return self._error(f"{':'.join([self.place, *map(str, lines[:1])])}: {table}{key}{complaint}")

    def typed(self, table: object, kind: type[T], path: Sequence[Key]) -> T:
        """Return a table as a record. Raise the document's exception for keys that are unknown, wrong or missing."""
        known = _keys_of(kind)
        if isinstance(table, dict) and (unknown := next((key for key in table if key not in known), None)) is not None:
            near = difflib.get_close_matches(unknown, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
            raise self.wrong((*path, unknown), f"unknown key; {hint}")
        try:
            return msgspec.convert(table, kind)
        except msgspec.ValidationError as error:
            complaint, _, key = str(error).partition(" - at `$.")
            raise self.wrong((*path, *([key.rstrip("`")] if key else [])), complaint) from None

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


@cache
def _keys_of(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


def table_lines(text: str, name: str) -> list[int]:
    """Return the numbers of the lines, from 1, in which tables ``[name]`` or ``[[name]]`` begin."""
    header = re.compile(rf"""\s*\[\[?\s*["']?{re.escape(name)}["']?\s*\]""")
    return [number for number, line in enumerate(text.split("\n"), 1) if header.match(line)]


def shown(name: str) -> str:
    """Return a foreign name as part of a line."""
    printable = name if name.isprintable() else ascii(name)[1:-1]
    return printable if len(printable) <= _LONGEST_NAME else f"{printable[:_LONGEST_NAME]}..."

"""Results lines cut into fragments of JSON, without building an object for each line.

Reading 100,000 lines with the ``json`` module takes as long as writing them did. The lines of one run have the same
keys in the same order, though, so the first line gives a pattern, and one pass of it over the file cuts out the values.
Fragments that repeat are then parsed once. A line that the pattern does not fit is parsed on its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KIND = ("op", "domain", "version", "type", "target", "verdict", "expected", "reason", "flags", "diagnosis")
ABOUT = ("clauses", "features")
OWN = ("case", "worst", "where", "message", "seconds", "repeat")

# Each is the whole of a JSON value and of nothing else: strings are consumed as strings, so that a bracket or a comma
# inside one cannot end the value. Nested containers and escapes inside lists and objects do not fit and are parsed.
_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_LIST = r'\[[^\[\]{}"\\\n]*(?:"[^"\\\n]*"[^\[\]{}"\\\n]*)*\]'
_OBJECT = r'\{[^{}"\\\n]*(?:"[^"\\\n]*"[^{}"\\\n]*)*\}'
_SCALAR = r"[-+.0-9A-Za-z]+"
_VALUE = f"(?:{_STRING}|{_SCALAR}|{_LIST}|{_OBJECT})"


@dataclass(frozen=True)
class Fragments:
    """Columns of raw JSON: ``kind`` and ``about`` are the inside of an object in pieces, the others one value each."""

    kind: Sequence[tuple[str, ...]]
    about: Sequence[tuple[str, ...]]
    case: Sequence[str]
    worst: Sequence[str]
    where: Sequence[str]
    message: Sequence[str]
    seconds: Sequence[str]
    repeat: Sequence[str]
    broken: int
    first_broken: int


def decoded(fragment: str) -> object:
    """Return the value of a fragment, or None where it is no JSON after all."""
    try:
        value: object = json.loads(fragment)
    except (ValueError, RecursionError):
        return None
    return value


def lex(text: str) -> Fragments:
    """Cut ``text`` (one JSON object a line) into columns; a last line without its newline may be half-written."""
    end = text.rfind("\n") + 1
    first = decoded(text[: text.find("\n")]) if end else None
    if isinstance(first, dict) and end == len(text):
        layout = _Layout(first)
        found = layout.pattern.findall(text)
        if len(found) == text.count("\n"):
            return layout.columns(found)
    return _line_by_line(text.split("\n"))


class _Layout:
    """The order of the keys in a line, as a pattern, and where its groups go."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        pieces: list[str] = []
        self.owners: list[str] = []
        previous = ""
        for key in row:
            owner = "kind" if key in KIND else "about" if key in ABOUT else key if key in OWN else ""
            piece = f"{re.escape(json.dumps(key))}: ?"
            if owner in OWN:
                piece += f"({_VALUE})"
            elif owner and owner == previous:  # neighbours that repeat together are one fragment
                pieces[-1] = pieces[-1][:-1] + f", ?{piece}{_VALUE})"
                continue
            else:
                piece = f"({piece}{_VALUE})" if owner else piece + _VALUE
            pieces.append(piece)
            previous = owner
            if owner:
                self.owners.append(owner)
        # A group that takes nothing keeps findall's answer a list of tuples, however few keys there are.
        self.pattern = re.compile(r"^\{()()" + ", ?".join(pieces) + r"\}$", re.MULTILINE)

    def columns(self, found: list[tuple[str, ...]]) -> Fragments:
        _, _, *groups = zip(*found, strict=True)
        nothing = ["null"] * len(found)

        def merged(owner: str) -> Sequence[tuple[str, ...]]:
            parts = [group for group, name in zip(groups, self.owners, strict=True) if name == owner]
            return list(zip(*parts, strict=True)) if parts else [()] * len(found)

        own = {name: group for group, name in zip(groups, self.owners, strict=True) if name in OWN}
        case, worst, where, message, seconds, repeat = (own.get(name, nothing) for name in OWN)
        return Fragments(merged("kind"), merged("about"), case, worst, where, message, seconds, repeat, 0, 0)


def _line_by_line(lines: Sequence[str]) -> Fragments:
    """Parse each line; slower, and right for every mixture of whole, foreign and broken lines."""
    rows: list[tuple[Any, ...]] = []
    broken: list[int] = []
    for place, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = decoded(line)
        if isinstance(row, dict):
            rows.append(((_inside(row, KIND),), (_inside(row, ABOUT),), *(json.dumps(row.get(name)) for name in OWN)))
        else:
            broken.append(place)
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * (2 + len(OWN))
    kind, about, case, worst, where, message, seconds, repeat = columns
    return Fragments(kind, about, case, worst, where, message, seconds, repeat, len(broken), broken[0] if broken else 0)


def _inside(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    return json.dumps({key: row[key] for key in keys if key in row})[1:-1]

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
_PLAIN = f"(?:{_STRING}|{_SCALAR}|{_LIST})"


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
    head = text[: text.find("\n")]
    first = decoded(head) if end else None
    if isinstance(first, dict) and end == len(text):
        found = _Layout(first, head).columns(text)
        if found is not None:
            return found
    return _line_by_line(text.split("\n"))


class _Layout:
    """The order of the keys in a line, as patterns, and where their groups go.

    The keys in the middle whose values repeat from line to line are the ``block``: the same text again and again, so it
    is cut out of each line as a whole, and each of its forms is matched once.
    """

    def __init__(self, row: Mapping[str, Any], line: str) -> None:
        keys = list(row)
        self.comma, self.colon = (", ", ": ") if json.dumps(row) == line else (",", ":")
        inside = [k for k, key in enumerate(keys) if key in KIND or key in ABOUT]
        start = next((k for k in inside if k), len(keys))
        stop = next((k for k in range(start, len(keys)) if keys[k] in OWN), len(keys))
        self.edges = tuple(
            f"{self.comma}{json.dumps(keys[k])}{self.colon}" if k < len(keys) else "" for k in (start, stop)
        )
        self.owners: list[str] = []
        self.block_owners: list[str] = []
        # Before the block stands no object: in one, what looks like the block's beginning could be a key of its own.
        around = _pieces(keys[:start], self.owners, _PLAIN)
        around += _pieces(keys[stop:] if all(self.edges) else keys[start:], self.owners)
        # A group that takes nothing keeps findall's answer a list of tuples, however few keys there are.
        self.pattern = re.compile(r"^\{()()" + ", ?".join(around) + r"\}$", re.MULTILINE)
        self.block = re.compile(
            "()()" + "".join(f", ?{piece}" for piece in _pieces(keys[start:stop], self.block_owners))
        )

    def columns(self, text: str) -> Fragments | None:
        """The columns of ``text``; None where a line is of another form."""
        numbers: Sequence[int] = ()
        blocks: list[tuple[str, ...]] = []
        count = text.count("\n")
        if all(self.edges):
            lines = text.split("\n")
            lines.pop()
            cut = self._without_blocks(lines)
            if cut is None:
                return None
            text, numbers, blocks = cut
        found = self.pattern.findall(text)
        if len(found) != count:
            return None
        _, _, *groups = zip(*found, strict=True)
        nothing = ["null"] * count

        def merged(owner: str) -> Sequence[tuple[str, ...]]:
            parts = [group for group, name in zip(groups, self.owners, strict=True) if name == owner]
            here: Sequence[tuple[str, ...]] = list(zip(*parts, strict=True)) if parts else [()] * count
            if not blocks:
                return here
            mine = [
                tuple(p for p, name in zip(block, self.block_owners, strict=True) if name == owner) for block in blocks
            ]
            if not parts:
                return [mine[number] for number in numbers]
            return [mine[number] + pieces for number, pieces in zip(numbers, here, strict=True)]

        own = {name: group for group, name in zip(groups, self.owners, strict=True) if name in OWN}
        case, worst, where, message, seconds, repeat = (own.get(name, nothing) for name in OWN)
        return Fragments(merged("kind"), merged("about"), case, worst, where, message, seconds, repeat, 0, 0)

    def _without_blocks(self, lines: Sequence[str]) -> tuple[str, list[int], list[tuple[str, ...]]] | None:
        """The lines without their blocks, the number of the block of each, and the pieces of the different blocks.

        The edges hold quotes, which inside a JSON string would stand behind a backslash, so they can only be keys. What
        is between them must be the values of these keys and nothing else, or all is read line by line.
        """
        start, stop = self.edges
        seen: dict[str, int] = {}
        numbers, rest = [], []
        for line in lines:
            i = line.find(start)
            j = line.find(stop, i + 1)
            if i < 0 or j < 0:
                return None
            numbers.append(seen.setdefault(line[i:j], len(seen)))
            rest.append(line[:i] + line[j:])
        found = [self.block.fullmatch(block) for block in seen]
        if None in found:
            return None
        rest.append("")
        return "\n".join(rest), numbers, [match.groups()[2:] for match in found if match is not None]


def _pieces(keys: Sequence[str], owners: list[str], value: str = "") -> list[str]:
    """A pattern for each key and its value, in which those of an owner are a group; the owners go into ``owners``."""
    pieces: list[str] = []
    value = value or _VALUE
    previous = ""
    for key in keys:
        owner = "kind" if key in KIND else "about" if key in ABOUT else key if key in OWN else ""
        piece = f"{re.escape(json.dumps(key))}: ?"
        if owner in OWN:
            piece += f"({value})"
        elif owner and owner == previous:  # neighbours that repeat together are one fragment
            pieces[-1] = pieces[-1][:-1] + f", ?{piece}{value})"
            continue
        else:
            piece = f"({piece}{value})" if owner else piece + _VALUE
        pieces.append(piece)
        previous = owner
        if owner:
            owners.append(owner)
    return pieces


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

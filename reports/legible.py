"""Texts of others as a page can hold them: nothing in them is hidden or without end. Records are made so as a whole."""

from __future__ import annotations

import re
from typing import Any, TypeVar

LONGEST_TEXT = 4000
"""Characters kept of one text: more than any message that helps a reader, less than what stalls a browser."""

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Characters that show nothing, or that turn the text around them, and surrogates, which no file can hold."""

T = TypeVar("T")


def printable(text: str) -> str:
    """The text with every character of `HIDDEN` written as its ``\\u`` escape, so that it cannot mislead."""
    if text.isprintable():  # true for nearly all, and far cheaper than the search
        return text
    return HIDDEN.sub(lambda hidden: f"\\u{ord(hidden[0]):04x}", text)


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """The text, printable and cut after so many characters."""
    return printable(text if len(text) <= limit else text[:limit] + " ...")


def legible(record: T) -> T:
    """A record of plain values, all texts in it printable and of bounded length, keys too."""
    changed: Any = record
    if isinstance(record, str):
        changed = shortened(record)
    elif isinstance(record, dict):
        changed = {shortened(str(key)): legible(value) for key, value in record.items()}
    elif isinstance(record, list):
        changed = [legible(value) for value in record]
    return changed  # type: ignore[no-any-return]


def plural(count: int, one: str, many: str = "") -> str:
    """A number of things: ``1 case``, ``1,002 cases``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def flattened(record: object, prefix: str = "", depth: int = 4) -> list[tuple[str, str]]:
    """Nested mappings and lists as (dotted name, text) pairs, for a table of two columns."""
    if isinstance(record, dict) and depth:
        pairs: list[tuple[str, str]] = []
        for key, inner in list(record.items())[:200]:
            pairs += flattened(inner, f"{prefix}.{key}" if prefix else key, depth - 1)
        return pairs
    if isinstance(record, list | tuple):
        return [(prefix, ", ".join(filter(None, map(_plain, record[:200]))))]
    return [(prefix, "none" if record is None else _plain(record) or ("" if record == "" else "..."))]


def _plain(value: object) -> str:
    return str(value) if isinstance(value, str | bool | int | float) else ""

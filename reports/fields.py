"""Values taken from files that this room did not write, each brought to a known type.

A run directory may be half-written, of another version, or made by somebody who means harm. Every value passes one of
these functions before a page is built from it; none of them raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

LONGEST_TEXT = 4000
"""Characters kept of one text: more than any message that helps a reader, less than what stalls a browser."""

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Characters that show nothing, or that turn the text around them, and surrogates, which no file can hold."""


def printable(text: str) -> str:
    """Return ``text`` with every character of `HIDDEN` written as its ``\\u`` escape, so that it cannot mislead."""
    if text.isprintable():  # true for nearly all, and far cheaper than the search
        return text
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def text(value: object, default: str = "", limit: int = LONGEST_TEXT) -> str:
    """Return ``value`` as printable text of at most ``limit`` characters; ``default`` for what is no plain value."""
    if isinstance(value, str):
        whole = value
    elif isinstance(value, bool | float) or (isinstance(value, int) and value.bit_length() < 256):
        whole = str(value)
    else:
        return default
    return printable(whole if len(whole) <= limit else whole[:limit] + " ...")


def texts(value: object, limit: int = 1000) -> tuple[str, ...]:
    """Return the texts in the list ``value``, at most ``limit`` of them; a lone text counts as a list of one."""
    if isinstance(value, str):
        return (text(value),)
    if not isinstance(value, list | tuple):
        return ()
    # Nothing to mend in nearly every list there is, which is cheapest to see of all of its texts at once.
    if {*map(type, value)} == {str} and all(value) and max(map(len, value)) <= 200 and "".join(value).isprintable():
        return tuple(value[:limit])
    return tuple(filter(None, (text(item) for item in value[:limit])))


def mapping(value: object) -> Mapping[str, Any]:
    """Return ``value`` if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in the list ``value``."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(value: object) -> float | None:
    """Return ``value`` as a finite float, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        real = float(value)
    except OverflowError:
        return None
    return real if math.isfinite(real) else None


def integer(value: object) -> int | None:
    """Return ``value`` as an int of at most 53 bits, which a browser holds exactly, else None."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**53:
        return None
    return value


def flattened(value: object, prefix: str = "", depth: int = 4) -> list[tuple[str, str]]:
    """Return nested mappings and lists as (dotted name, text) pairs, for a table of two columns."""
    if isinstance(value, dict) and depth:
        pairs: list[tuple[str, str]] = []
        for key, inner in list(value.items())[:200]:
            name = text(key, limit=200)
            pairs += flattened(inner, f"{prefix}.{name}" if prefix else name, depth - 1)
        return pairs
    if isinstance(value, list | tuple):
        return [(prefix, ", ".join(texts(list(value), 200)))]
    return [(prefix, text(value, "none" if value is None else "..."))]

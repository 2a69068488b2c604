"""Text for pages: hidden characters and Markdown escaped, lengths bounded, slugs, records as pairs."""

from __future__ import annotations

import re

LONGEST_TEXT = 4000
"""Maximum characters of one text: enough for any useful message, too few to stall a browser."""

HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Invisible characters, characters that reorder the text around them, and surrogates, which no file can hold."""


def printable(text: str) -> str:
    r"""Return the text with every character of `HIDDEN` as its ``\u`` escape, so that it cannot mislead."""
    if text.isprintable():  # true for nearly all, and far cheaper than the search
        return text
    return HIDDEN.sub(lambda hidden: f"\\u{ord(hidden[0]):04x}", text)


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return the text, printable and cut after ``limit`` characters."""
    return printable(text if len(text) <= limit else text[:limit] + " ...")


_FORMATTING = re.compile(r"([\\`*_\[\]<>#|~&!])")


def plain(text: str) -> str:
    """Return a text as one line without Markdown formatting."""
    return _FORMATTING.sub(r"\\\1", " ".join(shortened(text).split()))


def code(text: str) -> str:
    """Return a text as Markdown code, with a fence longer than its runs of backticks."""
    text = " ".join(shortened(text).split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def slug(text: str) -> str:
    """Return a name as part of an address: lower case, words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def flattened(record: object, prefix: str = "", depth: int = 4) -> list[tuple[str, str]]:
    """Return nested mappings and lists as (dotted name, text) pairs, for a table of two columns."""
    if isinstance(record, dict) and depth:
        pairs: list[tuple[str, str]] = []
        for key, inner in list(record.items())[:200]:
            pairs += flattened(inner, f"{prefix}.{key}" if prefix else str(key), depth - 1)
        return pairs
    if isinstance(record, list | tuple):
        return [(prefix, ", ".join(filter(None, map(_plain, record[:200]))))]
    return [(prefix, "none" if record is None else _plain(record) or ("" if record == "" else "..."))]


def _plain(value: object) -> str:
    return str(value) if isinstance(value, str | bool | int | float) else ""

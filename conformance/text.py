"""Numbers and lists of things in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def plural(count: int, noun: str = "case", many: str = "") -> str:
    """Return a number of things: ``1 case``, ``1,781 cases``."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"

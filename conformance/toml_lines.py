"""Where in a TOML file something stands: the parser of the standard library tells what, but not where."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["line_of", "tomllib"]


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The number of the line in which a key begins, from 1; None where the document does not have it.

    path
        Keys from the outermost on, and numbers for entries of arrays, like ``("box", "options", "provider")``.

    A beginning of the document that ends between two statements is a document of its own. The statement that brings in
    the key therefore begins behind the last such beginning that does not have it yet.
    """
    lines = text.split("\n")
    begins = 0
    for number in range(1, len(lines) + 1):
        try:
            content = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a statement
        if _has(content, path):
            return begins + 1
        begins = number
    return None


def _has(content: Any, path: Sequence[str | int]) -> bool:
    for key in path:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True

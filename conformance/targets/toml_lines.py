"""Lines of keys in a TOML file: the parser of the standard library tells what stands there, but not where."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["line_of", "parse_toml"]


_MOST_LINES = 2000  # every beginning is parsed, which takes as many seconds for twice as many


def parse_toml(text: str) -> dict[str, Any]:
    """The content of a TOML document that anybody wrote. Raises ValueError, which says why in one line, for what is no
    TOML, is nested too deeply, or holds a whole number of more than the 64 bits that TOML promises."""
    try:
        content = tomllib.loads(text)
        _require_small(content)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {ascii(str(error))[1:-1]}") from None
    except (RecursionError, ValueError) as error:  # the latter: a number of thousands of digits
        raise ValueError(f"is nested too deeply, or holds a number too long: {error}") from None
    return content


def _require_small(content: Any) -> None:
    if isinstance(content, int) and not -(2**63) <= content < 2**63:
        raise ValueError("more than 64 bits")
    for inner in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        _require_small(inner)


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The number of the line in which a key begins, from 1; None where the document does not have it, or is too long.

    path
        Keys from the outermost on, and numbers for entries of arrays, like ``("box", "options", "provider")``.

    A beginning of the document that ends between two statements is a document of its own. The statement that brings in
    the key therefore begins behind the last such beginning that does not have it yet.
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


def _has(content: Any, path: Sequence[str | int]) -> bool:
    for key in path:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True

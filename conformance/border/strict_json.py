"""JSON from other programs into typed records, and records into JSON.

RFC 8259 leaves open how deep values nest and how large numbers are, so both are bounded here, and NaN and infinity are
refused in both directions. Python's json reads the text, since msgspec refuses half of a surrogate pair: it is legal
JSON, and a runtime may print it.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn, TypeVar

import msgspec

MOST_DEPTH = 32
"""Levels of nesting; the deepest record has 6."""

MOST_INTEGER = 2**63 - 1

T = TypeVar("T")


class MalformedJson(ValueError):
    """A text is no JSON, or not of the expected type; the message is one line and names the key."""


def decode(text: str | bytes, kind: type[T]) -> T:
    """Return the record of type `kind` that a text holds. Raise MalformedJson."""
    return typed(parse(text), kind)


def typed(value: object, kind: type[T]) -> T:
    """Return a value of :func:`parse` as a record of type `kind`. Raise MalformedJson, which names the key."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise MalformedJson(str(error)) from None
    except UnicodeEncodeError as error:  # a key, or a word that must be one of a few
        raise MalformedJson(f"{error.object[:80]!a} holds half of a character") from None


def parse(text: str | bytes) -> Any:
    """Return the value of a text. Raise MalformedJson for invalid JSON, a key that occurs twice, deep nesting, numbers
    that are not finite, and integers of more than 64 bits."""
    try:
        value = _DECODER.decode(text if isinstance(text, str) else text.decode("utf-8"))
    except MalformedJson:
        raise
    except UnicodeDecodeError as error:
        raise MalformedJson(f"no UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise MalformedJson(f"nested more than {MOST_DEPTH} deep") from None
    except ValueError as error:  # also for an integer of thousands of digits
        raise MalformedJson(f"no JSON: {error}") from None
    require_bounded(value)
    return value


def require_bounded(value: object, depth: int = MOST_DEPTH) -> None:
    """Raise MalformedJson for a value that is nested deeper, or has numbers that are not finite or too large."""
    if not isinstance(value, (dict, list)):
        value = [value]
    elif not depth:
        raise MalformedJson(f"nested more than {MOST_DEPTH} deep")
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, str):  # most are
            continue
        if isinstance(inner, (dict, list)):
            require_bounded(inner, depth - 1)
        elif isinstance(inner, float) and not math.isfinite(inner):
            raise MalformedJson("a number is not finite")
        elif isinstance(inner, int) and not -MOST_INTEGER - 1 <= inner <= MOST_INTEGER:
            raise MalformedJson("an integer has more than 64 bits")


def encode(value: object, *, indent: int | None = None) -> str:
    """Return a record as JSON in ASCII, on one line unless it is indented. Raise ValueError for infinity and NaN."""
    plain = msgspec.to_builtins(value)
    return json.dumps(plain, allow_nan=False, indent=indent, separators=(",", ":") if indent is None else None)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise MalformedJson(f"the key {next(key for key in keys if keys.count(key) > 1)[:80]!a} stands twice")
    return values


def _constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)

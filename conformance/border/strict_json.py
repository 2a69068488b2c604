"""JSON that others wrote, into typed records, and records into JSON: what either side cannot hold is refused.

RFC 8259 leaves open what a parser does with a key that stands twice, with numbers beyond its own, and with nesting, and
parsers differ; JSON has no infinity and no NaN, and encoders write them in several ways. A record that two programs
read differently is no record, so all of that is refused here, in both directions.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn, TypeVar

import msgspec

__all__ = ["MOST_DEPTH", "MalformedJson", "decode", "encode", "parse", "typed"]

MOST_DEPTH = 32
"""Levels of nesting; the deepest record has 6. Parsers recurse on the depth, so it is looked at before they begin."""

_MOST_DIGITS = 19  # of an integer: 2**63 - 1 has as many
# A text that does not end is passed over to the end of the file, or each of its quotes would be tried again.
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)

T = TypeVar("T")


class MalformedJson(ValueError):
    """A text is no JSON, or not the JSON that was due; the message says in one line what is the matter, and where."""


def decode(text: str | bytes, kind: type[T]) -> T:
    """The record of type `kind` that a text holds. Raises MalformedJson."""
    return typed(parse(text), kind)


def typed(value: object, kind: type[T]) -> T:
    """A record of type `kind` from what :func:`parse` returned. Raises MalformedJson, which names the key.

    Nothing is converted but what JSON has no type for: lists to tuples, texts to enumerations, whole numbers to floats.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise MalformedJson(str(error)) from None


def parse(text: str | bytes) -> Any:
    """The value that a text holds: dictionaries, lists, texts, finite floats, integers of at most 64 bits, booleans and
    None. Raises MalformedJson for everything else, and for bytes that are no UTF-8."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        _bound_depth(text)
        return _DECODER.decode(text)
    except MalformedJson:
        raise
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise MalformedJson(f"no JSON: {error.msg} at {place}") from None
    except UnicodeDecodeError as error:
        raise MalformedJson(f"no UTF-8 at byte {error.start}") from None


def encode(value: object, *, indent: int | None = None) -> str:
    """A record as JSON in ASCII, on one line unless it is indented. Raises ValueError for infinity and NaN."""
    plain = msgspec.to_builtins(value)
    return json.dumps(plain, allow_nan=False, indent=indent, separators=(",", ":") if indent is None else None)


def _bound_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MOST_DEPTH:  # nearly every line there is
        return
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        if bracket[0] in "[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise MalformedJson(f"nested more than {MOST_DEPTH} deep at character {bracket.start() + 1}")
        elif bracket[0] in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in mapping if names.count(name) > 1)
        raise MalformedJson(f"the key {twice[:80]!a} stands twice")
    return mapping


def _integer(digits: str) -> int:
    value = int(digits) if len(digits) <= _MOST_DIGITS + 1 else None  # and a sign
    if value is None or not -(2**63) <= value < 2**63:
        raise MalformedJson(f"the number {digits[:24]}{'...' * (len(digits) > 24)} has more than 64 bits")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise MalformedJson(f"the number {digits[:24]} is beyond every float")
    return value


def _constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)

"""JSON from other programs into typed records, and records into JSON.

msgspec reads it. RFC 8259 leaves open how deep values may nest and what numbers beyond a program's own become, so both
are bounded here; infinity and NaN are refused in both directions. A text that msgspec does not take is read by Python's
json: half of a surrogate pair, which a runtime may print, is legal in JSON, and messages name line and column.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable
from functools import cache
from typing import Any, NoReturn, TypeVar, cast

import msgspec

MOST_DEPTH = 32
"""Levels of nesting; the deepest record has 6. Parsers recurse on the depth, so it is checked before they start."""

MOST_INTEGER = 2**63 - 1
_MOST_DIGITS = 19  # of an integer: MOST_INTEGER has as many
# A text that does not end is passed over to the end of the file, or each of its quotes would be tried again.
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)

T = TypeVar("T")


class MalformedJson(ValueError):
    """A text is no JSON, or not of the expected type; the message is one line and names the place."""


def decode(text: str | bytes, kind: type[T]) -> T:
    """Return the record of type `kind` that a text holds. Raise MalformedJson."""
    try:
        _bound_depth(text if isinstance(text, str) else text.decode("utf-8"))
        record: T = _decoder(cast(Hashable, kind)).decode(text)
        return record
    except MalformedJson:
        raise
    except (msgspec.MsgspecError, ValueError, OverflowError):
        return typed(parse(text), kind)


def typed(value: object, kind: type[T]) -> T:
    """Return a record of type `kind` from what :func:`parse` returned. Raise MalformedJson, which names the key.

    Only what JSON has no type for is converted: lists to tuples, texts to enumerations, whole numbers to floats.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise MalformedJson(str(error)) from None
    except UnicodeEncodeError as error:  # a key, or a word that must be one of a few
        raise MalformedJson(f"{error.object[:80]!a} holds half of a character") from None


def parse(text: str | bytes) -> Any:
    """Return the value of a text: dictionaries, lists, texts, finite floats, integers of at most 64 bits, booleans and
    None. Raise MalformedJson for everything else, for a key that stands twice, and for bytes that are no UTF-8."""
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
    """Return a record as JSON in ASCII, on one line unless it is indented. Raise ValueError for infinity and NaN."""
    plain = msgspec.to_builtins(value)
    return json.dumps(plain, allow_nan=False, indent=indent, separators=(",", ":") if indent is None else None)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


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


def _integer(digits: str) -> int:
    value = int(digits) if len(digits) <= _MOST_DIGITS + 1 else None  # and a sign
    if value is None or not -MOST_INTEGER - 1 <= value <= MOST_INTEGER:
        raise MalformedJson(f"the number {digits[:24]}{'...' * (len(digits) > 24)} has more than 64 bits")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise MalformedJson(f"the number {digits[:24]} is beyond every float")
    return value


def _constant(name: str) -> NoReturn:
    raise MalformedJson(f"{name} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise MalformedJson(f"the key {next(key for key in keys if keys.count(key) > 1)[:80]!a} stands twice")
    return values


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_unique)

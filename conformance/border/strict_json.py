"""Foreign JSON into typed records, and records into JSON; values that either side cannot hold are refused.

RFC 8259 leaves open how a parser treats duplicate keys, numbers beyond its own, and nesting, and parsers differ; JSON
has no infinity and no NaN, and encoders write them in several ways. A record that two programs read differently is no
record, so all of that is refused here, in both directions.

Nearly every line was written by onnxspec, and equals the text that it writes for the record in it. That is cheap to
check, with a decoder that knows the record's type, and leaves nothing to refuse; every other text is checked closely.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any, NoReturn, TypeVar, Union, cast, get_args

import msgspec
from msgspec import inspect

MOST_DEPTH = 32
"""Levels of nesting; the deepest record has 6. Parsers recurse on the depth, so it is looked at before they begin."""

MOST_INTEGER = 2**63 - 1
_MOST_DIGITS = 19  # of an integer: MOST_INTEGER has as many
# A text that does not end is passed over to the end of the file, or each of its quotes would be tried again.
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)
_SIMPLE = (inspect.StrType, inspect.FloatType, inspect.BoolType, inspect.NoneType, inspect.EnumType)

T = TypeVar("T")


class MalformedJson(ValueError):
    """A text is no JSON, or not the expected JSON; the message gives defect and place in one line."""


def decode(text: str | bytes, kind: type[T]) -> T:
    """Return the record of type `kind` of a text. Raise MalformedJson."""
    if isinstance(text, bytes) and (decoder := _decoder(cast(Hashable, kind))) is not None:
        try:
            record: T = decoder.decode(text)
            if _written(text, _ENCODER.encode(record)):
                return record
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            pass  # said below, in words that name the place
    return typed(parse(text), kind)


def typed(value: object, kind: type[T]) -> T:
    """Return a record of type `kind` from the result of :func:`parse`. Raise MalformedJson, which names the key.

    Only types that JSON lacks are converted: lists to tuples, texts to enumerations, whole numbers to floats.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise MalformedJson(str(error)) from None
    except UnicodeEncodeError as error:  # a key, or a word that must be one of a few
        raise MalformedJson(f"{error.object[:80]!a} holds half of a character") from None


def parse(text: str | bytes) -> Any:
    """Return the value of a text: dictionaries, lists, texts, finite floats, integers of at most 64 bits, booleans and
    None. Raise MalformedJson for everything else, and for bytes that are no UTF-8."""
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


def _written(text: bytes, again: bytes) -> bool:
    """Tell whether a text equals the text of the record that was read from it, up to zeros before an exponent (1e-07).

    Then :func:`parse` has nothing to refuse in it: each key was written at the same place, and no key twice; an integer
    in place of a float would be written with a point.
    """
    return text == again or text.replace(b"e-0", b"e-") == again.replace(b"e-0", b"e-")


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any] | None:
    """Return a decoder of those members of `kind`, a type or a union, whose types exclude all that `parse` refuses
    except duplicate keys: deep nesting and integers of more than 64 bits. None if there are none."""
    some = tuple(each for each in get_args(kind) or (kind,) if _bounded(inspect.type_info(each)))
    return msgspec.json.Decoder(Union[some]) if some else None  # noqa: UP007 - as many as there are


def _bounded(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.IntType):
        return kind.ge is not None and kind.ge >= -MOST_INTEGER - 1 and kind.le is not None and kind.le <= MOST_INTEGER
    return isinstance(kind, _SIMPLE) or (bool(parts := [*_parts(kind)]) and all(map(_bounded, parts)))


def _parts(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Return the types of the parts of a type's values; none for unknown types."""
    if isinstance(kind, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
        yield from (field.type for field in kind.fields)
    elif isinstance(kind, inspect.UnionType):
        yield from kind.types
    elif isinstance(kind, inspect.VarTupleType | inspect.ListType):
        yield kind.item_type
    elif isinstance(kind, inspect.DictType):
        yield from (kind.key_type, kind.value_type)


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


_ENCODER = msgspec.json.Encoder()
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)

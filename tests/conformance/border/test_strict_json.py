"""JSON from other programs: numbers and nesting are bounded, and no input takes long or recurses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from onnxspec.conformance.border import strict_json
from onnxspec.conformance.border.strict_json import (
    MOST_DEPTH,
    MOST_INTEGER,
    MalformedJson,
    decode,
    encode,
    parse,
    typed,
)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Row:
    name: str
    count: int
    colour: Colour = Colour.RED
    sizes: tuple[int, ...] = ()
    ratio: float | None = None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[NaN]", "NaN is no JSON"),
        ("-Infinity", "-Infinity is no JSON"),
        ("[1e999]", "not finite"),
        (str(2**63), "more than 64 bits"),
        (str(-(2**63) - 1), "more than 64 bits"),
        ("1" * 100_000, "no JSON"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "nested more than"),
        ("[" * 200_000, "nested more than"),
        ('{"a":' * 200_000, "nested more than"),
        ("", "no JSON: Expecting value"),
        ('{"a": 1}\n{"a": 1}', "no JSON: Extra data: line 2 column 1"),
        (b'"\xff"', "no UTF-8 at byte 1"),
        (b"\xef\xbb\xbf{}", "no JSON"),
    ],
)
def test_what_is_malformed_or_too_large_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(MalformedJson) as refused:
        parse(text)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "text", [str(2**63 - 1), str(-(2**63)), '"[[[[' + "[" * 400 + '"', '"\\ud800"', "[0.1, 1e-999]"]
)
def test_what_is_odd_but_clear_is_read_as_json_reads_it(text: str) -> None:
    assert parse(text) == json.loads(text)


def test_brackets_in_texts_are_no_depth_and_a_text_without_end_is_read_once() -> None:
    assert parse(json.dumps(["[" * 100, '\\"[[' * 100])) == ["[" * 100, '\\"[[' * 100]
    with pytest.raises(MalformedJson):
        parse("[" * (MOST_DEPTH - 1) + '"' + '\\"[' * 300_000 + "\\")  # restarting at each quote would take hours


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    # Surrogates too: a runtime's text need not be valid UTF-8.
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)  # another process may use the processor
@given(JSON)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert parse(encode(value)) == value
    assert parse(encode(value, indent=2).encode("ascii")) == value


@settings(deadline=None)  # another process may use the processor
@given(st.text() | st.binary())
def test_any_text_is_read_as_json_reads_it_or_refused(text: str | bytes) -> None:
    try:
        value = parse(text)
    except MalformedJson:
        return
    assert value == json.loads(text)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_infinity_and_nan_are_never_written(number: float) -> None:
    for value in (number, {"a": [number]}, Row("a", 1, ratio=number)):
        with pytest.raises(ValueError, match="JSON compliant"):
            encode(value)


def test_a_record_comes_back_as_it_went() -> None:
    row = Row("a", 2, Colour.RED, (1, 2), 0.5)
    assert encode(row) == '{"name":"a","count":2,"colour":"red","sizes":[1,2],"ratio":0.5}'
    assert decode(encode(row), Row) == row
    assert decode('{"name": "a", "count": 2, "ratio": 1}', Row) == Row("a", 2, ratio=1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"count": 2}', "name"),
        ('{"name": "a", "count": "2"}', "$.count"),
        ('{"name": "a", "count": true}', "$.count"),
        ('{"name": "a", "count": 2.5}', "$.count"),
        ('{"name": "a", "count": 2, "colour": "green"}', "$.colour"),
        ('{"name": "a", "count": 2, "sizes": [1, null]}', "$.sizes"),
        ("[]", "Expected `object`"),
        ('{"name": "a", "count": 2, "\\ud800": 2}', "half of a character"),
        ('{"name": "a", "count": 2, "colour": "\\ud800"}', "half of a character"),
    ],
)
def test_what_does_not_fit_is_named(text: str, message: str) -> None:
    with pytest.raises(MalformedJson) as refused:
        decode(text, Row)
    assert message in str(refused.value)


class Leaf(TypedDict, total=False):
    output: str
    index: list[Annotated[int, Meta(ge=0, le=MOST_INTEGER)]] | None
    error: float | None


class Line(msgspec.Struct, frozen=True):
    """Record with all types that lines contain, and with optional keys."""

    name: str
    count: Annotated[int, Meta(ge=-5, le=MOST_INTEGER)] = 0
    colour: Colour = Colour.RED
    ratio: float | None = None
    where: Leaf | None = None
    names: Mapping[str, str] = {}  # each record gets its own copy
    sums: tuple[float, ...] = ()


LINES = st.builds(
    Line,
    st.text(max_size=9) | st.sampled_from(['"', "\\", '"name":', "e-07", "\x7f", "é", "\ud800"]),
    st.integers(-5, MOST_INTEGER),
    st.sampled_from(Colour),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.fixed_dictionaries({}, optional={"output": st.text(max_size=3), "error": st.none() | st.just(1e-7)}),
    st.dictionaries(st.text(max_size=2) | st.sampled_from(["e-01", "e-1"]), st.text(max_size=2), max_size=3),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3).map(tuple),
)
PIECES = [
    b'"',
    b"\\",
    b",",
    b":",
    b"{",
    b"}",
    b"[",
    b"]",
    b"0",
    b"1",
    b"-",
    b".",
    b"e-0",
    b" ",
    b"\xff",
    b"NaN",
    b"null",
]
PIECES += [b"", b'"count":1,', b'"count":1.0,', b'"name":"a",', b'"other":[1],', b'"error":1,', b'"e-01":"",']
PIECES += [b'"e-001":"",', b'"where":{"error":1,"error":2},', b"9" * 19, b"1" + b"0" * 22, b"1" + b"0" * 30]
PIECES += [b"1e999", b"\\u0022", b"\\ud800"]


@given(LINES, st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.sampled_from(PIECES)), max_size=3))
@settings(max_examples=400, deadline=None)
def test_a_line_is_read_as_a_close_look_reads_it(line: Line, changes: list[tuple[float, int, bytes]]) -> None:
    """Both parsers return the same record or message for any line; unknown keys may hold any number."""
    text = encode(line).encode("ascii")
    for position, gone, piece in changes:
        at = round(position * len(text))
        text = text[:at] + piece + text[at + gone :]
    record, by_python = (
        _record_or_message(read) for read in (lambda: decode(text, Line), lambda: typed(parse(text), Line))
    )
    assert record == by_python or (isinstance(record, Line) and isinstance(by_python, str))


@pytest.mark.parametrize(
    "change",
    [
        (b'"count":1', b'"count":9223372036854775808'),
        (b'"index":[1]', b'"index":[9223372036854775808]'),
        (b'"sums":[]', b'"sums":[NaN]'),
        (b'"sums":[]', b'"sums":[],"unknown":' + b"[" * 40 + b"]" * 40),
        (b'"name":"a"', b'"name":"\xff"'),
    ],
)
def test_what_is_refused_in_a_line_is_refused_however_it_is_read(change: tuple[bytes, bytes]) -> None:
    line = Line("a", 1, ratio=1e22, where={"index": [1], "error": 1e-7}, names={"n": "x"})
    text = encode(line).encode("ascii")
    assert decode(text, Line) == line
    assert change[0] in text
    with pytest.raises(MalformedJson) as close:
        typed(parse(text.replace(*change)), Line)
    with pytest.raises(MalformedJson) as refused:
        decode(text.replace(*change), Line)
    assert str(refused.value) == str(close.value)


def test_nearly_every_line_is_read_without_a_close_look(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [encode(Line("a", n, ratio=n / 3, sums=(n / 3e7,))).encode("ascii") for n in range(100)]
    monkeypatch.setattr(strict_json, "parse", lambda text: pytest.fail(f"a close look at {text!r}"))
    assert [decode(line, Line).count for line in lines] == list(range(100))


def test_the_depth_of_what_may_hold_anything_is_bounded() -> None:
    with pytest.raises(MalformedJson, match="nested more"):
        decode(b'{"a":%s}' % (b"[" * 40 + b"]" * 40), dict)


def test_half_of_a_surrogate_pair_is_read() -> None:
    """A runtime may print such a character."""
    assert decode(encode(Line("\udcff")).encode("ascii"), Line) == Line("\udcff")


def _record_or_message(read: Callable[[], object]) -> object:
    try:
        return read()
    except MalformedJson as error:
        return str(error)


def test_a_value_that_was_parsed_can_be_typed() -> None:
    assert typed({"name": "a", "count": 1}, Row) == Row("a", 1)

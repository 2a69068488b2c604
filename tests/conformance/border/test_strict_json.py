"""JSON from other programs: numbers and nesting are bounded, and no input takes long or recurses."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.conformance.border.strict_json import MOST_DEPTH, MalformedJson, decode, encode, parse


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
    ("kind", "text", "message"),
    [
        (Any, "[NaN]", "NaN is no JSON"),
        (Any, "-Infinity", "-Infinity is no JSON"),
        (Any, "[1e999]", "not finite"),
        (Any, str(2**63), "more than 64 bits"),
        (Any, str(-(2**63) - 1), "more than 64 bits"),
        (Any, "1" * 100_000, "no JSON"),
        (Any, "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "nested more than"),
        (Any, "[" * 200_000, "nested more than"),
        (Any, '{"a":' * 200_000, "nested more than"),
        (Any, b'{"a":%s}' % (b"[" * 40 + b"]" * 40), "nested more than"),
        (Any, "", "no JSON: Expecting value"),
        (Any, '{"a": 1}\n{"a": 1}', "no JSON: Extra data: line 2 column 1"),
        (Any, b'"\xff"', "no UTF-8 at byte 1"),
        (Any, b"\xef\xbb\xbf{}", "no JSON"),
        (Row, '{"count": 2}', "name"),
        (Row, '{"name": "a", "count": "2"}', "$.count"),
        (Row, '{"name": "a", "count": true}', "$.count"),
        (Row, '{"name": "a", "count": 2.5}', "$.count"),
        (Row, '{"name": "a", "count": 2, "colour": "green"}', "$.colour"),
        (Row, '{"name": "a", "count": 2, "sizes": [1, null]}', "$.sizes"),
        (Row, '{"name": "a", "count": 9223372036854775808}', "more than 64 bits"),
        (Row, '{"name": "a", "count": 2, "name": "b"}', "stands twice"),
        (Row, "[]", "Expected `object`"),
        (Row, '{"name": "a", "count": 2, "\\ud800": 2}', "half of a character"),
        (Row, '{"name": "a", "count": 2, "colour": "\\ud800"}', "half of a character"),
    ],
)
def test_malformed_or_large_values_and_wrong_types_are_refused(kind: Any, text: str | bytes, message: str) -> None:
    with pytest.raises(MalformedJson) as refused:
        decode(text, kind)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "text", [str(2**63 - 1), str(-(2**63)), '"[[[[' + "[" * 400 + '"', '"\\ud800"', "[0.1, 1e-999]"]
)
def test_odd_but_valid_json_is_read(text: str) -> None:
    assert parse(text) == json.loads(text)


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
def test_encoded_values_are_read_again(value: Any) -> None:
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
    assert decode(encode(Row("\udcff", 1)), Row) == Row("\udcff", 1), "a runtime may print half of a surrogate pair"

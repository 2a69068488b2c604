"""JSON that others wrote: what two programs could read differently is refused, and nothing takes long or recurses."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxspec.conformance.border.strict_json import MOST_DEPTH, MalformedJson, decode, encode, parse, typed


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
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' stands twice"),
        ("[NaN]", "NaN is no JSON"),
        ("-Infinity", "-Infinity is no JSON"),
        ("[1e999]", "beyond every float"),
        (str(2**63), "more than 64 bits"),
        (str(-(2**63) - 1), "more than 64 bits"),
        ("1" * 100_000, "more than 64 bits"),
        ("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "nested more than"),
        ("[" * 200_000, "nested more than"),
        ('{"a":' * 200_000, "nested more than"),
        ("", "no JSON: Expecting value at column 1"),
        ('{"a": 1}\n{"a": 1}', "no JSON: Extra data at line 2 column 1"),
        (b'"\xff"', "no UTF-8 at byte 1"),
        (b"\xef\xbb\xbf{}", "no JSON"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(text: str | bytes, message: str) -> None:
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


def test_brackets_in_texts_are_no_depth_and_a_text_without_end_takes_no_time() -> None:
    assert parse(json.dumps(["[" * 100, '\\"[[' * 100])) == ["[" * 100, '\\"[[' * 100]
    begin = time.process_time()
    with pytest.raises(MalformedJson):
        parse("[" * (MOST_DEPTH - 1) + '"' + '\\"[' * 300_000 + "\\")
    assert time.process_time() - begin < 5  # tried again at each quote it would take hours


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    # Surrogates too: what a runtime says need not be a text that UTF-8 knows.
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert parse(encode(value)) == value
    assert parse(encode(value, indent=2).encode("ascii")) == value


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
    ],
)
def test_what_does_not_fit_is_named(text: str, message: str) -> None:
    with pytest.raises(MalformedJson) as refused:
        decode(text, Row)
    assert message in str(refused.value)


def test_a_value_that_was_parsed_can_be_typed() -> None:
    assert typed({"name": "a", "count": 1}, Row) == Row("a", 1)

"""Waiver files: accepted content, and refusals with their line."""

from __future__ import annotations

import datetime

import pytest

from onnxspec.conformance.certifying.waivers import LONGEST, expired, read_waivers
from onnxspec.reference.errors import RecordError

GOOD = b"""
[[waiver]]
op = "LSTM"
clause = "lstm.activations*"
types = ["float32"]
reason = "known"
owner = "Jo"
expires = 2027-03-31
"""


def test_a_waiver_is_read_and_holds_to_the_end_of_its_last_day() -> None:
    (waiver,) = read_waivers(GOOD, "w.toml")
    assert (waiver.op, waiver.clause, waiver.types) == ("LSTM", "lstm.activations*", ("float32",))
    assert not expired(waiver, datetime.date(2027, 3, 31))
    assert expired(waiver, datetime.date(2027, 4, 1))


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (b'reason = "known"', b'reason = " "', "reason is a text"),
        (b'owner = "Jo"', b"", "owner"),
        (b"2027-03-31", b'"soon"', "no day"),
        (b"lstm.activations*", b"lstm.nothing", "no clause is"),
        (b'op = "LSTM"', b'op = "LSMT"', "no operator"),
        (b"float32", b"float33", "no type"),
        (b'owner = "Jo"', b'owner = "Jo"\nseverity = 1', "unknown key"),
        (b"clause = ", b'verdict = "crashed"\nclause = ', "one of them"),
        (b'clause = "lstm.activations*"', b'verdict = "pass"', "no failing verdict"),
        (b"[[waiver]]", b"[[waivers]]", "nothing else"),
        (b"[[waiver]]", b"[[waiver]", "w.toml"),
        (b"known", b"\xff", "w.toml"),
        (b"known", b"#" * (LONGEST + 1), "KiB"),
        (GOOD, GOOD * 101, "at most"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_line(before: bytes, after: bytes, why: str) -> None:
    with pytest.raises(RecordError, match=why) as error:
        read_waivers(GOOD.replace(before, after), "w.toml")
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("w.toml")

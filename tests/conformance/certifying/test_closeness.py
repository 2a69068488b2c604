"""What counts as the same on another build of NumPy, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from onnxspec.conformance.certifying import same_text, unlike


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"worst": 0.25}, {"worst": 0.25000001}),
        ({"message": "Y[1] is 0.270766765, must be 0"}, {"message": "Y[1] is 0.270766764, must be 0"}),
        ({"error_sums": [1e-9, 0.0, 1e-12, 1.0]}, {"error_sums": [2e-9, 0.0, 1e-12, 1.0]}),
        (
            {"type": "float64", "error_sums": [0.5, 0.0, 1.0, 1.0]},
            {"type": "float64", "error_sums": [0.9, 0.0, 1.0, 1.0]},
        ),
        ([1, "a", None, True], [1, "a", None, True]),
    ],
)
def test_last_digits_do_not_count(one: Any, other: Any) -> None:
    assert not list(unlike(one, other))


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        ({"worst": 0.25}, {"worst": 0.251}, "worst"),
        ({"judged": 8}, {"judged": 9}, "judged"),
        ({"verdict": "pass"}, {"verdict": "wrong"}, "verdict"),
        ({"message": "3 cases"}, {"message": "4 cases"}, "message"),
        ({"message": "is 0.27"}, {"message": "is 0.28"}, "message"),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b[1]"),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
        ({"a": 1}, {}, "a"),
        ({"a": None}, {"a": 0}, "a"),
        ({"a": True}, {"a": 1}, "a"),
        ({"error_sums": [0.1, 0.0, 0.0, 1.0]}, {"error_sums": [0.2, 0.0, 0.0, 1.0]}, "error_sums"),
        ({"error_sums": []}, {"error_sums": [0.2, 0.0, 0.0, 1.0]}, "error_sums"),
    ],
)
def test_everything_else_counts(one: Any, other: Any, place: str) -> None:
    assert [where for where, _, _ in unlike(one, other)] == [place]


def test_what_is_shown_of_a_value_is_one_bounded_line() -> None:
    ((_, one, _),) = unlike({"a": "x\n\x1b[31m" + "y" * 1000}, {"a": ""})
    assert one.isprintable()
    assert len(one) < 200


def test_texts_of_other_numbers_are_other_texts() -> None:
    assert same_text("a 1.0 b", "a 1.0000000001 b")
    assert not same_text("a 1.0 b", "a 1.0 c")
    assert not same_text("v1.2.3", "v1.2.4")

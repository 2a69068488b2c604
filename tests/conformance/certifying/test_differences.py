"""Equal and different results on another build of NumPy."""

from __future__ import annotations

from typing import Any

import pytest

from onnxspec.conformance.certifying.verifying import differences

WRONG = {"verdict": "wrong", "type": "float32"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"worst": 0.25}, {"worst": 0.25000001}),
        ({"where": {"error": 0.25}}, {"where": {"error": 0.25000001}}),
        (
            {**WRONG, "message": "Y[1] is 0.270766765, must be 0 (lstm.clip)"},
            {**WRONG, "message": "Y[1] is 0.270766764, must be 0 (lstm.clip)"},
        ),
        ({"error_sums": [1e-9, 0.0, 1e-12, 1.0]}, {"error_sums": [2e-9, 0.0, 1e-12, 1.0]}),
        (
            {"type": "float64", "error_sums": [0.5, 0.0, 1.0, 1.0]},
            {"type": "float64", "error_sums": [0.9, 0.0, 1.0, 1.0]},
        ),
        ({"a": [1, "a", None, True]}, {"a": [1, "a", None, True]}),
    ],
)
def test_last_digits_of_computed_numbers_do_not_count(one: Any, other: Any) -> None:
    assert not list(differences(one, other))


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        ({"worst": 0.25}, {"worst": 0.251}, "worst"),
        ({"judged": 8}, {"judged": 9}, "judged"),
        ({"judged": 8}, {"judged": 8.0}, "judged"),
        ({"verdict": "pass"}, {"verdict": "wrong"}, "verdict"),
        ({**WRONG, "message": "3 cases"}, {**WRONG, "message": "4 cases"}, "message"),
        ({**WRONG, "message": "is 0.27"}, {**WRONG, "message": "is 0.28"}, "message"),
        ({"seconds": 0.25}, {"seconds": 0.25000001}, "seconds"),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b[1]"),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
        ({"a": 1}, {}, "a"),
        ({"a": None}, {"a": 0}, "a"),
        ({"a": True}, {"a": 1}, "a"),
        ({"error_sums": [0.1, 0.0, 0.0, 1.0]}, {"error_sums": [0.2, 0.0, 0.0, 1.0]}, "error_sums[0]"),
        ({"error_sums": []}, {"error_sums": [0.2, 0.0, 0.0, 1.0]}, "error_sums"),
    ],
)
def test_everything_else_counts(one: Any, other: Any, place: str) -> None:
    assert [where for where, _, _ in differences(one, other)] == [place]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.2.0", "1.20.0"),
        ("Runtime 2.1", "Runtime 2.10"),
        ("67e701", "67e702"),
        ("67e+701", "68e+701"),
        ("1.0", "1.00"),
        ("v1.2.3", "v1.2.4"),
        ("a 1.0 b", "a 1.0 c"),
        ("build 0.100000000", "build 0.100000001"),
    ],
)
@pytest.mark.parametrize(
    "record",
    [{}, {"verdict": "unsupported"}, {"verdict": "malformed"}, {"verdict": "pass", "reason": "refused"}],
)
def test_texts_are_equal_or_they_differ(one: str, other: str, record: dict[str, Any]) -> None:
    """Versions, names and digests that look like numbers are texts, wherever they are."""
    for key in ("message", "title", "printed"):
        assert [path for path, _, _ in differences({**record, key: one}, {**record, key: other})] == [key]


@pytest.mark.parametrize(("one", "other"), [("Runtime 2.1", "Runtime 2.10"), ("67e701", "67e702"), ("1.0", "1.00")])
def test_a_sentence_of_ours_has_no_number_in_other_digits(one: str, other: str) -> None:
    assert list(differences({**WRONG, "message": one}, {**WRONG, "message": other}))


def test_means_of_a_run_have_the_tolerance_of_their_sums_and_nothing_else_of_it() -> None:
    def run(kind: str, **changes: Any) -> dict[str, Any]:
        bias = {"shift": 0.5, "elements": 9, "biased": False, **changes}
        return {"targets": [{"name": "a", "bias": {kind: bias}}], "seconds": 1.5}

    assert not list(differences(run("float32"), run("float32", shift=0.5000001)))
    assert list(differences(run("float32"), run("float32", shift=0.6)))
    assert not list(differences(run("float64"), run("float64", shift=0.9)))
    assert list(differences(run("float32"), run("float32", elements=10)))
    assert list(differences(run("float32"), {**run("float32"), "seconds": 1.5000001}))


def test_what_is_shown_of_a_value_is_one_bounded_line() -> None:
    ((_, shown, _),) = differences({"a": "x\n\x1b[31m" + "y" * 1000}, {"a": ""})
    assert shown.isprintable()
    assert len(shown) < 200

"""Equal and different results on another build of NumPy."""

from __future__ import annotations

from typing import Any

import pytest

from onnxspec.conformance.certifying.verifying import differences

WRONG = {"verdict": "wrong", "type": "float32"}


def sums(*numbers: float, type: str = "float32") -> dict[str, Any]:
    return {"type": type, "error_sums": [*numbers]}


def mean(type: str, **values: Any) -> dict[str, Any]:
    """Return the mean error of a run, as run.json has it."""
    return {"targets": [{"bias": {type: {"shift": 0.5, "elements": 9, **values}}}]}


@pytest.mark.parametrize(
    ("claimed", "recomputed"),
    [
        ({"worst": 0.25}, {"worst": 0.25000001}),
        ({"where": {"error": 0.25}}, {"where": {"error": 0.25000001}}),
        ({**WRONG, "message": "is 0.270766765, must be 0"}, {**WRONG, "message": "is 0.270766764, must be 0"}),
        (sums(1e-9, 0.0, 1e-12, 1.0), sums(2e-9, 0.0, 1e-12, 1.0)),
        (sums(0.5, 0.0, 1.0, 1.0, type="float64"), sums(0.9, 0.0, 1.0, 1.0, type="float64")),
        (mean("float32"), mean("float32", shift=0.5000001)),
        (mean("float64"), mean("float64", shift=0.9)),
        ({"a": [1, "a", None, True]}, {"a": [1, "a", None, True]}),
    ],
)
def test_last_digits_of_computed_numbers_do_not_count(claimed: Any, recomputed: Any) -> None:
    assert not list(differences(claimed, recomputed))


@pytest.mark.parametrize(
    ("claimed", "recomputed", "place"),
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
        (sums(0.1, 0.0, 0.0, 1.0), sums(0.2, 0.0, 0.0, 1.0), "error_sums[0]"),
        (sums(), sums(0.2, 0.0, 0.0, 1.0), "error_sums"),
        (mean("float32"), mean("float32", shift=0.6), "targets[0].bias.float32.shift"),
        (mean("float32"), mean("float32", elements=10), "targets[0].bias.float32.elements"),
    ],
)
def test_everything_else_counts(claimed: Any, recomputed: Any, place: str) -> None:
    assert [line.partition(": ")[0] for line in differences(claimed, recomputed)] == [place]


@pytest.mark.parametrize(
    ("claimed", "recomputed"),
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
def test_versions_names_and_digests_that_look_like_numbers_are_texts(claimed: str, recomputed: str) -> None:
    for record in ({}, {"verdict": "unsupported"}, {"verdict": "malformed"}, {"verdict": "pass", "reason": "refused"}):
        for key in ("message", "title", "printed"):
            (line,) = differences({**record, key: claimed}, {**record, key: recomputed})
            assert line == f"{key}: claimed {claimed}, recomputed {recomputed}"
    if "0.1" not in claimed:  # which is a number of a sentence of ours
        assert list(differences({**WRONG, "message": claimed}, {**WRONG, "message": recomputed}))


def test_a_shown_value_is_one_bounded_line() -> None:
    (line,) = differences({"a": "x\n\x1b[31m" + "y" * 1000}, {"a": ""})
    assert line.isprintable()
    assert len(line) < 200

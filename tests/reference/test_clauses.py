"""The clause tables: loaded, checked, and refused with their place where they say what cannot be."""

import pytest

from onnxspec.reference import (
    DEVIATIONS,
    OPERATORS,
    ClauseError,
    clause_named,
    clauses_of,
)
from onnxspec.reference.clauses import parse_clauses
from onnxspec.reference.readings import OPTIONS

GOOD = """
[[clause]]
id = "lstm.some"
text = "Something holds."
status = "stated"
source = "Equations"
"""


def test_a_good_table_is_read() -> None:
    (clause,) = parse_clauses(GOOD, "LSTM", "table")
    assert (clause.id, clause.status, clause.versions, clause.may_fail) == ("lstm.some", "stated", (1, 7, 14, 22), True)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("stated", "certain"), "status is one of"),
        (("lstm.some", "gru.some"), "starts with lstm."),
        (('source = "Equations"', ""), "missing key source"),
        (('source = "Equations"', 'source = "x"\nversions = [2]'), "no LSTM version 2"),
        (('source = "Equations"', 'source = "x"\nreading = "mood"'), "unknown reading 'mood'"),
        (('source = "Equations"', 'source = "x"\ncolour = "red"'), "unknown key colour"),
        (("stated", "convention"), "two implementers"),
        (('status = "stated"', "status = stated"), "table:"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(ClauseError, match=complaint) as caught:
        parse_clauses(GOOD.replace(*change), "LSTM", "table")
    assert str(caught.value).startswith("table")


def test_an_id_stands_once() -> None:
    with pytest.raises(ClauseError, match=r"lstm\.some: stands there twice"):
        parse_clauses(GOOD + GOOD, "LSTM", "table")


@pytest.mark.parametrize("op", OPERATORS)
def test_every_reading_is_some_clauses_and_every_deviation_breaks_one(op: str) -> None:
    ids = {clause.id for clause in clauses_of(op)}
    assert {c.reading for c in clauses_of(op)} - {None} == set(OPTIONS)
    assert {d.clause for d in DEVIATIONS.values() if op in d.operators} <= ids
    assert all(clause_named(id).id == id for id in ids)


def test_versions_have_their_own_clauses() -> None:
    assert "lstm.layout" not in {c.id for c in clauses_of("LSTM", 7)}
    assert "lstm.layout" in {c.id for c in clauses_of("LSTM", 14)}
    assert "lstm.output-sequence" in {c.id for c in clauses_of("LSTM", 1)}
    assert "lstm.output-sequence" not in {c.id for c in clauses_of("LSTM", 7)}

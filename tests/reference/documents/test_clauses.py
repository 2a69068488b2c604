"""Tests of the clause tables: they load and are checked, and an error names the place of an invalid entry."""

from typing import Any

import numpy as np
import pytest

from onnxspec.cases.specs.features import ILLEGAL_TOPICS, all_features
from onnxspec.reference import (
    CELLS,
    ClauseError,
    IllegalNode,
    Node,
    clause_named,
    clauses_of,
    configure,
    operator_names,
    operator_version,
    versions_of,
)
from onnxspec.reference.documents.clauses import STATUSES, parse_clauses
from onnxspec.reference.documents.interpretations import QUESTIONS

VERSIONS = [(op, version) for op in CELLS for version in versions_of(op)]

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
        (("stated", "certain"), "Invalid enum value 'certain'"),
        (("lstm.some", "gru.some"), "starts with lstm."),
        (('source = "Equations"', ""), "missing required field `source`"),
        (('source = "Equations"', 'source = "x"\nversions = [2]'), "no LSTM version 2"),
        (('source = "Equations"', 'source = "x"\ninterpretation = "mood"'), "unknown interpretation 'mood'"),
        (('source = "Equations"', 'source = "x"\ncolour = "red"'), "unknown field `colour`"),
        (('source = "Equations"', 'source = "x"\nversions = 1'), "Expected `array"),
        (('source = "Equations"', 'source = "x"\nversions = []'), "Expected `array` of length >= 1"),
        (('source = "Equations"', 'source = "x"\nneeds = "clip"'), "Expected `array`, got `str`"),
        (
            ('source = "Equations"', 'source = "x"\ninterpretation = "empty"'),
            "a clause with an interpretation is undefined",
        ),
        (('source = "Equations"', "source = 3"), "Expected `str`, got `int`"),
        (("Something holds.", " "), "matching regex"),
        (("lstm.some", "lstm.Some thing"), "of small letters"),
        (("[[clause]]", "[[clauses]]"), "unknown field `clauses`"),
        (("[[clause]]", "[clause]"), "Expected `array`, got `object`"),
        (("stated", "convention"), "two implementers"),
        (('status = "stated"', "status = stated"), "table:"),
        ((GOOD, GOOD + GOOD), r"table: clause lstm\.some is there twice"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(ClauseError, match=complaint) as caught:
        parse_clauses(GOOD.replace(*change), "LSTM", "table")
    assert str(caught.value).startswith("table")


def test_every_interpretation_is_some_clauses() -> None:
    told = {c.interpretation for op in operator_names() for c in clauses_of(op)} - {None}
    # How a state is kept between quantized steps is a question of several nodes together, which no single document
    # covers.
    assert told == set(QUESTIONS) - {"quantized_state"}


@pytest.mark.parametrize("op", CELLS)
def test_clauses_that_verdicts_name_are_there(op: str) -> None:
    """`expect` names these clauses for values outside their radii."""
    for topic in ("equations", "padding.zero", "outputs.last-hidden", "empty-sequence"):
        assert clause_named(f"{op.lower()}.{topic}").versions == versions_of(op)


def test_ids_are_parallel_but_for_what_only_one_operator_has() -> None:
    topics = {op: {clause.id.partition(".")[2] for clause in clauses_of(op)} for op in CELLS}
    shared = set.intersection(*topics.values())
    alone = {op: sorted(topics[op] - shared) for op in CELLS}
    assert alone["RNN"] == []
    for topic in shared:
        alike = [clause_named(f"{op.lower()}.{topic}") for op in CELLS]
        assert len({(clause.status, clause.interpretation, clause.implementers) for clause in alike}) == 1, topic


@pytest.mark.parametrize(("op", "version"), VERSIONS)
def test_a_version_has_the_clauses_of_what_it_defines(op: str, version: int) -> None:
    topics = {clause.id.partition(".")[2] for clause in clauses_of(op, version)}
    operator, cell = operator_version(op, version), CELLS[op]
    for attribute in operator.attributes:
        assert attribute.replace("_", "-").replace("direction", "directions") in topics, attribute
    for attribute in ("layout", "output_sequence", "linear_before_reset", "input_forget"):
        if attribute not in operator.attributes:
            mine = {t for t in topics if t.split(".")[0] == attribute.replace("_", "-")}
            assert mine <= {"linear-before-reset.absent", "linear-before-reset.default-bias"}
    assert ("types.bfloat16" in topics) == ("bfloat16" in operator.types)
    assert ("outputs.required" in topics) == bool(operator.required_outputs)
    assert ("equations.transposition" in topics) == (version in cell.unmarked)
    assert ("coefficients.default" in topics) == (version not in cell.without_defaults)
    assert ("coefficients.unstated" in topics) == (version in cell.without_defaults)
    assert ("peepholes" in topics) == ("P" in operator.inputs)
    assert ("initial-states" in topics) == ("initial_h" in operator.inputs)


@pytest.mark.parametrize("op", CELLS)
def test_numbers_that_are_none_are_arithmetic_and_cannot_fail(op: str) -> None:
    arithmetic = {clause.id.partition(".")[2] for clause in clauses_of(op) if clause.status == "arithmetic"}
    assert arithmetic == {"nan", "nan.kept", "infinity", "overflow"}
    for clause in clauses_of(op):
        assert clause.status in STATUSES
        assert clause.may_fail == (clause.status in ("stated", "implied"))
        assert ("arithmetic" in clause.text) == (clause.status == "arithmetic")


@pytest.mark.parametrize(("op", "version"), VERSIONS)
def test_what_a_clause_needs_are_features_that_a_case_can_have(op: str, version: int) -> None:
    possible = all_features(op, version)
    for clause in clauses_of(op, version):
        assert clause.needs | clause.or_needs <= possible, clause.id


ILLEGAL_ATTRIBUTES: dict[str, Any] = {
    "direction": {"direction": "sideways"},
    "layout": {"layout": 7},
    "clip": {"clip": -1.0},
    "activations": {"activations": ["Swish"]},
    "activation-alpha": {"activation_alpha": [0.5] * 7},
    "activation-beta": {"activation_beta": [0.5] * 7},
    "hidden-size": {"hidden_size": 6},
    "input-forget": {"input_forget": 2},
    "attributes": {"momentum": 1.0},
}
ILLEGAL_INPUTS: dict[str, Any] = {
    "shapes": {"X": np.zeros((2, 2), np.float32)},
    "types": {"X": np.zeros((2, 2, 2), np.int32)},
    "lengths": {"sequence_lens": np.array([1, 3], np.int32)},
    "inputs": {"W": None},
}


@pytest.mark.parametrize(("op", "version"), VERSIONS)
@pytest.mark.parametrize("topic", ILLEGAL_TOPICS)
def test_what_is_refused_breaks_a_clause_of_its_version(op: str, version: int, topic: str) -> None:
    attributes, rows = ILLEGAL_ATTRIBUTES.get(topic, {}), len(CELLS[op].gates) * 2
    if topic != "attributes" and not set(attributes) <= set(operator_version(op, version).attributes):
        topic = "attributes"
    inputs = {
        "X": np.zeros((2, 2, 2), np.float32),
        "W": np.zeros((1, rows, 2), np.float32),
        "R": np.zeros((1, rows, 2), np.float32),
        **ILLEGAL_INPUTS.get(topic, {}),
    }
    with pytest.raises(IllegalNode) as refused:
        configure(Node(op, version, attributes, ("Y", "Y_z" if topic == "outputs" else "Y_h")), inputs)
    assert refused.value.clause == f"{op.lower()}.{topic}"
    assert version in clause_named(refused.value.clause).versions
    tried = clauses_of(op, version, {f"illegal:{topic}"})
    assert {clause.id for clause in tried} - {"gru.outputs.required"} == {refused.value.clause} or not any(
        clause.may_fail for clause in tried
    )
    assert tried


def test_legal_cases_exercise_no_refusal_and_illegal_ones_nothing_else() -> None:
    legal = {clause.id for clause in clauses_of("LSTM", 14, {"clip", "short-row"})}
    assert {"lstm.clip", "lstm.lengths", "lstm.equations"} <= legal
    assert not legal & {"lstm.direction", "lstm.shapes", "lstm.layout"}
    assert {clause.id for clause in clauses_of("LSTM", 14, {"illegal:lengths", "initializers"})} == {"lstm.lengths"}
    assert not clauses_of("LSTM", 7, {"illegal:layout"})

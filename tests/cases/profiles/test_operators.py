"""Tests of the profiles of all operators beside LSTM, GRU and RNN: sound, unique, rebuilt from text, and complete."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from onnxspec.cases import build_case, clauses_exercised, features_of, operator_versions, profile
from onnxspec.cases.portable import case_from_json, case_text
from onnxspec.reference import CELLS, IllegalNode, clauses_of, resolve

OTHERS = [(op, version) for op, version in operator_versions(None) if op not in CELLS]
every_operator = pytest.mark.parametrize(("op", "version"), OTHERS, ids=str)

# For these models, the document's clause for the type applies as well as the clause that they are made for.
ALSO = {"extendedlstm.scales": "extendedlstm.attributes.types", "extendedlstm.shapes": "extendedlstm.hidden-size"}


@every_operator
def test_ids_are_unique_and_safe_and_smoke_is_a_part(op: str, version: int) -> None:
    core = profile("core", op, version)
    assert len({spec.id for spec in core}) == len({spec.digest for spec in core}) == len(core)
    # The name of a folder, which begins with test_, has 255 bytes at most.
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,250}", spec.id) for spec in core)
    assert {spec.id for spec in profile("smoke", op, version)} <= {spec.id for spec in core}


@every_operator
def test_every_clause_has_a_case(op: str, version: int) -> None:
    exercised = {clause.id for spec in profile("core", op, version) for clause in clauses_exercised(spec)}
    assert exercised == {clause.id for clause in clauses_of(op, version)}


@every_operator
def test_legal_cases_are_legal_and_the_others_break_their_clause(op: str, version: int) -> None:
    for spec in profile("core", op, version):
        assert case_from_json(json.loads(case_text(spec))) == spec
        case = build_case(spec)
        legal, violation = case.companion if spec.illegal else case.trial, case.trial.violation
        assert legal is not None
        for feed in legal.feeds:
            resolve(legal.node, feed.inputs)
        if violation is not None and not violation.open:
            assert f"illegal:{violation.feature or violation.topic}" in features_of(spec)
            with pytest.raises(IllegalNode) as error:
                resolve(replace(case.trial.node), case.trial.feeds[0].inputs)
            clause = violation.clause(op)
            assert error.value.clause in (clause, ALSO.get(clause)), spec.id

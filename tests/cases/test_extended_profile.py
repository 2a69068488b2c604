"""ExtendedLSTM's profile: pinned, unique, legal where it must be, and every forbidden model breaks what it says."""

from __future__ import annotations

import json
import re

import onnx
import pytest

from onnxspec.cases import pinned_digests
from onnxspec.cases.extended_profile import broken_draft, extended_digest, extended_profile
from onnxspec.cases.extended_spec import ExtendedSpec, calibrated
from onnxspec.cases.extended_violations import extended_violation
from onnxspec.reference import IllegalNode, clauses_of
from onnxspec.reference.extended_lstm import resolve

CORE = extended_profile("core")
# The document's clause for the type is as true of these as the one that they are there for.
ALSO = {"extendedlstm.scales": "extendedlstm.attributes.types", "extendedlstm.shapes": "extendedlstm.hidden-size"}


@pytest.mark.parametrize("name", ["smoke", "core", "full"])
def test_it_is_what_was_pinned(name: str) -> None:
    assert extended_digest(name) == pinned_digests()[name]["ExtendedLSTM-1"], "python -m onnxspec.cases.pin"


def test_ids_are_unique_and_safe() -> None:
    assert len({spec.id for spec in CORE}) == len(CORE)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,200}", spec.id) for spec in CORE)
    assert {s.id for s in extended_profile("smoke")} <= {s.id for s in CORE}


def test_a_spec_survives_its_json_form() -> None:
    for spec in CORE:
        plain = json.loads(json.dumps(spec.to_json()))
        again = {name: tuple(v) if isinstance(v, list) else v for name, v in plain.items()}
        if "fill" in again:
            again["fill"] = tuple((name, share) for name, share in again["fill"])
        assert ExtendedSpec(**again) == spec


def test_every_clause_has_a_case() -> None:
    exercised = {clause.id for spec in CORE for clause in spec.clauses}
    assert {clause.id for clause in clauses_of("ExtendedLSTM")} == exercised


def test_legal_cases_are_legal_and_the_others_break_their_clause() -> None:
    for spec in CORE:
        draft = broken_draft(spec)
        onnx.load_model_from_string(spec.model(draft))
        if not spec.illegal:
            resolve(draft.attributes, draft.inputs)
        elif extended_violation(spec.illegal).topic != "outputs":  # which resolve() is not told
            with pytest.raises(IllegalNode) as error:
                resolve(draft.attributes, draft.inputs)
            clause = extended_violation(spec.illegal).clause
            assert error.value.clause in (clause, ALSO.get(clause)), spec.id


def test_what_may_spoil_memory_comes_last() -> None:
    spoils = [spec.spoils for spec in CORE]
    assert spoils == sorted(spoils)
    assert sum(spoils) >= 15


def test_calibration() -> None:
    scale, zero_point = calibrated(-1.0, 1.0)
    assert zero_point in (32767, 32768)
    assert scale == pytest.approx(2 / 65535)
    assert calibrated(0.5, 2.0)[1] == 0
    assert calibrated(0.0, 0.0) == (1.0, 0)

"""Tests of ExtendedLSTM's profile: pinned, unique, and with legal and forbidden cases that are what they claim."""

from __future__ import annotations

import json
import re

import onnx
import pytest

from onnxspec.cases import build_case, clauses_exercised, digest_of, family_of, features_of, pinned_digests, profile
from onnxspec.cases.operators.extended_lstm.codec import calibrated
from onnxspec.cases.portable import case_from_json, case_text
from onnxspec.cases.specs.data import inputs_of
from onnxspec.cases.specs.illegal import violation_of
from onnxspec.reference import IllegalNode, clauses_of
from onnxspec.reference.operators.extended_lstm.document import resolve

CORE = profile("core", "ExtendedLSTM", 1)
# For these models, the document's clause for the type applies as well as the clause that they are made for.
ALSO = {"extendedlstm.scales": "extendedlstm.attributes.types", "extendedlstm.shapes": "extendedlstm.hidden-size"}


@pytest.mark.parametrize("name", ["smoke", "core", "full"])
def test_it_is_what_was_pinned(name: str) -> None:
    assert digest_of(profile(name, "ExtendedLSTM", 1)) == pinned_digests()[name]["ExtendedLSTM-1"], (
        "python -m onnxspec.cases.write_profiles"
    )


def test_ids_are_unique_and_safe() -> None:
    assert len({spec.id for spec in CORE}) == len(CORE)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,200}", spec.id) for spec in CORE)
    assert {s.id for s in profile("smoke", "ExtendedLSTM", 1)} <= {s.id for s in CORE}


def test_core_stays_within_what_device_compilers_can_bear() -> None:
    """The limit for all operators together is 1,800 cases in 700 models; ONNX's operators leave this rest.

    All forbidden models share one legal companion.
    """
    trials = [trial for spec in CORE for trial in build_case(spec).trials if trial.violation is None]
    assert len(CORE) <= 137
    assert len({trial.model for trial in trials}) <= 32


def test_a_spec_survives_its_json_form() -> None:
    for spec in CORE:
        assert case_from_json(json.loads(case_text(spec))) == spec


def test_every_clause_has_a_case() -> None:
    exercised = {clause.id for spec in CORE for clause in clauses_exercised(spec)}
    assert {clause.id for clause in clauses_of("ExtendedLSTM")} == exercised


def test_legal_cases_are_legal_and_the_others_break_their_clause() -> None:
    for spec in CORE:
        trial = build_case(spec).trial
        onnx.load_model_from_string(trial.model)
        attributes, inputs = trial.node.attributes, trial.feeds[-1].inputs
        if not spec.illegal:
            resolve(attributes, inputs)
        elif violation_of(spec).topic != "outputs":  # resolve() does not get this
            with pytest.raises(IllegalNode) as error:
                resolve(attributes, inputs)
            clause = violation_of(spec).clause(spec.op)
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


def test_features_of_a_node_are_those_of_its_case() -> None:
    """A model from another tool has no spec, but the same features."""
    names = {"bias-absent", "quantized-output", "float-output", "size-one", "size-zero", "several-rows", "nonfinite"}
    names |= {"hidden-size-absent", "saturating-output"}
    for spec in (spec for spec in CORE if not spec.illegal):
        of_node = family_of(spec.op).node_features(spec.node, inputs_of(spec))
        assert of_node & names == features_of(spec) & names, spec.id


def test_an_x_without_dimensions_has_none() -> None:
    (spec,) = [spec for spec in profile("full", "ExtendedLSTM", 1) if spec.illegal == "x-rank-zero"]
    assert build_case(spec).trial.feeds[0].inputs["X"].shape == ()

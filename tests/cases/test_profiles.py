"""Profiles are pinned, their cases legal, their ids stable and safe, their models few and sound."""

import json
import re

import numpy as np
import onnx
import pytest

from onnxspec.cases import (
    PROFILES,
    CaseSpec,
    build_case,
    clauses_exercised,
    digest_of,
    operator_versions,
    pinned_digests,
    profile,
)
from onnxspec.cases.extended_profile import extended_digest
from onnxspec.reference import clauses_of, evaluate

CORE = [spec for op, version in operator_versions() for spec in profile("core", op, version)]
LEGAL = [spec for spec in CORE if not spec.illegal]


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_what_was_pinned(name: str) -> None:
    now = {f"{op}-{v}": digest_of(profile(name, op, v)) for op, v in operator_versions()}
    now["ExtendedLSTM-1"] = extended_digest(name)
    assert now == pinned_digests()[name], "python -m onnxspec.cases.pin, if the profile is meant to change"


def test_smoke_is_small_and_part_of_core() -> None:
    smoke = [spec for op, version in operator_versions() for spec in profile("smoke", op, version)]
    assert 30 <= len(smoke) <= 60
    assert {s.id for s in smoke} <= {s.id for s in CORE}


def test_core_stays_within_what_device_compilers_can_bear() -> None:
    """Twins are models too. Forbidden ones are refused before anything is compiled; their legal twins count."""
    trials = [trial for spec in CORE for case in [build_case(spec)] for trial in (case.trial, case.twin) if trial]
    models = {trial.model for trial in trials if trial.violation is None}
    assert len(CORE) <= 1500
    assert len(models) <= 400


def test_ids_are_unique_safe_and_stable() -> None:
    assert len({s.id for s in CORE}) == len(CORE)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,200}", s.id) for s in CORE)
    # Written down once: people's scripts and lists of expected failures hold ids.
    plain = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, outputs=("Y", "Y_h", "Y_c"), weights="initializer")
    assert plain.id == "lstm-14.float32.forward.T4N3I2H5.d456c0"


def test_specs_survive_their_json_form() -> None:
    for spec in CORE:
        assert CaseSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_every_model_passes_the_checker_and_infers_the_shapes_that_the_reference_gives() -> None:
    for spec in LEGAL:
        case = build_case(spec)
        for trial in (case.trial, case.twin):
            if trial is None:
                continue
            model = onnx.load_from_string(trial.model)
            onnx.checker.check_model(model, full_check=True)
            outputs = evaluate(trial.node, trial.feeds[-1].inputs)
            declared = {o.name: o.type.tensor_type.shape.dim for o in model.graph.output}
            for name, array in outputs.items():
                fixed = [d.dim_value for d in declared[name] if not d.dim_param]
                assert fixed == [n for n, d in zip(array.shape, declared[name], strict=True) if not d.dim_param]


def test_cases_are_rebuilt_bit_for_bit() -> None:
    for spec in CORE[::17]:
        first, second = build_case(spec), build_case(CaseSpec.from_json(spec.to_json()))
        assert first.trial.model == second.trial.model
        for a, b in zip(first.trial.feeds, second.trial.feeds, strict=True):
            assert {n: x.tobytes() for n, x in a.fed.items()} == {n: x.tobytes() for n, x in b.fed.items()}


@pytest.mark.parametrize(("op", "version"), list(operator_versions()))
def test_what_a_version_does_not_share_with_the_main_one_has_a_case_of_its_own(op: str, version: int) -> None:
    exercised = {c.id for s in profile("core", op, version) for c in clauses_exercised(s)}
    assert {c.id for c in clauses_of(op, version) if 14 not in c.versions} <= exercised


def test_every_case_without_y_has_a_twin_with_everything() -> None:
    for spec in LEGAL:
        case = build_case(spec)
        assert (case.twin is None) == ("Y" in spec.outputs)
        if case.twin is not None:
            assert set(case.twin.node.outputs) == set(spec.node.operator.outputs)
            assert case.twin.feeds == case.trial.feeds


def test_data_is_dense_and_full_width() -> None:
    """A gate swap must show: no two numbers of a weight tensor alike, all digits of the format in use."""
    spec = CaseSpec("LSTM", 14, T=4, N=3, I=5, H=6, bias=True, initial="all", peepholes=True)
    for name, array in build_case(spec).trial.feeds[0].inputs.items():
        assert len(np.unique(array)) == array.size, name
        assert (array != 0).all()
        digits = array.ravel().view(np.uint32) & 1
        assert 0.25 < digits.mean() < 1, name

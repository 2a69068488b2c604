"""Tests of profiles of all operators: pinned, with legal cases, stable and safe ids, and few and sound models."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from onnxspec.cases import (
    PROFILES,
    CaseSpec,
    build_case,
    clauses_exercised,
    digest_of,
    features_of,
    operator_versions,
    pinned_digests,
    profile,
)
from onnxspec.cases.directories.manifest import data_sets_of, fairness_of
from onnxspec.cases.portable import case_from_json, case_text
from onnxspec.cases.profiles import written_cases
from onnxspec.cases.specs.space import space_of
from onnxspec.cases.specs.spec import RECURRENT_AXES
from onnxspec.reference import CELLS, IllegalNode, clauses_of, evaluate, operator_version, resolve, versions_of

from ...recurrent import recurrent_versions

CORE = [spec for op, version in recurrent_versions() for spec in profile("core", op, version)]
LEGAL = [spec for spec in CORE if not spec.illegal]


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n == "full" else n for n in PROFILES])
def test_profiles_are_what_was_pinned(name: str) -> None:
    now = {f"{op}-{v}": digest_of(profile(name, op, v)) for op, v in operator_versions(None)}
    pinned = {known: digest for known, digest in pinned_digests()[name].items() if known in now}
    assert now == pinned, "python -m onnxspec.cases.write_profiles, if the profile is meant to change"


def test_smoke_is_small_and_part_of_core() -> None:
    smoke = [spec for op, version in recurrent_versions() for spec in profile("smoke", op, version)]
    assert 30 <= len(smoke) <= 60
    assert {s.id for s in smoke} <= {s.id for s in CORE}


def test_core_stays_within_what_device_compilers_can_bear() -> None:
    """Companions of forbidden models are compiled, so they count; the forbidden models are refused before."""
    trials = [trial for spec in CORE for case in [build_case(spec)] for trial in (case.trial, case.companion) if trial]
    models = {trial.model for trial in trials if trial.violation is None}
    remedy = "replace a case, or use the model of another case with a new seed"
    assert len(CORE) <= 1663, remedy
    count = len(models)
    assert count <= 670, f"{count} models: {remedy}"


def test_ids_are_unique_safe_and_stable() -> None:
    assert len({s.id for s in CORE}) == len(CORE)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,200}", s.id) for s in CORE)
    # Written down once: scripts and lists of expected failures contain ids.
    plain = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, outputs=("Y", "Y_h", "Y_c"), weights="initializer")
    assert plain.id == "lstm-14.float32.forward.T4N3I2H5.d456c0"


def test_specs_survive_their_json_form() -> None:
    for spec in CORE:
        assert CaseSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_a_spec_is_shown_as_what_makes_it() -> None:
    assert repr(CaseSpec("LSTM", 14, initial="all")) == "CaseSpec('LSTM', 14, initial='all')"
    assert repr(CaseSpec("RNN", 7, "float16", alpha=(0.5,))) == "CaseSpec('RNN', 7, type='float16', alpha=(0.5,))"
    for spec in CORE:
        assert eval(repr(spec), {"CaseSpec": CaseSpec}) == spec


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"op": "LSMT"}, "op is 'LSTM', 'GRU' or 'RNN', not 'LSMT'"),
        ({"version": 15}, "version of LSTM is 1, 7, 14"),
        ({"type": "bfloat16"}, "type of LSTM-14 is 'float32', 'float64' or 'float16', not 'bfloat16'"),
        (
            {"T": 4, "N": 3, "lengths": "raged"},
            "lengths of LSTM-14 is 'absent', 'full', 'short', 'ragged' or 'empty', ",
        ),
        ({"op": "GRU", "peepholes": True}, "peepholes of GRU-14 is False, not True"),
        ({"op": "GRU", "initial": "c"}, "initial of GRU-14 is 'none', 'h' or 'all', not 'c'"),
        ({"linear_before_reset": 1}, "linear_before_reset of LSTM-14 is None, not 1"),
        ({"version": 7, "layout": 1}, "layout of LSTM-7 is 0, not 1"),
        ({"layout": True}, "layout of LSTM-14 is 0 or 1, not True"),
        ({"bias": 1}, "bias of LSTM-14 is False or True, not 1"),
        ({"T": -1}, "T of LSTM-14 is a whole number from 0 to 1048576, not -1"),
        ({"H": 0}, "H of LSTM-14 is a whole number from 1 to 1048576, not 0"),
        ({"seed": 1.0}, "seed of LSTM-14 is a whole number from 0 to 9223372036854775807, not 1.0"),
        ({"activations": "Tanh"}, "activations of LSTM-14 is None or a tuple of names, not an empty one, not 'Tanh'"),
        ({"alpha": 0.5}, "alpha of LSTM-14 is None or a tuple of finite numbers, not an empty one, not 0.5"),
        ({"clip": "0.5"}, "clip of LSTM-14 is None or a finite number, not '0.5'"),
        ({"outputs": ["Y"]}, "outputs of LSTM-14 is ('Y', 'Y_h', 'Y_c'), "),
        ({"outputs": ("Y_h",)}, "outputs of LSTM-14 is ('Y', 'Y_h', 'Y_c'), "),
        ({"outputs": ()}, "outputs of LSTM-14 is ('Y', 'Y_h', 'Y_c'), "),
    ],
)
def test_what_no_case_can_be_is_refused_by_the_name_of_the_field(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(complaint)}"):
        CaseSpec(**{"op": "LSTM", "version": 14, **fields})


def test_every_model_passes_the_checker_and_infers_the_shapes_that_the_reference_gives() -> None:
    for spec in LEGAL:
        case = build_case(spec)
        for trial in (case.trial, case.companion):
            if trial is None:
                continue
            model = onnx.load_from_string(trial.model)
            onnx.checker.check_model(model, full_check=True)
            first = trial.first
            outputs = evaluate(first.node, first.feeds[-1].inputs)
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


@pytest.mark.parametrize(("op", "version"), list(recurrent_versions()))
def test_what_a_version_does_not_share_with_the_main_one_has_a_case_of_its_own(op: str, version: int) -> None:
    exercised = {c.id for s in profile("core", op, version) for c in clauses_exercised(s)}
    assert {c.id for c in clauses_of(op, version) if 14 not in c.versions} <= exercised


def test_every_case_without_y_has_a_companion_with_everything() -> None:
    for spec in LEGAL:
        case = build_case(spec)
        assert (case.companion is None) == ("Y" in spec.outputs)
        if case.companion is not None:
            assert set(case.companion.node.outputs) == set(spec.node.operator.outputs)
            assert case.companion.feeds == case.trial.feeds


def test_data_is_dense_and_full_width() -> None:
    """A swap of gates must show: the numbers of a weight tensor all differ, and use all digits of the format."""
    spec = CaseSpec("LSTM", 14, T=4, N=3, I=5, H=6, bias=True, initial="all", peepholes=True)
    for name, array in build_case(spec).trial.feeds[0].inputs.items():
        assert len(np.unique(array)) == array.size, name
        assert (array != 0).all()
        digits = array.ravel().view(np.uint32) & 1
        assert 0.25 < digits.mean() < 1, name


@pytest.mark.parametrize("op", CELLS)
def test_they_are_fair(op: str) -> None:
    specs = [spec for version in versions_of(op) for spec in written_cases("fair", op, version)]
    assert len(specs) >= 60
    assert len({spec.digest for spec in specs}) == len(specs)
    for spec in specs[::7]:
        case = build_case(spec)
        assert not fairness_of(case, data_sets_of(case.trial)).reason, spec


def test_an_operator_without_a_list_has_none() -> None:
    assert not list(written_cases("fair", "ExtendedLSTM", 1))


CASES = [spec for op, version in operator_versions(None) for spec in profile("quantized", op, version)]
FIELDS = [axis.name for axis in RECURRENT_AXES if axis.block]


def test_it_stays_within_what_device_compilers_can_bear() -> None:
    models = {trial.model for spec in CASES for trial in build_case(spec).trials}
    assert len(CASES) <= 400
    assert len(models) <= 200
    assert len({spec.id for spec in CASES}) == len(CASES)
    assert all(spec.quantization != "none" for spec in CASES)
    for model in sorted(models)[::9]:
        onnx.checker.check_model(model, full_check=True)


def test_no_other_profile_has_any() -> None:
    assert all(spec.quantization == "none" for spec in profile("full", "RNN", 7))
    assert digest_of(profile("quantized", "LSTM", 1)) == digest_of(())


def test_every_value_is_in_it_by_operator() -> None:
    for op in ("LSTM", "GRU", "RNN"):
        of_operator = [spec for spec in CASES if spec.op == op]
        space = space_of(operator_version(op, 14))
        for field in FIELDS:
            expected = {*space[field].values} - {"none"}
            if field == "weight_type":  # no kernel has weights alone in 16 bits
                expected -= {"u16", "s16"}
            assert expected <= {getattr(spec, field) for spec in of_operator}, (op, field)


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

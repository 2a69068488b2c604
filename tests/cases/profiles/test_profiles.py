"""Tests of profiles of all operators: pinned, with legal cases, stable and safe ids, and few and sound models."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest

from onnxspec.cases import (
    PROFILES,
    Case,
    CaseSpec,
    Spec,
    build_case,
    clauses_exercised,
    digest_of,
    features_of,
    operator_versions,
    pinned_digests,
    profile,
)
from onnxspec.cases.axes.quantized import QUANTIZED
from onnxspec.cases.directories.manifest import data_sets_of, fairness_of
from onnxspec.cases.portable import case_from_json, case_text
from onnxspec.cases.profiles import written_cases
from onnxspec.cases.specs.space import space_of
from onnxspec.reference import (
    CELLS,
    IllegalNode,
    clauses_of,
    evaluate,
    operator_names,
    operator_version,
    resolve,
    versions_of,
)

from ...recurrent import recurrent_versions

EVERY = [*operator_versions(None)]
RECURRENT = recurrent_versions()

# For these models, the document's clause for the type applies as well as the clause that they are made for.
ALSO = {"extendedlstm.scales": "extendedlstm.attributes.types", "extendedlstm.shapes": "extendedlstm.hidden-size"}


class Core(NamedTuple):
    """The profile core of an operator version, with the built cases."""

    op: str
    version: int
    cases: list[tuple[Spec, Case]]


@pytest.fixture(scope="module", params=EVERY, ids=str)
def core(request: pytest.FixtureRequest) -> Core:
    return Core(*request.param, [(spec, build_case(spec)) for spec in profile("core", *request.param)])


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n == "full" else n for n in PROFILES])
def test_profiles_are_what_was_pinned(name: str) -> None:
    now = {f"{op}-{v}": digest_of(profile(name, op, v)) for op, v in EVERY}
    pinned = {known: digest for known, digest in pinned_digests()[name].items() if known in now}
    assert now == pinned, "python -m onnxspec.cases.write_profiles, if the profile is meant to change"


@pytest.mark.parametrize(
    ("name", "versions", "cases", "models"),
    [
        ("core", RECURRENT, 1663, 670),
        ("core", [("ExtendedLSTM", 1)], 137, 32),
        ("core", [("CausalConvWithState", 27)], 150, 100),
        ("core", [("LinearAttention", 27)], 450, 350),
        ("quantized", EVERY, 400, 200),
        ("smoke", RECURRENT, 60, 60),
        ("smoke", [("LinearAttention", 27)], 80, 80),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(value),
)
def test_profiles_stay_within_what_device_compilers_can_bear(
    name: str, versions: list[tuple[str, int]], cases: int, models: int
) -> None:
    """Companions of forbidden models are compiled, so they count; the forbidden models are refused before."""
    specs = [spec for op, version in versions if op in operator_names() for spec in profile(name, op, version)]
    compiled = {trial.model for spec in specs for trial in build_case(spec).trials if trial.violation is None}
    remedy = "replace a case, or use the model of another case with a new seed"
    assert len(specs) <= cases, remedy
    assert len(compiled) <= models, f"{len(compiled)} models: {remedy}"


def test_ids_are_unique_and_safe_and_smoke_is_a_part(core: Core) -> None:
    ids = {spec.id for spec, _ in core.cases}
    assert len(ids) == len({spec.digest for spec, _ in core.cases}) == len(core.cases)
    # The name of a folder, which begins with test_, has 255 bytes at most.
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,250}", id) for id in ids)
    smoke = {spec.id for spec in profile("smoke", core.op, core.version)}
    assert smoke
    assert smoke <= ids


def test_cases_are_rebuilt_from_their_text_bit_for_bit(core: Core) -> None:
    quantized = [(spec, build_case(spec)) for spec in profile("quantized", core.op, core.version)[::17]]
    for number, (spec, case) in enumerate([*quantized, *core.cases]):
        text = case_text(spec)
        again = case_from_json(json.loads(text))
        assert (again, again.id, type(again)) == (spec, spec.id, type(spec))
        assert "\n" not in text
        if number % 17 == 0:
            for first, second in zip(case.trials, build_case(again).trials, strict=True):
                assert first.model == second.model
                for a, b in zip(first.feeds, second.feeds, strict=True):
                    assert {n: x.tobytes() for n, x in a.fed.items()} == {n: x.tobytes() for n, x in b.fed.items()}


def test_a_spec_is_shown_as_what_makes_it(core: Core) -> None:
    assert repr(CaseSpec("LSTM", 14, initial="all")) == "CaseSpec('LSTM', 14, initial='all')"
    assert repr(CaseSpec("RNN", 7, "float16", alpha=(0.5,))) == "CaseSpec('RNN', 7, type='float16', alpha=(0.5,))"
    for spec, _ in core.cases:
        if isinstance(spec, CaseSpec):
            assert eval(repr(spec), {type(spec).__name__: type(spec)}) == spec


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
        ({"type": "float16", "quantization": "u8"}, "quantization of LSTM-14 is 'none' with type 'float16', not 'u8'"),
        ({"version": 1, "quantization": "u8"}, "quantization of LSTM-1 is 'none', not 'u8'"),
        (
            {"op": "GRU", "illegal": "layout.two", "quantization": "u8"},
            "quantization of GRU-14 is 'none' with illegal 'layout.two', not 'u8'",
        ),
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


def test_models_pass_the_checker_and_infer_the_shapes_that_the_reference_gives(core: Core) -> None:
    for _, case in core.cases:
        for trial in (trial for trial in case.trials if trial.violation is None):
            model = onnx.load_from_string(trial.model)
            onnx.checker.check_model(model, full_check=True)
            first = trial.first
            declared = {output.name: output.type.tensor_type.shape.dim for output in model.graph.output}
            for name, array in evaluate(first.node, first.feeds[-1].inputs).items():
                fixed = [d.dim_value for d in declared[name] if not d.dim_param]
                assert fixed == [n for n, d in zip(array.shape, declared[name], strict=True) if not d.dim_param]


def test_legal_cases_are_legal_and_the_others_break_their_clause(core: Core) -> None:
    for spec, case in core.cases:
        legal, violation = case.companion if spec.illegal else case.trial, case.trial.violation
        assert legal is not None
        for feed in legal.first.feeds:
            resolve(legal.first.node, feed.inputs)
        if violation is not None:
            assert f"illegal:{violation.feature or violation.topic}" in features_of(spec)
            with pytest.raises(IllegalNode) as error:
                resolve(replace(case.trial.node), case.trial.feeds[0].inputs)
            clause = violation.clause(core.op)
            assert error.value.clause in (clause, ALSO.get(clause)), spec.id


def test_every_clause_has_a_case(core: Core) -> None:
    """Or, in other versions of LSTM, GRU and RNN than 14, each clause that these do not share with it."""
    exercised = {clause.id for spec, _ in core.cases for clause in clauses_exercised(spec)}
    clauses = clauses_of(core.op, core.version)
    assert exercised <= {clause.id for clause in clauses}
    assert {c.id for c in clauses if core.version == 14 or 14 not in c.versions} <= exercised


def test_every_case_without_y_has_a_companion_with_everything(core: Core) -> None:
    for spec, case in core.cases:
        if (core.op, core.version) in RECURRENT and not spec.illegal:
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
def test_the_list_of_fair_cases_is_fair(op: str) -> None:
    specs = [spec for version in versions_of(op) for spec in written_cases("fair", op, version)]
    assert len(specs) >= 60
    assert len({spec.digest for spec in specs}) == len(specs)
    for spec in specs[::7]:
        case = build_case(spec)
        assert not fairness_of(case, data_sets_of(case.trial)).reason, spec
    assert not list(written_cases("fair", "ExtendedLSTM", 1))


@pytest.mark.parametrize("op", CELLS)
def test_quantized_cases_have_a_profile_of_their_own_with_every_value(op: str) -> None:
    assert all(spec.quantization == "none" for spec in profile("full", op, 7))
    assert profile("quantized", op, 1) == ()
    of_operator = [spec for version in versions_of(op) for spec in profile("quantized", op, version)]
    assert all(spec.quantization != "none" for spec in of_operator)
    space = space_of(operator_version(op, 14))
    for axis in QUANTIZED:
        # No kernel has weights alone in 16 bits.
        expected = {*space[axis.name].values} - ({"u16", "s16"} if axis.name == "weight_type" else {"none"})
        assert expected <= {getattr(spec, axis.name) for spec in of_operator}, axis.name

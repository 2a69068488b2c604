"""Tests of forbidden models: each is one step from a legal one, and violates the clause that it names and no other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxspec.cases import (
    CaseSpec,
    build_case,
    clauses_exercised,
    digest_of,
    family_of,
    features_of,
    group_of,
    profile,
)
from onnxspec.cases.axes.violation import DUE
from onnxspec.cases.directories.manifest import Origin, generate
from onnxspec.cases.specs.features import all_violations, break_case, illegal_cases, violation_of, violations_of
from onnxspec.cases.specs.spec import RECURRENT_AXES
from onnxspec.reference import IllegalNode, clause_named, configure

from ...recurrent import recurrent_versions

VIOLATIONS = (*all_violations().values(),)

# Version 14 has all violations that it can have, other versions only those that 14 lacks.
ALL = [spec for op, version in recurrent_versions() for spec in profile("core", op, version) if spec.illegal]
IDS = [spec.id for spec in ALL]


def refusal(spec: CaseSpec) -> IllegalNode:
    """Return the reference's refusal of a case's node and of the inputs that it is fed."""
    trial = build_case(spec).trial
    with pytest.raises(IllegalNode) as caught:
        configure(replace(trial.node), trial.feeds[0].inputs)
    return caught.value


@pytest.mark.parametrize("spec", ALL, ids=IDS)
def test_the_reference_refuses_it_by_the_clause_that_it_names(spec: CaseSpec) -> None:
    violation = violation_of(spec)
    assert violation is not None
    assert refusal(spec).clause == violation.clause(spec.op)


@pytest.mark.parametrize("spec", ALL, ids=IDS)
def test_onnx_checks_what_is_due_at_check_and_the_companion_is_legal(spec: CaseSpec) -> None:
    case = build_case(spec)
    assert case.companion is not None
    onnx.checker.check_model(onnx.load_from_string(case.companion.model), full_check=True)
    configure(case.companion.node, case.companion.feeds[0].inputs)
    assert case.companion.violation is None
    if violation_of(spec).due == "check":  # type: ignore[union-attr]
        with pytest.raises((onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
            onnx.checker.check_model(onnx.load_from_string(case.trial.model), full_check=True)


def test_what_is_due_at_run_shows_in_no_model() -> None:
    for spec in ALL:
        case = build_case(spec)
        assert case.companion is not None
        assert (case.trial.model == case.companion.model) == (violation_of(spec).due == "run")  # type: ignore[union-attr]


def test_the_model_holds_the_broken_node_and_is_fed_what_it_says() -> None:
    for spec in ALL:
        case = build_case(spec)
        model, trial = onnx.load_from_string(case.trial.model), case.trial
        (node,) = model.graph.node
        assert [name for name in node.input if name] == list(trial.feeds[0].inputs)
        assert tuple(node.output) == trial.node.outputs
        assert {a.name for a in node.attribute} == set(trial.node.attributes)
        for value in model.graph.input:
            array = trial.feeds[0].fed[value.name]
            assert [d.dim_value for d in value.type.tensor_type.shape.dim] == list(array.shape)
            assert onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) == array.dtype
        names = {v.name for v in model.graph.input} | {t.name for t in model.graph.initializer}
        assert names == set(trial.feeds[0].inputs)


def test_a_violation_changes_one_thing() -> None:
    """A violation changes attributes, inputs or outputs. A model with two changes would be refused for two reasons."""
    for spec in ALL:
        (node, inputs), (legal, before) = break_case(spec), break_case(replace(spec, illegal=""))
        changed = {name for name in {*inputs, *before} if not np.array_equal(inputs.get(name), before.get(name))}
        retyped = {name for name in {*inputs, *before} - changed if inputs[name].dtype != before[name].dtype}
        kinds = [bool(changed | retyped), node.attributes != legal.attributes, node.outputs != legal.outputs]
        assert sum(kinds) == 1, spec.id
        exceptions = {"types.integer", "shapes.W-directions"}
        assert len(changed | retyped) <= 1 or spec.illegal in exceptions, spec.id


def test_legal_cases_are_what_they_were() -> None:
    spec = profile("smoke", "LSTM", 14)[0]
    node, inputs = break_case(spec)
    assert node is spec.node
    expected = build_case(spec).trial.feeds[-1].inputs
    assert expected.keys() == inputs.keys()
    assert all(np.array_equal(expected[name], inputs[name]) for name in expected)
    assert build_case(spec).trial.violation is None


def test_what_axes_forbid_is_sound() -> None:
    ids = [violation.id for axis in RECURRENT_AXES for violation in axis.forbidden]
    assert len(ids) == len({*ids}) == len(VIOLATIONS)
    for violation in VIOLATIONS:
        assert violation.due in DUE
        assert not violation.summary.endswith(".")
        assert '"' not in violation.summary  # scripts contain the summary
        assert any(violation in violations_of(op, version) for op, version in recurrent_versions(None)), violation.id


def test_only_what_the_documents_state_or_imply_is_a_violation() -> None:
    for spec in ALL:
        violation = violation_of(spec)
        assert violation is not None
        clause = clause_named(violation.clause(spec.op))
        assert clause.may_fail
        assert spec.version in clause.versions
        # Open questions: a report of a failure would be wrong.
        assert violation.open == (violation.topic in {"clip", "input-forget", "activation-alpha", "activation-beta"})


def test_a_forbidden_model_exercises_what_it_breaks_and_nothing_else() -> None:
    for spec in ALL:
        violation = violation_of(spec)
        assert violation is not None
        assert features_of(spec) == {"illegal", f"illegal:{violation.topic}"}
        exercised = clauses_exercised(spec)
        if violation.open:
            assert [clause.status for clause in exercised] == ["undefined"]
        else:
            assert violation.clause(spec.op) in {clause.id for clause in exercised}
        assert group_of(spec) == ["forbidden models"]


def test_core_has_every_violation() -> None:
    core = {(op, v): [s.illegal for s in profile("core", op, v) if s.illegal] for op, v in recurrent_versions(None)}
    assert sorted(core["LSTM", 14]) == sorted(violation.id for violation in violations_of("LSTM", 14))
    for op in ("GRU", "RNN"):
        assert sorted(core[op, 14]) == sorted(violation.id for violation in violations_of(op, 14))
    assert core["GRU", 1] == ["attributes.layout", "attributes.linear-before-reset", "outputs.Y_h-missing"]
    missing = {violation.id for violation in VIOLATIONS} - {name for names in core.values() for name in names}
    assert not missing


def test_smoke_has_none_and_full_has_all() -> None:
    for op, version in recurrent_versions():
        assert not any(spec.illegal for spec in profile("smoke", op, version))
    for op in ("RNN", "DynamicQuantizeLSTM", "ExtendedLSTM"):
        illegal = {spec.illegal for spec in profile("full", op, 1)} - {""}
        assert illegal == {violation.id for violation in family_of(op).violations(op, 1)}


def test_digests_tell_forbidden_models_apart() -> None:
    legal = CaseSpec("LSTM", 14, lengths="full", T=3, N=2)
    specs = [replace(legal, illegal=name) for name in ("", "lengths.above-T", "lengths.negative")]
    assert len({digest_of((spec,)) for spec in specs}) == 3
    assert len({spec.id for spec in specs}) == 3
    assert CaseSpec.from_json(specs[1].to_json()) == specs[1]


def test_an_unknown_violation_is_an_error() -> None:
    with pytest.raises(KeyError):
        build_case(CaseSpec("LSTM", 14, illegal="layout.seven"))


@pytest.mark.parametrize("everything", [False, True])
def test_generated_trees_leave_them_out_and_say_so(tmp_path: Path, everything: bool) -> None:
    specs = [profile("smoke", "GRU", 14)[0], *illegal_cases("GRU", 14)]
    manifest = generate(tmp_path / "tree", specs, Origin("", "", "core", {}), everything=everything)
    reasons = {entry["case"]: entry["reason"] for entry in manifest["left_out"]}
    assert all("forbids" in reasons[spec.id] for spec in specs[1:])
    assert (specs[0].id in reasons) is not everything

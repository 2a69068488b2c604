"""Tests of forbidden models: each is one step from a legal one, and violates the clause that it names and no other.

``tests/cases/profiles`` tests that the reference refuses each by that clause, and that its companion is legal.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from onnxspec.cases import (
    Case,
    CaseSpec,
    build_case,
    clauses_exercised,
    family_of,
    features_of,
    group_of,
    profile,
)
from onnxspec.cases.axes.violation import DUE, Violation
from onnxspec.cases.specs.features import all_violations, break_case, violation_of, violations_of
from onnxspec.cases.specs.spec import RECURRENT_AXES
from onnxspec.reference import clause_named

from ...recurrent import recurrent_versions

VIOLATIONS = (*all_violations().values(),)

# Version 14 has all violations that it can have, other versions only those that 14 lacks.
ALL = [spec for op, version in recurrent_versions() for spec in profile("core", op, version) if spec.illegal]


@pytest.fixture(scope="module")
def broken() -> list[tuple[CaseSpec, Case, Violation]]:
    """Return the forbidden models of core, each with its case and its violation."""
    return [(spec, build_case(spec), violation) for spec in ALL if (violation := violation_of(spec))]


def test_onnx_checks_what_is_due_at_check_and_no_model_shows_what_is_due_at_run(broken: list[Any]) -> None:
    assert len(broken) == len(ALL)
    for spec, case, violation in broken:
        assert case.companion.violation is None
        assert (case.trial.model == case.companion.model) == (violation.due == "run"), spec.id
        if violation.due == "check":
            with pytest.raises((onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
                onnx.checker.check_model(onnx.load_from_string(case.trial.model), full_check=True)


def test_the_model_holds_the_broken_node_and_is_fed_what_it_says(broken: list[Any]) -> None:
    for _, case, _ in broken:
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


def test_what_axes_forbid_is_sound() -> None:
    ids = [violation.id for axis in RECURRENT_AXES for violation in axis.forbidden]
    assert len(ids) == len({*ids}) == len(VIOLATIONS)
    for violation in VIOLATIONS:
        assert violation.due in DUE
        assert not violation.summary.endswith(".")
        assert '"' not in violation.summary  # scripts contain the summary
        assert any(violation in violations_of(op, version) for op, version in recurrent_versions(None)), violation.id


def test_a_forbidden_model_exercises_what_it_breaks_and_nothing_else(broken: list[Any]) -> None:
    for spec, _, violation in broken:
        clause = clause_named(violation.clause(spec.op))
        assert clause.may_fail
        assert spec.version in clause.versions
        # Open questions: a report of a failure would be wrong.
        assert violation.open == (violation.topic in {"clip", "input-forget", "activation-alpha", "activation-beta"})
        exercised = clauses_exercised(spec)
        assert [c.status for c in exercised] == ["undefined"] if violation.open else clause in exercised
        assert features_of(spec) == {"illegal", f"illegal:{violation.topic}"}
        assert group_of(spec) == ["forbidden models"]


def test_core_has_every_violation_and_full_in_every_version() -> None:
    core = {(op, v): [s.illegal for s in profile("core", op, v) if s.illegal] for op, v in recurrent_versions(None)}
    for op in ("LSTM", "GRU", "RNN"):
        assert sorted(core[op, 14]) == sorted(violation.id for violation in violations_of(op, 14))
    assert core["GRU", 1] == ["attributes.layout", "attributes.linear-before-reset", "outputs.Y_h-missing"]
    assert {violation.id for violation in VIOLATIONS} <= {name for names in core.values() for name in names}
    assert not any(spec.illegal for op, version in recurrent_versions() for spec in profile("smoke", op, version))
    for op in ("RNN", "ExtendedLSTM"):
        illegal = {spec.illegal for spec in profile("full", op, 1)} - {""}
        assert illegal == {violation.id for violation in family_of(op).violations(op, 1)}


def test_an_unknown_violation_is_an_error() -> None:
    with pytest.raises(KeyError):
        build_case(CaseSpec("LSTM", 14, illegal="layout.seven"))

"""Every rule on models that break it and on models that do not, in every operator version; no alarm on legal models."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnxspec.cases import CaseSpec, build_case, profile, strategies
from onnxspec.cases.profiles import written_cases
from onnxspec.cases.specs.features import illegal_cases, violation_of
from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.checking.problem import Checked, Level
from onnxspec.conformance.checking.rule import rules
from onnxspec.reference import CELLS, clause_named

from ...recurrent import recurrent_versions
from .nodes import T, one_node

VERSIONS = [f"{op}-{version}" for op, version in recurrent_versions()]


def split(version: str) -> tuple[str, int]:
    op, _, number = version.partition("-")
    return op, int(number)


@cache
def checked(spec: CaseSpec) -> Checked:
    return check_model(build_case(spec).trial.model)


def broken(result: Checked, *levels: Level) -> set[str]:
    return {problem.rule for problem in result.problems if problem.level in levels}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_forbidden_model_breaks_the_rule_of_its_clause_or_is_not_checked(version: str) -> None:
    for spec in illegal_cases(*split(version)):
        violation = violation_of(spec)
        assert violation is not None
        result, clause = checked(spec), violation.clause(spec.op)
        if violation.due == "run":  # depends on the values of an input
            assert clause in {unchecked.rule for unchecked in result.unchecked}, spec.id
            assert not broken(result, Level.ERROR), spec.id
        elif violation.open:
            feature = f"illegal:{violation.topic}"
            (warned,) = broken(result, Level.WARNING) - open_rules(spec)
            assert feature in clause_named(warned).needs | clause_named(warned).or_needs, spec.id
            assert not broken(result, Level.ERROR), spec.id
        else:
            errors = broken(result, Level.ERROR)
            assert any(rule == clause or rule.startswith(f"{clause}.") for rule in errors), (spec.id, errors)
            # Only one thing is wrong, so no other rule may be reported.
            assert all(rule.startswith(clause) for rule in errors), (spec.id, errors)


def open_rules(spec: CaseSpec) -> set[str]:
    """Return the warnings on the legal counterpart of a forbidden case."""
    return broken(check_model(build_case(spec).trials[1].model), Level.WARNING)


def test_every_forbidden_model_of_extended_lstm_breaks_the_rule_of_its_clause() -> None:
    specs = [spec for spec in profile("core", "ExtendedLSTM", 1) if spec.illegal]
    assert len(specs) > 50
    for spec in specs:
        clause = violation_of(spec).clause("ExtendedLSTM")
        errors = broken(checked(spec), Level.ERROR)
        if spec.illegal == "r-not-square":  # hidden_size contradicts it first
            clause = "extendedlstm.hidden-size"
        assert clause in errors, (spec.id, errors)


def legal(version: str) -> Iterator[CaseSpec]:
    op, number = split(version)
    specs = profile("core", op, number) if op != "ExtendedLSTM" else written_cases("full", op, number)
    return (spec for spec in specs if not spec.illegal)


@pytest.mark.parametrize("version", [*VERSIONS, "ExtendedLSTM-1"])
def test_no_legal_model_of_core_is_an_error(version: str) -> None:
    specs = list(legal(version))
    assert specs
    for spec in specs:
        result = checked(spec)
        assert not broken(result, Level.ERROR), (spec.id, result.problems)
        assert not result.unreadable
        assert len(result.nodes) == len(build_case(spec).trial.subject.nodes)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(VERSIONS).flatmap(lambda version: strategies.cases(*split(version), min_steps=0, min_rows=0)))
def test_no_legal_model_that_can_be_drawn_is_an_error(spec: CaseSpec) -> None:
    trial = build_case(spec).trial
    result = check_model(trial.model)
    assert not broken(result, Level.ERROR), result.problems
    assert [operator for _, operator in result.nodes] == [f"{spec.op}-{spec.version}"] * len(trial.subject.nodes)


def shown_by(op: str, version: int) -> list[Checked]:
    """Check models in which open clauses matter, and constant lengths that are out of range."""
    first, *others = CELLS[op].activations
    both = ["Relu", *others, "LeakyRelu", *others]  # the alpha of the second one may be the first entry or the second
    attributes: list[dict[str, Any]] = [
        {"activations": [first.lower(), *others]},
        {"activations": ["ThresholdedRelu", *others], "activation_alpha": [1.0]},
        {"activations": ["Affine", *others]},
        {"activations": both, "activation_alpha": [0.5], "direction": "bidirectional"},
        {"clip": 0.0},
        {"lengths": [T, 0]},
        {"lengths": [T + 1, T]},
        {"lengths": [T, -1]},
    ]
    return [check_model(one_node(op, version, **changed)) for changed in attributes]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_rule_has_a_model_that_breaks_it_and_one_that_does_not(version: str) -> None:
    """No cell is empty in the table of rules and versions."""
    op, number = split(version)
    of_version = {
        rule.id
        for rule in rules().values()
        if rule.clause is not None and rule.id.startswith(f"{op.lower()}.") and number in rule.clause.versions
    }
    results = [*map(checked, legal(version)), *map(checked, illegal_cases(op, number)), *shown_by(op, number)]
    failing = {problem.rule for result in results for problem in result.problems}
    assert of_version == failing
    passing = {rule for rule in of_version if any(rule not in broken(result, *Level) for result in results)}
    always = {f"{op.lower()}.equations.transposition"}  # of version 1, whose equations are printed differently
    assert of_version - passing <= always


def test_rules_say_what_to_do() -> None:
    for rule in rules().values():
        assert rule.text, rule.id
        assert rule.advice, rule.id

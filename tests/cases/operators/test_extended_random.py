"""Tests of random cases of ExtendedLSTM: the same from their keys, legal, and with gates that are open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from onnxspec.cases.operators.extended_lstm.axes import X
from onnxspec.cases.operators.extended_lstm.family import extended_case
from onnxspec.cases.portable import check_case
from onnxspec.cases.profiles.random_cases import random_specs
from onnxspec.cases.specs.family import simpler_cases
from onnxspec.cases.specs.model import inputs_of
from onnxspec.reference import operator_of


@pytest.mark.parametrize("level", ["calibrated", "complete", "partial"])
def test_they_are_legal_and_the_same_from_their_keys(level: str) -> None:
    drawn = [extended_case(level, str(number)) for number in range(40)]
    assert drawn == [extended_case(level, str(number)) for number in range(40)]
    assert len(set(drawn)) == 40
    for spec in drawn:
        check_case(spec)
    if level == "calibrated":
        assert not {name for spec in drawn for name in spec.features} & {
            *("several-rows", "float-output", "bias-absent", "saturating-input", "nonfinite")
        }


def test_their_pre_activations_leave_gates_open() -> None:
    """Saturated gates hide all other effects: outputs are neither all at their ends nor all equal."""
    for number in range(25):
        spec = extended_case("complete", str(number))
        Y = operator_of("ExtendedLSTM").evaluate(spec.node, inputs_of(spec))["Y"]
        assert (abs(Y) < 0.99).any()


def test_what_is_lacking_is_not_drawn() -> None:
    for spec in random_specs(20, "s", ("ExtendedLSTM",), lacks=("several-rows", "bias-absent", "float-output")):
        assert (spec.N, spec.bias) == (1, True)
        assert spec.y is not None
    assert random_specs(3, "s", ("ExtendedLSTM",), lacks=("bidirectional", "bias=True", "bias=False")) == ()


def test_scales_become_plainer_step_by_step_and_come_to_an_end() -> None:
    spec = replace(extended_case("complete", "5"), fill=(("X", 1.5),))
    steps = 0
    while simpler := simpler_cases(spec):
        spec, steps = simpler[steps % len(simpler)].spec, steps + 1
        assert steps < 200
    assert (spec.x, spec.fill, spec.T) == (X, (), 1)

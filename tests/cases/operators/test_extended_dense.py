"""Dense cases of ExtendedLSTM: the same from their numbers, legal, and without what targets lack."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from onnxspec.cases import check_case, family_of, profile
from onnxspec.cases.operators.extended_lstm import DESIGN, EXTENDED_CONTEXTS, X, dense_extended, fresh_extended
from onnxspec.cases.specs import inputs_of, simpler_cases
from onnxspec.reference import operator_of

FAMILY = family_of("ExtendedLSTM")


@pytest.mark.parametrize("level", DESIGN.drawn)
def test_they_are_legal_and_the_same_from_their_numbers(level: str) -> None:
    drawn = [dense_extended(level, index) for index in range(40)]
    assert drawn == [dense_extended(level, index) for index in range(40)]
    assert len(set(drawn)) == 40
    for spec in drawn:
        check_case(spec)
        assert EXTENDED_CONTEXTS.measurable(spec)
    if level == "calibrated":
        assert not {name for spec in drawn for name in spec.features} & {
            *("several-rows", "float-output", "bias-absent", "saturating-input", "nonfinite")
        }


def test_their_pre_activations_leave_gates_open() -> None:
    """What gates saturate hides all else: outputs are neither all at their ends nor all alike."""
    for index in range(25):
        spec = dense_extended("complete", index)
        Y = operator_of("ExtendedLSTM").evaluate(spec.node, inputs_of(spec))["Y"]
        assert (abs(Y) < 0.99).any()


def test_whatever_occurs_is_held_to_be_possible() -> None:
    possible = EXTENDED_CONTEXTS.possible()
    for spec in (dense_extended("complete", index) for index in range(30)):
        for row in EXTENDED_CONTEXTS.held(spec):
            assert (possible.together | ~(row[:, None] & row)).all(), spec


def test_what_is_lacking_is_not_drawn_and_the_seed_is_all_that_matters() -> None:
    lacks = ("N even", "N odd", "bias=False", "no y", "y_scale power of two")
    drawn = list(itertools.islice(fresh_extended("s", lacks), 20))
    assert drawn == list(itertools.islice(fresh_extended("s", lacks), 20))
    for spec in drawn:
        assert (spec.N, spec.bias) == (1, True)
        assert spec.y is not None
    assert not set(drawn) & set(itertools.islice(fresh_extended("t", lacks), 20))
    assert not set(drawn) & set(profile("core", "ExtendedLSTM", 1))
    assert list(fresh_extended("s", ("half=forward",))) == []


def test_any_case_may_be_drawn_and_crossed() -> None:
    first, second = Random(3), Random(3)
    drawn: list[Any] = []
    while len(drawn) < 60:
        spec = FAMILY.anything("ExtendedLSTM", 1, ("float32",), first)
        assert spec == FAMILY.anything("ExtendedLSTM", 1, ("float32",), second)
        drawn += [spec] if spec is not None else []
    for spec, other in itertools.pairwise(drawn):
        check_case(spec)
        crossed = FAMILY.crossed(spec, other, ("x", "T"))
        assert crossed is None or (crossed.x, crossed.T, crossed.w) == (other.x, other.T, spec.w)
    assert {spec.y is None for spec in drawn} == {spec.N > 1 for spec in drawn} == {True, False}


def test_scales_become_plainer_step_by_step_and_come_to_an_end() -> None:
    spec = replace(dense_extended("complete", 5), fill=(("X", 1.5),))
    steps = 0
    while simpler := simpler_cases(spec):
        spec, steps = simpler[steps % len(simpler)].spec, steps + 1
        assert steps < 200
    assert (spec.x, spec.fill, spec.T) == (X, (), 1)

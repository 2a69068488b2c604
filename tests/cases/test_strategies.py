"""Tests of strategies: they draw all legal cases of the profiles' space and no others, shrink, and check bounds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis.strategies import SearchStrategy

from onnxspec.cases import CaseSpec, build_case, features_of, profile, strategies
from onnxspec.cases.axes.activations import functions_of
from onnxspec.cases.axes.node import output_subsets
from onnxspec.cases.operators.extended_lstm.spec import extended
from onnxspec.cases.portable import case_from_json, case_text
from onnxspec.cases.specs.space import settle, space_of
from onnxspec.reference import UnknownOperator, configure, evaluate, operator_version

from ..recurrent import recurrent_versions
from .draws import drawn, drawn_until

EVERY = list(recurrent_versions())
every_version = pytest.mark.parametrize(("op", "version"), EVERY, ids=str)
fixed = settings(derandomize=True, database=None, deadline=None)


def smallest(strategy: SearchStrategy[CaseSpec], condition: Callable[[CaseSpec], Any]) -> CaseSpec:
    """Return the case to which a failure shrinks if `condition` decides whether a case fails."""
    # The phase `explain` would try larger cases again.
    calm = settings(fixed, max_examples=2000, phases=[Phase.generate, Phase.shrink])
    return find(strategy, lambda spec: bool(condition(spec)), settings=calm)


# Draws


def test_every_draw_is_a_legal_model_that_the_reference_computes() -> None:
    @settings(fixed, max_examples=200)
    @given(strategies.operator_cases(min_steps=0, min_rows=0))
    def check(spec: CaseSpec) -> None:
        case = build_case(spec)
        for trial in (case.trial, case.companion):
            if trial is not None:
                onnx.checker.check_model(onnx.load_model_from_string(trial.model), full_check=True)
                first = trial.first
                for feed in first.feeds:
                    configure(first.node, feed.inputs)
                assert set(evaluate(first.node, first.feeds[-1].inputs)) == set(first.node.outputs)
        assert case_from_json(json.loads(case_text(spec))) == spec

    check()


@pytest.mark.long
@pytest.mark.parametrize(("op", "version"), [("LSTM", 22), ("GRU", 3), ("RNN", 1)], ids=str)
def test_every_value_of_every_axis_is_drawn(op: str, version: int) -> None:
    operator = operator_version(op, version)
    space = space_of(operator)
    whole = {
        ("outputs", *output_subsets(operator)),
        ("activations", *functions_of(operator)),
        ("T", *range(7)),
        ("N", *range(5)),
        *((size, *range(1, 9)) for size in "IH"),
    }
    features = ("activations-absent", "alpha", "beta", "default-coefficient", "coefficients-ambiguous")
    listed = {*((name, *axis.common) for name, axis in space.items()), ("features", *features), *whole}
    wanted: set[tuple[Any, ...]] = {(name, value) for name, *values in listed for value in values}

    def values(spec: CaseSpec) -> set[tuple[Any, ...]]:
        return {
            *((name, getattr(spec, name)) for name in (*space, "outputs", *"TNIH")),
            *(("activations", name) for name in spec.activations or ()),
            *(("features", feature) for feature in features_of(spec)),
        }

    specs = drawn_until(strategies.cases(op, version, min_steps=0, min_rows=0), 800, values, wanted)
    seen = set().union(*map(values, specs))
    assert wanted <= seen
    assert {pair for pair in seen if pair[0] in ("activations", "outputs", *"TNIH")} <= wanted
    for name, axis in space.items():
        if axis.rare:  # otherwise seldom drawn
            of_axis = strategies.cases(op, version, only={name: axis.rare})
            rare = drawn_until(of_axis, 60, lambda spec, name=name: {(getattr(spec, name),)}, {(v,) for v in axis.rare})  # type: ignore[misc]
            assert {getattr(spec, name) for spec in rare} == {*axis.rare}
        if axis.between is not None:
            numbers = {n for spec in specs for n in np.ravel(getattr(spec, name)).tolist() if n}
            assert len(numbers) > 20
            assert all(axis.holds(number) for number in numbers)


@every_version
def test_what_profiles_try_lies_in_the_same_space(op: str, version: int) -> None:
    """The case of letters aside, which is undefined; sizes are bounds of the caller's."""
    operator = operator_version(op, version)
    space = space_of(operator)
    for spec in (spec for spec in profile("core", op, version) if not spec.illegal):
        for name, axis in space.items():
            value = getattr(spec, name, None)
            assert all(map(axis.holds, value or () if name in ("alpha", "beta") else (value,))), (spec.id, name)
        assert spec.outputs in output_subsets(operator)
        known = {name.lower() for name in functions_of(operator)}
        assert {name.lower() for name in spec.activations or ()} <= known


def test_settled_rows_stay_as_they_are() -> None:
    operator = operator_version("LSTM", 1)
    axes = {name: axis.common for name, axis in space_of(operator).items()}
    axes |= {"T": (0, 1, 4), "N": (0, 1, 3), "outputs": output_subsets(operator)[:3]}
    names = ("T", "N", "lengths", "reruns", "dimensions", "hidden_size", "explicit", "outputs", "output_sequence")
    base = {name: values[0] for name, values in axes.items()}
    for values in itertools.product(*(axes[name] for name in names)):
        row = settle({**base, **dict(zip(names, values, strict=True))})
        assert settle(row) == row


def test_gru_1_is_always_asked_for_its_mandatory_output() -> None:
    assert all("Y_h" in spec.outputs for spec in drawn(strategies.cases("GRU", 1), 50))


def test_draws_of_all_operators_have_every_version() -> None:
    specs = drawn_until(strategies.operator_cases(), 150, lambda spec: {(spec.op, spec.version)}, set(EVERY))
    assert {(spec.op, spec.version) for spec in specs} == set(EVERY)


# Shrinking


@every_version
def test_the_simplest_case_is_plain(op: str, version: int) -> None:
    spec = smallest(strategies.cases(op, version), lambda spec: True)
    outputs = ("", "Y_h") if "output_sequence" in operator_version(op, version).attributes else ("Y",)
    assert spec == CaseSpec(op, version, outputs=outputs)
    assert (spec.T, spec.N, spec.I, spec.H) == (1, 1, 1, 1)
    assert spec.node.attributes == {"hidden_size": 1}


def plain_lstm(**fields: Any) -> CaseSpec:
    return CaseSpec("LSTM", 14, **fields)


def plain_extended(**fields: Any) -> Any:
    scales = dict.fromkeys("xwrb", (2.0**-15, 32768))
    return extended("drawn", **{"T": 1, "N": 1, "I": 1, "H": 1, **scales, **fields})


@pytest.mark.parametrize(
    ("plain", "condition", "expected"),
    [
        (plain_lstm, lambda s: s.bias and s.T > 2, {"bias": True, "T": 3}),
        (plain_lstm, lambda s: s.directions == 2 and s.H >= 4, {"direction": "bidirectional", "H": 4}),
        (plain_lstm, lambda s: s.lengths == "ragged", {"lengths": "ragged", "T": 2, "N": 2}),
        (plain_lstm, lambda s: s.clip is not None, {"clip": 0.5}),
        (plain_lstm, lambda s: "Elu" in (s.activations or ()), {"activations": ("Sigmoid", "Sigmoid", "Elu")}),
        (plain_lstm, lambda s: len(s.alpha or ()) == 2, {"activations": ("Sigmoid",) * 3, "alpha": (0.0, 0.0)}),
        (plain_lstm, lambda s: "Y" not in s.outputs, {"outputs": ("", "", "Y_c")}),
        (plain_lstm, lambda s: s.T == 0, {"T": 0}),
        (plain_extended, lambda s: True, {}),
        (plain_extended, lambda s: s.T > 2 and not s.bias, {"T": 3, "bias": False}),
        (plain_extended, lambda s: s.N > 1, {"N": 2}),
        (plain_extended, lambda s: s.y is not None, {"y": (2.0**-15, 32768)}),
        (plain_extended, lambda s: s.data == "nan", {"data": "nan"}),
        (plain_extended, lambda s: s.x[1] == 0, {"x": (2.0**-15, 0)}),
    ],
)
def test_what_a_failure_does_not_need_goes(
    plain: Callable[..., Any], condition: Callable[[Any], bool], expected: dict[str, Any]
) -> None:
    spec = plain(**expected)
    bounds = {"min_steps": 0} if plain is plain_lstm else {}
    assert smallest(strategies.cases(spec.op, spec.version, **bounds), condition) == spec


# Bounds


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            strategies.cases(
                "GRU",
                22,
                types=["float64", "bfloat16"],
                max_steps=3,
                min_steps=2,
                max_rows=2,
                max_inputs=1,
                max_size=2,
                only={"layout": [1], "lengths": ["absent", "ragged"], "clip": [None, 0.25], "reruns": ["none"]},
            ),
            {
                **{"type": {"float64", "bfloat16"}, "T": {2, 3}, "N": {1, 2}, "I": {1}, "H": {1, 2}, "layout": {1}},
                **{"lengths": {"absent", "ragged"}, "clip": {None, 0.25}, "reruns": {"none"}},
            },
        ),
        (
            strategies.operator_cases(
                "ExtendedLSTM",
                max_steps=2,
                max_rows=1,
                max_inputs=3,
                max_size=2,
                only={"reruns": ["none"], "y": [None, (0.5, 7)], "data": ["nan", "dense"]},
            ),
            {
                **{"T": {1, 2}, "N": {1}, "I": {1, 2, 3}, "H": {1, 2}, "reruns": {"none"}},
                **{"y": {None, (0.5, 7)}, "data": {"dense", "nan"}},
            },
        ),
        (strategies.cases("LSTM", 14, activations=[]), {"activations": {None}}),
        # Versions that lack what is asked for are left out.
        (
            strategies.operator_cases(["LSTM", "RNN"], only={"layout": [1]}),
            {"op": {"LSTM", "RNN"}, "version": {14, 22}, "layout": {1}},
        ),
        (strategies.operator_cases(types="bfloat16"), {"version": {22}, "type": {"bfloat16"}}),
        # Several nodes are drawn only where they are asked for.
        (strategies.cases("GRU", 14), {"neighbours": {"none"}}),
        (
            strategies.cases("GRU", 14, only={"neighbours": ["none", "twins"]}),
            {"neighbours": {"none", "twins"}},
        ),
    ],
    ids=["GRU", "ExtendedLSTM", "no functions", "layout", "bfloat16", "one node", "twins"],
)
def test_bounds_hold(strategy: SearchStrategy[Any], expected: dict[str, set[Any]]) -> None:
    specs = drawn(strategy, 100)
    assert {name: {getattr(spec, name) for spec in specs} for name in expected} == expected


def test_activations_are_those_of_the_list() -> None:
    specs = drawn(strategies.cases("GRU", 22, activations=["Relu", "Tanh"]), 100)
    assert {name for spec in specs for name in spec.activations or ()} == {"Relu", "Tanh"}


def test_values_that_go_with_others_only_bring_those_along() -> None:
    for spec in drawn(strategies.cases("LSTM", 14, only={"data": ["numerics"]}), 30):
        assert (spec.T, spec.initial) == (1, "all")
    for spec in drawn(strategies.cases("LSTM", 14, only={"lengths": ["ragged"]}), 30):
        assert min(spec.T, spec.N) >= 2
    for spec in drawn(strategies.cases("LSTM", 14, only={"dimensions": ["static"]}), 30):
        assert spec.reruns != "sizes"


LSTM_14, EXTENDED = ("LSTM", 14), ("ExtendedLSTM", 1)


@pytest.mark.parametrize(
    ("operator", "bounds", "message"),
    [
        (LSTM_14, {"max_steps": 0}, "max_steps is 1 or more, not 0"),
        (LSTM_14, {"max_size": 1.5}, "max_size is an integer, not 1.5"),
        (LSTM_14, {"min_rows": -1}, "min_rows is 0 or more, not -1"),
        (LSTM_14, {"min_steps": 9}, "max_steps is 9 or more, not 6"),
        (LSTM_14, {"types": "int8"}, "no type 'int8'; there are 'float32'"),
        (LSTM_14, {"types": []}, "no type is left; give at least one of float32"),
        (LSTM_14, {"types": 5}, "types is a list of names, not 5"),
        (LSTM_14, {"activations": ["Tnah"]}, "no activation function 'Tnah'; there are"),
        (LSTM_14, {"only": {"layuot": [0]}}, "no axis 'layuot'; only takes .*bias, .*clip"),
        (LSTM_14, {"only": {"layout": [2]}}, "no layout 2; there are 0, 1"),
        (LSTM_14, {"only": {"layout": [True]}}, "no layout True; there are 0, 1"),
        (LSTM_14, {"only": {"lengths": "ragged"}}, "lengths is a list of at least one value, not 'ragged'"),
        (LSTM_14, {"only": {"clip": [-1.0]}}, "no clip -1.0; there are None, .* any number from 0.015625 to 64"),
        (LSTM_14, {"only": {"type": ["float32"]}}, "only takes no 'type'; use types"),
        (LSTM_14, {"only": {"outputs": [("Y_h",)]}}, r"no outputs \('Y_h',\); there are"),
        (
            LSTM_14,
            {"only": {"lengths": ["ragged"]}, "max_rows": 1},
            "no legal configuration with lengths 'ragged' and 1 to 6 steps and 1 to 1 rows",
        ),
        (EXTENDED, {"types": "float16"}, r"ExtendedLSTM-1 has no type 'float16'; there are 'float32'"),
        (EXTENDED, {"activations": ["Tanh"]}, "ExtendedLSTM-1 lists no activation functions"),
        (EXTENDED, {"only": {"layout": [0]}}, "ExtendedLSTM-1 has no axis 'layout'; only takes b, bias, "),
        (EXTENDED, {"only": {"bias": [1]}}, "ExtendedLSTM-1 has no bias 1; there are True, False"),
        (EXTENDED, {"only": {"bias": True}}, "bias is a list of at least one value, not True"),
        (
            EXTENDED,
            {"only": {"x": [None]}},
            "has no x None; there are .*, and any pair of a positive float32 scale and a zero point ",
        ),
        (EXTENDED, {"only": {"y": [(0.0, 0)]}}, r"has no y \(0.0, 0\); there are None, "),
        (EXTENDED, {"only": {"w": [(1e-60, 0)]}}, r"has no w \(1e-60, 0\)"),
        (EXTENDED, {"only": {"r": [(1.0, 65536)]}}, r"has no r \(1.0, 65536\)"),
    ],
)
def test_bounds_are_checked_before_anything_is_drawn(
    operator: tuple[str, int], bounds: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        strategies.cases(*operator, **bounds)
    with pytest.raises(ValueError, match=message):
        strategies.operator_cases(*(() if operator == LSTM_14 else operator[:1]), **bounds)


def test_operators_and_versions_are_checked_too() -> None:
    with pytest.raises(UnknownOperator, match="no GRU-8; versions are 1, 3, 7, 14, 22"):
        strategies.cases("GRU", 8)
    with pytest.raises(UnknownOperator, match="no operator 'Conv'"):
        strategies.operator_cases("Conv")
    with pytest.raises(ValueError, match="names at least one"):
        strategies.operator_cases([])

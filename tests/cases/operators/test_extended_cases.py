"""Tests of cases of ExtendedLSTM: its profile, its random cases, and its strategy, which draws all legal cases.

``tests/cases/test_strategies.py`` tests bounds of the strategy, and how its cases shrink.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from onnxspec import NotConforming, assert_conforms
from onnxspec.cases import build_case, family_of, features_of, profile, strategies
from onnxspec.cases.operators.extended_lstm.axes import EXTENDED_AXES, X, calibrated
from onnxspec.cases.operators.extended_lstm.family import extended_case
from onnxspec.cases.portable import case_from_json, case_text, check_case
from onnxspec.cases.specs.family import simpler_cases
from onnxspec.cases.specs.model import inputs_of
from onnxspec.cases.specs.space import space_of
from onnxspec.reference import Node, evaluate, operator_of, operator_version, resolve

from ..draws import drawn, drawn_until


def documented(model: bytes, inputs: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the outputs that the document defines, computed step by step from one state to the next."""
    graph = onnx.load_model_from_string(model).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    attributes = {a.name: helper.get_attribute_value(a) for a in graph.node[0].attribute}
    node = Node("ExtendedLSTM", 1, attributes, ("Y",), "com.amd.quark")
    return [evaluate(node, {**constants, **inputs})["Y"].astype(np.float32)]


@pytest.mark.filterwarnings("ignore:.*no element could be judged")
@settings(derandomize=True, database=None, deadline=None, max_examples=50)
@given(strategies.cases("ExtendedLSTM", 1, min_steps=0, min_rows=0))
def test_every_draw_is_legal_and_what_the_document_computes_conforms(spec: Any) -> None:
    case = build_case(spec)
    for feed in case.trial.feeds:
        resolve(case.trial.node, feed.inputs)
    assert_conforms(spec, documented)
    assert case_from_json(json.loads(case_text(spec))) == spec


def test_the_negative_of_it_does_not() -> None:
    scales = {**dict.fromkeys("xwry", ((2.0**-15, 32768),)), "b": ((2.0**-13, 20000),)}  # so that signs are judged
    only: dict[str, Collection[Any]] = {"data": ["dense"], "bias": [True], **scales}
    for spec in drawn(strategies.cases("ExtendedLSTM", 1, only=only), 5):
        with pytest.raises(NotConforming, match="wrong"):
            assert_conforms(spec, lambda model, inputs: [-Y for Y in documented(model, inputs)])


def test_every_value_is_drawn() -> None:
    space = space_of(operator_version("ExtendedLSTM", 1), EXTENDED_AXES)
    axes: dict[str, Collection[Any]] = {"T": range(7), "N": range(5), "I": range(1, 9), "H": range(1, 9)}
    axes |= {name: axis.values for name, axis in space.items() if name not in "xwrby"}
    fills = {("fill", (name, fraction)) for name in "XWRB" for fraction in (0.25, 1.5)}
    wanted: set[tuple[Any, ...]] = {
        *((name, value) for name, values in axes.items() for value in values),
        *(("zero point", name, number) for name in "xwrby" for number in (0, 32767, 32768, 65535)),
        *(("scale", name, size) for name in "xwrby" for size in ("small", "large")),
        *fills,
        ("y", False),
    }

    def values(spec: Any) -> set[tuple[Any, ...]]:
        pairs = {name: pair for name in "xwrby" if (pair := getattr(spec, name))}
        return {
            *((name, getattr(spec, name)) for name in axes),
            *(("zero point", name, number) for name, (_, number) in pairs.items()),
            *(("scale", name, "small") for name, (scale, _) in pairs.items() if scale < 2.0**-24),
            *(("scale", name, "large") for name, (scale, _) in pairs.items() if scale > 2.0**-9),
            *(("fill", pair) for pair in spec.fill),
            ("y", spec.y is not None),
        }

    specs = drawn_until(strategies.cases("ExtendedLSTM", 1, min_steps=0, min_rows=0), 500, values, wanted)
    seen = set().union(*map(values, specs))
    assert wanted <= seen
    assert {value for value in seen if value[0] in axes} == {value for value in wanted if value[0] in axes}
    assert {value for value in seen if value[0] == "fill"} == fills


CORE = profile("core", "ExtendedLSTM", 1)


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


def test_calibrated_cases_are_distinct_and_have_only_what_calibration_gives() -> None:
    specs = [extended_case("calibrated", str(number)) for number in range(40)]
    assert len(set(specs)) == 40
    for spec in specs:
        check_case(spec)
        assert not spec.features & {*("several-rows", "float-output", "bias-absent", "saturating-input", "nonfinite")}


def test_their_pre_activations_leave_gates_open() -> None:
    """Saturated gates hide all other effects: outputs are neither all at their ends nor all equal."""
    for number in range(25):
        spec = extended_case("complete", str(number))
        Y = operator_of("ExtendedLSTM").evaluate(spec.node, inputs_of(spec))["Y"]
        assert (abs(Y) < 0.99).any()


def test_scales_become_plainer_step_by_step_and_come_to_an_end() -> None:
    spec = replace(extended_case("complete", "5"), fill=(("X", 1.5),))
    steps = 0
    while simpler := simpler_cases(spec):
        spec, steps = simpler[steps % len(simpler)].spec, steps + 1
        assert steps < 200
    assert (spec.x, spec.fill, spec.T) == (X, (), 1)

"""Tests of cases of described operators, with CausalConvWithState."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from onnxspec.cases import build_case, family_of, features_of
from onnxspec.cases.specs.family import FRESH_CASES
from onnxspec.reference import evaluate, operator_names

pytestmark = pytest.mark.skipif(
    "CausalConvWithState" not in operator_names(), reason="the installed onnx lacks its schema"
)

OP = "CausalConvWithState", 27


def case(**fields: Any) -> Any:
    family = family_of(OP[0])
    return family.settled(family.spec(**fields))  # type: ignore[attr-defined]


def dims(model: bytes, name: str) -> list[int | str]:
    graph = onnx.load_model_from_string(model).graph
    (info,) = [value for value in (*graph.input, *graph.output) if value.name == name]
    return [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]


@pytest.mark.parametrize("session", ["chain", "cut"])
@pytest.mark.parametrize(("op", "axis"), [("CausalConvWithState", 2), ("LinearAttention", 1)])
def test_a_sequence_in_several_runs_is_the_one_in_one_run(op: str, axis: int, session: str) -> None:
    family: Any = family_of(op)
    spec = family.settled(family.spec(**{family.sequence: 7}, session=session, seed=3))
    runs = [feed.inputs for feed in build_case(spec).trial.feeds]
    lengths = [run[spec.operator.inputs[0]].shape[axis] for run in runs]
    assert lengths == ([7, 1, 1, 1] if session == "chain" else [4, 3])
    outputs = [evaluate(spec.node, run) for run in runs]
    expected = evaluate(spec.node, family.inputs(replace(spec, **{family.sequence: sum(lengths)}, session="one")))
    joined = np.concatenate([output["output"] for output in outputs], axis)
    np.testing.assert_allclose(joined, expected["output"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(outputs[-1]["present_state"], expected["present_state"], rtol=1e-5, atol=1e-6)
    for before, run in zip(outputs, runs[1:], strict=False):
        assert np.array_equal(before["present_state"].astype(np.float32), run["past_state"])


def test_runs_of_other_lengths_have_nothing_in_common_but_weights() -> None:
    first, second, third = (feed.inputs for feed in build_case(case(session="other-lengths")).trial.feeds)
    assert {run["input"].shape[2] for run in (first, second, third)} == {6, 9, 1}
    assert np.array_equal(first["weight"], second["weight"])
    assert not np.array_equal(first["past_state"], second["past_state"])


def test_runs_with_other_weights_are_for_sessions_that_take_them() -> None:
    trial = build_case(case(session="other-weights", weights="initializer")).trial
    first, second = (feed.fed for feed in trial.feeds)
    assert not np.array_equal(first["weight"], second["weight"])
    assert trial.course is not None
    assert trial.course.needs == {"weights"}


def test_weights_are_initializers_where_the_case_says_so() -> None:
    trial = build_case(case(weights="initializer")).trial
    graph = onnx.load_model_from_string(trial.model).graph
    assert [tensor.name for tensor in graph.initializer] == ["weight", "bias"]
    assert set(trial.feeds[0].fed) == {"input", "past_state"}


@pytest.mark.parametrize(
    ("fields", "input", "state"),
    [
        ({}, [2, 3, 6], [2, 3, 3]),
        ({"dimensions": "symbolic"}, ["batch_size", 3, "length"], ["batch_size", 3, 3]),
        ({"dimensions": "all-symbolic"}, ["batch_size", "channels", "length"], ["batch_size", "channels", "k - 1"]),
        ({"session": "cut", "length": 9}, ["batch_size", 3, "length"], ["batch_size", 3, 3]),
    ],
    ids=str,
)
def test_dimensions_have_numbers_or_names(fields: dict[str, Any], input: list[Any], state: list[Any]) -> None:
    model = build_case(case(**fields)).trial.model
    assert dims(model, "input") == dims(model, "output") == input
    assert dims(model, "past_state") == dims(model, "present_state") == state


def test_features_say_what_a_case_has() -> None:
    spec = case(absent=("bias",), activation="swish", k=1, weights="initializer", dimensions="symbolic")
    assert features_of(spec) == {
        "float32", "bias-absent", "past-state", "activation-swish", "k-one", "initializers", "symbolic",
    }  # fmt: skip
    assert {"chain", "rerun"} <= features_of(replace(spec, session="chain"))


def test_a_nonce_asks_for_as_many_cases_of_each_level_as_a_certificate_does() -> None:
    family = family_of(OP[0])
    fresh = family.challenge(*OP, "float16", "some nonce")
    assert {spec.type for spec in fresh} == {"float16"}
    for level in family.levels(*OP):
        assert sum(map(level.holds, fresh)) >= FRESH_CASES
    assert fresh == family.challenge(*OP, "float16", "some nonce")

"""Axes: what each does to the tensors, the model and the session of a case."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from onnxspec.cases import CaseSpec, build_case, features_of
from onnxspec.cases.axes import RECURRENT_AXES
from onnxspec.cases.specs import inputs_of, settle
from onnxspec.reference import operator_version

RICH: dict[str, Any] = {"T": 6, "N": 5, "I": 4, "H": 3, "bias": True, "initial": "all", "seed": 3, "weights_seed": 3}


def spec_of(**fields: Any) -> CaseSpec:
    return CaseSpec("LSTM", 14, **{**RICH, **fields})


def lengths_of(**fields: Any) -> list[int]:
    given: list[int] = inputs_of(spec_of(**fields))["sequence_lens"].tolist()
    return given


def test_every_field_of_a_case_belongs_to_one_axis() -> None:
    owned = [field.name for axis in RECURRENT_AXES for field in axis.fields]
    assert len(set(owned)) == len(owned)
    assert {"op", "version", "illegal", *owned} == set(CaseSpec.__dataclass_fields__)


@pytest.mark.parametrize("axis", RECURRENT_AXES, ids=lambda axis: axis.name)
def test_an_axis_has_words_for_every_feature_that_it_observes(axis: Any) -> None:
    spec = spec_of()
    used = {name for name in axis.used(spec) if name not in ("numerics", "exact")}
    assert used <= axis.words.keys()
    assert set(axis.columns) <= axis.words.keys()


@pytest.mark.parametrize("axis", RECURRENT_AXES, ids=lambda axis: axis.name)
def test_the_default_is_a_value_and_breaks_no_rule(axis: Any) -> None:
    plain = {field.name: field.default for other in RECURRENT_AXES for field in other.fields}
    assert settle(plain, search=True) == plain
    for operator in (operator_version("LSTM", 14), operator_version("GRU", 1)):
        for field in axis.fields:
            if field.name in axis.choices(operator):
                assert field.default in axis.choices(operator)[field.name]


def test_rows_stand_in_the_order_that_is_asked_for() -> None:
    falling, rising = lengths_of(lengths="ragged", row_order="falling"), lengths_of(lengths="empty", row_order="rising")
    assert falling == sorted(falling, reverse=True)
    assert falling[0] == 6
    assert rising == sorted(rising)
    assert rising[0] == 0
    for order, place in (("first", 0), ("last", -1)):
        lengths = lengths_of(lengths="ragged", row_order=order)
        assert lengths.pop(place) == 6 > max(lengths)


@pytest.mark.parametrize("kind", ["short", "ragged", "empty"])
@pytest.mark.parametrize("T", range(3, 9))
def test_the_longest_row_ends_where_it_is_told_to(kind: str, T: int) -> None:
    assert 0 < max(lengths_of(T=T, lengths=kind, reach="below")) <= T - 2
    assert max(lengths_of(T=T, lengths=kind, reach="one")) == 1
    assert (0 in lengths_of(T=T, lengths=kind, reach="below")) == (kind == "empty")


def test_zeros_are_exactly_zero_and_some_are_negative() -> None:
    X, W = (inputs_of(spec_of(zeros="elements"))[name] for name in "XW")
    assert 0.1 < (X == 0).mean() < 0.6
    assert np.signbit(W[W == 0]).any()
    assert not np.signbit(W[W == 0]).all()
    assert not inputs_of(spec_of(zeros="row"))["X"][:, 2].any()
    assert not inputs_of(spec_of(zeros="step"))["X"][3].any()
    assert not all(array.any() for array in inputs_of(spec_of(zeros="tensor")).values())
    assert inputs_of(spec_of())["W"].all(), "weights that other cases share are as they were"


def test_extreme_numbers_are_where_they_are_told_to_be() -> None:
    plain = inputs_of(spec_of())
    X = inputs_of(spec_of(extremes="subnormal"))["X"]
    assert ((X != 0) & (np.abs(X) < np.finfo(np.float32).tiny)).all()
    cancel = inputs_of(spec_of(extremes="cancel"))
    products = cancel["X"][..., np.newaxis, :].astype(np.float64) * cancel["W"][0].astype(np.float64)
    assert not products.sum(axis=-1).any()
    assert np.abs(inputs_of(spec_of(extremes="top"))["X"]).max() == np.finfo(np.float32).max
    for word, name in (("weights", "W"), ("weights", "R"), ("bias", "B"), ("states", "initial_c")):
        ratio = inputs_of(spec_of(extremes=word))[name] / plain[name]
        assert ratio.min() == ratio.max() > 16


@pytest.mark.parametrize(
    ("constant", "names"), [("X", {"X"}), ("R", {"R"}), ("states", {"initial_h", "initial_c"}), ("B", {"B"})]
)
def test_each_input_can_be_the_only_constant(constant: str, names: set[str]) -> None:
    trial = build_case(spec_of(constant=constant, reruns="data")).trial
    model = onnx.load_model_from_string(trial.model)
    onnx.checker.check_model(model, full_check=True)
    assert {tensor.name for tensor in model.graph.initializer} == names
    for feed in trial.feeds:
        assert not names & feed.fed.keys()
    first, last = (feed.inputs for feed in trial.feeds)
    assert all((first[name] == last[name]).all() for name in names)


def test_an_overridden_constant_holds_other_numbers_than_are_fed() -> None:
    trial = build_case(spec_of(weights="initializer", held="overridden")).trial
    model = onnx.load_model_from_string(trial.model)
    onnx.checker.check_model(model, full_check=True)
    held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    (feed,) = trial.feeds
    assert set(held) == {"W", "R", "B"} <= feed.fed.keys()
    assert all((held[name] != feed.fed[name]).any() for name in held)
    listed = build_case(spec_of(weights="initializer", held="listed")).trial
    inputs = {info.name for info in onnx.load_model_from_string(listed.model).graph.input}
    assert {"W", "R", "B"} <= inputs - listed.feeds[0].fed.keys()


def test_what_is_observed_of_a_node_is_what_its_case_asked_for() -> None:
    assert {"falling-lengths", "first-row-longest"} & features_of(spec_of(lengths="ragged", row_order="first"))
    assert "no-row-whole" in features_of(spec_of(lengths="ragged", reach="below"))
    assert "subnormal" in features_of(spec_of(extremes="subnormal"))
    assert "overridden" in features_of(spec_of(weights="initializer", held="overridden"))

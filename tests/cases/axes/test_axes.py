"""Tests of axes: the effect of each on the tensors, the model and the session of a case."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxspec.cases import CaseSpec, build_case, features_of, profile
from onnxspec.cases.axes.quantized import QUANTIZED
from onnxspec.cases.profiles.random_cases import random_specs
from onnxspec.cases.specs.model import inputs_of
from onnxspec.cases.specs.space import settle, space_of
from onnxspec.cases.specs.spec import RECURRENT_AXES
from onnxspec.reference import format_of, operator_version, versions_of

RICH: dict[str, Any] = {"T": 6, "N": 5, "I": 4, "H": 3, "bias": True, "initial": "all", "seed": 3, "weights_seed": 3}


def spec_of(**fields: Any) -> CaseSpec:
    return CaseSpec("LSTM", 14, **{**RICH, **fields})


def lengths_of(**fields: Any) -> list[int]:
    lengths: list[int] = inputs_of(spec_of(**fields))["sequence_lens"].tolist()
    return lengths


def test_every_field_of_a_case_belongs_to_one_axis() -> None:
    owned = [axis.name for axis in RECURRENT_AXES]
    assert len(set(owned)) == len(owned)
    assert {"op", "version", "illegal", *owned} == set(CaseSpec.__dataclass_fields__)


def test_the_documentation_lists_the_fields_with_their_defaults() -> None:
    text = (Path(__file__).parents[3] / "docs" / "cases.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \| `?([^|`]*)`? \| [^|]+ \|$", text, re.MULTILINE)
    listed = {name: json.loads(default) for names, default in rows for name in re.findall("`([^`]+)`", names)}
    axes = {axis.name: getattr(CaseSpec, axis.name) for axis in RECURRENT_AXES}
    assert listed == {name: list(value) if isinstance(value, tuple) else value for name, value in axes.items()}


def test_the_default_is_a_value_and_breaks_no_rule() -> None:
    plain = {axis.name: getattr(CaseSpec, axis.name) for axis in RECURRENT_AXES}
    assert settle(plain, search=True) == plain
    for operator in (operator_version("LSTM", 14), operator_version("GRU", 1)):
        for name, axis in space_of(operator).items():
            assert plain[name] in axis.values


def test_rows_stand_in_the_order_that_is_asked_for() -> None:
    falling, rising = lengths_of(lengths="ragged", row_order="falling"), lengths_of(lengths="empty", row_order="rising")
    assert falling == sorted(falling, reverse=True)
    assert rising == sorted(rising)
    assert (falling[0], rising[0]) == (6, 0)
    for order, index in (("first", 0), ("last", -1)):
        lengths = lengths_of(lengths="ragged", row_order=order)
        assert lengths.pop(index) == 6 > max(lengths)
    first, *middle, last = lengths_of(lengths="empty", row_order="ends")
    assert (first, last, min(middle)) == (6, 6, 0)
    assert max(middle) < 6
    for order in ("mixed", "falling", "rising", "first", "last", "ends"):  # a variant of a case may have one row
        assert lengths_of(N=1, lengths="short", row_order=order) == lengths_of(N=1, lengths="short")


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


def test_zeros_stand_in_part_of_a_tensor() -> None:
    for word, zero in (("input-bias", 0), ("recurrent-bias", 1)):
        halves = np.split(inputs_of(spec_of(zeros=word))["B"], 2, axis=1)
        assert not halves[zero].any()
        assert halves[1 - zero].all()
    for layout in (0, 1):
        X, h = (inputs_of(spec_of(zeros=z, layout=layout))[n] for z, n in (("ends", "X"), ("state", "initial_h")))
        X, h = (X, h) if layout == 0 else (X.swapaxes(0, 1), h.swapaxes(0, 1))
        steps = [max(int(t) + 1 for t in np.flatnonzero(X[:, row].any(axis=1))) for row in range(5)]
        assert steps == [5, 4, 3, 2, 1]
        assert not h[:, 0].any()
        assert h[:, 1:].all()
    mask = inputs_of(spec_of(zeros="mask"))["X"]
    assert np.argwhere(~mask.any(axis=2)).tolist() == [[3, 2]]


@pytest.mark.parametrize("layout", [0, 1])
def test_numbers_are_alike_where_they_are_told_to_be(layout: int) -> None:
    def made(alike: str) -> dict[str, Any]:
        return dict(inputs_of(spec_of(alike=alike, direction="bidirectional", layout=layout)))

    plain = made("none")
    for alike, tied in (("W", "W"), ("R", "R"), ("directions", "WRB")):
        for name in "WRB":
            assert (made(alike)[name][0] == made(alike)[name][1]).all() == (name in tied)
            assert (plain[name][0] != plain[name][1]).any()
    assert (made("states")["initial_h"] == made("states")["initial_c"]).all()
    steps, rows = (0, 1) if layout == 0 else (1, 0)
    for alike, axis in (("steps", steps), ("rows", rows)):
        X = made(alike)["X"]
        assert (X.take([0], axis) == X).all()
        assert (plain["X"] != plain["X"].take([0], axis)).any()
    h = made("rows")["initial_h"]
    assert (h == h.take([0], 1 - layout)).all()


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_subnormal_weights_give_usual_products(kind: str) -> None:
    form = format_of(np.dtype(kind))
    inputs = inputs_of(spec_of(type=kind, extremes="subnormal-weights"))
    W, X = (inputs[name].astype(np.float64) for name in "WX")
    assert (np.abs(W) < float(form.least_normal)).all()
    assert (W != 0).mean() > 0.9
    assert np.isfinite(X).all()
    assert 0.01 < np.abs(X[0] @ W[0].T).max() < 16
    steep = inputs_of(spec_of(type=kind, extremes="steep"))
    arguments = steep["X"].astype(np.float64) @ steep["W"][0].astype(np.float64).T
    assert np.log(float(form.largest)) < np.abs(arguments).max() < float(form.largest)


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


WEIGHTS, STATES = {"W", "R", "B"}, {"initial_h", "initial_c"}
OF_WEIGHTS: dict[str, Any] = {"weights": "initializer"}


@pytest.mark.parametrize(
    ("fields", "constants", "overridden"),
    [
        *(({"constant": name, "reruns": "data"}, {name}, set()) for name in "XRB"),
        ({"constant": "states", "reruns": "data"}, STATES, set()),
        ({**OF_WEIGHTS, "held": "listed"}, WEIGHTS, set()),
        ({**OF_WEIGHTS, "held": "overridden"}, WEIGHTS, WEIGHTS),
        ({"constant": "states", "held": "zeroed"}, STATES, STATES),
        *(
            ({**OF_WEIGHTS, "held": held, "fed": name}, WEIGHTS, {name})
            for name in "WRB"
            for held in ("overridden", "once")
        ),
        *(({"constant": name, "held": "once"}, {name}, {name}) for name in "XR"),
        ({"constant": "states", "held": "once"}, STATES, STATES),
        ({"constant": "lengths", "held": "once", "lengths": "ragged"}, {"sequence_lens"}, {"sequence_lens"}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",  # the order of a set is not the same everywhere
)
def test_constants_hold_other_numbers_than_are_fed(
    fields: dict[str, Any], constants: set[str], overridden: set[str]
) -> None:
    """An overridden constant is fed, in all runs or in the first one only; each other one is what the model holds."""
    trial, held = build_case(spec_of(**fields)).trial, fields.get("held")
    model = onnx.load_model_from_string(trial.model)
    onnx.checker.check_model(model, full_check=True)
    initializers = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert initializers.keys() == constants
    assert (constants <= {info.name for info in model.graph.input}) == (held is not None)
    assert any(array.any() for array in initializers.values()) == (held != "zeroed")
    assert constants & trial.feeds[0].fed.keys() == overridden
    assert constants & trial.feeds[-1].fed.keys() == (set() if held == "once" else overridden)
    for feed in trial.feeds:
        differing = {name for name in constants if (initializers[name] != feed.inputs[name]).any()}
        assert differing == constants & feed.fed.keys()


OLDER = {"lengths", "clip", "opset", "outputs", "linear_before_reset", "output_sequence", "data"}
"""Fields with some rare values that no case of core has."""


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_core_has_every_rare_value_of_a_later_axis(op: str) -> None:
    version = versions_of(op)[-1]
    cases = profile("core", op, version)
    for axis in RECURRENT_AXES:
        of_version = axis.of(operator_version(op, version))
        if of_version is not None and axis.name not in OLDER and axis not in QUANTIZED:
            assert set(of_version.rare) <= {getattr(spec, axis.name) for spec in cases}, axis.name
    assert any(spec.T > 255 and spec.lengths == "ragged" for spec in cases)
    # Offsets beyond 16 bits, more rows than a byte counts, sizes that are equal to other sizes.
    assert any((spec.T - 1) * spec.N * spec.I > 2**16 for spec in cases)
    assert any(spec.N > 256 and spec.row_order == "ends" for spec in cases)
    gates = operator_version(op, version).gates
    assert any(gates * spec.H == spec.I and spec.T == spec.I and spec.N == spec.H for spec in cases)
    assert any(spec.T == spec.N == spec.I == spec.H == spec.directions == 2 for spec in cases)


def test_fresh_cases_have_what_is_rare_and_sizes_past_the_usual() -> None:
    cases = random_specs(400, 7)
    for field in ("nearly", "alike", "zeros", "extremes", "fed", "held"):
        rare = space_of(operator_version("LSTM", 22))[field].rare
        drawn = {getattr(spec, field) for spec in cases}
        assert len(drawn & set(rare)) >= len(rare) - 2, field
    assert sum(spec.T > 128 for spec in cases) >= 3
    assert sum(max(spec.N, spec.H) > 32 for spec in cases) >= 8
    assert sum(bool(spec.alpha) and max(spec.alpha) > 1.25 for spec in cases) >= 8


def test_what_is_observed_of_a_node_is_what_its_case_asked_for() -> None:
    assert {"falling-lengths", "first-row-longest"} & features_of(spec_of(lengths="ragged", row_order="first"))
    assert "no-row-whole" in features_of(spec_of(lengths="ragged", reach="below"))
    assert "subnormal" in features_of(spec_of(extremes="subnormal"))
    assert "overridden" in features_of(spec_of(weights="initializer", held="overridden"))
    assert "subnormal-weights" in features_of(spec_of(extremes="subnormal-weights"))
    assert "tied-weights" in features_of(spec_of(alike="W", direction="bidirectional"))
    assert "opposite-biases" in features_of(spec_of(alike="bias", bias=True))
    assert "ends-longest" in features_of(spec_of(lengths="ragged", row_order="ends"))
    assert {"overridden", "overridden-zeros"} <= features_of(spec_of(weights="initializer", held="zeroed"))
    assert not {"tied-weights", "same-steps", "same-rows", "subnormal-weights"} & features_of(spec_of())


def test_what_is_left_out_at_the_end_may_have_an_empty_name() -> None:
    spec = spec_of(placeholders=True, initial="none", lengths="absent", outputs=("Y",))
    (node,) = onnx.load_model_from_string(build_case(spec).trial.model).graph.node
    operator = spec.node.operator
    assert (len(node.input), len(node.output)) == (len(operator.inputs), len(operator.outputs))
    assert (node.input[-1], node.output[-1]) == ("", "")

"""Tests of features: properties of a case, by the names of the clause tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.cases import CaseSpec, clauses_exercised, features_of, profile
from onnxspec.cases.specs.features import all_features, node_features
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import Node, versions_of


def features(op: str = "LSTM", version: int = 14, **fields: Any) -> frozenset[str]:
    return features_of(CaseSpec(op, version, **{"T": 4, "N": 3, "I": 2, "H": 5, **fields}))


def node_of(attributes: dict[str, Any], **inputs: Any) -> frozenset[str]:
    """Return the features of a GRU-14 with these attributes and inputs."""
    given = {
        "X": np.ones((3, 3, 1), np.float32),
        "W": np.ones((1, 3, 1), np.float32),
        "R": np.ones((1, 3, 1), np.float32),
    }
    return node_features(Node("GRU", 14, attributes, ("Y",)), {**given, **inputs})


@pytest.mark.parametrize("op", OPERATORS)
def test_no_case_has_a_feature_that_is_not_among_all(op: str) -> None:
    for version in versions_of(op):
        possible = all_features(op, version)
        for spec in profile("core", op, version):
            assert features_of(spec) <= possible


def test_where_the_reset_gate_stands_is_a_feature_of_gru_alone() -> None:
    assert "reset-before-linear" in node_of({})
    assert "reset-before-linear" in node_of({"linear_before_reset": 0})
    once, often = node_of({"linear_before_reset": 1}), node_of({"linear_before_reset": -3})
    assert "linear-before-reset" in once & often
    assert "linear-before-reset-not-one" in often - once
    assert not any("reset" in name for name in all_features("LSTM", 14) | all_features("RNN", 14))


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        ("forward", {"forward"}),
        ("reverse", {"reverse"}),
        ("bidirectional", {"forward", "reverse", "bidirectional"}),
    ],
)
def test_directions_are_features(direction: str, expected: set[str]) -> None:
    assert features(direction=direction) & {"forward", "reverse", "bidirectional"} == expected


def test_functions_in_use_are_features_whether_named_or_by_default() -> None:
    assert {"uses-Sigmoid", "uses-Tanh"} <= features()
    named = features(activations=("HardSigmoid", "Relu", "Softplus"))
    assert {"uses-HardSigmoid", "uses-Relu", "uses-Softplus"} <= named
    assert not {"uses-Sigmoid", "uses-Tanh"} & named


def test_what_is_left_out_before_what_is_there_is_skipped() -> None:
    assert "input-skipped" not in features(bias=True)
    assert "input-skipped" in features(initial="h")
    assert "output-skipped" in features(outputs=("", "Y_h"))
    assert "output-skipped" not in features(outputs=("Y",))


def test_no_rows_and_no_steps_are_told_apart() -> None:
    empty = {"no-rows", "no-steps", "size-zero"}
    assert not features() & empty
    assert features(N=0) & empty == {"no-rows", "size-zero"}
    assert features(T=0) & empty == {"no-steps", "size-zero"}
    assert features(T=0, N=0) >= empty


@pytest.mark.parametrize(("lengths", "unsorted"), [([3, 2, 1], False), ([3, 3, 3], False), ([1, 3, 2], True)])
def test_lengths_are_sorted_when_none_is_longer_than_the_one_before(lengths: list[int], unsorted: bool) -> None:
    assert ("unsorted" in node_of({}, sequence_lens=np.array(lengths, np.int32))) == unsorted


def test_numbers_beyond_the_range_are_told_apart() -> None:
    X = np.ones((3, 3, 1), np.float32)
    assert not node_of({}) & {"nonfinite", "infinity", "saturating", "overflow"}
    assert node_of({}, X=X * np.float32("nan")) & {"nonfinite", "infinity"} == {"nonfinite"}
    assert {"nonfinite", "infinity"} <= node_of({}, X=X * np.float32("inf"))
    assert node_of({}, X=X * 90) & {"saturating", "overflow"} == {"saturating"}
    assert {"saturating", "overflow"} <= node_of({}, X=X * np.float32(3e38), W=np.full((1, 3, 1), 2, np.float32))
    straight = {"activations": ["HardSigmoid", "Softplus"]}
    assert node_of(straight, X=X * 90) & {"saturating", "overflow"} == {"overflow"}


def test_a_type_is_a_feature() -> None:
    assert "bfloat16" in features(version=22, type="bfloat16")
    assert "lstm.types.bfloat16" in {c.id for c in clauses_exercised(CaseSpec("LSTM", 22, "bfloat16"))}
    assert "bfloat16" not in all_features("LSTM", 14)

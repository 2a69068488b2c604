"""Tests of ExtendedLSTM's profile: pinned, unique, and with legal and forbidden cases that are what they claim."""

from __future__ import annotations

import pytest

from onnxspec.cases import build_case, family_of, features_of, profile
from onnxspec.cases.operators.extended_lstm.axes import calibrated
from onnxspec.cases.specs.model import inputs_of

CORE = profile("core", "ExtendedLSTM", 1)


def test_core_stays_within_what_device_compilers_can_bear() -> None:
    """The limit for all operators together is 1,800 cases in 700 models; ONNX's operators leave this rest.

    All forbidden models share one legal companion.
    """
    trials = [trial for spec in CORE for trial in build_case(spec).trials if trial.violation is None]
    assert len(CORE) <= 137
    assert len({trial.model for trial in trials}) <= 32


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

"""Rockchip's real toolkit: its simulator computes in float16, or in int8 with its own calibration."""

from __future__ import annotations

from typing import Any

import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.workers.job import TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess

from ..runtimes import runtime

GRU = SpecProbe(CaseSpec("GRU", 14, weights="initializer", T=4, N=3, I=2, H=5))


def judged(accuracy: str, probe: SpecProbe = GRU, **options: Any) -> Judgement:
    with TargetProcess(runtime("rknn", **options)) as process:
        assert process.start()["device"] == "simulator of rk3588"
        (case_run,) = tried(process, [probe], accuracy)
    return case_run.judgement


def test_it_computes_in_float16() -> None:
    assert judged("f16-storage").verdict is Verdict.PASS
    assert judged("standard").verdict is Verdict.INACCURATE


def test_a_constant_that_is_fed_is_not_computed_without_it() -> None:
    overridden = SpecProbe(CaseSpec("RNN", 14, weights="initializer", held="overridden", T=4, N=3, I=2, H=5))
    judgement = judged("f16-storage", overridden)
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert judgement.message.endswith("nothing in the place of a constant")


def test_a_model_that_it_calibrates_itself_is_farther_off() -> None:
    plain, calibrated = judged("f16-storage").worst, judged("f16-storage", calibrated=True).worst
    assert plain is not None
    assert calibrated is not None
    assert calibrated > 4 * plain


def test_a_wrong_option_is_told() -> None:
    with (
        TargetProcess(runtime("rknn", device="rk1")) as process,
        pytest.raises(TargetUnavailable, match="unknown option"),
    ):
        process.start()

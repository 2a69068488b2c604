"""Device providers that run without the device: Qualcomm's QNN on its x86 library, WebGPU on a software driver.

Each needs its own environment.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import CaseRun, tried
from onnxspec.conformance.results.expected.entries import matching, shipped_for
from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.process import TargetProcess

from ..runtimes import runtime

SIZES: dict[str, Any] = {"T": 4, "N": 3, "I": 2, "H": 5}
LSTM = CaseSpec("LSTM", 14, bias=True, initial="all", **SIZES)
GRU = CaseSpec("GRU", 14, bias=True, initial="all", **SIZES)


def judged(target: Target, *specs: CaseSpec) -> list[CaseRun]:
    with TargetProcess(target) as process:
        process.start()
        return list(tried(process, [SpecProbe(spec) for spec in specs], target.accuracy))


@pytest.fixture(name="webgpu")
def _webgpu() -> Target:
    target = runtime("onnxruntime-webgpu")
    driver = Path(target.environment["VK_ICD_FILENAMES"])
    if not driver.exists():
        reason = f"no driver of Vulkan, {driver}: chromium's package has it"
        if os.environ.get("ONNXSPEC_REQUIRE_RUNTIMES"):
            pytest.fail(reason)
        pytest.skip(reason)
    return target


def test_qnn_computes_in_half_precision_and_says_where() -> None:
    beyond = replace(LSTM, peepholes=True, H=64)
    specs = (LSTM, GRU, replace(LSTM, input_forget=1), replace(LSTM, lengths="ragged"), replace(GRU, T=0), GRU, beyond)
    target = runtime("onnxruntime-qnn")
    case_runs = judged(target, *specs)
    verdicts = [case_run.judgement.verdict for case_run in case_runs]
    assert verdicts == [
        *(Verdict.PASS, Verdict.PASS),
        Verdict.WRONG,  # input_forget is silently ignored
        Verdict.FALLBACK,
        Verdict.CRASHED,  # without a step; the next case is unaffected
        Verdict.PASS,
        Verdict.WRONG,  # peepholes of units past the 32nd
    ], [case_run.judgement.message for case_run in case_runs]
    entries = [matching(shipped_for(target), case_run.probe, case_run.judgement) for case_run in case_runs]
    assert [entry is not None for entry in entries] == [False, False, True, False, True, False, True]
    assert case_runs[0].outcomes[0].proof == "assignment record: QNNExecutionProvider: LSTM lstm"
    assert case_runs[3].judgement.message == "QNNExecutionProvider does not take it"


def test_the_plug_in_says_its_version_beside_that_of_the_runtime() -> None:
    with TargetProcess(runtime("onnxruntime-qnn")) as process:
        described = process.start()
    assert (described["version"], described["provider_version"]) == ("1.29.0", "2.7.0")


def test_by_float32_qnn_is_inaccurate_and_not_wrong() -> None:
    (case_run,) = judged(replace(runtime("onnxruntime-qnn"), accuracy="standard"), GRU)
    assert case_run.judgement.verdict is Verdict.INACCURATE
    assert "right by the wider class " in case_run.judgement.message


def test_webgpu_takes_lstm_and_leaves_gru_alone(webgpu: Target) -> None:
    clipped = replace(LSTM, clip=0.25, peepholes=True, data="large")
    case_runs = judged(webgpu, LSTM, replace(LSTM, lengths="ragged", direction="bidirectional"), GRU, clipped)
    verdicts = [case_run.judgement.verdict for case_run in case_runs]
    assert verdicts == [Verdict.PASS, Verdict.PASS, Verdict.FALLBACK, Verdict.WRONG]
    assert matching(shipped_for(webgpu), case_runs[3].probe, case_runs[3].judgement) is not None
    assert case_runs[0].outcomes[0].proof.startswith("profile: WebGpuExecutionProvider: LSTM ")

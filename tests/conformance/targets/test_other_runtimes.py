"""Runtimes of other makers, for real: tensors pass unchanged, features are supported or not, and options are checked.

Providers of onnxruntime run without their device: OpenVINO on the processor, Qualcomm's QNN on its x86 library, WebGPU
on a software driver. Each runtime needs its own environment.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.stream import CaseRun, tried
from onnxspec.conformance.probes.wrapped import wrap_lane
from onnxspec.conformance.results.expected.entries import matching, shipped_for
from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.job import Job, TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess

from ..runtimes import missing, runtime

REVERSE = {"direction": "reverse"}
BOTH: dict[str, Any] = {"outputs": ("Y", "Y_h")}
OVERRIDDEN = {"weights": "initializer", "held": "overridden"}
CONSTANT = {"weights": "initializer"}
STATES = {"direction": "bidirectional", "initial": "all"}
RAGGED = {"lengths": "ragged", "initial": "all"}
INITIAL: dict[str, Any] = {"initial": "all"}
AFFINE: dict[str, Any] = {"activations": ("Affine", "Tanh", "Tanh"), "alpha": (0.5,), "beta": (0.1,)}

PASS, WRONG, UNSUPPORTED, FALLBACK = Verdict.PASS, Verdict.WRONG, Verdict.UNSUPPORTED, Verdict.FALLBACK
OPENVINO = [
    ({}, PASS),
    ({"type": "float16"}, PASS),
    ({"type": "bfloat16", "version": 22}, Verdict.INCONCLUSIVE),
    (OVERRIDDEN, UNSUPPORTED),
    ({"lengths": "ragged"}, PASS),
    (AFFINE, UNSUPPORTED),
]
TRACT = [
    ({}, PASS),
    ({"peepholes": True}, PASS),
    ({"lengths": "ragged"}, UNSUPPORTED),
    (OVERRIDDEN, UNSUPPORTED),
    ({"dimensions": "symbolic", "initial": "none"}, Verdict.CRASHED),
]
REASONS = {
    ("openvino", "overridden"): "has no input W, which is a constant in it",
    ("openvino", "activations"): "Unknown activation function: affine",
    ("tract", "lengths"): "Non constant seq_len is not supported",
    ("tract", "overridden"): "nothing in the place of a constant",
    ("rknn", "overridden"): "nothing in the place of a constant",
}
"""Ends of refusals, by runtime and field or value of the case."""


def judged(target: Target, *probes: Probe | CaseSpec) -> list[CaseRun]:
    with TargetProcess(target) as process:
        process.start()
        made = [SpecProbe(probe) if isinstance(probe, CaseSpec) else probe for probe in probes]
        return list(tried(process, made, target.accuracy))


@pytest.mark.parametrize(
    ("name", "op", "change", "verdict"),
    [
        *[(name, op, {}, PASS) for name in ("iree", "emx-onnx-cgen") for op in ("LSTM", "GRU", "RNN")],
        ("mnn", "LSTM", {}, PASS),
        ("mnn", "LSTM", {"type": "float16"}, UNSUPPORTED),
        ("opencv", "LSTM", {}, PASS),
        ("opencv", "RNN", {}, UNSUPPORTED),
        ("opencv", "GRU", {**RAGGED, **BOTH}, WRONG),
        ("emx-onnx-cgen", "LSTM", {"dimensions": "symbolic"}, PASS),
        ("emx-onnx-cgen", "LSTM", {"type": "float64"}, PASS),
        ("emx-onnx-cgen", "RNN", {"weights": "initializer", "I": 160, "H": 160}, PASS),  # 200 KiB of weights
        ("iree", "LSTM", {"weights": "initializer"}, PASS),
        ("iree", "LSTM", REVERSE, UNSUPPORTED),
        *[(name, "RNN", OVERRIDDEN, UNSUPPORTED) for name in ("emx-onnx-cgen", "mnn", "ncnn", "sofie", "litert")],
        ("ncnn", "LSTM", {}, UNSUPPORTED),  # weights that are fed
        *[("ncnn", op, {**CONSTANT, **STATES}, PASS) for op in ("LSTM", "RNN")],
        ("ncnn", "GRU", {**CONSTANT, "linear_before_reset": 1}, PASS),
        *[("sofie", op, CONSTANT, PASS) for op in ("LSTM", "RNN")],
        *[("litert", op, {**CONSTANT, **STATES}, PASS) for op in ("LSTM", "GRU", "RNN")],
        ("litert", "LSTM", {}, UNSUPPORTED),  # weights that are fed
        *[("openvino", "LSTM", {**INITIAL, **BOTH, **change}, verdict) for change, verdict in OPENVINO],
        *[("tract", "LSTM", {**INITIAL, **change}, verdict) for change, verdict in TRACT],
        ("rknn", "GRU", CONSTANT, PASS),
        ("rknn", "RNN", OVERRIDDEN, UNSUPPORTED),  # not computed without it
    ],
    ids=str,
)
def test_what_becomes_of_a_node(name: str, op: str, change: dict[str, Any], verdict: Verdict) -> None:
    """The adapters work; the lists of known failures and `tox run -m matrix` have the faults of their runtimes."""
    spec = replace(CaseSpec(op, 14, T=4, N=3, I=2, H=5, bias=True), **change)
    (case_run,) = judged(runtime(name), spec)
    message = case_run.judgement.message
    assert case_run.judgement.verdict is verdict, message
    if verdict is UNSUPPORTED:
        features = {*change, *(value for value in change.values() if isinstance(value, str))}
        for reason in [end for (runtime_name, key), end in REASONS.items() if runtime_name == name and key in features]:
            assert message.endswith(reason)
            assert len(message) < 150


TYPES: dict[str, Any] = {
    "float": np.float32,
    "float16": np.float16,
    "double": np.float64,
    "bfloat16": ml_dtypes.bfloat16,
    "int32": np.int32,
}
RESHAPING = """<ir_version: 8, opset_import: ["": 16]> g (ELEMENT[2, 3] X) => (ELEMENT[3, 2] Z, ELEMENT[2, 3] Y) {
    Y = Identity(X)
    Z = Transpose <perm = [1, 0]> (X)
}"""


@pytest.mark.parametrize("element", TYPES)
@pytest.mark.parametrize("name", ["openvino", "tract"])
def test_tensors_go_in_and_come_out_in_the_graphs_order(name: str, element: str) -> None:
    value = np.array([[1, -2.5, 3.25], [0, 1000, -7]]).astype(TYPES[element])
    model = onnx.parser.parse_model(RESHAPING.replace("ELEMENT", element)).SerializeToString()
    with TargetProcess(runtime(name)) as process:
        assert process.start()["runtime"] == name
        (outcome,) = process.run([Job("a", model, ({"X": value},))])
    if (name, element) == ("tract", "bfloat16"):
        assert (outcome.status, outcome.phase) == ("refused", "load")
        assert "Bfloat16" in outcome.message
        return
    assert outcome.status == "ran", outcome.message
    ((outputs,),) = outcome.outputs
    for got, must in zip(outputs, (value.T, value), strict=True):
        assert got.dtype == must.dtype
        assert np.array_equal(got, must)


@pytest.mark.parametrize(
    ("name", "option", "complaint"),
    [
        ("openvino", {"devise": "CPU"}, "unknown option 'devise'; known: config, device, precision"),
        ("openvino", {"precision": "rough"}, "precision 'rough'; one of accuracy, performance"),
        ("openvino", {"device": "NPU.7"}, "OpenVINO has no device NPU.7; it has CPU"),
        ("tract", {"runtim": "cuda"}, "unknown option 'runtim'; known: runtime"),
        ("tract", {"runtime": "no"}, "Unknown runtime no"),
        ("rknn", {"device": "rk1"}, "unknown option"),
    ],
)
def test_a_wrong_option_is_told(name: str, option: dict[str, str], complaint: str) -> None:
    with TargetProcess(runtime(name, **option)) as process, pytest.raises(TargetUnavailable, match=complaint):
        process.start()


def test_rockchips_simulator_computes_in_float16() -> None:
    gru = CaseSpec("GRU", 14, weights="initializer", T=4, N=3, I=2, H=5)
    half = replace(runtime("rknn"), accuracy="f16-storage")
    assert judged(half, gru)[0].judgement.verdict is PASS
    assert judged(replace(half, accuracy="standard"), gru)[0].judgement.verdict is Verdict.INACCURATE


# Providers of onnxruntime

SIZES: dict[str, Any] = {"T": 4, "N": 3, "I": 2, "H": 5}
LSTM = CaseSpec("LSTM", 14, bias=True, initial="all", **SIZES)
GRU = CaseSpec("GRU", 14, bias=True, initial="all", **SIZES)


def test_qnn_computes_in_half_precision_and_says_where() -> None:
    beyond = replace(LSTM, peepholes=True, H=64)
    specs = (LSTM, GRU, replace(LSTM, input_forget=1), replace(LSTM, lengths="ragged"), replace(GRU, T=0), GRU, beyond)
    target = runtime("onnxruntime-qnn")
    case_runs = judged(target, *specs)
    verdicts = [case_run.judgement.verdict for case_run in case_runs]
    assert verdicts == [
        *(PASS, PASS),
        WRONG,  # input_forget is silently ignored
        FALLBACK,
        Verdict.CRASHED,  # without a step; the next case is unaffected
        PASS,
        WRONG,  # peepholes of units past the 32nd
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


@pytest.fixture(name="webgpu")
def _webgpu() -> Target:
    target = runtime("onnxruntime-webgpu")
    driver = Path(target.environment["VK_ICD_FILENAMES"])
    if not driver.exists():
        missing(f"no driver of Vulkan, {driver}: chromium's package has it")
    return target


def test_webgpu_takes_lstm_and_leaves_gru_alone(webgpu: Target) -> None:
    clipped = replace(LSTM, clip=0.25, peepholes=True, data="large")
    case_runs = judged(webgpu, LSTM, replace(LSTM, lengths="ragged", direction="bidirectional"), GRU, clipped)
    verdicts = [case_run.judgement.verdict for case_run in case_runs]
    assert verdicts == [PASS, PASS, FALLBACK, WRONG]
    assert matching(shipped_for(webgpu), case_runs[3].probe, case_runs[3].judgement) is not None
    assert case_runs[0].outcomes[0].proof.startswith("profile: WebGpuExecutionProvider: LSTM ")


def test_what_the_provider_does_not_claim_is_no_pass() -> None:
    (alone,) = judged(runtime("onnxruntime-openvino"), LSTM)
    assert alone.judgement.verdict is FALLBACK
    assert "assigned to the default CPU EP" in alone.outcomes[0].proof


def test_what_it_claims_is_proved_by_the_record() -> None:
    (alone,) = judged(runtime("onnxruntime-openvino"), GRU)
    assert alone.judgement.verdict is PASS
    assert alone.outcomes[0].proof == "assignment record: OpenVINOExecutionProvider: GRU gru"


@pytest.mark.parametrize("name", ["neg", "cast", "layers"])
def test_a_node_that_it_never_claims_alone_it_claims_among_others(name: str) -> None:
    lane = wrap_lane(runtime("onnxruntime-openvino"), name)
    right, wrong = judged(lane, *(SpecProbe(spec, wrap=name) for spec in (LSTM, replace(LSTM, peepholes=True))))
    assert right.judgement.verdict is PASS
    assert "OpenVINOExecutionProvider: LSTM lstm" in right.outcomes[0].proof
    # It runs there, and computes input P wrongly.
    assert wrong.judgement.verdict is WRONG


def test_a_quantized_node_does_not_keep_to_float32() -> None:
    quantized = SpecProbe(CaseSpec("LSTM", 14, weights="initializer", **SIZES), wrap="qdq")
    (case_run,) = judged(wrap_lane(runtime("onnxruntime-openvino"), "qdq"), quantized)
    assert case_run.judgement.verdict in (WRONG, Verdict.INACCURATE)
    assert "OpenVINOExecutionProvider: LSTM lstm" in case_run.outcomes[0].proof


def test_company_does_not_make_up_for_a_node_that_is_elsewhere() -> None:
    lane = wrap_lane(runtime("onnxruntime-openvino"), "neg")
    specs = (replace(LSTM, type="float64", version=7), replace(LSTM, T=0))
    double, empty = judged(lane, *(SpecProbe(spec, wrap="neg") for spec in specs))
    assert double.judgement.verdict in (FALLBACK, UNSUPPORTED)
    assert empty.judgement.verdict is FALLBACK
    assert "CPUExecutionProvider: LSTM lstm" in empty.outcomes[0].proof

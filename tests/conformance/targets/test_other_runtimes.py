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

from ..runtimes import FILE, missing, runtime

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
def test_verdicts_of_nodes(name: str, op: str, change: dict[str, Any], verdict: Verdict) -> None:
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
def test_a_wrong_option_is_refused(name: str, option: dict[str, str], complaint: str) -> None:
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
PEEPHOLES, NO_STEP, RAGGED_LSTM = replace(LSTM, peepholes=True), replace(LSTM, T=0), replace(LSTM, lengths="ragged")
IN_OPENVINO = "OpenVINOExecutionProvider: LSTM lstm"
CLAIMED_AMONG_OTHERS = [(LSTM, PASS, IN_OPENVINO), (PEEPHOLES, WRONG, "")]  # it runs there, and computes P wrongly
CLAIMS: dict[str, list[tuple[CaseSpec, Verdict | tuple[Verdict, ...], str]]] = {
    "onnxruntime-qnn": [
        (LSTM, PASS, "assignment record: QNNExecutionProvider: LSTM lstm"),
        (GRU, PASS, ""),
        (replace(LSTM, input_forget=1), WRONG, ""),  # silently ignored
        (RAGGED_LSTM, FALLBACK, "QNNExecutionProvider does not take it"),
        (replace(GRU, T=0), Verdict.CRASHED, ""),  # the next case is unaffected
        (GRU, PASS, ""),
        (replace(PEEPHOLES, H=64), WRONG, ""),  # in units past the 32nd
    ],
    "onnxruntime-webgpu": [
        (LSTM, PASS, "profile: WebGpuExecutionProvider: LSTM "),
        (replace(RAGGED_LSTM, direction="bidirectional"), PASS, ""),
        (GRU, FALLBACK, ""),
        (replace(PEEPHOLES, clip=0.25, data="large"), WRONG, ""),
    ],
    "onnxruntime-openvino": [
        (LSTM, FALLBACK, "assigned to the default CPU EP"),
        (GRU, PASS, "assignment record: OpenVINOExecutionProvider: GRU gru"),
    ],
    "onnxruntime-openvino+neg": [
        *CLAIMED_AMONG_OTHERS,
        (replace(LSTM, type="float64", version=7), (FALLBACK, UNSUPPORTED), ""),
        (NO_STEP, FALLBACK, "CPUExecutionProvider: LSTM lstm"),
    ],
    "onnxruntime-openvino+cast": CLAIMED_AMONG_OTHERS,
    "onnxruntime-openvino+layers": CLAIMED_AMONG_OTHERS,
    "onnxruntime-openvino+qdq": [
        (CaseSpec("LSTM", 14, weights="initializer", **SIZES), (WRONG, Verdict.INACCURATE), IN_OPENVINO)
    ],
}
"""By target: cases with their verdicts, and part of the proof or message. A node that runs elsewhere is no pass."""


@pytest.mark.parametrize("name", CLAIMS)
def test_a_provider_passes_only_with_nodes_that_it_is_shown_to_run(name: str) -> None:
    plain_name, _, wrap = name.partition("+")
    target = runtime(plain_name)
    driver = Path(target.environment.get("VK_ICD_FILENAMES", FILE))
    if not driver.exists():
        missing(f"no driver of Vulkan, {driver}: chromium's package has it")
    chosen = wrap_lane(target, wrap) if wrap else target
    case_runs = judged(chosen, *(SpecProbe(spec, wrap=wrap) for spec, *_ in CLAIMS[name]))
    for case_run, (_, verdicts, text) in zip(case_runs, CLAIMS[name], strict=True):
        judgement = case_run.judgement
        assert judgement.verdict in (verdicts if isinstance(verdicts, tuple) else (verdicts,)), judgement.message
        assert text in f"{case_run.outcomes[0].proof}\n{judgement.message}"
        if plain_name != "onnxruntime-openvino":
            known = matching(shipped_for(target), case_run.probe, judgement) is not None
            assert known == (judgement.verdict in (WRONG, Verdict.CRASHED))


def test_the_plug_in_says_its_version_beside_that_of_the_runtime() -> None:
    with TargetProcess(runtime("onnxruntime-qnn")) as process:
        described = process.start()
    assert (described["version"], described["provider_version"]) == ("1.29.0", "2.7.0")


def test_by_float32_qnn_is_inaccurate_and_not_wrong() -> None:
    (case_run,) = judged(replace(runtime("onnxruntime-qnn"), accuracy="standard"), GRU)
    assert case_run.judgement.verdict is Verdict.INACCURATE
    assert "right by the wider class " in case_run.judgement.message

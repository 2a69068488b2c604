"""Runtimes of other makers, for real: tensors pass unchanged, features are supported or not, and options are checked.

Each needs its own environment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import CaseRun, tried
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers.job import Job, TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess

from ..runtimes import runtime

REVERSE = {"direction": "reverse"}
BOTH: dict[str, Any] = {"outputs": ("Y", "Y_h")}
OVERRIDDEN = {"weights": "initializer", "held": "overridden"}
CONSTANT = {"weights": "initializer"}
STATES = {"direction": "bidirectional", "initial": "all"}
RAGGED = {"lengths": "ragged", "initial": "all"}
INITIAL: dict[str, Any] = {"initial": "all"}
AFFINE: dict[str, Any] = {"activations": ("Affine", "Tanh", "Tanh"), "alpha": (0.5,), "beta": (0.1,)}

PASS, WRONG, UNSUPPORTED = Verdict.PASS, Verdict.WRONG, Verdict.UNSUPPORTED
OPENVINO = [
    ({}, PASS),
    ({"type": "float16"}, PASS),
    ({"type": "bfloat16", "version": 22}, Verdict.INCONCLUSIVE),
    ({"type": "float64"}, Verdict.INACCURATE),
    ({"peepholes": True}, WRONG),  # the conversion drops P
    (OVERRIDDEN, UNSUPPORTED),
    ({"lengths": "ragged"}, PASS),
    ({"lengths": "ragged", "dimensions": "symbolic", "weights": "initializer"}, WRONG),
    (AFFINE, UNSUPPORTED),
]
TRACT = [
    ({}, PASS),
    ({"peepholes": True}, PASS),
    ({"direction": "bidirectional"}, PASS),
    (REVERSE, WRONG),
    ({"clip": 0.25}, WRONG),
    ({"input_forget": 1}, WRONG),
    ({"activations": ("Sigmoid", "Relu", "Tanh")}, WRONG),
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


def judged(target: Target, *specs: CaseSpec, wrap: str = "") -> Sequence[CaseRun]:
    with TargetProcess(target) as process:
        process.start()
        return list(tried(process, [SpecProbe(spec, wrap=wrap) for spec in specs], target.accuracy))


@pytest.mark.parametrize(
    ("name", "op", "change", "verdict"),
    [
        *[(name, op, {}, PASS) for name in ("iree", "emx-onnx-cgen") for op in ("LSTM", "GRU", "RNN")],
        ("mnn", "LSTM", {}, PASS),
        ("mnn", "GRU", {}, UNSUPPORTED),  # a bias that is fed
        ("mnn", "GRU", {"weights": "initializer"}, WRONG),  # the reset gate is applied after the product
        ("opencv", "LSTM", {}, PASS),
        ("opencv", "RNN", {}, UNSUPPORTED),
        ("emx-onnx-cgen", "LSTM", {"dimensions": "symbolic"}, PASS),
        ("emx-onnx-cgen", "LSTM", {"type": "float64"}, PASS),
        ("emx-onnx-cgen", "RNN", {"weights": "initializer", "I": 160, "H": 160}, PASS),  # 200 KiB of weights
        ("emx-onnx-cgen", "LSTM", REVERSE, WRONG),
        ("emx-onnx-cgen", "GRU", {"explicit": True}, UNSUPPORTED),
        ("iree", "LSTM", {"weights": "initializer"}, PASS),
        ("iree", "LSTM", REVERSE, UNSUPPORTED),
        ("opencv", "LSTM", {**REVERSE, **BOTH}, WRONG),
        ("opencv", "GRU", RAGGED, Verdict.MALFORMED),  # it returns Y_h if only Y is requested
        ("opencv", "GRU", {**RAGGED, **BOTH}, WRONG),
        ("mnn", "RNN", {"activations": ("Relu",)}, WRONG),
        ("mnn", "LSTM", {"type": "float16"}, UNSUPPORTED),
        *[(name, "RNN", OVERRIDDEN, UNSUPPORTED) for name in ("emx-onnx-cgen", "mnn", "ncnn", "sofie", "litert")],
        ("ncnn", "LSTM", {}, UNSUPPORTED),  # weights that are fed
        ("ncnn", "LSTM", CONSTANT, PASS),
        *[("ncnn", op, {**CONSTANT, **STATES}, PASS) for op in ("LSTM", "RNN")],
        ("ncnn", "GRU", CONSTANT, WRONG),  # the reset gate is applied after the product
        ("ncnn", "GRU", {**CONSTANT, "linear_before_reset": 1}, PASS),
        ("ncnn", "LSTM", {**CONSTANT, "clip": 0.5}, WRONG),
        *[("sofie", op, CONSTANT, PASS) for op in ("LSTM", "RNN")],
        ("sofie", "GRU", CONSTANT, WRONG),  # the reset gate acts on what the state comes to in another place
        (
            "sofie",
            "GRU",
            {**CONSTANT, "linear_before_reset": 1},
            Verdict.UNSTABLE,
        ),  # a run continues from the end of the last one
        ("sofie", "LSTM", {**CONSTANT, **REVERSE}, UNSUPPORTED),
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
    spec = replace(CaseSpec(op, 14, T=4, N=3, I=2, H=5, bias=True), **change)
    (case_run,) = judged(runtime(name), spec)
    message = case_run.judgement.message
    assert case_run.judgement.verdict is verdict, message
    if verdict is UNSUPPORTED:
        features = {*change, *(value for value in change.values() if isinstance(value, str))}
        for reason in [end for (runtime_name, key), end in REASONS.items() if runtime_name == name and key in features]:
            assert message.endswith(reason)
            assert len(message) < 150


TYPES: list[tuple[int, Any]] = [
    (TensorProto.FLOAT, np.float32),
    (TensorProto.FLOAT16, np.float16),
    (TensorProto.DOUBLE, np.float64),
    (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    (TensorProto.INT32, np.int32),
]


def reshaping(element: int) -> bytes:
    """Return a model that returns X unchanged and transposed."""
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["X"], ["Y"]),
            helper.make_node("Transpose", ["X"], ["Z"], perm=[1, 0]),
        ],
        "g",
        [helper.make_tensor_value_info("X", element, (2, 3))],
        [helper.make_tensor_value_info("Z", element, (3, 2)), helper.make_tensor_value_info("Y", element, (2, 3))],
    )
    made: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8
    ).SerializeToString()
    return made


@pytest.mark.parametrize(("element", "dtype"), TYPES)
@pytest.mark.parametrize("name", ["openvino", "tract"])
def test_tensors_go_in_and_come_out_in_the_graphs_order(name: str, element: int, dtype: Any) -> None:
    value = np.array([[1, -2.5, 3.25], [0, 1000, -7]]).astype(dtype)
    with TargetProcess(runtime(name)) as process:
        assert process.start()["runtime"] == name
        (outcome,) = process.run([Job("a", reshaping(element), ({"X": value},))])
    if (name, value.dtype.name) == ("tract", "bfloat16"):
        assert (outcome.status, outcome.phase) == ("refused", "load")
        assert "Bfloat16" in outcome.message
        return
    assert outcome.status == "ran", outcome.message
    ((outputs,),) = outcome.outputs
    for got, must in zip(outputs, (value.T, value), strict=True):
        assert got is not None
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


def test_in_what_openvino_computes_a_quantized_node_is_told() -> None:
    """With constants it becomes one operator in float32 and loses B; with fed weights it is decomposed, and right."""
    held = CaseSpec("RNN", 14, bias=True, weights="initializer", T=1, N=1, I=2, H=2)
    wrong, right = judged(runtime("openvino"), held, replace(held, weights="input"), wrap="qdq-u8")
    assert (wrong.judgement.verdict, right.judgement.verdict) == (WRONG, PASS)
    assert "1 RNNSeq in f32" in wrong.outcomes[0].proof
    assert right.outcomes[0].proof.startswith("execution graph: ")
    assert "RNNSeq" not in right.outcomes[0].proof


def test_rockchips_simulator_computes_in_float16_or_farther_off_by_its_own_calibration() -> None:
    gru = CaseSpec("GRU", 14, weights="initializer", T=4, N=3, I=2, H=5)
    half = replace(runtime("rknn"), accuracy="f16-storage")
    plain, calibrated = (
        judged(target, gru)[0].judgement
        for target in (half, replace(runtime("rknn", calibrated=True), accuracy="f16-storage"))
    )
    assert plain.verdict is PASS
    assert calibrated.worst > 4 * plain.worst
    assert judged(replace(half, accuracy="standard"), gru)[0].judgement.verdict is Verdict.INACCURATE


NAMES = ("iree", "emx-onnx-cgen", "opencv", "mnn", "ncnn", "sofie", "litert", "openvino", "tract")


def test_they_are_known_by_name() -> None:
    assert [parse_target(name).adapter for name in NAMES] == list(NAMES)

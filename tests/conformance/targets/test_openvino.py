"""Real OpenVINO: tensors pass unchanged in both directions, and refusals have reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.targets.target import parse_target
from onnxspec.conformance.workers.job import Job, TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess

from ..runtimes import runtime

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
def test_tensors_go_in_and_come_out_in_the_graphs_order(element: int, dtype: Any) -> None:
    value = np.array([[1, -2.5, 3.25], [0, 1000, -7]]).astype(dtype)
    with TargetProcess(runtime("openvino")) as process:
        description = process.start()
        (outcome,) = process.run([Job("a", reshaping(element), ({"X": value},))])
    assert description["runtime"] == "openvino"
    assert outcome.status == "ran", outcome.message
    ((outputs,),) = outcome.outputs
    for got, must in zip(outputs, (value.T, value), strict=True):
        assert got is not None
        assert got.dtype == must.dtype
        assert np.array_equal(got, must)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, Verdict.PASS),
        ({"type": "float16"}, Verdict.PASS),
        ({"type": "bfloat16", "version": 22}, Verdict.INCONCLUSIVE),
        ({"type": "float64"}, Verdict.INACCURATE),
        ({"peepholes": True}, Verdict.WRONG),  # the conversion drops P
        ({"weights": "initializer", "held": "overridden"}, Verdict.UNSUPPORTED),
        ({"lengths": "ragged"}, Verdict.PASS),
        ({"lengths": "ragged", "dimensions": "symbolic", "weights": "initializer"}, Verdict.WRONG),
        ({"activations": ("Affine", "Tanh", "Tanh"), "alpha": (0.5,), "beta": (0.1,)}, Verdict.UNSUPPORTED),
    ],
    ids=str,
)
def test_what_becomes_of_an_lstm(change: dict[str, Any], verdict: Verdict) -> None:
    spec = replace(CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, initial="all", outputs=("Y", "Y_h")), **change)
    target = runtime("openvino")
    with TargetProcess(target) as process:
        process.start()
        (case_run,) = tried(process, [SpecProbe(spec)], target.accuracy)
    assert case_run.judgement.verdict is verdict, case_run.judgement.message
    if verdict is Verdict.UNSUPPORTED:
        fed = "has no input W, which is a constant in it"
        reason = fed if "held" in change else "Unknown activation function: affine"
        assert case_run.judgement.message.endswith(reason)
        assert len(case_run.judgement.message) < 150


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ({"devise": "CPU"}, "unknown option 'devise'; known: config, device, precision"),
        ({"precision": "rough"}, "precision 'rough'; one of accuracy, performance"),
        ({"device": "NPU.7"}, "OpenVINO has no device NPU.7; it has CPU"),
    ],
)
def test_a_wrong_option_is_told(option: dict[str, str], complaint: str) -> None:
    with TargetProcess(runtime("openvino", **option)) as process, pytest.raises(TargetUnavailable, match=complaint):
        process.start()


def test_in_what_a_quantized_node_computes_is_told() -> None:
    """With constants it becomes one operator in float32 and loses B; with fed weights it is decomposed, and right."""
    held = CaseSpec("RNN", 14, bias=True, weights="initializer", T=1, N=1, I=2, H=2)
    probes = [SpecProbe(case, wrap="qdq-u8") for case in (held, replace(held, weights="input"))]
    with TargetProcess(runtime("openvino")) as process:
        process.start()
        wrong, right = [(case_run.judgement, case_run.outcomes[0]) for case_run in tried(process, probes, "standard")]
    assert (wrong[0].verdict, right[0].verdict) == (Verdict.WRONG, Verdict.PASS)
    assert "1 RNNSeq in f32" in wrong[1].proof
    assert right[1].proof.startswith("execution graph: ")
    assert "RNNSeq" not in right[1].proof


def test_it_is_known_by_name() -> None:
    assert parse_target("openvino").adapter == "openvino"

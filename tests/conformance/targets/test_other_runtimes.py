"""IREE, emx-onnx-cgen, OpenCV, MNN, ncnn, SOFIE and LiteRT, for real: supported and unsupported features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.targets.target import parse_target
from onnxspec.conformance.workers.process import TargetProcess

from ..runtimes import runtime

REVERSE = {"direction": "reverse"}
BOTH: dict[str, Any] = {"outputs": ("Y", "Y_h")}
OVERRIDDEN = {"weights": "initializer", "held": "overridden"}
CONSTANT = {"weights": "initializer"}
STATES = {"direction": "bidirectional", "initial": "all"}
RAGGED = {"lengths": "ragged", "initial": "all"}


@pytest.mark.parametrize(
    ("name", "op", "change", "verdict"),
    [
        *[(name, op, {}, Verdict.PASS) for name in ("iree", "emx-onnx-cgen") for op in ("LSTM", "GRU", "RNN")],
        ("mnn", "LSTM", {}, Verdict.PASS),
        ("mnn", "GRU", {}, Verdict.UNSUPPORTED),  # a bias that is fed
        ("mnn", "GRU", {"weights": "initializer"}, Verdict.WRONG),  # the reset gate is applied after the product
        ("opencv", "LSTM", {}, Verdict.PASS),
        ("opencv", "RNN", {}, Verdict.UNSUPPORTED),
        ("emx-onnx-cgen", "LSTM", {"dimensions": "symbolic"}, Verdict.PASS),
        ("emx-onnx-cgen", "LSTM", {"type": "float64"}, Verdict.PASS),
        ("emx-onnx-cgen", "RNN", {"weights": "initializer", "I": 160, "H": 160}, Verdict.PASS),  # 200 KiB of weights
        ("emx-onnx-cgen", "LSTM", REVERSE, Verdict.WRONG),
        ("emx-onnx-cgen", "GRU", {"explicit": True}, Verdict.UNSUPPORTED),
        ("iree", "LSTM", {"weights": "initializer"}, Verdict.PASS),
        ("iree", "LSTM", REVERSE, Verdict.UNSUPPORTED),
        ("opencv", "LSTM", {**REVERSE, **BOTH}, Verdict.WRONG),
        ("opencv", "GRU", RAGGED, Verdict.MALFORMED),  # it returns Y_h if only Y is requested
        ("opencv", "GRU", {**RAGGED, **BOTH}, Verdict.WRONG),
        ("mnn", "RNN", {"activations": ("Relu",)}, Verdict.WRONG),
        ("mnn", "LSTM", {"type": "float16"}, Verdict.UNSUPPORTED),
        *[
            (name, "RNN", OVERRIDDEN, Verdict.UNSUPPORTED)
            for name in ("emx-onnx-cgen", "mnn", "ncnn", "sofie", "litert")
        ],
        ("ncnn", "LSTM", {}, Verdict.UNSUPPORTED),  # weights that are fed
        ("ncnn", "LSTM", CONSTANT, Verdict.PASS),
        *[("ncnn", op, {**CONSTANT, **STATES}, Verdict.PASS) for op in ("LSTM", "RNN")],
        ("ncnn", "GRU", CONSTANT, Verdict.WRONG),  # the reset gate is applied after the product
        ("ncnn", "GRU", {**CONSTANT, "linear_before_reset": 1}, Verdict.PASS),
        ("ncnn", "LSTM", {**CONSTANT, "clip": 0.5}, Verdict.WRONG),
        *[("sofie", op, CONSTANT, Verdict.PASS) for op in ("LSTM", "RNN")],
        ("sofie", "GRU", CONSTANT, Verdict.WRONG),  # the reset gate acts on what the state comes to in another place
        (
            "sofie",
            "GRU",
            {**CONSTANT, "linear_before_reset": 1},
            Verdict.UNSTABLE,
        ),  # a run continues from the end of the last one
        ("sofie", "LSTM", {**CONSTANT, **REVERSE}, Verdict.UNSUPPORTED),
        *[("litert", op, {**CONSTANT, **STATES}, Verdict.PASS) for op in ("LSTM", "GRU", "RNN")],
        ("litert", "LSTM", {}, Verdict.UNSUPPORTED),  # weights that are fed
    ],
    ids=str,
)
def test_what_becomes_of_a_node(name: str, op: str, change: dict[str, Any], verdict: Verdict) -> None:
    target = runtime(name)
    spec = replace(CaseSpec(op, 14, T=4, N=3, I=2, H=5, bias=True), **change)
    with TargetProcess(target) as process:
        process.start()
        (case_run,) = tried(process, [SpecProbe(spec)], target.accuracy)
    assert case_run.judgement.verdict is verdict, case_run.judgement.message


def test_they_are_known_by_name() -> None:
    for name in ("iree", "emx-onnx-cgen", "opencv", "mnn", "ncnn", "sofie", "litert"):
        assert parse_target(name).adapter == name

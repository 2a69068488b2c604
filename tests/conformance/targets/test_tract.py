"""Real tract: tensors pass unchanged in both directions, and refusals have reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.targets.target import parse_target
from onnxspec.conformance.workers.job import Job, TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess

from ..runtimes import runtime
from .test_openvino import TYPES, reshaping


@pytest.mark.parametrize(("element", "dtype"), TYPES)
def test_tensors_go_in_and_come_out_in_the_graphs_order(element: int, dtype: Any) -> None:
    value = np.array([[1, -2.5, 3.25], [0, 1000, -7]]).astype(dtype)
    with TargetProcess(runtime("tract")) as process:
        assert process.start()["runtime"] == "tract"
        (outcome,) = process.run([Job("a", reshaping(element), ({"X": value},))])
    if value.dtype.name == "bfloat16":
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
    ("change", "verdict"),
    [
        ({}, Verdict.PASS),
        ({"peepholes": True}, Verdict.PASS),
        ({"direction": "bidirectional"}, Verdict.PASS),
        ({"direction": "reverse"}, Verdict.WRONG),
        ({"clip": 0.25}, Verdict.WRONG),
        ({"input_forget": 1}, Verdict.WRONG),
        ({"activations": ("Sigmoid", "Relu", "Tanh")}, Verdict.WRONG),
        ({"lengths": "ragged"}, Verdict.UNSUPPORTED),
        ({"weights": "initializer", "held": "overridden"}, Verdict.UNSUPPORTED),
        ({"dimensions": "symbolic", "initial": "none"}, Verdict.CRASHED),
    ],
    ids=str,
)
def test_what_becomes_of_an_lstm(change: dict[str, Any], verdict: Verdict) -> None:
    spec = replace(CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, initial="all"), **change)
    target = runtime("tract")
    with TargetProcess(target) as process:
        process.start()
        (case_run,) = tried(process, [SpecProbe(spec)], target.accuracy)
    assert case_run.judgement.verdict is verdict, case_run.judgement.message
    if verdict is Verdict.UNSUPPORTED:
        reasons = {"lengths": "Non constant seq_len is not supported", "weights": "nothing in the place of a constant"}
        assert case_run.judgement.message.endswith(reasons[next(iter(change))])


def test_a_wrong_option_is_told() -> None:
    misspelt = {"runtim": "cuda"}, "unknown option 'runtim'; known: runtime"
    for option, complaint in (misspelt, ({"runtime": "no"}, "Unknown runtime no")):
        with TargetProcess(runtime("tract", **option)) as process, pytest.raises(TargetUnavailable, match=complaint):
            process.start()


def test_it_is_known_by_name() -> None:
    assert parse_target("tract").adapter == "tract"

"""A model's node that loses a small bias is wrong, even if a wide accuracy class contains its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from onnxspec.conformance.diagnosis.explainer import explained
from onnxspec.conformance.extraction.cases import cases_of_model
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.directory import probe_directories
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.result import result_of
from onnxspec.reference import Node, evaluate
from onnxspec.reference.kernels.kernel import Style, rounded, run_kernel

Arrays = Mapping[str, NDArray[Any]]
Kernel = Callable[[Node, Arrays], Arrays]

SIZES = (8, 32, 64)
SCALES = (0.003, 0.01, 0.03, 0.1, 0.3)
"""Scales of biases; weights have the size of trained ones, up to 1 / sqrt(H)."""


def seen(folder: Path, H: int, scale: float, kernel: Kernel) -> CaseRun:
    """Return the results of a kernel in a one-node model, and the verdict on it, as ``run MODEL`` gives it."""
    rng = np.random.default_rng(0)
    weights = {"W": (1, 4 * H, H), "R": (1, 4 * H, H), "B": (1, 8 * H)}
    largest = {"W": H**-0.5, "R": H**-0.5, "B": scale}
    constants = {n: rng.uniform(-largest[n], largest[n], shape).astype(np.float32) for n, shape in weights.items()}
    outputs = ("Y", "Y_h", "Y_c")
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["X", *weights], outputs, hidden_size=H, name="lstm")],
        "one node",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, (5, 3, H))],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    folder.mkdir()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), folder / "m.onnx")
    cases_of_model(folder / "m.onnx", folder / "cases")
    (probe,) = probe_directories([folder / "cases"])
    prepared = probe.prepare()
    outcomes = tuple(staged_outcome(trial, kernel) for trial in prepared.trials)
    return CaseRun(probe, prepared, outcomes, judge(prepared.trials, outcomes))


def without_bias(node: Node, inputs: Arrays) -> Arrays:
    outputs = evaluate(node, {**inputs, "B": np.zeros_like(inputs["B"])})
    return {name: array.astype(np.float32) for name, array in outputs.items()}


def in_bfloat16(node: Node, inputs: Arrays) -> Arrays:
    outputs = run_kernel(node, inputs, Style("coarse", operands="bfloat16", stores_gates=True))
    return {name: rounded(array.astype(float), "bfloat16").astype(np.float32) for name, array in outputs.items()}


@pytest.mark.parametrize("H", SIZES)
def test_a_lost_bias_is_wrong_however_small_it_is_and_coarse_arithmetic_inaccurate(tmp_path: Path, H: int) -> None:
    for scale in SCALES:
        judgement = seen(tmp_path / str(scale), H, scale, without_bias).judgement
        assert judgement.verdict is Verdict.WRONG, (scale, judgement.message)
    for operands in ("float16", "bfloat16"):
        coarse = partial(run_kernel, style=Style("coarse", operands=operands))
        judgement = seen(tmp_path / operands, H, 0.01, coarse).judgement
        assert judgement.verdict is Verdict.INACCURATE, judgement.message
    stored = seen(tmp_path / "stored", H, 0.01, in_bfloat16).judgement
    assert (stored.verdict, stored.accuracy is None) == (Verdict.INACCURATE, False)


@pytest.mark.parametrize("H", SIZES)
def test_a_lost_bias_has_the_plainest_name_in_a_run_of_one_node(tmp_path: Path, H: int) -> None:
    """All weights of a model are constants, so a fault of constants only is no more specific."""
    case_run, kept = seen(tmp_path / "node", H, 0.3, without_bias), Kept()
    kept.offer(case_run)
    result = result_of(case_run.probe, "staged", case_run.judgement, 0.0, None)
    names = explained([result], {case_run.probe.id: case_run.probe}, kept, "standard")
    assert names == {case_run.probe.id: ("bias.ignored",)}

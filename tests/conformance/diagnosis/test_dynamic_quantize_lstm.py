"""onnxruntime's three bugs in DynamicQuantizeLSTM, on its CPU with one thread and with two; two of them have names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from ..miniatures import Inside, read_results

ort = pytest.importorskip("onnxruntime")


def _saturates() -> bool:
    """Return whether onnxruntime's products of uint8 and int8 saturate at 16 bits: on x86 processors without VNNI they
    do, so that every large sum of these nodes is wrong."""
    A = helper.make_tensor_value_info("A", TensorProto.UINT8, [1, 64])
    Y = helper.make_tensor_value_info("Y", TensorProto.INT32, [1, 16])
    B = numpy_helper.from_array(np.full((64, 16), 127, np.int8), "B")
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["A", "B"], ["Y"])], "product", [A], [Y], [B])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (product,) = session.run(None, {"A": np.full((1, 64), 255, np.uint8)})
    return bool((product != 64 * 255 * 127).any())


pytestmark = pytest.mark.skipif(_saturates(), reason="onnxruntime's 8-bit products saturate on this processor")

PLAIN = {"op": "DynamicQuantizeLSTM", "version": 1, "type": "float32", "I": 3, "H": 4, "weights": "initializer"}
TARGET = '[target]\nadapter = "onnxruntime"\noptions = {{ threads = {} }}\n'


def named(inside: Inside, folder: Path, threads: int, *cases: dict[str, Any]) -> list[tuple[str, list[str], bool]]:
    """Return (verdict, diagnosis, whether the shipped lists expect it) of each case.

    Assert that the lists expect all failures.
    """
    (folder / "targets.toml").write_text(TARGET.format(threads))
    chosen = [word for case in cases for word in ("--case", json.dumps({**PLAIN, **case}))]
    target = ("--target", "target", "--targets-file", "targets.toml")
    assert inside("run", *chosen, *target, "--no-extra", "--quiet", "--out", "run").code == 0
    return [(row["verdict"], row["diagnosis"], row["expected"]) for row in read_results(folder / "run")]


def test_zero_points_out_of_bounds_and_outputs_that_change_with_those_asked_for(inside: Inside, tmp_path: Path) -> None:
    mixed = {"direction": "bidirectional", "scales": "channel", "zero_points": "direction", "N": 2}
    fewer = {"T": 5, "N": 3, "lengths": "ragged", "outputs": ["", "Y_h"], "initial": "all"}
    right = {"T": 4, "N": 5, "levels": "uint8", "scales": "channel"}
    cases = ({**mixed, "T": 2}, {**mixed, "T": 3, "levels": "uint8"}, fewer, {**fewer, "outputs": ["Y", "Y_h"]}, right)
    assert named(inside, tmp_path, 1, *cases) == [
        *[("wrong", ["weights.zero-points-out-of-bounds"], True)] * 2,
        ("wrong", [], True),  # no interpretation makes the same node right both with and without Y
        *[("pass", [], False)] * 2,
    ]


def test_a_range_for_each_thread(inside: Inside, tmp_path: Path) -> None:
    cases = [{"T": 4, "N": 5, "seed": seed} for seed in range(2)]
    assert named(inside, tmp_path, 2, *cases, {"T": 4, "N": 1}) == [
        *[("wrong", ["dynamic.state-range-of-2-parts"], True)] * 2,
        ("pass", [], False),
    ]

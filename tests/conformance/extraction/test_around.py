"""Nodes taken out of models together with what stands around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxspec.cases.directories import read_any, read_directory
from onnxspec.conformance.cli.main import main
from onnxspec.conformance.extraction import NodeCase, cases_of_model
from onnxspec.conformance.probes import probe_directories

from ..checking.nodes import H, I, N, T, model_of, recurrent, weights_of

WEIGHTS = weights_of("LSTM")
RIGHT = {name: WEIGHTS[name] for name in ("W", "R", "B")}
FED = {"X": np.linspace(-1, 1, T * N * I, dtype=np.float32).reshape(T, N, I)}


def dequantized(name: str, of: str) -> onnx.NodeProto:
    return helper.make_node("DequantizeLinear", [of, "scale", "zero"], [name])


def quantized_model() -> onnx.ModelProto:
    """X and W and Y in uint8, the rest in float."""
    levels = np.clip(np.rint(RIGHT["W"] / 0.01) + 128, 0, 255).astype(np.uint8)
    nodes = [
        helper.make_node("QuantizeLinear", ["X", "scale", "zero"], ["X_levels"]),
        dequantized("x", "X_levels"),
        dequantized("w", "W_levels"),
        recurrent("LSTM", ("x", "w", "R", "B"), name="rnn"),
        helper.make_node("QuantizeLinear", ["Y", "scale", "zero"], ["Y_levels"]),
        dequantized("back", "Y_levels"),
    ]
    held = {name: RIGHT[name] for name in ("R", "B")}
    model = model_of(nodes, {"X": (T, N, I)}, held, outputs=("back",))
    for name, array in {
        "W_levels": levels, "scale": np.array(0.01, np.float32), "zero": np.array(128, np.uint8)
    }.items():  # fmt: skip
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def cases_of(model: onnx.ModelProto, folder: Path, **fed: Any) -> list[NodeCase]:
    onnx.save(model, folder / "model.onnx")
    return cases_of_model(folder / "model.onnx", folder / "cases", fed or None)


def test_what_quantizes_is_taken_along(tmp_path: Path) -> None:
    alone, quantized = cases_of(quantized_model(), tmp_path, **FED)
    assert (alone.node, quantized.node) == ("/rnn", "/rnn")
    assert quantized.operator == "LSTM-14 with what quantizes around it"
    read = read_directory(tmp_path / "cases" / quantized.case)
    onnx.checker.check_model(onnx.load_model_from_string(read.model), full_check=True)
    (data,) = read.data_sets
    np.testing.assert_array_equal(data.inputs["X"], np.rint(FED["X"] / np.float32(0.01)).astype(int) + 128)
    assert {name: array.dtype.name for name, array in data.outputs.items()} == {"Y": "uint8"}
    node = read_any(read.model).subject.nodes[0].node  # type: ignore[union-attr]
    assert {name: (codec.zero_point, codec.bits) for name, codec in node.codecs.items()} == dict.fromkeys(
        ("X", "W", "Y"), (128, 8)
    )
    assert [probe.documented for probe in probe_directories([tmp_path / "cases"])] == [True, True]


def chained() -> onnx.ModelProto:
    """Two layers as exporters write them: Y without its directions is the next X."""
    again = {f"{name}2": array for name, array in WEIGHTS.items() if name in ("R", "B")}
    again["W2"] = np.resize(RIGHT["W"], (1, 4 * H, H))
    nodes = [
        recurrent("LSTM", ("X", "W", "R", "B"), name="one"),
        helper.make_node("Squeeze", ["Y", "axes"], ["x2"]),
        recurrent("LSTM", ("x2", "W2", "R2", "B2"), name="two"),
    ]
    held = {**RIGHT, **again, "axes": np.array([1], np.int64)}
    nodes[-1].output[0] = "Z"
    return model_of(nodes, {"X": (T, N, I)}, held, outputs=("Z",))


def test_layers_are_a_case_of_their_own(tmp_path: Path) -> None:
    one, two, both = cases_of(chained(), tmp_path, **FED)
    assert (one.node, two.node) == ("/one", "/two")
    assert (both.node, both.operator, both.case) == ("/one + /two", "LSTM-14 + LSTM-14", "one+two")
    read = read_directory(tmp_path / "cases" / both.case)
    onnx.checker.check_model(onnx.load_model_from_string(read.model), full_check=True)
    (data,) = read.data_sets
    assert (list(data.inputs), list(data.outputs)) == (["layer1_X"], ["layer1_Y", "layer2_Y"])
    subject = read_any(read.model).subject  # type: ignore[union-attr]
    assert [bound.name for bound in subject.nodes] == ["/one", "/two"]
    assert [move.op_type for move in subject.nodes[1].inputs["X"].moves] == ["Squeeze"]  # type: ignore[index]


def test_layers_with_something_else_in_between_are_none(tmp_path: Path) -> None:
    model = chained()
    model.graph.node[1].CopyFrom(helper.make_node("Squeeze", ["Y", "axes"], ["y2"]))
    model.graph.node.insert(2, helper.make_node("Neg", ["y2"], ["x2"]))
    assert [case.node for case in cases_of(model, tmp_path, **FED)] == ["/one", "/two"]


def test_run_judges_them(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    for name, model in {"chain": chained(), "qdq": quantized_model()}.items():
        onnx.save(model, tmp_path / f"{name}.onnx")
        words = ["run", "--model", str(tmp_path / f"{name}.onnx"), "--target", "onnxruntime"]
        monkeypatch.setattr("sys.argv", ["onnxspec", *words, "--out", str(tmp_path / name)])
        with pytest.raises(SystemExit) as caught:
            main()
        assert not caught.value.code
        shown = capsys.readouterr().out
        assert shown.count("onnxruntime: pass") == {"chain": 3, "qdq": 2}[name]

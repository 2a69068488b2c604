"""Nodes extracted from models together with their surrounding nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnxspec.cases.directories.directory import read_directory
from onnxspec.cases.directories.graph_reading import read_node_graph
from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.cli.application import main
from onnxspec.conformance.extraction.cases import NodeCase, cases_of_model
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.directory import probe_directories
from onnxspec.conformance.workers.in_process import run_in_process

from ..checking.nodes import H, I, N, T, model_of, of_quark, recurrent, weights_of

WEIGHTS = weights_of("LSTM")
RIGHT = {name: WEIGHTS[name] for name in ("W", "R", "B")}
FED = {"X": np.linspace(-1, 1, T * N * I, dtype=np.float32).reshape(T, N, I)}


def dequantized(name: str, of: str) -> onnx.NodeProto:
    return helper.make_node("DequantizeLinear", [of, "scale", "zero"], [name])


def quantized_model() -> onnx.ModelProto:
    """Return a model with X, W and Y in uint8 and the rest in float."""
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
    return cases_of_model(folder / "model.onnx", folder / "cases", fed or None, outputs=True)


def test_what_quantizes_is_taken_along(tmp_path: Path) -> None:
    alone, quantized = cases_of(quantized_model(), tmp_path, **FED)
    assert (alone.node, quantized.node) == ("/rnn", "/rnn")
    assert quantized.operator == "LSTM-14 with what quantizes around it"
    read = read_directory(tmp_path / "cases" / quantized.case)
    onnx.checker.check_model(onnx.load_model_from_string(read.model), full_check=True)
    (data,) = read.data_sets
    np.testing.assert_array_equal(data.inputs["X"], np.rint(FED["X"] / np.float32(0.01)).astype(int) + 128)
    assert {name: array.dtype.name for name, array in data.outputs.items()} == {"Y": "uint8"}
    node = read_node_graph(read.model).subject.nodes[0].node
    assert {name: (codec.zero_point, codec.bits) for name, codec in node.codecs.items()} == dict.fromkeys(
        ("X", "W", "Y"), (128, 8)
    )
    assert [probe.documented for probe in probe_directories([tmp_path / "cases"])] == [True, True]


def chained() -> onnx.ModelProto:
    """Return two layers as exporters write them: Y without its directions is the next X."""
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
    first, second, both = cases_of(chained(), tmp_path, **FED)
    assert (first.node, second.node) == ("/one", "/two")
    assert (both.node, both.operator, both.case) == ("/one + /two", "LSTM-14 + LSTM-14", "one+two")
    read = read_directory(tmp_path / "cases" / both.case)
    onnx.checker.check_model(onnx.load_model_from_string(read.model), full_check=True)
    (data,) = read.data_sets
    assert (list(data.inputs), list(data.outputs)) == (["layer1_X"], ["layer1_Y", "layer2_Y"])
    subject = read_node_graph(read.model).subject
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
        arguments = ["run", str(tmp_path / f"{name}.onnx"), "--target", "onnxruntime"]
        monkeypatch.setattr("sys.argv", ["onnxspec", *arguments, "--out", str(tmp_path / name)])
        with pytest.raises(SystemExit) as caught:
            main()
        assert not caught.value.code
        shown = capsys.readouterr().out
        assert shown.count("onnxruntime: pass") == {"chain": 3, "qdq": 2}[name]


@pytest.mark.parametrize(("domain", "prefix"), [("com.amd.quark", "Extended"), ("com.vai.quantize", "Vitis")])
def test_operators_of_quark_quantize_as_onnx_s_do(domain: str, prefix: str, tmp_path: Path) -> None:
    model = of_quark(domain, prefix)
    checked = check_model(model)
    assert not checked.unchecked  # shapes and types are inferred through them
    assert not [problem for problem in checked.problems if "old" not in problem.rule]
    _, quantized = cases_of(model, tmp_path)
    read = read_directory(tmp_path / "cases" / quantized.case)
    kinds = [node.op_type for node in onnx.load_model_from_string(read.model).graph.node if node.op_type[-3:] == "ear"]
    assert kinds == [f"{prefix}DequantizeLinear"] * 4 + [f"{prefix}QuantizeLinear"]
    (probe,) = [p for p in probe_directories([tmp_path / "cases"]) if p.id == quantized.case]
    assert {"quantized", "quantized-16-bits"} <= probe.features
    outputs_of = {data.inputs["X"].tobytes(): data.outputs["Y"] for data in read.data_sets}
    assert {array.dtype.name for array in outputs_of.values()} == {"uint16"}
    trial = probe.prepare().trials[0]

    def judged(change: int) -> Verdict:
        def run(model: bytes, fed: Any) -> Any:
            levels = outputs_of[fed["X"].tobytes()].astype(np.int64) + change
            return [levels.clip(0, 65535).astype(np.uint16)]

        return judge([trial], [run_in_process(run, trial)]).verdict

    assert judged(0) is Verdict.PASS
    # The specified arithmetic may cost one level up or down.
    assert judged(3) is Verdict.INACCURATE
    assert judged(100) is Verdict.WRONG


def test_a_scale_of_quark_s_that_is_0_is_told() -> None:
    model = of_quark("com.amd.quark", "Extended")
    scale = next(tensor for tensor in model.graph.initializer if tensor.name == "scale")
    scale.CopyFrom(numpy_helper.from_array(np.array(0, np.float32), "scale"))
    assert "model.scale" in {problem.rule for problem in check_model(model).problems}


def test_nodes_on_one_x_and_with_the_same_weights_are_a_case_too(tmp_path: Path) -> None:
    """Two nodes have the same X, a third has the weights of the first, and a fourth shares nothing with them."""
    other = {f"{name}2": -array for name, array in RIGHT.items()}
    alone = {f"{name}3": array / 2 for name, array in RIGHT.items()}
    nodes = [
        recurrent("LSTM", ("X", "W", "R", "B"), name="one"),
        recurrent("LSTM", ("X", "W2", "R2", "B2"), name="two"),
        recurrent("LSTM", ("Z", "W", "R", "B"), name="three"),
        recurrent("LSTM", ("V", "W3", "R3", "B3"), name="four"),
    ]
    for number, node in enumerate(nodes):
        node.output[0] = f"Y{number}"
    inputs = dict.fromkeys("XZV", (T, N, I))
    model = model_of(nodes, inputs, {**RIGHT, **other, **alone}, outputs=("Y0", "Y1", "Y2", "Y3"))
    *_, together = cases_of(model, tmp_path, X=FED["X"], Z=-FED["X"], V=FED["X"])
    assert together.node == "/one + /two + /three"
    read = read_directory(tmp_path / "cases" / together.case)
    onnx.checker.check_model(onnx.load_model_from_string(read.model), full_check=True)
    (data,) = read.data_sets
    assert list(data.inputs) == ["layer1_X", "layer3_X"]
    assert list(data.outputs) == ["layer1_Y", "layer2_Y", "layer3_Y"]
    nodes = list(onnx.load_model_from_string(read.model).graph.node)
    assert nodes[1].input[0] == nodes[0].input[0]
    assert nodes[2].input[1:] == nodes[0].input[1:]
    assert nodes[1].input[1] != nodes[0].input[1]

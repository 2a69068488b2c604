"""Nodes extracted from models with their weights and inputs, wherever these are, and with their surrounding nodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxspec.cases import build_case, profile
from onnxspec.cases.directories.directory import read_directory
from onnxspec.cases.directories.graph_reading import read_node_graph
from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.extraction.cases import NodeCase, cases_of_model, read_nodes
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.models.content import ModelError
from onnxspec.conformance.models.execution import ExecutionError
from onnxspec.conformance.probes.directory import probe_directories
from onnxspec.conformance.workers.in_process import run_in_process
from onnxspec.reference.errors import UserError

from ..checking.nodes import H, I, N, T, branch, choice, loop, model_of, of_quark, recurrent, scan, weights_of
from ..miniatures import Finished

WEIGHTS = weights_of("LSTM")
RIGHT = {name: WEIGHTS[name] for name in ("W", "R", "B")}
INPUTS = ("X", "W", "R", "B")
FED = {"X": np.linspace(-1, 1, T * N * I, dtype=np.float32).reshape(T, N, I)}


NOT_TAKEN = "no data: the branch that it is in was not taken with these inputs"


def cases_of(model: onnx.ModelProto, folder: Path, **fed: Any) -> list[NodeCase]:
    """Extract the nodes of a model; every model that is written passes the checker, which backends may require."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    cases = cases_of_model(path, folder / "cases", fed or None, outputs=True)
    for case in cases:
        if case.case:
            onnx.checker.check_model(onnx.load(folder / "cases" / case.case / "model.onnx"), full_check=True)
    return cases


def runs(folder: Path, case: NodeCase) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return inputs and outputs of each data set; assert that onnxruntime returns the outputs for the inputs."""
    read = read_directory(folder / "cases" / case.case)
    session = onnxruntime.InferenceSession(read.model, providers=["CPUExecutionProvider"])
    for data in read.data_sets:
        for returned, expected in zip(session.run(None, dict(data.inputs)), data.outputs.values(), strict=True):
            np.testing.assert_allclose(returned, expected, atol=1e-5)
    return [(dict(data.inputs), dict(data.outputs)) for data in read.data_sets]


def test_a_node_keeps_its_weights_attributes_and_declared_shapes(tmp_path: Path) -> None:
    node = recurrent("LSTM", INPUTS, name="decoder/rnn", direction="reverse", input_forget=0)
    (case,) = cases_of(model_of([node], {"X": ("time", N, I)}, RIGHT), tmp_path)
    assert (case.node, case.operator, case.case, case.why) == ("/decoder/rnn", "LSTM-14", "decoder.rnn", "")
    assert case.data == f"random data, 3 runs, all of batch_size {N}; W, R and B from the model"
    model = onnx.load(tmp_path / "cases" / case.case / "model.onnx")
    (alone,) = model.graph.node
    assert {a.name: helper.get_attribute_value(a) for a in alone.attribute} == {
        "hidden_size": H, "direction": b"reverse", "input_forget": 0,
    }  # fmt: skip
    assert [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == ["seq_length", N, I]
    for tensor in model.graph.initializer:
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), RIGHT[tensor.name])
    shapes = [inputs["X"].shape for inputs, _ in runs(tmp_path, case)]
    assert len(set(shapes)) == 3  # of dynamic length
    assert read_nodes(tmp_path / "cases") == [case]


@pytest.mark.filterwarnings("error")
def test_weights_whose_squares_overflow_are_no_reason_for_a_warning(tmp_path: Path) -> None:
    weights = {name: np.full(array.shape, 1e200) for name, array in RIGHT.items()}
    model = model_of([recurrent("LSTM", INPUTS)], {"X": (T, N, I)}, weights, kinds={"X": TensorProto.DOUBLE})
    onnx.save(model, tmp_path / "model.onnx")
    (case,) = cases_of_model(tmp_path / "model.onnx", tmp_path / "cases")
    assert case.case


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_numbers_are_drawn_as_large_as_weights_make_sensible(tmp_path: Path, scale: float) -> None:
    weights = {**RIGHT, "W": RIGHT["W"] * np.float32(scale)}
    (case,) = cases_of(model_of([recurrent("LSTM", INPUTS)], {"X": (50, 20, I)}, weights), tmp_path)
    X = runs(tmp_path, case)[0][0]["X"]
    assert 0.5 < float((X @ weights["W"][0].T).std()) < 4


def test_lengths_and_states_that_flow_are_drawn_too(tmp_path: Path) -> None:
    node = recurrent("LSTM", (*INPUTS, "lens", "h"))
    inputs: dict[str, Any] = {"X": ("time", "batch", I), "lens": ("batch",), "h": (1, "batch", H)}
    (case,) = cases_of(model_of([node], inputs, RIGHT), tmp_path)
    for fed, _ in runs(tmp_path, case):
        steps, batch, _ = fed["X"].shape
        assert fed["sequence_lens"].shape == (batch,)
        assert fed["sequence_lens"].max() == steps
        assert fed["initial_h"].shape == (1, batch, H)


def test_what_flows_is_captured(tmp_path: Path) -> None:
    double = helper.make_node("Add", ["X", "X"], ["x"])
    model = model_of([double, recurrent("LSTM", ("x", *INPUTS[1:]))], {"X": (T, N, I)}, RIGHT)
    (case,) = cases_of(model, tmp_path, **FED)
    assert case.data == "your data, one run; W, R and B from the model"
    ((inputs, outputs),) = runs(tmp_path, case)
    np.testing.assert_array_equal(inputs["X"], FED["X"] * 2)
    whole = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(outputs["Y"], whole.run(None, FED)[0], atol=1e-5)


def test_what_flows_inside_ifs_two_deep_is_captured(tmp_path: Path) -> None:
    nodes = [helper.make_node("Neg", ["X"], ["x"]), recurrent("LSTM", ("x", *INPUTS[1:]), name="deep")]
    inner = choice(branch(nodes, "Y"), name="inner", output="i")
    other = branch([recurrent("LSTM", INPUTS, name="other")], "Y")
    model = model_of([choice(branch([inner], "i"), other, "outer")], {"X": (T, N, I), "c": ()}, RIGHT)
    not_taken, deep = cases_of(model, tmp_path, **FED, c=np.array(True))
    assert deep.node == "/outer:then_branch/inner:then_branch/deep"
    np.testing.assert_array_equal(runs(tmp_path, deep)[0][0]["X"], -FED["X"])
    assert (not_taken.case, not_taken.why) == ("", NOT_TAKEN)
    swapped = cases_of(model, tmp_path, **FED, c=np.array(False))
    assert [bool(case.case) for case in swapped] == [True, False]


def test_a_node_in_a_loop_or_scan_has_a_run_for_each_of_its_first_runs(tmp_path: Path) -> None:
    many = np.stack([FED["X"], FED["X"] / 2])
    double = [helper.make_node("Add", ["x", "x"], ["x2"]), recurrent("LSTM", ("x2", *INPUTS[1:]))]
    for body, inputs, fed, expected in (
        (loop(double, "x2"), {"X": (T, N, I)}, FED, [FED["X"] * np.float32(2**k) for k in (1, 2, 3)]),
        (scan([recurrent("LSTM", ("x", *INPUTS[1:]))]), {"Xs": (2, T, N, I)}, {"Xs": many}, many),
    ):
        (case,) = cases_of(model_of([body], inputs, {**RIGHT, "M": np.array(5, np.int64)}), tmp_path, **fed)
        np.testing.assert_array_equal([inputs["X"] for inputs, _ in runs(tmp_path, case)], expected)


@pytest.mark.parametrize(("times", "below", "why"), [(4, 10, ""), (4, 0, NOT_TAKEN), (0, 10, NOT_TAKEN)])
def test_a_node_in_a_branch_in_a_loop(tmp_path: Path, times: int, below: int, why: str) -> None:
    other = branch([helper.make_node("Identity", ["zeros"], ["same"])], "same")
    nodes = [
        helper.make_node("Less", ["k", "below"], ["c"]),
        choice(branch([recurrent("LSTM", ("x", "W", "R"))], "Y"), other, output="y"),
        helper.make_node("Identity", ["x"], ["same_x"]),
    ]
    constants = {"M": np.array(times, np.int64), "below": np.array(below, np.int64)}
    constants["zeros"] = np.zeros((T, 1, N, H), np.float32)
    model = model_of([loop(nodes, "same_x", "y")], {"X": (T, N, I)}, {**RIGHT, **constants})
    (case,) = cases_of(model, tmp_path, **FED)
    assert case.why == why
    assert bool(case.case) == (not why)


def test_every_call_of_a_function_is_a_node_of_its_own(tmp_path: Path) -> None:
    body = [helper.make_node("Mul", ["x", "x"], ["square"]), recurrent("LSTM", ("square", *INPUTS[1:]))]
    opsets = [helper.make_opsetid("", 14)]
    function = helper.make_function("local", "Encoder", ["x", "W", "R", "B"], ["Y"], body, opsets)
    calls = [
        helper.make_node("Neg", ["X"], ["n"]),
        helper.make_node("Add", ["X", "X"], ["d"]),
        helper.make_node("Encoder", ["n", "W", "R", "B"], ["Y"], name="first", domain="local"),
        helper.make_node("Encoder", ["d", "W", "R", "B"], ["Z"], name="second", domain="local"),
    ]
    model = model_of(calls, {"X": (T, N, I)}, RIGHT, outputs=["Y", "Z"], domains={"local": 1}, functions=[function])
    first, second = cases_of(model, tmp_path, **FED)
    assert (first.node, second.node) == ("/first/rnn", "/second/rnn")
    np.testing.assert_array_equal(runs(tmp_path, first)[0][0]["X"], FED["X"] ** 2)
    np.testing.assert_array_equal(runs(tmp_path, second)[0][0]["X"], (FED["X"] * 2) ** 2)


def test_nodes_that_cannot_be_run_say_why(tmp_path: Path) -> None:
    nodes = [
        recurrent("LSTM", INPUTS, "illegal", ["Y0"], direction="sideways"),
        helper.make_node("AttnLSTM", ["X"], ["Z"], name="foreign", domain="com.microsoft"),
        recurrent("LSTM", INPUTS, "legal"),
    ]
    cases = cases_of(model_of(nodes, {"X": (T, N, I)}, RIGHT, domains={"com.microsoft": 1}), tmp_path)
    assert [bool(case.case) for case in cases] == [False, False, True]
    assert cases[0].why.startswith("is illegal by lstm.direction")
    assert cases[1].why == "there is no document of com.microsoft::AttnLSTM here"


def test_inputs_that_do_not_fit_are_told(tmp_path: Path) -> None:
    model = model_of([recurrent("LSTM", INPUTS)], {"X": (T, N, I)}, RIGHT)
    for fed, message in (
        ({"Z": FED["X"]}, "the model has no input Z; it has X"),
        ({**FED, "Z": FED["X"]}, "the model has no input Z"),
        ({"X": FED["X"][0]}, "onnxruntime does not run the model"),
    ):
        with pytest.raises(ExecutionError, match=message):
            cases_of(model, tmp_path, **fed)
    two = model_of([recurrent("LSTM", (*INPUTS, "", "h"))], {"X": (T, N, I), "h": (1, N, H)}, RIGHT)
    with pytest.raises(ExecutionError, match="no array is given for the model's input h"):
        cases_of(two, tmp_path, **FED)


def test_nothing_but_earlier_cases_is_ever_removed(tmp_path: Path) -> None:
    model = model_of([recurrent("LSTM", INPUTS)], {"X": (T, N, I)}, RIGHT)
    cases_of(model, tmp_path)
    (tmp_path / "cases" / "mine.txt").write_text("mine", encoding="utf-8")
    cases_of(model, tmp_path)
    assert (tmp_path / "cases" / "mine.txt").exists()
    with pytest.raises(UserError):
        cases_of_model(tmp_path / "model.onnx", tmp_path)
    with pytest.raises(ModelError, match="does not exist"):
        cases_of_model(tmp_path / "none.onnx", tmp_path / "cases")


def test_an_operator_of_another_domain(tmp_path: Path) -> None:
    spec = next(spec for spec in profile("core", "ExtendedLSTM", 1) if not (spec.illegal or spec.old))
    (tmp_path / "model.onnx").write_bytes(build_case(spec).trial.model)
    (case,) = cases_of_model(tmp_path / "model.onnx", tmp_path / "cases")
    assert (case.node, case.operator, case.why) == ("/extendedlstm", "com.amd.quark::ExtendedLSTM-1", "")
    (probe,) = probe_directories([tmp_path / "cases"])
    assert (probe.op, probe.documented) == ("ExtendedLSTM", True)


# Surrounding nodes: those that quantize, and layers that follow or share something


def quantized_model() -> onnx.ModelProto:
    """Return a model with X, W and Y in uint8 and the rest in float."""
    levels = np.clip(np.rint(RIGHT["W"] / 0.01) + 128, 0, 255).astype(np.uint8)
    nodes = [
        helper.make_node(f"{kind}Linear", [of, "scale", "zero"], [name])
        for kind, of, name in (
            ("Quantize", "X", "X_levels"), ("Dequantize", "X_levels", "x"), ("Dequantize", "W_levels", "w"),
            ("Quantize", "Y", "Y_levels"), ("Dequantize", "Y_levels", "back"),
        )
    ]  # fmt: skip
    nodes.insert(3, recurrent("LSTM", ("x", "w", "R", "B")))
    held = {"W_levels": levels, "scale": np.array(0.01, np.float32), "zero": np.array(128, np.uint8)}
    return model_of(nodes, {"X": (T, N, I)}, {**held, "R": RIGHT["R"], "B": RIGHT["B"]}, outputs=("back",))


def test_what_quantizes_is_taken_along(tmp_path: Path) -> None:
    alone, quantized = cases_of(quantized_model(), tmp_path, **FED)
    assert (alone.node, quantized.node) == ("/rnn", "/rnn")
    assert quantized.operator == "LSTM-14 with what quantizes around it"
    read = read_directory(tmp_path / "cases" / quantized.case)
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
        recurrent("LSTM", INPUTS, "one"),
        helper.make_node("Squeeze", ["Y", "axes"], ["x2"]),
        recurrent("LSTM", ("x2", "W2", "R2", "B2"), "two", ["Z"]),
    ]
    return model_of(nodes, {"X": (T, N, I)}, {**RIGHT, **again, "axes": np.array([1], np.int64)}, outputs=("Z",))


def test_layers_are_a_case_of_their_own(tmp_path: Path) -> None:
    first, second, both = cases_of(chained(), tmp_path, **FED)
    assert (first.node, second.node) == ("/one", "/two")
    assert (both.node, both.operator, both.case) == ("/one + /two", "LSTM-14 + LSTM-14", "one+two")
    read = read_directory(tmp_path / "cases" / both.case)
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


def test_run_judges_them(tmp_path: Path, inside: Callable[..., Finished]) -> None:
    for name, model, cases in (("chain", chained(), 3), ("qdq", quantized_model(), 2)):
        onnx.save(model, tmp_path / f"{name}.onnx")
        done = inside("run", f"{name}.onnx", "--target", "onnxruntime", "--out", name)
        assert (done.code, done.out.count("onnxruntime: pass")) == (0, cases)


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
    next(tensor for tensor in model.graph.initializer if tensor.name == "scale").raw_data = bytes(4)
    assert "model.scale" in {problem.rule for problem in check_model(model).problems}


def test_nodes_on_one_x_and_with_the_same_weights_are_a_case_too(tmp_path: Path) -> None:
    """Two nodes have the same X, a third has the weights of the first, and a fourth shares nothing with them."""
    other = {f"{name}2": -array for name, array in RIGHT.items()}
    alone = {f"{name}3": array / 2 for name, array in RIGHT.items()}
    nodes = [
        recurrent("LSTM", ("X", "W", "R", "B"), "one", ["Y0"]),
        recurrent("LSTM", ("X", "W2", "R2", "B2"), "two", ["Y1"]),
        recurrent("LSTM", ("Z", "W", "R", "B"), "three", ["Y2"]),
        recurrent("LSTM", ("V", "W3", "R3", "B3"), "four", ["Y3"]),
    ]
    inputs = dict.fromkeys("XZV", (T, N, I))
    model = model_of(nodes, inputs, {**RIGHT, **other, **alone}, outputs=("Y0", "Y1", "Y2", "Y3"))
    *_, together = cases_of(model, tmp_path, X=FED["X"], Z=-FED["X"], V=FED["X"])
    assert together.node == "/one + /two + /three"
    read = read_directory(tmp_path / "cases" / together.case)
    (data,) = read.data_sets
    assert list(data.inputs) == ["layer1_X", "layer3_X"]
    assert list(data.outputs) == ["layer1_Y", "layer2_Y", "layer3_Y"]
    nodes = list(onnx.load_model_from_string(read.model).graph.node)
    assert nodes[1].input[0] == nodes[0].input[0]
    assert nodes[2].input[1:] == nodes[0].input[1:]
    assert nodes[1].input[1] != nodes[0].input[1]

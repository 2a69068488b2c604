"""Nodes extracted from models with their weights and inputs, wherever these are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onnxspec.cases import build_case, profile
from onnxspec.cases.directories.directory import read_directory
from onnxspec.conformance.extraction.cases import NodeCase, cases_of_model, read_nodes
from onnxspec.conformance.models.content import ModelError
from onnxspec.conformance.models.execution import ExecutionError
from onnxspec.conformance.probes.directory import probe_directories
from onnxspec.reference.errors import UserError

from ..checking.nodes import H, I, N, T, branch, loop, model_of, recurrent, scan, weights_of

WEIGHTS = weights_of("LSTM")
RIGHT = {name: WEIGHTS[name] for name in ("W", "R", "B")}
INPUTS = ("X", "W", "R", "B")
FED = {"X": np.linspace(-1, 1, T * N * I, dtype=np.float32).reshape(T, N, I)}


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
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), RIGHT[tensor.name])
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


def test_numbers_are_drawn_as_large_as_weights_make_sensible(tmp_path: Path) -> None:
    spreads = []
    for scale in (1e-3, 1.0, 30.0):
        weights = {**RIGHT, "W": RIGHT["W"] * np.float32(scale)}
        folder = tmp_path / str(scale)
        folder.mkdir()
        (case,) = cases_of(model_of([recurrent("LSTM", INPUTS)], {"X": (50, 20, I)}, weights), folder)
        X = runs(folder, case)[0][0]["X"]
        spreads.append(float((X @ weights["W"][0].T).std()))
    assert all(0.5 < spread < 4 for spread in spreads), spreads


def test_lengths_and_states_that_flow_are_drawn_too(tmp_path: Path) -> None:
    node = recurrent("LSTM", (*INPUTS, "lens", "h"))
    inputs: dict[str, Any] = {"X": ("time", "batch", I), "lens": ("batch",), "h": (1, "batch", H)}
    (case,) = cases_of(model_of([node], inputs, RIGHT, kinds={"lens": TensorProto.INT32}), tmp_path)
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
    same = branch([helper.make_node("Identity", ["X"], ["same"])], "same")
    nodes = [helper.make_node("Neg", ["X"], ["x"]), recurrent("LSTM", ("x", *INPUTS[1:]), name="deep")]
    inner = helper.make_node("If", ["c"], ["i"], name="inner", then_branch=branch(nodes, "Y"), else_branch=same)
    other = branch([recurrent("LSTM", INPUTS, name="other")], "Y")
    outer = helper.make_node("If", ["c"], ["Y"], name="outer", then_branch=branch([inner], "i"), else_branch=other)
    model = model_of([outer], {"X": (T, N, I), "c": ()}, RIGHT, kinds={"c": TensorProto.BOOL})
    not_taken, deep = cases_of(model, tmp_path, **FED, c=np.array(True))
    assert deep.node == "/outer:then_branch/inner:then_branch/deep"
    np.testing.assert_array_equal(runs(tmp_path, deep)[0][0]["X"], -FED["X"])
    assert (not_taken.case, not_taken.why) == ("", "no data: the branch that it is in was not taken with these inputs")
    swapped = cases_of(model, tmp_path, **FED, c=np.array(False))
    assert [bool(case.case) for case in swapped] == [True, False]


def test_a_node_in_a_loop_has_a_run_for_each_of_its_first_runs(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "x"], ["x2"]), recurrent("LSTM", ("x2", *INPUTS[1:]))]
    model = model_of([loop(nodes, "x2")], {"X": (T, N, I)}, {**RIGHT, "M": np.array(5, np.int64)})
    (case,) = cases_of(model, tmp_path, **FED)
    sequences = [inputs["X"] for inputs, _ in runs(tmp_path, case)]
    assert len(sequences) == 3
    for k, X in enumerate(sequences):
        np.testing.assert_array_equal(X, FED["X"] * np.float32(2 ** (k + 1)))


@pytest.mark.parametrize(("times", "below", "why"), [
    (4, 10, ""),
    (4, 0, "no data: the branch that it is in was not taken with these inputs"),
    (0, 10, "no data: the branch that it is in was not taken with these inputs"),
])  # fmt: skip
def test_a_node_in_a_branch_in_a_loop(tmp_path: Path, times: int, below: int, why: str) -> None:
    then = branch([recurrent("LSTM", ("x", "W", "R"))], "Y")
    other = branch([helper.make_node("Identity", ["zeros"], ["same"])], "same")
    nodes = [
        helper.make_node("Less", ["k", "below"], ["c"]),
        helper.make_node("If", ["c"], ["y"], name="If", then_branch=then, else_branch=other),
        helper.make_node("Identity", ["x"], ["same_x"]),
    ]
    constants = {"M": np.array(times, np.int64), "below": np.array(below, np.int64)}
    constants["zeros"] = np.zeros((T, 1, N, H), np.float32)
    model = model_of([loop(nodes, "same_x", "y")], {"X": (T, N, I)}, {**RIGHT, **constants})
    (case,) = cases_of(model, tmp_path, **FED)
    assert case.why == why
    assert bool(case.case) == (not why)


def test_a_node_in_a_scan(tmp_path: Path) -> None:
    many = np.stack([FED["X"], FED["X"] / 2])
    model = model_of([scan([recurrent("LSTM", ("x", *INPUTS[1:]))])], {"Xs": (2, T, N, I)}, RIGHT)
    (case,) = cases_of(model, tmp_path, Xs=many)
    np.testing.assert_array_equal([inputs["X"] for inputs, _ in runs(tmp_path, case)], many)


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
    illegal = recurrent("LSTM", INPUTS, name="illegal", direction="sideways")
    foreign = helper.make_node("AttnLSTM", ["X"], ["Z"], name="foreign", domain="com.microsoft")
    legal = recurrent("LSTM", INPUTS, name="legal")
    for k, node in enumerate((illegal, legal)):
        node.output[0] = f"Y{k}"
    model = model_of([illegal, foreign, legal], {"X": (T, N, I)}, RIGHT, outputs=["Y1"], domains={"com.microsoft": 1})
    cases = cases_of(model, tmp_path)
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

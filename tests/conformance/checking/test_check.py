"""``check`` finds nodes and their inputs wherever exporters put them, and reports unknown facts as such."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxspec import UnreadableModel, check
from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.checking.problem import Checked, Level

from ...counting import calls
from .nodes import H, I, N, T, branch, choice, loop, model_of, recurrent, scan, value, weights_of

LSTM = weights_of("LSTM")
WRONG_R = {"W": LSTM["W"], "R": LSTM["R"][:, :-1]}
RIGHT = {"W": LSTM["W"], "R": LSTM["R"]}
X: dict[str, Any] = {"X": (T, N, I)}


def errors(result: Checked) -> list[tuple[str, str]]:
    return [(problem.node, problem.rule) for problem in result.problems if problem.level is Level.ERROR]


def assert_right(result: Checked) -> None:
    assert (result.problems, result.unchecked) == ((), ())


def warned(result: Checked) -> set[str]:
    return {problem.rule for problem in result.problems if problem.level is Level.WARNING}


def test_an_output_that_nothing_reads_breaks_no_rule() -> None:
    same = branch([helper.make_node("Identity", ["Y"], ["z"])], "z")
    node = recurrent("LSTM", ("X", "W", "R", "", "lens"), outputs=("Y", "Y_h"))
    nodes = [node, choice(same, same, output="out")]
    constants = {**RIGHT, "lens": np.array([T, 1], np.int32)}
    for count, output, read in ((1, "Y", True), (1, "Y_h", False), (2, "out", True)):
        result = check_model(model_of(nodes[:count], {**X, "c": ()}, constants, outputs=[output]))
        assert ("lstm.padding.zero" in warned(result)) == read


def test_nodes_in_ifs_two_deep_with_weights_from_outside() -> None:
    same = branch([helper.make_node("Identity", ["Y0"], ["same"])], "same")
    third = branch([recurrent("LSTM", name="decoder/LSTM_3")], "Y")
    outer = choice(same, branch([choice(third, same, "decoder/If_2", "inner")], "inner"), "If_1")
    model = model_of([recurrent("LSTM", name="first", outputs=["Y0"]), outer], {**X, "c": ()}, WRONG_R)
    path = "/If_1:else_branch/decoder/If_2:then_branch/decoder/LSTM_3"
    assert errors(check_model(model)) == [("/first", "lstm.shapes"), (path, "lstm.shapes")]


@pytest.mark.parametrize("op", ["loop", "scan"])
def test_nodes_in_loops(op: str) -> None:
    same = helper.make_node("Identity", ["x"], ["x_out"])
    node = recurrent("LSTM", ("x", "W", "R"))
    holder = loop([node, same], "x_out") if op == "loop" else scan([node])
    inputs, counted = {"X": (T, N, I), "Xs": (6, T, N, I)}, {"M": np.array(3, np.int64)}
    wrong = check_model(model_of([holder], inputs, {**WRONG_R, **counted}))
    assert errors(wrong) == [(f"/{op}:body/rnn", "lstm.shapes")]
    assert_right(check_model(model_of([holder], inputs, {**RIGHT, **counted})))


def called(
    node: onnx.NodeProto, opset: int, constants: dict[str, Any], names: Sequence[str] = (), **attributes: Any
) -> onnx.ModelProto:
    """Return a model that calls a function of one node twice; `names` are the function's attributes."""
    opsets = [helper.make_opsetid("", opset)]
    function = helper.make_function("local", "Encoder", ["X", "W", "R"], ["Y"], [node], opsets, names)
    calls = [
        helper.make_node("Encoder", ["X", *constants], [y], name=name, domain="local", **attributes)
        for name, y in (("encoder", "Y"), ("second", "Y2"))
    ]
    return model_of(calls, X, constants, domains={"local": 1}, functions=[function])


def test_a_function_is_checked_call_by_call_by_its_own_opset() -> None:
    # layout exists from version 14 on: by the function's opset the node is an LSTM-7.
    result = check_model(called(recurrent("LSTM", layout=0), 7, RIGHT))
    assert errors(result) == [("/encoder/rnn", "lstm.attributes"), ("/second/rnn", "lstm.attributes")]
    assert result.nodes == (("/encoder/rnn", "LSTM-7"), ("/second/rnn", "LSTM-7"))
    assert_right(check_model(called(recurrent("LSTM"), 7, RIGHT)))
    assert errors(check_model(called(recurrent("LSTM"), 7, WRONG_R)))


def test_a_function_gets_its_attributes_from_the_call() -> None:
    node = recurrent("LSTM")
    del node.attribute[:]
    node.attribute.add(name="hidden_size", ref_attr_name="size", type=onnx.AttributeProto.INT)
    # Without it the attribute is absent, and R determines the size.
    for sizes, rules in (({"size": H}, set()), ({"size": H + 1}, {"lstm.hidden-size"}), ({}, set())):
        model = called(node, 14, RIGHT, ["size"], **sizes)
        assert {rule for _, rule in errors(check_model(model))} == rules


def calling(name: str, *others: str, last: onnx.NodeProto | None = None) -> onnx.FunctionProto:
    """Return a function of X that calls others, and ends with a node that makes Y."""
    outputs = [f"y{k}" for k in range(len(others))] if last else ["a", "Y"]
    nodes = [helper.make_node(o, ["X"], [y], domain="local") for o, y in zip(others, outputs, strict=True)]
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["X"], ["Y"], [*nodes, *([last] if last else [])], opsets)


def tower(last: onnx.NodeProto, every: onnx.NodeProto | None = None) -> list[onnx.FunctionProto]:
    """Return forty functions that call the next one twice."""
    return [*(calling(f"F{k}", *[f"F{k + 1}"] * 2, last=every) for k in range(40)), calling("F40", last=last)]


FED_X = recurrent("LSTM", ("X", "X", "X"))


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([calling("A", "B", last=FED_X), calling("B", "A", last=FED_X)], "function local::A calls itself, which ONNX"),
        (tower(FED_X, FED_X), "more than 2000 times"),
    ],
    ids=["circle", "tower"],
)
def test_functions_that_call_each_other_without_end_are_not_followed(
    functions: list[onnx.FunctionProto], message: str
) -> None:
    call = helper.make_node(functions[0].name, ["X"], ["Y"], domain="local")
    assert message in check_model(model_of([call], X, {}, domains={"local": 1}, functions=functions)).unreadable


def test_calls_that_shape_inference_would_follow_without_end_are_left_out() -> None:
    """onnx infers through each call anew: forty functions that call the next one twice would take years."""
    functions = tower(helper.make_node("Neg", ["X"], ["Y"]))
    call = helper.make_node("F0", ["X"], ["x"], domain="local")
    lstm = recurrent("LSTM", ("x", "W", "R"))
    result = check_model(model_of([call, lstm], X, RIGHT, domains={"local": 1}, functions=functions))
    assert [unchecked.rule for unchecked in result.unchecked] == ["lstm.types", "lstm.shapes"]


def test_a_long_vector_of_starts_is_not_followed() -> None:
    """A tensor claims a billion numbers, beside a Slice in a branch."""
    inner = [helper.make_node("Slice", ["X", "starts", "starts"], ["x"]), recurrent("LSTM", ("x", "W", "R"))]
    model = model_of([choice(branch(inner, "Y"))], {**X, "c": ()}, RIGHT)
    model.graph.initializer.add(name="starts", data_type=TensorProto.INT64, dims=[10**9], raw_data=bytes(8))
    assert [name for name, _ in check_model(model).nodes] == ["/If:then_branch/rnn"]


@pytest.mark.parametrize("node_domain", ["", "ai.onnx"])
@pytest.mark.parametrize("model_domain", ["", "ai.onnx"])
def test_the_default_domain_has_two_names(node_domain: str, model_domain: str) -> None:
    node = recurrent("LSTM")
    node.domain = node_domain
    model = model_of([node], X, WRONG_R)
    model.opset_import[0].domain = model_domain
    assert errors(check_model(model)) == [("/rnn", "lstm.shapes")]


def test_other_domains_are_theirs() -> None:
    foreign = recurrent("LSTM", name="foreign")
    foreign.domain = "com.example"
    described = helper.make_node("DynamicQuantizeLSTM", ["X"], ["Y1"], name="quantized", domain="com.microsoft")
    attention = helper.make_node("AttnLSTM", ["X"], ["Y2"], name="attention", domain="com.microsoft")
    domains = {"com.example": 3, "com.microsoft": 1}
    result = check_model(model_of([foreign, described, attention], X, WRONG_R, domains=domains))
    assert result.nodes == (("/quantized", "com.microsoft::DynamicQuantizeLSTM-1"),)
    assert {problem.rule for problem in result.problems} == {"dynamicquantizelstm.inputs"}
    assert [name for _, name in result.inconclusive] == ["com.microsoft::AttnLSTM"]


def test_an_opset_that_is_not_known_is_not_checked() -> None:
    newer = onnx.defs.onnx_opset_version() + 1
    result = check_model(model_of([recurrent("LSTM")], X, WRONG_R, newer))
    assert not result.problems
    (unchecked,) = result.unchecked
    assert (unchecked.rule, unchecked.node) == ("", "/rnn")
    assert f"opset {newer}" in unchecked.missing


@pytest.mark.parametrize(("opset", "version"), [(6, 1), (7, 7), (13, 7), (14, 14), (21, 14), (22, 22)])
def test_versions_follow_from_opsets(opset: int, version: int) -> None:
    assert check_model(model_of([recurrent("LSTM")], X, RIGHT, opset)).nodes == (("/rnn", f"LSTM-{version}"),)


@pytest.mark.parametrize("wrong", [False, True])
def test_weights_that_are_computed_are_known(wrong: bool) -> None:
    """Quantized weights as in a well-known voice-activity model: gates are reordered in a branch, from constants."""
    constants = {
        "levels": np.random.default_rng(1).integers(0, 255, (4 * H, I)).astype(np.uint8),
        "scale": np.array(0.01, np.float32),
        "zero": np.array(128, np.uint8),
        "R2": LSTM["R"][0],
        **{f"s{k}": np.array([k * H], np.int64) for k in range(5)},
        "axis": np.array([0], np.int64),
    }
    inner = []
    for name, order in (("W2", (0, 3, 1, 2)), ("R2", (0, 3, 1) if wrong else (0, 3, 1, 2))):
        gates = [f"{name}_{k}" for k in order]
        inner += [helper.make_node("Slice", [name, f"s{k}", f"s{k + 1}", "axis"], [f"{name}_{k}"]) for k in order]
        inner.append(helper.make_node("Concat", gates, [f"{name}_all"], axis=0))
        inner.append(helper.make_node("Unsqueeze", [f"{name}_all", "axis"], [name[0] + "u"]))
    inner.append(recurrent("LSTM", ("X", "Wu", "Ru")))
    nodes = [helper.make_node("DequantizeLinear", ["levels", "scale", "zero"], ["W2"]), choice(branch(inner, "Y"))]
    result = check_model(model_of(nodes, {**X, "c": ()}, constants))
    assert errors(result) == ([("/If:then_branch/rnn", "lstm.shapes")] if wrong else [])
    if not wrong:
        assert_right(result)


def behind(op: str, domain: str = "") -> onnx.ModelProto:
    """Return a model with an LSTM behind a node."""
    node = helper.make_node(op, ["X"], ["x"], name=op.lower(), domain=domain)
    return model_of([node, recurrent("LSTM", ("x", "W", "R"))], X, RIGHT, domains={domain: 1} if domain else {})


def test_unknown_facts_are_reported_and_what_the_file_claims_is_no_error() -> None:
    """Types that a file declares for inner names may be stale: they do not prove that the node is wrong."""
    result = check_model(behind("Mystery", "com.example"))
    assert not result.problems
    assert {unchecked.rule: unchecked.missing for unchecked in result.unchecked} == {
        "lstm.types": "the element type of X",
        "lstm.shapes": "the shape of X: Mystery /mystery decides it when the model runs",
    }
    # If shapes can be inferred, a stale declaration is ignored.
    for model, rules in ((behind("Mystery", "com.example"), {"model.sizes-claimed"}), (behind("Neg"), set())):
        model.graph.value_info.append(value("x", (T, N, I + 1)))
        result = check_model(model)
        assert not errors(result)
        assert warned(result) == rules


@pytest.mark.parametrize(
    ("batch", "state", "rules"),
    [
        ("batch", None, {"model.batch-fixed"}),
        ("batch", 1, {"model.batch-fixed"}),
        ("batch", "batch", set()),
        (1, None, set()),
        (2, None, {"lstm.shapes"}),
    ],
)
def test_a_batch_that_is_fixed_in_states(batch: Any, state: Any, rules: set[str]) -> None:
    """Without an extent, the state is a constant for a batch of one."""
    inputs: dict[str, Any] = {"X": ("time", batch, I), **({"h": (1, state, H)} if state else {})}
    constants = RIGHT if state else {**RIGHT, "h": np.zeros((1, 1, H), np.float32)}
    result = check_model(model_of([recurrent("LSTM", ("X", "W", "R", "", "", "h"))], inputs, constants))
    assert {problem.rule for problem in result.problems} == rules
    assert bool(errors(result)) == (rules == {"lstm.shapes"})


def test_a_time_that_is_frozen_in_an_expand() -> None:
    """sequence_lens is the length of the example, expanded to the batch."""
    shape = helper.make_node("Shape", ["X"], ["s"], start=1, end=2)
    expand = helper.make_node("Expand", ["length", "s"], ["lens"])
    node = recurrent("LSTM", ("X", "W", "R", "", "lens"))

    def result(steps: Any, length: int) -> Checked:
        constants = {**RIGHT, "length": np.array(length, np.int32)}
        return check_model(model_of([shape, expand, node], {"X": (steps, "batch", I)}, constants, 15))

    assert "model.time-frozen" in warned(result("time", 7))
    assert errors(result(T, 7)) == [("/rnn", "lstm.lengths")]
    assert result(T, T).problems == ()


def test_a_projection_contradicts_hidden_size() -> None:
    """An exporter's model with proj_size: R and initial_h have fewer columns than a gate has rows."""
    weights = {"W": LSTM["W"], "R": LSTM["R"][..., : H - 2], "h": np.zeros((1, N, H - 2), np.float32)}
    weights["c"] = np.zeros((1, N, H), np.float32)
    result = check_model(model_of([recurrent("LSTM", ("X", "W", "R", "", "", "h", "c"))], X, weights))
    assert {rule for _, rule in errors(result)} == {"lstm.hidden-size", "lstm.shapes"}
    assert any("initial_h" in problem.message for problem in result.problems)


def test_default_values_of_inputs_are_no_constants() -> None:
    node = recurrent("LSTM", ("X", "W", "R", "", "lens"))
    model = model_of([node], {**X, "lens": (N,)}, {**RIGHT, "lens": np.array([9, 9], np.int32)})
    assert not errors(check_model(model))
    model.ir_version = 3  # every initializer is an input in this version
    assert errors(check_model(model)) == [("/rnn", "lstm.lengths")]


def test_external_weights_need_no_numbers_where_the_model_has_no_folder(tmp_path: Path) -> None:
    """The model contains the shapes. The data of a model file must exist, inside its folder."""
    model = model_of([recurrent("LSTM")], X, WRONG_R)
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="../../etc/passwd")
    assert errors(check_model(model)) == [("/rnn", "lstm.shapes")]
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert "is outside the folder: '../../etc/passwd'" in check_model(path).unreadable


def test_names_that_are_hostile_stay_one_line() -> None:
    node = recurrent("LSTM", name="evil\n::error::\x1b[31m")
    (problem,) = check_model(model_of([node], X, WRONG_R)).problems
    assert problem.node.isprintable()
    nameless = [recurrent("LSTM", name="", outputs=[output]) for output in "YZ"]
    assert [path for path, _ in check_model(model_of(nameless, X, RIGHT)).nodes] == ["/LSTM_0", "/LSTM_1"]


@pytest.mark.parametrize("name", [b"hidden_size", b"rnn", b"LSTM"])
def test_a_damaged_name_is_the_fault_of_the_file(name: bytes) -> None:
    content = model_of([recurrent("LSTM")], X, RIGHT).SerializeToString()
    result = check_model(content.replace(name, b"\xfb" + name[1:]))
    assert (result.unreadable, result.unchecked) == ("is damaged: a name in it is not UTF-8", ())


def test_a_type_that_onnx_does_not_have_is_named_by_its_number() -> None:
    problem = check_model(model_of([recurrent("LSTM")], X, RIGHT, kinds={"X": 77})).problems[0]
    assert (problem.rule, problem.message.partition(",")[0]) == ("lstm.types", "X is of element type 77")


def test_a_graph_in_a_circle() -> None:
    a = helper.make_node("Identity", ["b"], ["a"])
    b = helper.make_node("Identity", ["a"], ["b"])
    shape = helper.make_node("Shape", ["Y"], ["b2"])
    node = recurrent("LSTM", ("X", "W", "a", "", "b2"))
    result = check_model(model_of([a, b, shape, node], X, RIGHT))
    assert not result.unreadable
    assert {"lstm.shapes", "lstm.types"} <= {unchecked.rule for unchecked in result.unchecked}


def chain(length: int) -> bytes:
    """Return a model with a chain of nodes, every thousandth of which is followed by a recurrent one."""
    nodes, last = [], "X"
    for k in range(length):
        nodes.append(helper.make_node("Neg", [last], [f"t{k}"]))
        last = f"t{k}"
        if k % 1000 == 999:
            nodes.append(recurrent("LSTM", (last, "W", "R"), f"rnn{k}", [f"Y{k}"]))
    return model_of(nodes, X, RIGHT, outputs=["Y999"]).SerializeToString()


def test_ten_thousand_nodes_cost_ten_times_what_a_thousand_cost() -> None:
    result = check_model(chain(10_000))
    assert len(result.nodes) == 10
    assert_right(result)
    few, many = (calls(partial(check_model, chain(length))) for length in (1_000, 10_000))
    assert many < 12 * few


def test_external_weights_cost_no_memory(tmp_path: Path) -> None:
    """The file beside the model has a nominal size of a gigabyte: it is sparse."""
    size = 1 << 30
    model = model_of([recurrent("LSTM")], X, RIGHT)
    huge = model.graph.initializer.add(name="huge", data_type=TensorProto.FLOAT, dims=[size // 4])
    huge.data_location = TensorProto.EXTERNAL
    huge.external_data.add(key="location", value="huge.bin")
    with (tmp_path / "huge.bin").open("wb") as file:
        file.truncate(size)
    onnx.save(model, tmp_path / "model.onnx")
    tracemalloc.start()
    result = check_model(tmp_path / "model.onnx")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [operator for _, operator in result.nodes] == ["LSTM-14"]
    assert_right(result)
    assert peak < 20 << 20


def test_the_function_for_programs(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model_of([recurrent("LSTM")], X, WRONG_R).SerializeToString())
    for model in (path, str(path), path.read_bytes(), onnx.load(path)):
        (problem,) = check(model)
        assert (problem.rule, problem.level, problem.operator) == ("lstm.shapes", Level.ERROR, "LSTM-14")
        assert problem.message == "dimension 1 of R is 19, which is no multiple of 4: it must be 4*hidden_size"
    with pytest.raises(UnreadableModel, match=r"none\.onnx does not exist"):
        check(tmp_path / "none.onnx")
    with pytest.raises(UnreadableModel, match="the model is no ONNX model"):
        check(b"nonsense")


def test_nothing_follows_from_the_outputs_of_an_illegal_node() -> None:
    """The first node has 5 units, by its weights; only its own hidden_size of 10 is wrong, not the next node."""
    weights = weights_of("GRU")
    nodes = [
        recurrent("GRU", name="first", outputs=["y"], hidden_size=2 * H),
        helper.make_node("Squeeze", ["y", "axis"], ["x"]),
        recurrent("GRU", ("x", "R", "R"), name="second"),
    ]
    problems = check(model_of(nodes, X, {**weights, "axis": np.array([1], np.int64)}))
    assert [(p.node, p.rule) for p in problems if p.level is Level.ERROR] == [("/first", "gru.hidden-size")]

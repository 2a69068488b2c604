"""Fixed sizes, states in the order of the other layout, stale declarations, and padding that no node reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper

from onnxspec.conformance.checking.check import check_model
from onnxspec.conformance.checking.problem import Checked, Level, Problem

from .nodes import H, I, N, T, assert_no_internal_error, model_of, recurrent, value, weights_of

W = {name: array for name, array in weights_of("LSTM").items() if name != "B"}
BOTH = {f"{name}2": array for name, array in weights_of("LSTM", 2).items() if name != "B"}
BOTH["V"] = np.zeros((2, 4 * H, 2 * H), np.float32)  # the W2 of a second layer


def warnings(checked: Checked, rule: str) -> list[Problem]:
    """Return the problems by a rule, where no other rule is broken."""
    assert {problem.rule for problem in checked.problems} <= {rule}, checked.problems
    assert not [problem for problem in checked.problems if problem.level is Level.ERROR], checked.problems
    return list(checked.problems)


def stacked(shape: list[int], X: Any = ("w", "batch_size", I)) -> Checked:
    """Check two bidirectional LSTMs connected through a Reshape, as PyTorch exports them."""
    nodes = [
        recurrent("LSTM", ("X", "W2", "R2"), "first", ["y"], direction="bidirectional"),
        helper.make_node("Transpose", ["y"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "shape"], ["r"], name="fixed"),
        helper.make_node("Relu", ["r"], ["x"]),
        recurrent("LSTM", ("x", "V", "R2"), "second", direction="bidirectional"),
    ]
    return check_model(model_of(nodes, {"X": X}, {**BOTH, "shape": np.array(shape, np.int64)}))


def test_a_reshape_with_the_sizes_of_the_example_fixes_x() -> None:
    (problem,) = warnings(stacked([100, 1, 2 * H]), "model.shape-fixed")
    assert problem.node == "/second"
    assert "X always has 100 steps and a batch of 1: Reshape /fixed makes (100, 1, 10)" in problem.message
    assert "batch_size and w open" in problem.message
    # One of the two sizes is fixed and the other is inferred: only multiples fit, and rows are mixed.
    for shape in ([100, -1, 2 * H], [-1, 3, 2 * H]):
        assert [p.node for p in warnings(stacked(shape), "model.shape-fixed")] == ["/second"]


def test_a_reshape_that_copies_sizes_or_whose_input_is_fixed_is_fine() -> None:
    for shape, X in (([0, 0, -1], ("w", "b", I)), ([0, -1, 2 * H], ("w", "b", I)), ([T, N, -1], (T, N, I)),
                     ([-1, N, 2 * H], ("w", N, I)), ([0, 1, 2 * H], ("w", 1, I))):  # fmt: skip
        assert stacked(shape, X).problems == ()


def test_a_batch_that_a_reshape_puts_into_time() -> None:
    for rows in ("batch_size", "n"):  # the first node treats the axis as a batch, whatever its name
        (problem,) = warnings(stacked([-1, 1, 2 * H], ("w", rows, I)), "model.batch-in-time")
        assert problem.node == "/second"
        assert f"rows of {rows} become one sequence" in problem.message


def test_axes_of_an_image_that_become_time_are_no_batch() -> None:
    nodes = [helper.make_node("Reshape", ["image", "shape"], ["X"]), recurrent("LSTM")]
    constants = {**W, "shape": np.array([-1, 1, I], np.int64)}
    for rows, rules in (("h", []), ("batch", ["model.batch-in-time"])):
        problems = check_model(model_of(nodes, {"image": (rows, "w", I)}, constants)).problems
        assert [problem.rule for problem in problems] == rules


def test_an_axis_called_batch_that_is_time() -> None:
    for X, layout, right in ((("batch", "time", I), 0, False), (("time", "batch", I), 0, True),
                             (("batch_steps", "batch", I), 0, True), (("batch", "time", I), 1, True)):  # fmt: skip
        found = warnings(check_model(model_of([recurrent("LSTM", layout=layout)], {"X": X}, W)), "model.batch-in-time")
        assert ["the time axis of X is called batch" in problem.message for problem in found] == [True] * (not right)


def test_an_expand_with_the_sizes_of_the_example() -> None:
    nodes = [helper.make_node("Expand", ["x", "shape"], ["X"]), recurrent("LSTM")]
    for shape, right in (([T, 2, 1], False), ([1, 2, 1], True)):
        constants = {**W, "shape": np.array(shape, np.int64)}
        found = warnings(check_model(model_of(nodes, {"x": ("t", 1, I)}, constants)), "model.shape-fixed")
        expected = f"X always has {T} steps and a batch of 2: Expand"
        assert [expected in problem.message for problem in found] == [True] * (not right)


def test_sizes_that_are_fixed_behind_a_node() -> None:
    reshape = helper.make_node("Reshape", ["Y", "shape"], ["out"], name="flat")
    for shape, count in (([T, N * H], 1), ([0, -1], 0), ([-1, H], 0)):
        constants = {**W, "shape": np.array(shape, np.int64)}
        checked = check_model(model_of([recurrent("LSTM"), reshape], {"X": ("t", "n", I)}, constants, outputs=["out"]))
        assert len(warnings(checked, "model.shape-fixed")) == count
        assert all("Y is used with fixed sizes: Reshape /flat" in problem.message for problem in checked.problems)


def with_states(layout: int, X: Any, states: Any, version: int = 14) -> Checked:
    node = recurrent("LSTM", ("X", "W", "R", "", "", "h", "c0"), **({"layout": layout} if version >= 14 else {}))
    return check_model(model_of([node], {"X": X, "h": states, "c0": states}, W, version))


def test_states_in_the_order_of_the_other_layout() -> None:
    """The states are reported, not X: two states against X are no majority."""
    for layout, version, X, states in (
        (1, 14, ("n", T, I), (1, "n", H)),
        (0, 14, (T, "n", I), ("n", 1, H)),
        (0, 7, (T, "n", I), ("n", 1, H)),
    ):
        checked = with_states(layout, X, states, version)
        problems = warnings(checked, "model.batch-fixed")
        axes = [f"the first two axes of initial_{name}" for name in "hc"]
        assert [p.message.split(" (")[0] for p in problems] == axes
        assert all("swapped" in p.message and "Swap the first two axes" in p.advice for p in problems)
        assert checked.unchecked == ()
        shapes = ([5 if extent == "n" else extent for extent in shape] for shape in (X, states))
        errors = [p.message for p in with_states(layout, *shapes, version).problems if p.level is Level.ERROR]
        assert [message.split(" (")[0] for message in errors] == axes
        assert all("are swapped" in message for message in errors)
    assert with_states(1, ("n", T, I), ("n", 1, H)).problems == ()
    assert with_states(1, (1, T, I), (1, 1, H)).problems == ()


@pytest.mark.parametrize(
    ("claim", "stale"), [((25, 1, N, H), True), ((T, 1, N, H), False), (("t", 1, N, H), False), ((T, N, H), True)]
)
def test_a_claimed_shape_of_an_output_that_contradicts_x(claim: tuple[Any, ...], stale: bool) -> None:
    for where in ("value_info", "output"):
        model = model_of([recurrent("LSTM")], {"X": (T, N, I)}, W, outputs=())
        getattr(model.graph, where).append(value("Y", claim))
        found = warnings(check_model(model), "model.sizes-claimed")
        assert ["the shape of Y" in problem.message for problem in found] == [True] * stale


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 27, reason="CausalConvWithState came with opset 27")
@pytest.mark.parametrize(("claim", "stale"), [((2, 3, 8), False), ((2, 3, 9), True)])
def test_operators_without_a_sequence_have_claims_too(claim: tuple[int, ...], stale: bool) -> None:
    node = helper.make_node("CausalConvWithState", ["x", "weight"], ["Y", "state"], name="conv")
    model = model_of([node], {"x": (2, 3, 8)}, {"weight": np.zeros((3, 1, 4), np.float32)}, 27, outputs=())
    model.graph.value_info.append(value("Y", claim))
    assert [problem.rule for problem in check_model(model).problems] == ["model.sizes-claimed"] * stale


def padded(between: list[NodeProto], second_lengths: str, output: str = "h", state: str = "") -> set[str]:
    """Return which of two nodes with lengths are reported to rely on padding."""
    first = recurrent("LSTM", ("X", "W2", "R2", "", "lens"), "first", ["y"], direction="bidirectional")
    inputs = ("x", "V", "R2", "", second_lengths, state)
    second = recurrent("LSTM", inputs, "second", ["", "h"], direction="bidirectional")
    constants = {**BOTH, "merge": np.array([0, 0, -1], np.int64), "axes": np.array([0], np.int64)}
    shapes = {"X": (1 if state else "t", "n", I), "lens": ("n",), "others": ("n",)}
    checked = check_model(model_of([first, *between, second], shapes, constants, outputs=[output]))
    assert len(checked.nodes) == 2
    return {problem.node for problem in warnings(checked, "lstm.padding.zero")}


MERGE = [
    helper.make_node("Transpose", ["y"], ["t"], perm=[0, 2, 1, 3]),
    helper.make_node("Reshape", ["t", "merge"], ["m"]),
    helper.make_node("Dropout", ["m"], ["x"]),
]


def test_padding_is_relied_on_unless_it_comes_to_nodes_of_the_same_lengths_alone() -> None:
    assert padded(MERGE, "lens") == set()
    assert padded(MERGE, "others") == {"/first"}
    assert padded(MERGE, "") == {"/first"}
    assert padded(MERGE, "lens", output="x") == {"/first"}
    last = helper.make_node("Squeeze", ["y", "axes"], ["state"])
    assert padded([*MERGE, last], "lens", state="state") == {"/first"}
    assert padded([*MERGE, helper.make_node("ReduceMean", ["x"], ["mean"])], "lens") == {"/first"}


def test_nodes_without_inputs_or_outputs_break_nothing() -> None:
    """The model is not validated before the check: nodes around a recurrent node may have any form."""
    node = recurrent("LSTM", ("X", "W", "R", "", "lens", "h"))
    around = [
        helper.make_node("Reshape", ["Y", "shape"], []),
        helper.make_node("Reshape", ["Y"], ["r"]),
        helper.make_node("Gather", ["Y"], ["g"]),
        helper.make_node("Transpose", ["Y"], ["t"], perm=[9, 0]),
        helper.make_node("Squeeze", ["Y"], ["s"], axes=[0, 1, 2, 3]),
        helper.make_node("Transpose", ["s"], ["u"]),
        helper.make_node("LSTM", ["Y"], ["Z"], name="second"),
        helper.make_node("Expand", [], ["X"]),
        helper.make_node("Slice", [], ["h"]),
    ]
    constants = {**W, "lens": np.array([1, 2], np.int32), "shape": np.array([0, 0, -1], np.int64)}
    for k in range(len(around)):
        one = around[k : k + 1] if around[k].op_type != "Transpose" else around[k - 1 : k + 1]
        assert_no_internal_error(model_of([*one, node], {"X": ("t", "n", I), "h": (1, 1, H)}, constants))
    assert_no_internal_error(model_of([*around, node], {}, constants))

"""Tests of the values inside the cell: gates by their letters, from the equations themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.reference import Interpretations, Node, evaluate
from onnxspec.reference.recurrent.computation import steps_of

from ..situations import OPERATORS, Arrays, inputs_for, optional_of, outputs_of, variants_of


def _inputs(op: str, T: int = 4, N: int = 3, without: tuple[str, ...] = (), **given: Any) -> dict[str, Any]:
    optional = tuple(name for name in optional_of(op) if name not in without)
    return inputs_for("float32", (T, N, 2, 5), op=op, optional=optional, **given)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _by_hand(op: str, inputs: Arrays, linear: int, reported: Any) -> dict[str, Any]:
    """Return the numbers of all steps, each from the hidden state that is `reported` of the step before it."""
    given = {name: array[0].astype(np.float64) for name, array in inputs.items() if name != "X"}
    W, R = given["W"], given["R"]
    Wb, Rb = np.split(given.get("B", np.zeros(2 * len(W))), 2)
    Pi, Po, Pf = np.split(given.get("P", np.zeros(15)), 3)
    H, C = given.get("initial_h", 0 * reported[0]), given.get("initial_c")
    steps: list[dict[str, Any]] = []
    for t, x in enumerate(inputs["X"].astype(np.float64)):
        XW, HR = x @ W.T + Wb, H @ R.T + Rb
        if op == "LSTM":
            i, o, f, c = np.split(XW + HR, 4, axis=1)
            i, f, c = _sigmoid(i + Pi * C), _sigmoid(f + Pf * C), np.tanh(c)
            C = f * C + i * c
            o = _sigmoid(o + Po * C)
            steps.append({"i": i, "o": o, "f": f, "c": c, "C": C, "H": o * np.tanh(C)})
        elif op == "GRU":
            z, r = np.split(_sigmoid((XW + HR)[:, :10]), 2, axis=1)
            h = np.tanh(XW[:, 10:] + (r * HR[:, 10:] if linear else (r * H) @ R[10:].T + Rb[10:]))
            steps.append({"z": z, "r": r, "h": h, "H": (1 - z) * h + z * H})
        else:
            i = np.tanh(XW + HR)
            steps.append({"i": i, "H": i})
        H = reported[t]
    return {name: np.stack([step[name] for step in steps]) for name in steps[0]}


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("without", [(), ("P",), ("P", "B", "initial_h")])
@pytest.mark.parametrize(("op", "linear"), [("LSTM", 0), ("GRU", 0), ("GRU", 1), ("RNN", 0)])
def test_gates_by_hand(op: str, linear: int, without: tuple[str, ...], free: bool, layout: int) -> None:
    """The order of the numbers is that of the blocks, then states; each step starts from the reported state."""
    inputs = _inputs(op, without=without)
    turned = {n: a.swapaxes(0, 1) if layout and (n == "X" or "_" in n) else a for n, a in inputs.items()}
    attributes = {"layout": layout} | ({"linear_before_reset": linear} if op == "GRU" else {})
    node = Node(op, 14, attributes, outputs_of(op))
    Y = (
        evaluate(node, turned)["Y"]
        if free
        else np.random.default_rng(1).normal(size=(3, 4, 1, 5) if layout else (4, 1, 3, 5))
    )
    (steps,) = steps_of(node, turned, None if free else Y)
    expected = _by_hand(op, inputs, linear, (Y.swapaxes(0, 1)[:, :, 0] if layout else Y[:, 0]))
    assert list(steps.numbers) == list(expected)
    for name, values in expected.items():
        assert type(steps.numbers[name]) is np.ndarray
        np.testing.assert_allclose(steps.numbers[name], values, rtol=1e-12, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("peepholes", [False, True])
@pytest.mark.parametrize(("interpretation", "kept", "other"), [("input", "i", "f"), ("forget", "f", "i")])
def test_the_gate_without_an_activation_of_its_own_is_there_too(
    peepholes: bool, interpretation: str, kept: str, other: str
) -> None:
    inputs = _inputs("LSTM", without=() if peepholes else ("P",))
    coupled = Interpretations(coupled_gate=interpretation)
    (steps,) = steps_of(Node("LSTM", 14, {"input_forget": 1}), inputs, interpretations=coupled)
    n = steps.numbers
    np.testing.assert_array_equal(n[other], 1 - n[kept])
    C = np.concatenate([inputs["initial_c"], n["C"][:-1]])
    np.testing.assert_allclose(n["f"] * C + n["i"] * n["c"], n["C"], rtol=1e-12)


@pytest.mark.parametrize("op", OPERATORS)
def test_free_run_holds_the_outputs_of_each_direction_and_row(op: str) -> None:
    inputs = _inputs(op, directions=2, lengths=[2, 4, 3])
    node = Node(op, 14, {"direction": "bidirectional", **variants_of(op)[-1]}, outputs_of(op))
    outputs = evaluate(node, inputs)
    both = steps_of(node, inputs)
    assert [steps.direction for steps in both] == ["forward", "reverse"]
    for d, steps in enumerate(both):
        for row, length in enumerate(steps.lengths):
            order = steps.positions[:length, row]
            assert order.tolist() == (list(range(length)) if d == 0 else list(range(length))[::-1])
            np.testing.assert_allclose(steps.numbers["H"][:length, row], outputs["Y"][order, d, row], rtol=1e-12)
            if op == "LSTM":
                np.testing.assert_allclose(steps.numbers["C"][length - 1, row], outputs["Y_c"][d, row], rtol=1e-12)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize(("T", "N"), [(0, 3), (4, 0), (0, 0)])
def test_nothing_to_compute(T: int, N: int, op: str) -> None:
    (steps,) = steps_of(Node(op, 14), _inputs(op, T, N))
    assert {values.shape for values in steps.numbers.values()} == {(T, N, 5)}

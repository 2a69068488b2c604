"""Tests of the values inside the cell: gates by their letters, from the equations themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.reference import Interpretations, Node, evaluate, evaluate_in_order
from onnxspec.reference.recurrent import Steps
from onnxspec.reference.recurrent.computation import steps_of


def _inputs(T: int = 4, N: int = 3, I: int = 2, H: int = 5, D: int = 1, **more: Any) -> dict[str, Any]:
    draw = np.random.default_rng(7)
    shapes = {"X": (T, N, I), "W": (D, 4 * H, I), "R": (D, 4 * H, H), "B": (D, 8 * H), "P": (D, 3 * H)}
    shapes |= {"initial_h": (D, N, H), "initial_c": (D, N, H)}
    inputs = {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return {**inputs, **more}


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _wide(array: Any) -> Any:
    return np.asarray(array, np.float64)


def _without(inputs: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: array for name, array in inputs.items() if name not in names}


def test_numbers_stand_in_the_order_of_the_blocks_then_states() -> None:
    (steps,) = steps_of(Node("LSTM", 14), _inputs())
    assert list(steps.numbers) == ["i", "o", "f", "c", "C", "H"]
    assert {values.shape for values in steps.numbers.values()} == {(4, 3, 5)}
    assert all(type(values) is np.ndarray for values in steps.numbers.values())


@pytest.mark.parametrize("absent", [(), ("P",), ("P", "B", "initial_h")])
def test_first_step_by_hand(absent: tuple[str, ...]) -> None:
    inputs = _without(_inputs(), *absent)
    x, h, C = (_wide(inputs[n][0]) if n in inputs else np.zeros((3, 5)) for n in ("X", "initial_h", "initial_c"))
    W, R = _wide(inputs["W"][0]), _wide(inputs["R"][0])
    B = _wide(inputs["B"][0]) if "B" in inputs else np.zeros(40)
    P = _wide(inputs["P"][0]) if "P" in inputs else np.zeros(15)
    sums = x @ W.T + h @ R.T + B[:20] + B[20:]
    i = _sigmoid(sums[:, :5] + P[:5] * C)
    f = _sigmoid(sums[:, 10:15] + P[10:] * C)
    c = np.tanh(sums[:, 15:])
    state = f * C + i * c
    o = _sigmoid(sums[:, 5:10] + P[5:10] * state)
    (steps,) = steps_of(Node("LSTM", 14), inputs)
    for name, value in {"i": i, "o": o, "f": f, "c": c, "C": state, "H": o * np.tanh(state)}.items():
        np.testing.assert_allclose(steps.numbers[name][0], value, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("peepholes", [False, True])
@pytest.mark.parametrize(("interpretation", "kept", "other"), [("input", "i", "f"), ("forget", "f", "i")])
def test_the_gate_without_an_activation_of_its_own_is_there_too(
    peepholes: bool, interpretation: str, kept: str, other: str
) -> None:
    inputs = _inputs() if peepholes else _without(_inputs(), "P")
    (steps,) = steps_of(
        Node("LSTM", 14, {"input_forget": 1}), inputs, interpretations=Interpretations(coupled_gate=interpretation)
    )
    np.testing.assert_array_equal(steps.numbers[other], 1 - steps.numbers[kept])
    C = np.concatenate([_wide(inputs["initial_c"]), steps.numbers["C"][:-1]])
    n = steps.numbers
    np.testing.assert_allclose(n["f"] * C + n["i"] * n["c"], n["C"], rtol=1e-12)


@pytest.mark.parametrize("peepholes", [False, True])
def test_free_run_holds_what_the_node_returns(peepholes: bool) -> None:
    inputs = _inputs(D=2, sequence_lens=np.array([2, 4, 3], np.int32))
    inputs = inputs if peepholes else _without(inputs, "P")
    node = Node("LSTM", 14, {"direction": "bidirectional"}, ("Y", "Y_c"))
    outputs = evaluate(node, inputs)
    both = steps_of(node, inputs)
    assert [steps.direction for steps in both] == ["forward", "reverse"]
    for d, steps in enumerate(both):
        for row, length in enumerate(steps.lengths):
            order = steps.positions[:length, row]
            assert order.tolist() == (list(range(length)) if d == 0 else list(range(length))[::-1])
            np.testing.assert_allclose(steps.numbers["H"][:length, row], outputs["Y"][order, d, row], rtol=1e-12)
            np.testing.assert_allclose(steps.numbers["C"][length - 1, row], outputs["Y_c"][d, row], rtol=1e-12)


def test_each_step_starts_from_the_reported_state() -> None:
    inputs = _without(_inputs(), "P", "B")
    reported = np.random.default_rng(1).normal(size=(3, 4, 1, 5)).astype(np.float32)  # layout 1: N, T, D, H
    turned = {n: a.swapaxes(0, 1) if n in ("X", "initial_h", "initial_c") else a for n, a in inputs.items()}
    (steps,) = steps_of(Node("LSTM", 14, {"layout": 1}), turned, reported)
    before = _wide(reported[:, 1, 0])
    argument = _wide(inputs["X"][2]) @ _wide(inputs["W"][0]).T + before @ _wide(inputs["R"][0]).T
    np.testing.assert_allclose(steps.numbers["o"][2], _sigmoid(argument[:, 5:10]), rtol=1e-12)
    assert not np.allclose(steps.numbers["o"][2], steps_of(Node("LSTM", 14, {"layout": 1}), turned)[0].numbers["o"][2])


@pytest.mark.parametrize(("T", "N"), [(0, 3), (4, 0), (0, 0)])
def test_nothing_to_compute(T: int, N: int) -> None:
    steps: Steps
    (steps,) = steps_of(Node("LSTM", 14), _inputs(T=T, N=N))
    assert list(steps.numbers) == ["i", "o", "f", "c", "C", "H"]
    assert {values.shape for values in steps.numbers.values()} == {(T, N, 5)}


# GRU and RNN.


def _gru_inputs(T: int = 4, N: int = 3, I: int = 2, H: int = 5, D: int = 1, **more: Any) -> dict[str, Any]:
    draw = np.random.default_rng(7)
    shapes = {"X": (T, N, I), "W": (D, 3 * H, I), "R": (D, 3 * H, H), "B": (D, 6 * H), "initial_h": (D, N, H)}
    return {**{name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}, **more}


@pytest.mark.parametrize("reported", [False, True])
@pytest.mark.parametrize("linear", [0, 1])
@pytest.mark.parametrize("absent", [(), ("B",), ("B", "initial_h")])
def test_gates_of_gru_by_hand(absent: tuple[str, ...], linear: int, reported: bool) -> None:
    inputs = _without(_gru_inputs(), *absent)
    node = Node("GRU", 14, {"linear_before_reset": linear}, ("Y", "Y_h"))
    Y = np.random.default_rng(1).normal(size=(4, 1, 3, 5)) if reported else evaluate(node, inputs)["Y"]
    (steps,) = steps_of(node, inputs, Y if reported else None)
    assert list(steps.numbers) == ["z", "r", "h", "H"]
    assert all(type(values) is np.ndarray for values in steps.numbers.values())
    first = _wide(inputs["initial_h"]) if "initial_h" in inputs else np.zeros((1, 3, 5))
    before = np.concatenate([first, Y[:-1, 0]])
    W, R = _wide(inputs["W"][0]), _wide(inputs["R"][0])
    Wb, Rb = np.split(_wide(inputs["B"][0]) if "B" in inputs else np.zeros(30), 2)
    XW, HR = _wide(inputs["X"]) @ W.T + Wb, before @ R.T + Rb
    z, r = _sigmoid(XW[..., :5] + HR[..., :5]), _sigmoid(XW[..., 5:10] + HR[..., 5:10])
    recurrent = r * HR[..., 10:] if linear else (r * before) @ R[10:].T + Rb[10:]
    h = np.tanh(XW[..., 10:] + recurrent)
    for name, value in {"z": z, "r": r, "h": h, "H": (1 - z) * h + z * before}.items():
        np.testing.assert_allclose(steps.numbers[name], value, rtol=1e-12, atol=1e-14, err_msg=name)


def test_the_gate_of_rnn_is_its_state() -> None:
    inputs = _gru_inputs()
    inputs = {**inputs, "W": inputs["W"][:, :5], "R": inputs["R"][:, :5], "B": inputs["B"][:, :10]}
    node = Node("RNN", 14, {"direction": "reverse"}, ("Y",))
    (steps,) = steps_of(node, inputs)
    assert list(steps.numbers) == ["i", "H"]
    np.testing.assert_array_equal(steps.numbers["i"], steps.numbers["H"])
    np.testing.assert_array_equal(steps.numbers["H"], evaluate_in_order(node, inputs)["Y"][::-1, 0])


@pytest.mark.parametrize("linear", [0, 1])
def test_both_directions_of_gru_with_rows_of_their_own_lengths(linear: int) -> None:
    inputs = _gru_inputs(D=2, sequence_lens=np.array([2, 4, 3], np.int32))
    node = Node("GRU", 14, {"direction": "bidirectional", "linear_before_reset": linear}, ("Y",))
    Y = evaluate(node, inputs)["Y"]
    for d, steps in enumerate(steps_of(node, inputs)):
        first = _wide(inputs["initial_h"][d])[np.newaxis]
        before = np.concatenate([first, steps.numbers["H"][:-1]])
        n = steps.numbers
        np.testing.assert_allclose((1 - n["z"]) * n["h"] + n["z"] * before, n["H"], rtol=1e-12)
        for row, length in enumerate(steps.lengths):
            order = steps.positions[:length, row]
            np.testing.assert_allclose(n["H"][:length, row], Y[order, d, row], rtol=1e-12)

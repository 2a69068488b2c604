"""Tests of scopes: a fault that affects only one place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.cases import build_case, profile
from onnxspec.reference import FAULTS, Fault, evaluate, fault_named, operator_for, run_fault
from onnxspec.reference.faults.scope import scoped_named, scoped_of

from .fault_situations import situation


def _scoped(id: str) -> Fault:
    scoped = scoped_named(id)
    assert scoped is not None
    return scoped


def _outputs(fault: Fault, op: str, name: str = "rich") -> dict[str, Any]:
    case = situation(name, op, "float64")
    return run_fault(fault, case.trial.node, case.trial.feeds[0].inputs)


def _right(op: str, name: str = "rich") -> dict[str, Any]:
    case = situation(name, op, "float64")
    return evaluate(case.trial.node, case.trial.feeds[0].inputs)


def test_a_scoped_fault_has_a_name_and_a_sentence() -> None:
    fault = _scoped("initial-states.shared-directions@initial_h")
    assert fault.summary == (
        "Starts the backward direction from the forward direction's initial states: for initial_h only."
    )
    assert fault_named(fault.id) == fault
    assert fault.clause("GRU") == "gru.initial-states"


@pytest.mark.parametrize(
    "id", ["no.such@B", "bias.ignored@nowhere", "bias.ignored", "session.state-kept@Y", "bias.ignored@gate-f", "@B"]
)
def test_what_has_no_scope_has_no_name(id: str) -> None:
    assert scoped_named(id) is None


def test_one_input_of_those_that_a_fault_alters() -> None:
    """The biases of R and Z are swapped: only the blocks of B are in PyTorch's order."""
    case = situation("rich", "GRU", "float64")
    inputs = dict(case.trial.feeds[0].inputs)
    D, _ = inputs["B"].shape
    swapped = inputs["B"].reshape(D, 2, 3, -1)[:, :, [1, 0, 2]].reshape(D, -1)
    right = evaluate(case.trial.node, {**inputs, "B": swapped})
    outputs = _outputs(_scoped("gru.gates.rzh@B"), "GRU")
    for name, array in outputs.items():
        np.testing.assert_allclose(array, right[name], rtol=1e-12, atol=1e-14)


def test_one_state() -> None:
    case = situation("rich", "LSTM", "float64")
    inputs = dict(case.trial.feeds[0].inputs)
    shared = np.repeat(inputs["initial_h"][:1], 2, axis=0)
    right = evaluate(case.trial.node, {**inputs, "initial_h": shared})
    outputs = _outputs(_scoped("initial-states.shared-directions@initial_h"), "LSTM")
    for name, array in outputs.items():
        np.testing.assert_allclose(array, right[name], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["rich", "layout"])
def test_one_direction(name: str) -> None:
    outputs, whole = (
        _outputs(_scoped("bias.ignored@reverse"), "LSTM", name),
        _outputs(FAULTS["bias.ignored"], "LSTM", name),
    )
    right = _right("LSTM", name)
    axis = 2 if name == "layout" else 1
    for d, same in ((0, right), (1, whole)):
        np.testing.assert_allclose(outputs["Y"].take(d, axis), same["Y"].take(d, axis), rtol=1e-12)
        state = 1 if name == "layout" else 0
        np.testing.assert_allclose(outputs["Y_c"].take(d, state), same["Y_c"].take(d, state), rtol=1e-12)


def test_one_output() -> None:
    outputs, whole = _outputs(_scoped("lengths.ignored@Y_c"), "LSTM"), _outputs(FAULTS["lengths.ignored"], "LSTM")
    right = _right("LSTM")
    np.testing.assert_allclose(outputs["Y_h"], right["Y_h"], rtol=1e-12)
    np.testing.assert_allclose(outputs["Y_c"], whole["Y_c"], rtol=1e-12)


def test_every_scope_of_every_fault_computes_something() -> None:
    for op in ("LSTM", "GRU", "RNN"):
        faults = [d for d in FAULTS.values() if d.applies(op, 22, "float64")]
        ids = set()
        for fault in scoped_of(iter(faults)):
            if op in fault.operators:
                ids.add(fault.id)
                if fault.id.endswith(("@reverse", "@B", "@Y_h", "@Rb")):
                    assert _outputs(fault, op), fault.id
        assert len(ids) > 1000


def _rich(op: str) -> tuple[Any, dict[str, Any]]:
    case = situation("rich", op, "float64")
    return case.trial.node, dict(case.trial.feeds[0].inputs)


def _equal(outputs: dict[str, Any], right: dict[str, Any]) -> None:
    for name, array in outputs.items():
        np.testing.assert_allclose(array, right[name], rtol=1e-12, atol=1e-14)


def test_one_half_of_the_biases() -> None:
    """The recurrent biases of R and Z are swapped; those of the input are right."""
    node, inputs = _rich("GRU")
    swapped = inputs["B"].reshape(len(inputs["B"]), 2, 3, -1).copy()
    swapped[:, 1, [0, 1]] = swapped[:, 1, [1, 0]]
    right = evaluate(node, {**inputs, "B": swapped.reshape(inputs["B"].shape)})
    _equal(_outputs(_scoped("gru.gates.rzh@Rb"), "GRU"), right)


@pytest.mark.parametrize(("block", "tail"), [(4, 8), (16, 0)])  # of nine units
def test_units_that_whole_blocks_leave_over(block: int, tail: int) -> None:
    node, inputs = _rich("LSTM")
    assert inputs["R"].shape[2] == 9
    less = inputs["B"].reshape(len(inputs["B"]), 2, 4, 9).copy()
    less[:, 1, :, tail:] = 0
    right = evaluate(node, {**inputs, "B": less.reshape(inputs["B"].shape)})
    _equal(_outputs(_scoped(f"bias.recurrent-half-ignored@units-past-{block}s"), "LSTM"), right)


def test_outputs_of_units_that_whole_blocks_leave_over() -> None:
    right = _right("LSTM")
    for name, array in _outputs(_scoped("outputs.zero@units-past-4s"), "LSTM").items():
        np.testing.assert_allclose(array[..., :8], right[name][..., :8], rtol=1e-12, atol=1e-14)
        assert not array[..., 8:].any()


def test_operators_without_a_cell_have_scopes() -> None:
    """ExtendedLSTM has scopes for one direction and for one wrongly quantized tensor, but none for its only output."""
    spec = next(s for s in profile("core", "ExtendedLSTM", 1) if s.T > 1 and not s.illegal and s.w[1] != 32768)
    trial = build_case(spec).trial
    inputs = trial.feeds[0].inputs
    right = operator_for(trial.node).answer(trial.node, inputs)["Y"]
    whole = run_fault(FAULTS["extended.gates.order-ifoc"], trial.node, inputs)["Y"]
    placed = run_fault(_scoped("extended.gates.order-ifoc@reverse"), trial.node, inputs)["Y"]
    np.testing.assert_array_equal(placed[:, 0], right[:, 0])
    np.testing.assert_array_equal(placed[:, 1], whole[:, 1])
    assert not np.array_equal(whole[:, 0], right[:, 0])
    by_tensor = run_fault(_scoped("extended.quantization.zero-point-ignored@W"), trial.node, inputs)["Y"]
    by_hand = run_fault(FAULTS["extended.quantization.zero-point-ignored-W"], trial.node, inputs)["Y"]
    np.testing.assert_array_equal(by_tensor, by_hand)
    assert scoped_named("extended.gates.order-ifoc@Y") is None
    assert scoped_named("quantized.zero-point-of-X-ignored@W") is None, "a codec is one tensor's already"


def test_rows_that_stand_together_take_each_others_lengths() -> None:
    node, inputs = _rich("RNN")
    lengths = inputs["sequence_lens"].copy()
    for first in range(0, len(lengths), 2):
        lengths[first : first + 2] = lengths[first : first + 2].max()
    assert len(set(lengths.tolist())) > 1
    fault = fault_named("lengths.longest-of-2")
    assert fault is not None
    _equal(_outputs(fault, "RNN"), evaluate(node, {**inputs, "sequence_lens": lengths}))


def test_a_tensor_in_one_direction() -> None:
    outputs = _outputs(_scoped("bias.ignored@Rb@reverse"), "LSTM")
    right, whole = _right("LSTM"), _outputs(_scoped("bias.ignored@Rb"), "LSTM")
    np.testing.assert_allclose(outputs["Y"][:, 0], right["Y"][:, 0], rtol=1e-12)
    np.testing.assert_allclose(outputs["Y"][:, 1], whole["Y"][:, 1], rtol=1e-12)
    assert scoped_named("bias.ignored@reverse@Rb") is None, "one name for one thing"

"""Tests of scopes: a fault that affects only one place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.cases import build_case, profile
from onnxspec.reference import FAULTS, Fault, evaluate, fault_named, operator_for, run_fault
from onnxspec.reference.faults.scope import scoped_named, scoped_of

from .fault_situations import situation

Array = NDArray[Any]


def _scoped(id: str) -> Fault:
    scoped = scoped_named(id)
    assert scoped is not None
    return scoped


def _run(fault: Fault | None, op: str, name: str = "rich", **changed: Any) -> dict[str, Any]:
    """Return the outputs of a situation with a fault, or the right ones, from inputs of which some are `changed`."""
    trial = situation(name, op, "float64").trial
    inputs = {**trial.feeds[0].inputs, **changed}
    return dict(evaluate(trial.node, inputs) if fault is None else run_fault(fault, trial.node, inputs))


def _equal(outputs: dict[str, Any], right: dict[str, Any]) -> None:
    for name, array in outputs.items():
        np.testing.assert_allclose(array, right[name], rtol=1e-12, atol=1e-14)


def _shared(initial_h: Array) -> Array:
    return np.repeat(initial_h[:1], 2, axis=0)


def _swapped(B: Array, halves: slice) -> Array:
    """Return B with the blocks of Z and R exchanged, as PyTorch has them, in one half or both."""
    blocks = B.reshape(len(B), 2, 3, -1).copy()
    blocks[:, halves, :2] = blocks[:, halves, 1::-1]
    return blocks.reshape(B.shape)


def _without_rb(B: Array, past: int) -> Array:
    """Return B without the recurrent biases of the units past a number; there are nine units."""
    less = B.reshape(len(B), 2, 4, 9).copy()
    less[:, 1, :, past:] = 0
    return less.reshape(B.shape)


def _longest_of_2(lengths: Array) -> Array:
    lengths = lengths.copy()
    for first in range(0, len(lengths), 2):
        lengths[first : first + 2] = lengths[first : first + 2].max()
    assert len(set(lengths.tolist())) > 1
    return lengths


@pytest.mark.parametrize(
    ("id", "op", "name", "change"),
    [
        ("initial-states.shared-directions@initial_h", "LSTM", "initial_h", _shared),
        ("gru.gates.rzh@B", "GRU", "B", lambda B: _swapped(B, slice(None))),
        ("gru.gates.rzh@Rb", "GRU", "B", lambda B: _swapped(B, slice(1, None))),
        ("bias.recurrent-half-ignored@units-past-4s", "LSTM", "B", lambda B: _without_rb(B, 8)),
        ("bias.recurrent-half-ignored@units-past-16s", "LSTM", "B", lambda B: _without_rb(B, 0)),
        ("lengths.longest-of-2", "RNN", "sequence_lens", _longest_of_2),
    ],
)
def test_a_scoped_fault_is_a_right_run_with_one_tensor_changed(id: str, op: str, name: str, change: Any) -> None:
    fault = fault_named(id)
    assert fault is not None
    inputs = situation("rich", op, "float64").trial.feeds[0].inputs
    _equal(_run(fault, op), _run(None, op, **{name: change(inputs[name])}))


def test_a_scoped_fault_has_a_name_and_a_sentence() -> None:
    fault = _scoped("initial-states.shared-directions@initial_h")
    assert fault.summary == (
        "Starts the backward direction from the forward direction's initial states: for initial_h only."
    )
    assert fault_named(fault.id) == fault
    assert fault.clause("GRU") == "gru.initial-states"


@pytest.mark.parametrize("id", [
    "no.such@B", "bias.ignored@nowhere", "bias.ignored", "session.state-kept@Y", "bias.ignored@gate-f", "@B",
    "bias.ignored@reverse@Rb",  # one name for one thing
    "extended.gates.order-ifoc@Y",  # its only output
    "quantized.zero-point-of-X-ignored@W",  # a codec is one tensor's already
])  # fmt: skip
def test_what_has_no_scope_has_no_name(id: str) -> None:
    assert scoped_named(id) is None


@pytest.mark.parametrize(
    ("scope", "whole", "name"),
    [
        ("bias.ignored@reverse", "bias.ignored", "rich"),
        ("bias.ignored@reverse", "bias.ignored", "layout"),
        ("bias.ignored@Rb@reverse", "bias.ignored@Rb", "rich"),
    ],
)
def test_one_direction(scope: str, whole: str, name: str) -> None:
    fault = fault_named(whole)
    right, wrong, outputs = (_run(each, "LSTM", name) for each in (None, fault, _scoped(scope)))
    for output, axis in {"Y": 2, "Y_c": 1}.items() if name == "layout" else {"Y": 1, "Y_c": 0}.items():
        for d, same in ((0, right), (1, wrong)):
            np.testing.assert_allclose(outputs[output].take(d, axis), same[output].take(d, axis), rtol=1e-12)


def test_one_output() -> None:
    faults = (None, FAULTS["lengths.ignored"], _scoped("lengths.ignored@Y_c"))
    right, wrong, outputs = (_run(each, "LSTM") for each in faults)
    np.testing.assert_allclose(outputs["Y_h"], right["Y_h"], rtol=1e-12)
    np.testing.assert_allclose(outputs["Y_c"], wrong["Y_c"], rtol=1e-12)


def test_every_scope_of_every_fault_computes_something() -> None:
    for op in ("LSTM", "GRU", "RNN"):
        faults = [d for d in FAULTS.values() if d.applies(op, 22, "float64")]
        ids = set()
        for fault in scoped_of(iter(faults)):
            if op in fault.operators:
                ids.add(fault.id)
                if fault.id.endswith(("@reverse", "@B", "@Y_h", "@Rb")):
                    assert _run(fault, op), fault.id
        assert len(ids) > 1000


def test_outputs_of_units_that_whole_blocks_leave_over() -> None:
    right = _run(None, "LSTM")
    for name, array in _run(_scoped("outputs.zero@units-past-4s"), "LSTM").items():
        np.testing.assert_allclose(array[..., :8], right[name][..., :8], rtol=1e-12, atol=1e-14)
        assert not array[..., 8:].any()


def test_operators_without_a_cell_have_scopes() -> None:
    """ExtendedLSTM has scopes for one direction and for one wrongly quantized tensor."""
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

"""Tests of the examples in the operators' documents, with the expected outputs that onnx ships.

The documents print the inputs and leave the outputs to a helper; ``onnx.backend.test`` runs that helper, in float32.
Inputs are rebuilt here from the printed text, so that a change of the shipped data is detected too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, helper

from onnxspec.reference import Node, evaluate, operator_version

from .second_gru import second_gru
from .second_lstm import second_lstm
from .second_rnn import second_rnn

Arrays = dict[str, NDArray[Any]]
Example = tuple[dict[str, Any], Arrays]

SECOND: dict[str, Callable[[dict[str, Any], Arrays], Arrays]] = {
    "LSTM": second_lstm,
    "GRU": second_gru,
    "RNN": second_rnn,
}
BLOCKS = {"LSTM": 4, "GRU": 3, "RNN": 1}

# The helper works in float32, u = 2^-24. Most examples have one step from a zero state: a gate's argument is a sum of
# at most 5 terms whose absolute values add up to at most 3.3, off by at most 6 u 3.3 < 20 u. Sigmoid and Tanh have
# slopes of at most 1 and results of at most 1, and five more roundings lead to H: 32 u in all.
ONE_STEP = 32 * 2.0**-24
# Two or three steps; where arguments are larger, up to some 70, the gates are saturated.
MORE_STEPS = 8 * ONE_STEP


def ones(scale: float, *shape: int) -> NDArray[np.float32]:
    """Return ``scale * np.ones(shape).astype(np.float32)``: the product is in float32."""
    return np.float32(scale) * np.ones(shape, dtype=np.float32)


def counting(*shape: int) -> NDArray[np.float32]:
    """Return 1, 2, 3 and so on, X of all examples."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def weights(op: str, scale: float, I: int, H: int) -> Arrays:
    return {"W": ones(scale, 1, BLOCKS[op] * H, I), "R": ones(scale, 1, BLOCKS[op] * H, H)}


def defaults(op: str, H: int) -> Example:
    return {"hidden_size": H}, {"X": counting(1, 3, 2), **weights(op, 0.1, 2, H)}


def initial_bias(op: str, H: int) -> Example:
    half = BLOCKS[op] * H
    b = np.concatenate((ones(0.1, 1, half), ones(0.0, 1, half)), axis=1)
    return {"hidden_size": H}, {"X": counting(1, 3, 3), **weights(op, 0.1, 3, H), "B": b}


def batchwise(op: str, H: int, scale: float) -> Example:
    return {"hidden_size": H, "layout": 1}, {"X": counting(3, 1, 2), **weights(op, scale, 2, H)}


def seq_length(op: str, H: int) -> Example:
    normal, rows = np.random.RandomState(0).randn, BLOCKS[op] * H
    shapes = {"W": (1, rows, 3), "R": (1, rows, H), "first": (1, rows), "second": (1, rows)}
    made = {name: normal(*shape).astype(np.float32) for name, shape in shapes.items()}
    b = np.concatenate((made["first"], made["second"]), axis=1)
    return {"hidden_size": H}, {"X": counting(2, 3, 3), "W": made["W"], "R": made["R"], "B": b}


def peepholes() -> Example:
    inputs: Arrays = {"X": counting(1, 2, 4), **weights("LSTM", 0.1, 4, 3), "B": ones(0.0, 1, 24)}
    inputs["sequence_lens"] = np.array([1, 1], dtype=np.int32)
    inputs["initial_h"] = inputs["initial_c"] = ones(0.0, 1, 2, 3)
    inputs["P"] = ones(0.1, 1, 9)
    return {"hidden_size": 3}, inputs


@dataclass(frozen=True)
class Shipped:
    """Test case of onnx, under formal names."""

    attributes: dict[str, Any]
    inputs: Arrays
    outputs: Arrays


EXAMPLES: dict[tuple[str, str], tuple[Example, float]] = {
    ("LSTM", "test_lstm_defaults"): (defaults("LSTM", 3), ONE_STEP),
    ("LSTM", "test_lstm_with_initial_bias"): (initial_bias("LSTM", 4), ONE_STEP),
    ("LSTM", "test_lstm_with_peepholes"): (peepholes(), ONE_STEP),
    ("LSTM", "test_lstm_batchwise"): (batchwise("LSTM", 7, 0.3), ONE_STEP),
    ("GRU", "test_gru_defaults"): (defaults("GRU", 5), ONE_STEP),
    ("GRU", "test_gru_with_initial_bias"): (initial_bias("GRU", 3), ONE_STEP),
    ("GRU", "test_gru_seq_length"): (seq_length("GRU", 5), MORE_STEPS),
    ("GRU", "test_gru_batchwise"): (batchwise("GRU", 6, 0.2), ONE_STEP),
    ("RNN", "test_simple_rnn_defaults"): (defaults("RNN", 4), ONE_STEP),
    ("RNN", "test_simple_rnn_with_initial_bias"): (initial_bias("RNN", 5), ONE_STEP),
    ("RNN", "test_rnn_seq_length"): (seq_length("RNN", 5), MORE_STEPS),
    ("RNN", "test_simple_rnn_batchwise"): (batchwise("RNN", 4, 0.5), ONE_STEP),
}


@cache
def shipped(op: str) -> dict[str, Shipped]:
    """Return onnx's own cases of an operator, by name: each is a function that ends in a call of ``expect``."""
    module = importlib.import_module(f"onnx.backend.test.case.node.{op.lower()}")
    by_name: dict[str, Shipped] = {}
    operator = operator_version(op, 22)

    def record(node: NodeProto, inputs: list[NDArray[Any]], outputs: list[NDArray[Any]], name: str) -> None:
        given = zip(operator.inputs, node.input, strict=False)
        asked = zip(operator.outputs, node.output, strict=False)
        by_name[name] = Shipped(
            {a.name: helper.get_attribute_value(a) for a in node.attribute},
            dict(zip([formal for formal, actual in given if actual], inputs, strict=True)),
            dict(zip([formal for formal, actual in asked if actual], outputs, strict=True)),
        )

    with patch.object(module, "expect", record):
        for name, function in vars(getattr(module, op)).items():
            if name.startswith("export"):
                np.random.seed(0)  # onnx does the same before each
                function.__func__()
    return by_name


def compare(actual: Arrays, expected: Arrays, tolerance: float) -> None:
    for name, value in expected.items():
        assert actual[name].shape == value.shape
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("op", "name"), EXAMPLES)
def test_the_shipped_case_has_the_printed_inputs(op: str, name: str) -> None:
    (attributes, inputs), _ = EXAMPLES[op, name]
    case = shipped(op)[name]
    assert case.attributes == attributes
    assert case.inputs.keys() == inputs.keys()
    for formal, value in inputs.items():
        np.testing.assert_array_equal(case.inputs[formal], value, err_msg=formal)


@pytest.mark.parametrize("version", [7, 14, 22])
@pytest.mark.parametrize(("op", "name"), EXAMPLES)
def test_reference_gives_the_shipped_outputs(op: str, name: str, version: int) -> None:
    (attributes, inputs), tolerance = EXAMPLES[op, name]
    if version < 14:  # layout came with version 14: the same with the batch second
        attributes = {key: value for key, value in attributes.items() if key != "layout"}
        inputs = {**inputs, "X": inputs["X"].swapaxes(0, 1)} if name.endswith("batchwise") else inputs
    expected = shipped(op)[name].outputs
    actual = evaluate(Node(op, version, attributes, tuple(expected)), inputs)
    assert actual.keys() == expected.keys()
    if version < 14 and name.endswith("batchwise"):
        actual = {"Y": np.moveaxis(actual["Y"], 2, 0), "Y_h": actual["Y_h"].swapaxes(0, 1)}
    compare(actual, expected, tolerance)


@pytest.mark.parametrize(("op", "name"), EXAMPLES)
def test_second_derivation_gives_the_shipped_outputs(op: str, name: str) -> None:
    (attributes, inputs), tolerance = EXAMPLES[op, name]
    compare(SECOND[op](attributes, inputs), shipped(op)[name].outputs, tolerance)


@pytest.mark.parametrize("op", SECOND)
def test_every_other_case_onnx_ships(op: str) -> None:
    """Newer versions of onnx ship more than the documents print (reverse and bidirectional in 1.23)."""
    for case in shipped(op).values():
        actual = evaluate(Node(op, 22, case.attributes, tuple(case.outputs)), case.inputs)
        compare(actual, case.outputs, MORE_STEPS)

"""Tests of the examples in the operators' documents, with the expected outputs that onnx ships.

The documents print the inputs and leave the outputs to a helper; ``onnx.backend.test`` runs that helper, in float32.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import NodeProto, helper

from onnxspec.reference import CELLS, Node, evaluate, operator_version

Arrays = dict[str, NDArray[Any]]

# The helper works in float32, u = 2^-24. Most examples have one step from a zero state: a gate's argument is a sum of
# at most 5 terms whose absolute values add up to at most 3.3, off by at most 6 u 3.3 < 20 u. Sigmoid and Tanh have
# slopes of at most 1 and results of at most 1, and five more roundings lead to H: 32 u in all. Others have two or three
# steps; where arguments are larger, up to some 70, the gates are saturated.
TOLERANCE = {1: 32 * 2.0**-24}
MORE_STEPS = 8 * TOLERANCE[1]


class Shipped(NamedTuple):
    """Test case of onnx, under formal names."""

    attributes: dict[str, Any]
    inputs: Arrays
    outputs: Arrays


@cache
def shipped(op: str) -> dict[str, Shipped]:
    """Return onnx's own cases of an operator, by name: each is a function that ends in a call of ``expect``."""
    module = importlib.import_module(f"onnx.backend.test.case.node.{op.lower()}")
    by_name: dict[str, Shipped] = {}
    operator = operator_version(op, 22)

    def record(node: NodeProto, inputs: list[NDArray[Any]], outputs: list[NDArray[Any]], name: str) -> None:
        given = zip(operator.inputs, node.input, strict=False)
        asked = zip(operator.outputs, node.output, strict=False)
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        by_name[name] = Shipped(
            {key: value.decode() if isinstance(value, bytes) else value for key, value in attributes.items()},
            dict(zip([formal for formal, actual in given if actual], inputs, strict=True)),
            dict(zip([formal for formal, actual in asked if actual], outputs, strict=True)),
        )

    with patch.object(module, "expect", record):
        for name, function in vars(getattr(module, op)).items():
            if name.startswith("export"):
                np.random.seed(0)  # onnx does the same before each
                function.__func__()
    return by_name


def test_the_examples_of_the_documents_are_shipped() -> None:
    topics = ("defaults", "initial_bias", "seq_length", "batchwise", "peepholes")
    names = {op: " ".join(shipped(op)) for op in CELLS}
    assert {op: [topic for topic in topics if topic not in names[op]] for op in CELLS} == {
        "LSTM": ["seq_length"], "GRU": ["peepholes"], "RNN": ["peepholes"],
    }  # fmt: skip


@pytest.mark.parametrize("version", [7, 14, 22])
# Newer versions of onnx ship more than the documents print (reverse and bidirectional in 1.23).
@pytest.mark.parametrize(("op", "name"), [(op, name) for op in CELLS for name in shipped(op)])
def test_reference_gives_the_shipped_outputs(op: str, name: str, version: int) -> None:
    case = shipped(op)[name]
    attributes, inputs = case.attributes, case.inputs
    batchwise = version < 14 and attributes.get("layout", 0)
    if batchwise:  # layout came with version 14: the same with the batch second
        attributes = {key: value for key, value in attributes.items() if key != "layout"}
        inputs = {**inputs, "X": inputs["X"].swapaxes(0, 1)}
    actual = evaluate(Node(op, version, attributes, tuple(case.outputs)), inputs)
    assert actual.keys() == case.outputs.keys()
    if batchwise:
        actual = {"Y": np.moveaxis(actual["Y"], 2, 0), "Y_h": actual["Y_h"].swapaxes(0, 1)}
    tolerance = TOLERANCE.get(case.inputs["X"].shape[case.attributes.get("layout", 0)], MORE_STEPS)
    for output, value in case.outputs.items():
        assert actual[output].shape == value.shape
        np.testing.assert_allclose(actual[output], value, rtol=0, atol=tolerance, err_msg=output)

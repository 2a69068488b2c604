"""The examples that the operator documents of LSTM print, as onnx ships them with their expected outputs.

The documents print the inputs and leave the outputs to a helper; ``onnx.backend.test`` runs that helper, in float32.
Inputs are rebuilt here from the printed text, so that a change of the shipped data is seen too.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from onnxspec.reference import Node, evaluate

from .second_lstm import second_lstm

Arrays = dict[str, NDArray[Any]]

# The helper works in float32, u = 2^-24. The documents' examples have one step from a zero state: a gate's argument is
# a sum of at most 5 terms whose absolute values add up to at most 3.3, off by at most 6 u 3.3 < 20 u. Sigmoid and Tanh
# have slopes of at most 1 and results of at most 1, and five more roundings lead to H: 32 u in all.
ONE_STEP = 32 * 2.0**-24
# The cases that newer versions add have three steps and arguments up to 28, where the gates are saturated.
THREE_STEPS = 8 * ONE_STEP


def ones(scale: float, *shape: int) -> NDArray[np.float32]:
    """``scale * np.ones(shape).astype(np.float32)``: the product is a float32 one."""
    return np.float32(scale) * np.ones(shape, dtype=np.float32)


def defaults() -> tuple[dict[str, Any], Arrays]:
    x = np.array([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]], dtype=np.float32)
    return {"hidden_size": 3}, {"X": x, "W": ones(0.1, 1, 12, 2), "R": ones(0.1, 1, 12, 3)}


def initial_bias() -> tuple[dict[str, Any], Arrays]:
    x = np.array([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]], dtype=np.float32)
    b = np.concatenate((ones(0.1, 1, 16), ones(0.0, 1, 16)), axis=1)
    return {"hidden_size": 4}, {"X": x, "W": ones(0.1, 1, 16, 3), "R": ones(0.1, 1, 16, 4), "B": b}


def peepholes() -> tuple[dict[str, Any], Arrays]:
    x = np.array([[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]], dtype=np.float32)
    inputs: Arrays = {"X": x, "W": ones(0.1, 1, 12, 4), "R": ones(0.1, 1, 12, 3), "B": ones(0.0, 1, 24)}
    inputs["sequence_lens"] = np.array([1, 1], dtype=np.int32)
    inputs["initial_h"] = inputs["initial_c"] = ones(0.0, 1, 2, 3)
    inputs["P"] = ones(0.1, 1, 9)
    return {"hidden_size": 3}, inputs


def batchwise() -> tuple[dict[str, Any], Arrays]:
    x = np.array([[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]], dtype=np.float32)
    return {"hidden_size": 7, "layout": 1}, {"X": x, "W": ones(0.3, 1, 28, 2), "R": ones(0.3, 1, 28, 7)}


EXAMPLES = {
    "test_lstm_defaults": defaults,
    "test_lstm_with_initial_bias": initial_bias,
    "test_lstm_with_peepholes": peepholes,
    "test_lstm_batchwise": batchwise,
}


@pytest.fixture(scope="module")
def shipped() -> dict[str, Any]:
    """onnx's own cases of LSTM, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other operators' cases overflow on purpose
        return {case.name: case for case in collect_testcases("LSTM")}


def read(case: Any) -> tuple[dict[str, Any], Arrays, Arrays]:
    """Attributes, inputs and expected outputs of a shipped case, under the formal names of LSTM."""
    (node,) = case.model.graph.node
    attributes = {attribute.name: _value(attribute) for attribute in node.attribute}
    ((inputs, outputs),) = case.data_sets
    by_name = dict(zip((value.name for value in case.model.graph.input), map(_array, inputs), strict=True))
    named_inputs = {
        formal: by_name[actual]
        for formal, actual in zip(
            ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"), node.input, strict=False
        )
        if actual
    }
    by_name = dict(zip((value.name for value in case.model.graph.output), map(_array, outputs), strict=True))
    named_outputs = {
        formal: by_name[actual] for formal, actual in zip(("Y", "Y_h", "Y_c"), node.output, strict=False) if actual
    }
    return attributes, named_inputs, named_outputs


def _array(value: Any) -> NDArray[Any]:
    return value if isinstance(value, np.ndarray) else numpy_helper.to_array(value)


def _value(attribute: Any) -> Any:
    return attribute.s.decode() if attribute.name == "direction" else attribute.i


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_shipped_case_has_the_printed_inputs(name: str, shipped: dict[str, Any]) -> None:
    printed_attributes, printed = EXAMPLES[name]()
    attributes, inputs, _ = read(shipped[name])
    assert attributes == printed_attributes
    assert inputs.keys() == printed.keys()
    for formal, value in printed.items():
        np.testing.assert_array_equal(inputs[formal], value, err_msg=formal)


@pytest.mark.parametrize(
    ("name", "since_version"),
    # layout came with version 14; the other examples mean the same in every version
    [(name, version) for name in EXAMPLES for version in (7, 14, 22) if name != "test_lstm_batchwise" or version >= 14],
)
def test_reference_gives_the_shipped_outputs(name: str, since_version: int, shipped: dict[str, Any]) -> None:
    attributes, inputs = EXAMPLES[name]()
    _, _, expected = read(shipped[name])
    node = Node("LSTM", since_version=since_version, attributes=attributes, outputs=tuple(expected))
    actual = evaluate(node, inputs)
    assert actual.keys() == expected.keys()
    for output, value in expected.items():
        assert actual[output].shape == value.shape
        np.testing.assert_allclose(actual[output], value, rtol=0, atol=ONE_STEP, err_msg=output)


@pytest.mark.parametrize("name", EXAMPLES)
def test_second_derivation_gives_the_shipped_outputs(name: str, shipped: dict[str, Any]) -> None:
    attributes, inputs = EXAMPLES[name]()
    _, _, expected = read(shipped[name])
    actual = second_lstm(attributes, inputs)
    for output, value in expected.items():
        assert actual[output].shape == value.shape
        np.testing.assert_allclose(actual[output], value, rtol=0, atol=ONE_STEP, err_msg=output)


def test_every_other_case_onnx_ships(shipped: dict[str, Any]) -> None:
    """Newer versions of onnx ship more than the documents print (reverse and bidirectional in 1.23)."""
    for name in shipped.keys() - EXAMPLES.keys():
        attributes, inputs, expected = read(shipped[name])
        node = Node("LSTM", since_version=22, attributes=attributes, outputs=tuple(expected))
        actual = evaluate(node, inputs)
        for output, value in expected.items():
            assert actual[output].shape == value.shape
            np.testing.assert_allclose(
                actual[output], value, rtol=THREE_STEPS, atol=THREE_STEPS, err_msg=f"{name} {output}"
            )

"""LSTM, GRU and RNN against torch.nn: packed ragged sequences, all three directions, initial states, biases.

PyTorch's GRU is the one with linear_before_reset; of the other one it says where the two come to the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import Node, evaluate, versions_of

from .by_torch import DIRECTIONS, RAGGED, RELATIVE, SIZES, Operator, Sizes, directions_of

# PyTorch calls ONNX's c of LSTM g, and its h of GRU n.
LSTM = Operator("LSTM", "iofc", "ifco", ("h", "c"))
GRU = Operator("GRU", "zrh", "rzh", ("h",), attributes=(("linear_before_reset", 1),))
RNN = Operator("RNN", "i", "i", ("h",))
RELU = Operator("RNN", "i", "i", ("h",), options=(("nonlinearity", "relu"),))

OPERATORS = (LSTM, GRU, RNN)
every_operator = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.op)
every_direction = pytest.mark.parametrize("direction", DIRECTIONS)
SMALL = Sizes(5, 3, 3, 4)
LENGTHS = np.array([3, 5, 2], dtype=np.int32)

# By operator, the optional inputs that are left out.
ABSENT = {
    LSTM: [("B",), ("initial_h",), ("initial_c",), ("B", "initial_h", "initial_c")],
    GRU: [("B",), ("initial_h",), ("B", "initial_h")],
    RNN: [("B",), ("initial_h",), ("B", "initial_h")],
}


@every_operator
@every_direction
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("layout", [0, 1])
def test_full_sequences(sizes: Sizes, operator: Operator, direction: str, layout: int) -> None:
    inputs = operator.inputs(sizes, direction, seed=1)
    operator.check(inputs, direction, layout)
    if operator is RNN:
        RELU.check(inputs, direction, layout, activations=["Relu"] * directions_of(direction))


@every_operator
@every_direction
@pytest.mark.parametrize(("sizes", "lengths"), RAGGED, ids=str)
@pytest.mark.parametrize("layout", [0, 1])
def test_packed_ragged_sequences(
    sizes: Sizes, lengths: list[int], operator: Operator, direction: str, layout: int
) -> None:
    inputs = operator.inputs(sizes, direction, seed=2)
    inputs["sequence_lens"] = np.array(lengths, dtype=np.int32)
    operator.check(inputs, direction, layout)


@every_direction
@pytest.mark.parametrize(("operator", "absent"), [(op, some) for op, each in ABSENT.items() for some in each], ids=str)
def test_absent_optional_inputs(operator: Operator, absent: tuple[str, ...], direction: str) -> None:
    inputs = operator.inputs(SMALL, direction, seed=3)
    for name in absent:
        del inputs[name]
    operator.check({**inputs, "sequence_lens": LENGTHS}, direction)


@pytest.mark.parametrize(
    ("operator", "since_version"),
    [(op, v) for op in OPERATORS for v in versions_of(op.op) if op is not GRU or v > 1],
    ids=str,
)
def test_every_version(operator: Operator, since_version: int) -> None:
    inputs = operator.inputs(SMALL, "bidirectional", seed=4)
    operator.check({**inputs, "sequence_lens": LENGTHS}, "bidirectional", since_version=since_version)


def with_diagonal_rh(direction: str) -> dict[str, NDArray[Any]]:
    """Inputs whose Rh is diagonal and whose Rbh is zero: (r (.) H) Rh^T is then r (.) (H Rh^T)."""
    inputs = GRU.inputs(SMALL, direction, seed=5)
    inputs["R"][:, 8:] *= np.eye(4)
    inputs["B"][:, 20:] = 0
    inputs["sequence_lens"] = LENGTHS
    return inputs


@every_direction
@pytest.mark.parametrize("since_version", versions_of("GRU"))
def test_the_default_form_where_both_are_the_same(since_version: int, direction: str) -> None:
    inputs = with_diagonal_rh(direction)
    default = Operator("GRU", "zrh", "rzh", ("h",))
    default.check(inputs, direction, since_version=since_version)
    if since_version > 1:
        default.check(inputs, direction, since_version=since_version, linear_before_reset=0)


def test_the_default_form_does_not_touch_the_recurrent_bias() -> None:
    # By the default form Rbh is one more bias: PyTorch gets it as part of Wbh.
    inputs = with_diagonal_rh("forward")
    moved = {**inputs, "B": inputs["B"].copy()}
    inputs["B"][:, 20:] = [0.5, -0.25, 0.75, 1.0]
    moved["B"][:, 8:12] += inputs["B"][:, 20:]
    expected, other = GRU.run(moved, "forward"), GRU.run(inputs, "forward")
    actual = evaluate(Node("GRU", 14, {}, ("Y", "Y_h")), inputs)
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=RELATIVE, atol=RELATIVE, err_msg=name)
    assert np.abs(other["Y"] - expected["Y"]).max() > 1e-3

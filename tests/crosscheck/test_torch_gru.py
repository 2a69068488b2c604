"""GRU against torch.nn.GRU, which is the one with linear_before_reset; the other one where the two come to the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import Node, evaluate

from .by_torch import DIRECTIONS, RAGGED, RELATIVE, SIZES, Operator, Sizes

# PyTorch calls ONNX's h n.
GRU = Operator("GRU", "zrh", "rzh", ("h",), attributes=(("linear_before_reset", 1),))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("layout", [0, 1])
def test_full_sequences(sizes: Sizes, direction: str, layout: int) -> None:
    GRU.check(GRU.inputs(sizes, direction, seed=1), direction, layout)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("sizes", "lengths"), RAGGED, ids=str)
@pytest.mark.parametrize("layout", [0, 1])
def test_packed_ragged_sequences(sizes: Sizes, lengths: list[int], direction: str, layout: int) -> None:
    inputs = GRU.inputs(sizes, direction, seed=2)
    inputs["sequence_lens"] = np.array(lengths, dtype=np.int32)
    GRU.check(inputs, direction, layout)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("absent", [("B",), ("initial_h",), ("B", "initial_h")], ids=str)
def test_absent_optional_inputs(absent: tuple[str, ...], direction: str) -> None:
    inputs = GRU.inputs(Sizes(5, 3, 3, 4), direction, seed=3)
    for name in absent:
        del inputs[name]
    inputs["sequence_lens"] = np.array([3, 5, 2], dtype=np.int32)
    GRU.check(inputs, direction)


@pytest.mark.parametrize("since_version", [3, 7, 14, 22])
def test_every_version(since_version: int) -> None:
    inputs = GRU.inputs(Sizes(5, 3, 3, 4), "bidirectional", seed=4)
    inputs["sequence_lens"] = np.array([3, 5, 2], dtype=np.int32)
    GRU.check(inputs, "bidirectional", since_version=since_version)


def with_diagonal_rh(direction: str) -> dict[str, NDArray[Any]]:
    """Inputs whose Rh is diagonal and whose Rbh is zero: (r (.) H) Rh^T is then r (.) (H Rh^T)."""
    inputs = GRU.inputs(Sizes(5, 3, 3, 4), direction, seed=5)
    inputs["R"][:, 8:] *= np.eye(4)
    inputs["B"][:, 20:] = 0
    inputs["sequence_lens"] = np.array([3, 5, 2], dtype=np.int32)
    return inputs


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("since_version", [1, 3, 7, 14, 22])
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

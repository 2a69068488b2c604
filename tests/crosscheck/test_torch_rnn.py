"""RNN against torch.nn.RNN, with both of its functions."""

from __future__ import annotations

import numpy as np
import pytest

from .by_torch import DIRECTIONS, RAGGED, SIZES, Operator, Sizes, directions_of

RNN = Operator("RNN", "i", "i", ("h",))
RELU = Operator("RNN", "i", "i", ("h",), options=(("nonlinearity", "relu"),))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("layout", [0, 1])
def test_full_sequences(sizes: Sizes, direction: str, layout: int) -> None:
    inputs = RNN.inputs(sizes, direction, seed=1)
    RNN.check(inputs, direction, layout)
    RELU.check(inputs, direction, layout, activations=["Relu"] * directions_of(direction))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("sizes", "lengths"), RAGGED, ids=str)
@pytest.mark.parametrize("layout", [0, 1])
def test_packed_ragged_sequences(sizes: Sizes, lengths: list[int], direction: str, layout: int) -> None:
    inputs = RNN.inputs(sizes, direction, seed=2)
    inputs["sequence_lens"] = np.array(lengths, dtype=np.int32)
    RNN.check(inputs, direction, layout)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("absent", [("B",), ("initial_h",), ("B", "initial_h")], ids=str)
def test_absent_optional_inputs(absent: tuple[str, ...], direction: str) -> None:
    inputs = RNN.inputs(Sizes(5, 3, 3, 4), direction, seed=3)
    for name in absent:
        del inputs[name]
    inputs["sequence_lens"] = np.array([3, 5, 2], dtype=np.int32)
    RNN.check(inputs, direction)


@pytest.mark.parametrize("since_version", [1, 7, 14, 22])
def test_every_version(since_version: int) -> None:
    inputs = RNN.inputs(Sizes(5, 3, 3, 4), "bidirectional", seed=4)
    inputs["sequence_lens"] = np.array([3, 5, 2], dtype=np.int32)
    RNN.check(inputs, "bidirectional", since_version=since_version)

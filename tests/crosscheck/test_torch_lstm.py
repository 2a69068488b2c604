"""LSTM against torch.nn.LSTM in float64: packed ragged sequences, all three directions, initial states, biases.

PyTorch is heavy and no dependency of this project: this folder runs in the tox environment ``crosscheck``, which
installs it. There its absence is an error and never a reason to skip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import Node, evaluate

try:
    import torch
except ImportError as error:
    raise ImportError("tests/crosscheck needs PyTorch: run it as `tox -e crosscheck`") from error

Arrays = dict[str, NDArray[Any]]

# Both sides work in float64, u = 1.1e-16, over at most 12 steps of sums of at most 20 terms.
RELATIVE = 1e-12

# PyTorch stacks its gate blocks as (i, f, g, o), where g is what ONNX calls c; ONNX stacks (i, o, f, c).
ONNX_GATES = "iofc"
TORCH_GATES = "ifco"


@dataclass(frozen=True)
class Sizes:
    """Steps, sequences, inputs and units."""

    t: int
    n: int
    i: int
    h: int


SIZES = [Sizes(1, 1, 1, 1), Sizes(5, 2, 3, 4), Sizes(4, 3, 4, 4), Sizes(12, 4, 6, 13)]


def dense_inputs(sizes: Sizes, directions: int, seed: int) -> Arrays:
    """Every input that PyTorch's LSTM has a place for, dense and without symmetries."""
    generator = np.random.Generator(np.random.PCG64(seed))

    def numbers(*shape: int) -> NDArray[np.float64]:
        return generator.uniform(-1, 1, shape)

    return {
        "X": 2 * numbers(sizes.t, sizes.n, sizes.i),
        "W": numbers(directions, 4 * sizes.h, sizes.i),
        "R": numbers(directions, 4 * sizes.h, sizes.h),
        "B": numbers(directions, 8 * sizes.h),
        "initial_h": numbers(directions, sizes.n, sizes.h),
        "initial_c": numbers(directions, sizes.n, sizes.h),
    }


def blocks(array: NDArray[Any]) -> NDArray[Any]:
    """Gate blocks along axis 0, from the order of ONNX to that of PyTorch."""
    by_gate = dict(zip(ONNX_GATES, np.split(array, 4, axis=0), strict=True))
    return np.concatenate([by_gate[gate] for gate in TORCH_GATES], axis=0)


def run_torch(inputs: Arrays, bidirectional: bool) -> Arrays:
    """Y, Y_h and Y_c as ONNX shapes them (layout 0), by PyTorch; forward or bidirectional."""
    t, n, i = inputs["X"].shape
    directions, _, h = inputs["R"].shape
    module = torch.nn.LSTM(i, h, bias="B" in inputs, bidirectional=bidirectional, dtype=torch.float64)
    with torch.no_grad():
        for d in range(directions):
            suffix = "_l0_reverse" if d else "_l0"
            parameters = {"weight_ih": inputs["W"][d], "weight_hh": inputs["R"][d]}
            if "B" in inputs:
                parameters["bias_ih"], parameters["bias_hh"] = np.split(inputs["B"][d], 2)
            for name, value in parameters.items():
                getattr(module, name + suffix).copy_(torch.from_numpy(blocks(value)))
        # PyTorch takes both initial states or none.
        zeros = np.zeros((directions, n, h))
        states = tuple(torch.from_numpy(inputs.get(name, zeros)) for name in ("initial_h", "initial_c"))
        x: Any = torch.from_numpy(inputs["X"])
        if "sequence_lens" in inputs:
            lengths = torch.from_numpy(inputs["sequence_lens"].astype(np.int64))
            x = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        y, (y_h, y_c) = module(x, states)
        if "sequence_lens" in inputs:
            y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=t)
    # PyTorch joins the directions in the last axis, [T, N, D*H]; ONNX has them before the batch, [T, D, N, H].
    return {
        "Y": y.numpy().reshape(t, n, directions, h).swapaxes(1, 2),
        "Y_h": y_h.numpy(),
        "Y_c": y_c.numpy(),
    }


def torch_lstm(inputs: Arrays, direction: str) -> Arrays:
    """PyTorch's LSTM in any of ONNX's directions; it has no reverse one, so that is half of a bidirectional one."""
    if direction != "reverse":
        return run_torch(inputs, direction == "bidirectional")
    per_direction = ("W", "R", "B", "initial_h", "initial_c")
    doubled = {
        # Other parameters stand in the forward half, so that a mixed-up half is seen.
        name: np.concatenate([np.flip(value, axis=-1) / 2, value]) if name in per_direction else value
        for name, value in inputs.items()
    }
    outputs = run_torch(doubled, bidirectional=True)
    return {"Y": outputs["Y"][:, 1:], "Y_h": outputs["Y_h"][1:], "Y_c": outputs["Y_c"][1:]}


def swap(arrays: Arrays, names: tuple[str, ...]) -> Arrays:
    """From layout 0 to layout 1: the batch comes first."""
    moved = {name: np.moveaxis(value, 2 if name == "Y" else 1, 0) for name, value in arrays.items() if name in names}
    return arrays | moved


def check(inputs: Arrays, direction: str, layout: int = 0, since_version: int = 14) -> None:
    expected = torch_lstm(inputs, direction)
    attributes: dict[str, Any] = {"direction": direction, "hidden_size": inputs["R"].shape[2]}
    if layout:
        attributes["layout"] = layout
        expected = swap(expected, ("Y", "Y_h", "Y_c"))
        inputs = swap(inputs, ("X", "initial_h", "initial_c"))
    if since_version == 1:
        attributes["output_sequence"] = 1
    node = Node("LSTM", since_version=since_version, attributes=attributes, outputs=("Y", "Y_h", "Y_c"))
    actual = evaluate(node, inputs)
    for name, value in expected.items():
        assert actual[name].shape == value.shape
        np.testing.assert_allclose(actual[name], value, rtol=RELATIVE, atol=RELATIVE, err_msg=name)


def directions_of(direction: str) -> int:
    return 2 if direction == "bidirectional" else 1


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("layout", [0, 1])
def test_full_sequences(sizes: Sizes, direction: str, layout: int) -> None:
    check(dense_inputs(sizes, directions_of(direction), seed=1), direction, layout)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        (Sizes(5, 2, 3, 4), [2, 5]),
        (Sizes(5, 3, 3, 4), [3, 1, 5]),
        (Sizes(6, 3, 2, 5), [4, 4, 4]),  # equal and short: the longest is shorter than T
        (Sizes(12, 5, 6, 13), [7, 12, 1, 12, 3]),
    ],
    ids=str,
)
@pytest.mark.parametrize("layout", [0, 1])
def test_packed_ragged_sequences(sizes: Sizes, lengths: list[int], direction: str, layout: int) -> None:
    inputs = dense_inputs(sizes, directions_of(direction), seed=2)
    inputs["sequence_lens"] = np.array(lengths, dtype=np.int32)
    check(inputs, direction, layout)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("absent", [("B",), ("initial_h",), ("initial_c",), ("B", "initial_h", "initial_c")], ids=str)
def test_absent_optional_inputs(absent: tuple[str, ...], direction: str) -> None:
    inputs = dense_inputs(Sizes(5, 3, 3, 4), directions_of(direction), seed=3)
    for name in absent:
        del inputs[name]
    inputs["sequence_lens"] = np.array([3, 5, 2], dtype=np.int32)
    check(inputs, direction)


@pytest.mark.parametrize("since_version", [1, 7, 14, 22])
def test_every_version(since_version: int) -> None:
    inputs = dense_inputs(Sizes(5, 3, 3, 4), 2, seed=4)
    inputs["sequence_lens"] = np.array([3, 5, 2], dtype=np.int32)
    check(inputs, "bidirectional", since_version=since_version)

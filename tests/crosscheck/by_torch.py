"""LSTM, GRU and RNN by PyTorch, in float64, as ONNX shapes their inputs and outputs.

PyTorch is heavy and no dependency of this project: this folder runs in the tox environment ``crosscheck``, which
installs it. There its absence is an error and never a reason to skip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference import Node, evaluate

try:
    import torch
except ImportError as error:
    raise ImportError("tests/crosscheck needs PyTorch: run it as `tox -e crosscheck`") from error

Arrays = dict[str, NDArray[Any]]

# Both sides work in float64, u = 1.1e-16, over at most 12 steps of sums of at most 20 terms.
RELATIVE = 1e-12
DIRECTIONS = ("forward", "reverse", "bidirectional")


@dataclass(frozen=True)
class Sizes:
    """Steps, sequences, inputs and units."""

    t: int
    n: int
    i: int
    h: int


SIZES = [Sizes(1, 1, 1, 1), Sizes(5, 2, 3, 4), Sizes(4, 3, 4, 4), Sizes(12, 4, 6, 13)]
RAGGED = [
    (Sizes(5, 2, 3, 4), [2, 5]),
    (Sizes(5, 3, 3, 4), [3, 1, 5]),
    (Sizes(6, 3, 2, 5), [4, 4, 4]),  # equal and short: the longest is shorter than T
    (Sizes(12, 5, 6, 13), [7, 12, 1, 12, 3]),
]


@dataclass(frozen=True)
class Operator:
    """What ONNX and PyTorch name and order differently.

    Attributes:
        onnx_gates, torch_gates: one letter, ONNX's, for each block of W, in the order of each side.
        states: the names of states, each with an input initial_* and an output Y_*.
        options: of PyTorch's module.
        attributes: of the node that is the same.
    """

    op: str
    onnx_gates: str
    torch_gates: str
    states: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        return ("Y", *(f"Y_{state}" for state in self.states))

    def inputs(self, sizes: Sizes, direction: str, seed: int) -> Arrays:
        """Every input that PyTorch has a place for, dense and without symmetries."""
        generator = np.random.Generator(np.random.PCG64(seed))
        directions, rows = directions_of(direction), len(self.onnx_gates) * sizes.h

        def numbers(*shape: int) -> NDArray[np.float64]:
            return generator.uniform(-1, 1, shape)

        return {
            "X": 2 * numbers(sizes.t, sizes.n, sizes.i),
            "W": numbers(directions, rows, sizes.i),
            "R": numbers(directions, rows, sizes.h),
            "B": numbers(directions, 2 * rows),
            **{f"initial_{state}": numbers(directions, sizes.n, sizes.h) for state in self.states},
        }

    def run(self, inputs: Arrays, direction: str) -> Arrays:
        """All outputs (layout 0) in any of ONNX's directions.

        PyTorch has no reverse direction, so that is half of a bidirectional run.
        """
        if direction != "reverse":
            return self._run(inputs, direction == "bidirectional")
        doubled = {
            # Other parameters stand in the forward half, so that a mixed-up half is seen.
            name: value if name in ("X", "sequence_lens") else np.concatenate([np.flip(value, axis=-1) / 2, value])
            for name, value in inputs.items()
        }
        outputs = self._run(doubled, bidirectional=True)
        return {name: value[:, 1:] if name == "Y" else value[1:] for name, value in outputs.items()}

    def _blocks(self, array: NDArray[Any]) -> NDArray[Any]:
        """Gate blocks along axis 0, from the order of ONNX to that of PyTorch."""
        by_gate = dict(zip(self.onnx_gates, np.split(array, len(self.onnx_gates), axis=0), strict=True))
        return np.concatenate([by_gate[gate] for gate in self.torch_gates], axis=0)

    def _run(self, inputs: Arrays, bidirectional: bool) -> Arrays:
        t, n, i = inputs["X"].shape
        directions, _, h = inputs["R"].shape
        module = getattr(torch.nn, self.op)(
            i, h, bias="B" in inputs, bidirectional=bidirectional, dtype=torch.float64, **dict(self.options)
        )
        with torch.no_grad():
            for d in range(directions):
                suffix = "_l0_reverse" if d else "_l0"
                parameters = {"weight_ih": inputs["W"][d], "weight_hh": inputs["R"][d]}
                if "B" in inputs:
                    parameters["bias_ih"], parameters["bias_hh"] = np.split(inputs["B"][d], 2)
                for name, value in parameters.items():
                    getattr(module, name + suffix).copy_(torch.from_numpy(self._blocks(value)))
            # PyTorch takes all initial states or none.
            zeros = np.zeros((directions, n, h))
            states = tuple(torch.from_numpy(inputs.get(f"initial_{state}", zeros)) for state in self.states)
            x: Any = torch.from_numpy(inputs["X"])
            if "sequence_lens" in inputs:
                lengths = torch.from_numpy(inputs["sequence_lens"].astype(np.int64))
                x = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
            y, last = module(x, states if len(states) > 1 else states[0])
            if "sequence_lens" in inputs:
                y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=t)
        last = last if len(states) > 1 else (last,)
        # PyTorch joins the directions in the last axis, [T, N, D*H]; ONNX has them before the batch, [T, D, N, H].
        return {
            "Y": y.numpy().reshape(t, n, directions, h).swapaxes(1, 2),
            **{f"Y_{state}": value.numpy() for state, value in zip(self.states, last, strict=True)},
        }

    def check(self, inputs: Arrays, direction: str, layout: int = 0, since_version: int = 14, **more: Any) -> None:
        """Hold the reference to what PyTorch computes."""
        expected = self.run(inputs, direction)
        attributes = {"direction": direction, "hidden_size": inputs["R"].shape[2], **dict(self.attributes), **more}
        if layout:
            attributes["layout"] = layout
            expected = _batch_first(expected)
            inputs = _batch_first(inputs)
        if since_version < 7:
            attributes["output_sequence"] = 1
        actual = evaluate(Node(self.op, since_version, attributes, self.outputs), inputs)
        for name, value in expected.items():
            assert actual[name].shape == value.shape
            np.testing.assert_allclose(actual[name], value, rtol=RELATIVE, atol=RELATIVE, err_msg=name)


def _batch_first(arrays: Arrays) -> Arrays:
    """From layout 0 to layout 1."""
    batch = {"X": 1, "Y": 2, **{f"{kind}_{state}": 1 for kind in ("initial", "Y") for state in "hc"}}
    return {name: np.moveaxis(value, batch[name], 0) if name in batch else value for name, value in arrays.items()}


def directions_of(direction: str) -> int:
    return 2 if direction == "bidirectional" else 1

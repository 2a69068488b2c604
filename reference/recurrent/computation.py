"""Computations: nodes of LSTM, GRU and RNN with their tensors, evaluated in float64 or with error bounds; and gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..documents.tensors import Levels, TensorForm
from ..numbers.accuracy import Format, budget
from ..numbers.bounding import Bounding
from ..numbers.plain import Ordered, Plain
from .cell import Number
from .configuration import Configuration, configure, steps_first
from .node import Node, Steps
from .rnn import processing_order, run, states_of

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Computation:
    """A configuration with its tensors: all that the outputs depend on. A fault replaces parts of it.

    inputs
        By formal name: float64 arrays, or numbers with bounds if another node computed them.
    """

    configuration: Configuration
    inputs: Mapping[str, Any] = field(hash=False)

    @property
    def format(self) -> Format:
        """The format of the tensors."""
        return self.configuration.format

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions in the order of Y's axis."""
        return self.configuration.directions

    def direction_axis(self, output: str) -> int:
        """Return the axis of an output that has the directions."""
        batch_first = self.configuration.layout == 1
        return (2 if batch_first else 1) if output == "Y" else int(batch_first)

    def plain(self, observed: NDArray[Any] | None = None) -> dict[str, NDArray[Any]]:
        """Return all outputs in float64; `observed` as in :func:`.rnn.run`."""
        return run(self.configuration, self.inputs, Plain(), self.reported(observed))

    def bounded(self, accuracy: str, observed: NDArray[Any] | None = None) -> dict[str, Number]:
        """Return all outputs with their bounds in an accuracy class; `observed` as in :func:`.rnn.run`."""
        arithmetic = Bounding(budget(accuracy, self.configuration.format.name))
        return run(self.configuration, self.inputs, arithmetic, self.reported(observed))

    def reported(self, observed: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return reported states of this computation's sizes. A fault that swaps axes starts from its own states."""
        c = self.configuration
        fits = observed is not None and observed.shape == (c.T, len(c.directions), c.N, c.H)
        return observed if fits else None

    def with_input(self, name: str, altered: Computation) -> Computation:
        """Return this computation with one input of another one."""
        changed, own = altered.inputs.get(name), self.inputs.get(name)
        if changed is not None and own is not None and changed.shape != own.shape:
            return self  # its axes differ, so it only fits together with the other inputs
        inputs = {**self.inputs, name: changed}
        return replace(self, inputs={n: a for n, a in inputs.items() if a is not None})


def computation_of(node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Computation:
    """Resolve a node, and convert its tensors to float64. Raises IllegalNode."""
    return Computation(configure(node, inputs, interpretations), tensors_of(inputs, node.operator.tensors))


def tensors_of(inputs: Arrays, forms: Mapping[str, TensorForm]) -> dict[str, NDArray[Any]]:
    """Return the inputs that are present, in float64 but for lengths.

    Quantized levels are dequantized, with their axes as in ONNX's operators; scales and zero points stay.
    """
    tensors = {n: a if n == "sequence_lens" else a.astype(np.float64) for n, a in inputs.items() if a is not None}
    for name, form in forms.items():
        if isinstance(form.codec, Levels) and name in tensors:
            tensors[name] = dequantized(tensors[name], tensors[form.codec.scale], tensors[form.codec.zero_point])
    return tensors


def dequantized(levels: NDArray[Any], scale: NDArray[Any], zero_point: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers of levels (directions, columns, channels), as (directions, channels, columns).

    They are exact: float64 holds products of 8-bit levels and float32 scales.

    scale, zero_point
        (directions,), or (directions, channels).
    """
    scales, zeros = (a.reshape(len(levels), 1, -1) for a in (scale, zero_point))
    numbers: NDArray[np.float64] = ((levels - zeros) * scales).swapaxes(1, 2)
    return numbers


Array = NDArray[np.float64]


def steps_of(
    node: Node,
    inputs: Mapping[str, NDArray[Any]],
    reported: NDArray[Any] | None = None,
    interpretations: Interpretations | None = None,
) -> tuple[Steps, ...]:
    """Return the gates and states of every direction of a node, in float64.

    reported
        The Y that a target reported, in the node's layout: each step starts from it. None: from the computed state.

    Raise IllegalNode if the document does not allow the node with these inputs.
    """
    computation = computation_of(node, inputs, interpretations)
    c = computation.configuration
    Y = None if reported is None else steps_first(reported.astype(np.float64), c.layout)
    steps = []
    for d, direction in enumerate(c.directions):
        noted: dict[str, list[Array]] = {}
        with np.errstate(over="ignore", invalid="ignore"):
            hidden, *inner = states_of(c, computation.inputs, Ordered(), d, Y, noted=noted)
        # Steps come one by one or all at once.
        values = {
            letter: np.concatenate([part.reshape(-1, c.N, c.H) for part in noted[letter]]) if hidden.size else hidden
            for letter in c.cell.gates
            if letter in noted or not hidden.size
        }
        values |= {name.upper(): states for name, states in zip(c.cell.inner, inner, strict=True)}
        steps.append(Steps(direction, _positions(c, direction), c.lengths, {**values, "H": hidden}))
    return tuple(steps)


def _positions(c: Configuration, direction: str) -> NDArray[np.int64]:
    positions = processing_order(c.T, c.lengths, direction)
    if isinstance(positions, slice):
        return np.broadcast_to(np.arange(c.T)[positions, np.newaxis], (c.T, c.N))
    return positions

"""Values inside a cell at every step: its gates, by the letters that its document gives them.

The equations themselves are run, with two things watched: from which gate's block of a sum an activation's argument
comes, and what the activation makes of it. So a cell needs no second form that could differ from the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.activations import Activation
from ..numbers.plain import Ordered
from .cell import Cell, Gates, Parameters, Recurrent, States
from .evaluation import computation_of
from .node import Node
from .recurrence import Computation, Trace, ordered, trace

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Steps:
    """One direction of a node, step by step in processing order.

    positions
        (T, N): which position of X each row processes at each step.
    lengths
        (N,): how many of these steps each row has; those after them are padding.
    numbers
        Name to (T, N, H): the gates in the order of the cell's blocks, then its inner states (``C``), then ``H``.
    """

    direction: str
    positions: NDArray[np.int64]
    lengths: NDArray[np.int64]
    numbers: Mapping[str, Array] = field(hash=False)


def steps_of(
    node: Node,
    inputs: Mapping[str, NDArray[Any]],
    reported: NDArray[Any] | None = None,
    interpretations: Interpretations | None = None,
) -> tuple[Steps, ...]:
    """The gates and states of every direction of a node, in float64.

    reported
        The Y that a target reported, in the node's layout. Then each step starts from the reported state of the step
        before, as it is judged; without it from the computed one.

    Raises IllegalNode where the document does not allow the node with these inputs.
    """
    computation = computation_of(node, inputs, interpretations)
    c = computation.configuration
    Y = None
    if reported is not None:
        Y = reported.astype(np.float64)
        Y = Y.transpose(1, 2, 0, 3) if c.layout == 1 else Y
    watch = _Watch()
    watched = replace(computation, configuration=replace(c, cell=watch.over(c.cell)))
    with np.errstate(over="ignore", invalid="ignore"):
        traces = trace(watched, watch, Y)
    shape = (len(c.directions), c.T, c.N, c.H)
    gates = watch.gates(c.cell.gates, shape)
    steps = []
    for d, (direction, run) in enumerate(zip(c.directions, traces, strict=True)):
        values = {letter: own[d] for letter, own in gates.items()}
        values |= {name.upper(): np.asarray(states) for name, states in zip(c.cell.inner, run.inner, strict=True)}
        values["H"] = np.asarray(run.hidden)
        steps.append(Steps(direction, _positions(run, c.T, c.N), c.lengths, values))
    return tuple(steps)


def overflowing_arguments(computation: Computation, Y: Array | None = None) -> Array | None:
    """The largest argument at each step of functions whose printed formula overflows (Softplus), (T, D, N, H), each
    where the target reports its step; None where there is no such function.

    Y
        What a target reported, (T, D, N, H), from whose states each step starts.
    """
    c = computation.configuration
    watch = _Steep()
    watched = replace(computation, configuration=replace(c, cell=watch.over(c.cell)))
    with np.errstate(over="ignore", invalid="ignore"):
        traces = trace(watched, watch, Y)
    largest = watch.largest((len(c.directions), c.T, c.N, c.H))
    if largest is None:
        return None
    return np.stack([ordered(largest[d], run.positions) for d, run in enumerate(traces)], axis=1)


def _positions(run: Trace, T: int, N: int) -> NDArray[np.int64]:
    if isinstance(run.positions, slice):
        return np.broadcast_to(np.arange(T)[run.positions, np.newaxis], (T, N))
    return run.positions


class _Watched(np.ndarray[Any, np.dtype[np.float64]]):
    """A float64 array that belongs to a gate; what is computed from it elementwise does too.

    letter
        The gate's letter; empty for what belongs to none.
    complements
        Where one minus this number is noted: how a gate comes about that has no activation of its own.
    """

    letter: str
    complements: list[Array] | None

    def __array_finalize__(self, source: Any) -> None:
        self.letter = getattr(source, "letter", "")
        self.complements = None

    def __rsub__(self, other: Any) -> Any:
        result = other - np.asarray(self)
        if self.complements is not None:
            self.complements.append(result)
        return result


def _watched(values: Array, letter: str, complements: list[Array] | None = None) -> _Watched:
    result = np.asarray(values).view(_Watched)
    result.letter, result.complements = letter, complements
    return result


class _Lettered(Gates):
    """Sums whose blocks know their letters."""

    def __getattr__(self, letter: str) -> Any:
        return _watched(super().__getattr__(letter), letter)


class _LetteredRecurrent(_Lettered, Recurrent):
    pass


class _Watch(Ordered):
    """The arithmetic of plain arrays, which notes what activations make of each gate's argument."""

    def __init__(self) -> None:
        self._activated: dict[str, list[Array]] = {}
        self._complements: list[Array] = []

    def over(self, cell: Cell) -> Cell:
        """The same cell, whose sums know their gates."""

        def walk(parameters: Parameters, X: Gates, H: Recurrent, inner: tuple[Any, ...]) -> States:
            return cell.walk(parameters, _Lettered(**vars(X)), _LetteredRecurrent(**vars(H)), inner)

        return replace(cell, walk=walk)

    def activate(self, activation: Activation, argument: Array, clip: float | None) -> Array:
        letter = getattr(argument, "letter", "")
        result = np.asarray(super().activate(activation, np.asarray(argument), clip))
        self._activated.setdefault(letter, []).append(result)
        return _watched(result, "", self._complements)

    def gates(self, letters: str, shape: tuple[int, ...]) -> dict[str, Array]:
        """The notes, by letter, each of the shape (directions, T, N, H). Steps come one by one or all at once."""
        if 0 in shape:
            return {letter: np.zeros(shape) for letter in letters}
        noted = {letter: self._activated[letter] for letter in letters if letter in self._activated}
        without = [letter for letter in letters if letter not in noted]
        if len(without) == 1 and self._complements:
            noted[without[0]] = self._complements
        return {letter: _joined(noted[letter], shape).reshape(shape) for letter in letters if letter in noted}


def _joined(parts: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Parts of an array of a shape, one behind the other as (steps, N, H)."""
    return np.concatenate([part.reshape(-1, *shape[2:]) for part in parts])


class _Steep(_Watch):
    """The same, which notes arguments of functions whose formula overflows instead."""

    def __init__(self) -> None:
        super().__init__()
        self._arguments: dict[str, list[Array]] = {}

    def activate(self, activation: Activation, argument: Array, clip: float | None) -> Array:
        if activation.kind.overflows:
            clipped = np.asarray(argument) if clip is None else np.clip(np.asarray(argument), -clip, clip)
            self._arguments.setdefault(getattr(argument, "letter", ""), []).append(clipped)
        return super().activate(activation, argument, clip)

    def largest(self, shape: tuple[int, ...]) -> Array | None:
        """The largest at each place, of the shape (directions, T, N, H); -inf where there is none."""
        if not self._arguments or 0 in shape:
            return None
        joined = [_joined(parts, shape) for parts in self._arguments.values()]
        # A direction without such a function has noted nothing: only what all directions have can be put in place.
        whole = [values.reshape(shape) for values in joined if values.size == np.prod(shape)]
        largest: Array = np.maximum.reduce(whole) if whole else np.full(shape, max(float(v.max()) for v in joined))
        return largest

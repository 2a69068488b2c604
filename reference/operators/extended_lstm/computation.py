"""Computations of ExtendedLSTM: those of LSTM, in arithmetics of levels (:mod:`.arithmetic`).

Each step starts from the Y that the target reported one step before, so the radius stays tight at any length. Without a
reported Y, each step starts from the computed state and the bound grows with length; files of expected outputs and
scripts need this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.affine import Affine
from ...numbers.bounded import Bounded
from ...recurrent.cell import Gates, Parameters, States
from ...recurrent.computation import Computation
from ...recurrent.rnn import Direction, outputs_of, run, states_of
from .arithmetic import Leveled, Operand, Requantized, saturated
from .document import ExtendedLSTM

Array = NDArray[np.float64]


def _same(number: Any) -> Any:
    return number


def quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
    """Return a tensor quantized as documented."""
    radius = np.where(affine.undecided(array), affine.scale, 0.0)
    return Operand(affine.rounded(array), radius, affine)


def _nothing(of: Direction, total: Array) -> Array | float:
    return 0.0


@dataclass(frozen=True)
class ExtendedComputation(Computation):
    """Computation of a node. Faults change its inputs and its configuration, as in LSTM, or one of these:

    fed_back
        The state that goes from step to step where Y is quantized, one of :data:`.arithmetic.STATES`.
    operand
        Function from a tensor's name (X, W, R, B), its quantization and its numbers to the factor of products.
    state
        Function of the states before each step, as used in products.
    shift
        Function from a direction and its pre-activations (T, N, 4H), in processing order, to the error added to them.
    shown
        Function from Y's quantization and Ht to the number returned for it, not yet rounded to a level.
    seen, placed
        Functions from a reported Y to the computed Y, and back, for faults that move elements.

    ``inputs`` are the given tensors, not quantized.
    """

    configuration: ExtendedLSTM
    fed_back: str = "quantized"
    operand: Callable[[str, Affine, NDArray[Any]], Operand] = quantized
    state: Callable[[Operand], Operand] = _same
    shift: Callable[[Direction, Array], Array | float] = _nothing
    shown: Callable[[Affine, Array], Array] = saturated
    seen: Callable[[Array], Array] = _same
    placed: Callable[[Bounded], Bounded] = _same

    @cached_property
    def operands(self) -> Mapping[str, Operand]:
        """The factors of products by name, and B."""
        affine = self.configuration.affine
        return {name: self.operand(name, affine[name], array) for name, array in self.inputs.items()}

    def evaluate(self) -> Array:
        """Return Y (T, 2, N, H) in float64, every state computed from the one before; quantized where y_scale is
        given."""
        numbers = {name: operand.value for name, operand in self.operands.items()}
        y = self.configuration.y
        Y: Array = run(self.configuration, numbers, Requantized(y if self.fed_back == "quantized" else None))["Y"]
        return Y if y is None else y.rounded(Y)

    def with_input(self, name: str, altered: Any) -> ExtendedComputation:
        """Return the computation with one tensor, and its levels, taken from another computation."""
        own, other = self.operand, altered.operand

        def operand(tensor: str, affine: Affine, array: NDArray[Any]) -> Operand:
            return (other if tensor == name else own)(tensor, affine, array)

        return replace(super().with_input(name, altered), operand=operand)  # type: ignore[call-arg, return-value]

    def bounded(self, accuracy: str, observed: Any = None) -> dict[str, Bounded]:
        """Return Y in a kind of arithmetic, each step from the reported state, or from the computed one if Y was not
        reported."""
        c, Y = self.configuration, (observed or {}).get("Y")
        arithmetic = Leveled(accuracy, c.y, self.fed_back, self.state)
        tensors: dict[str, Any] = dict(self.operands)
        if "B" in tensors:
            tensors["B"] = arithmetic.bias(tensors["B"])
        seen = None if Y is None else self.seen(Y.astype(np.float64))
        with np.errstate(over="ignore", invalid="ignore"):
            states = [self._states(d, tensors, arithmetic, seen) for d in range(len(c.directions))]
            hidden = outputs_of(c, tensors, states, arithmetic)["Y"]
            number = arithmetic.quantized(hidden, self.shown) if c.T else hidden
        return {"Y": _undefined_later(number) if Y is None else self.placed(number)}

    def plain(self, observed: Any = None) -> dict[str, NDArray[Any]]:
        """Return Y in float32, as an implementation computes it from its own states.

        Y is quantized where y_scale is given. Every step depends on the one before, so each iteration makes one more
        step right.
        """
        c = self.configuration
        Y = np.zeros(c.shape_of("Y"), np.float32)
        for _ in range(c.T + 1):
            before = Y
            value = self.bounded("float32", {"Y": before})["Y"].value
            Y = (value if c.y is None else np.rint(value / c.y.scale) * c.y.scale).astype(np.float32)
            if np.array_equal(Y, before):
                break
        return {"Y": Y}

    def _states(self, d: int, tensors: Mapping[str, Any], arithmetic: Leveled, seen: Array | None) -> States:
        """Return the states of one direction after each step, (T, N, H) in processing order."""
        c = self.configuration
        if self.shift is _nothing or seen is None or not c.T:
            return states_of(c, tensors, arithmetic, d, seen)
        direction = Direction(c, tensors, arithmetic, d, seen)
        total = direction.input_sums(direction.X).value + direction.recurrent_sums(direction.before).value
        added = np.broadcast_to(self.shift(direction, total), total.shape)
        if not added.any():
            return states_of(c, tensors, arithmetic, d, seen)

        def equations(p: Parameters, XW: Gates, HR: Gates, *states: Any) -> States:
            more = p.arithmetic.exact(added[p.t : p.t + len(XW.number)])
            return c.cell.equations(p, Gates(XW.number + more, XW.blocks), HR, *states)

        return states_of(replace(c, cell=replace(c.cell, equations=equations)), tensors, arithmetic, d, seen)


def computation_of(node: ExtendedLSTM, state: str = "quantized") -> ExtendedComputation:
    """Return the computation of a resolved node; `state` goes from step to step where Y is quantized."""
    return ExtendedComputation(node, {name: array.astype(np.float64) for name, array in node.given.items()}, state)


def _undefined_later(number: Bounded) -> Bounded:
    """Return the Y (T, 2, N, H) of a free run, undefined in all steps after an undefined one."""
    undefined = np.zeros(number.value.shape, bool) if number.doubt is None else number.doubt
    return replace(number, doubt=later_steps(undefined))


def later_steps(unknown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask (T, 2, N, H) of the rows with a marked element, in its step and all later ones of its direction."""
    mask = np.broadcast_to(np.asarray(unknown.any(-1, keepdims=True)), unknown.shape)
    both = np.logical_or.accumulate(mask[:, :1]), np.logical_or.accumulate(mask[::-1, 1:])[::-1]
    return np.concatenate(both, axis=1)

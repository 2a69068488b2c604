"""Computations of ExtendedLSTM: a node and its stages, which faults change.

A node runs LSTM's equations in arithmetics of levels (:mod:`.arithmetic`). Each step starts from the Y that the target
reported one step before, so the radius stays tight at any length. Without a reported Y, each step starts from the
computed state and the bound grows with length; files of expected outputs and scripts need this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.fault import fault, fault_of_run
from ...numbers.accuracy import Format
from ...numbers.activations import Activation, Coefficient, kind_named
from ...numbers.affine import Affine
from ...numbers.bounded import Bounded
from ...recurrent.cell import Gates, Parameters, States
from ...recurrent.configuration import Configuration
from ...recurrent.rnn import LSTM, in_order, processing_order, run, states_of
from .arithmetic import Leveled, Operand, Requantized, Stages, Sums
from .document import OP_TYPE, ExtendedLSTM

Array = NDArray[np.float64]

of = partial(fault, operators=(OP_TYPE,), types=("float32",))
of_run = partial(fault_of_run, operators=(OP_TYPE,), types=("float32",))
"""Decorators that register a fault of ExtendedLSTM."""


def evaluate_extended(node: ExtendedLSTM, state: str = "quantized") -> Array:
    """Return Y (T, 2, N, H) in float64, every state computed from the one before; quantized where y_scale is given.

    state
        The state that goes from step to step, one of :data:`.arithmetic.STATES`. Without y_scale both are the same.
    """
    numbers = {name: operand.value for name, operand in node.tensors.items()}
    Y: Array = run(node, numbers, Requantized(node.y if state == "quantized" else None))["Y"]
    return Y if node.y is None else node.y.rounded(Y)


@dataclass(frozen=True)
class ExtendedComputation(Stages):
    """Computation of a node with changed stages.

    fed_back
        The state that goes from step to step where Y is quantized, one of :data:`.arithmetic.STATES`.
    """

    node: ExtendedLSTM = field(kw_only=True)
    fed_back: str = "quantized"

    @property
    def format(self) -> Format:
        """The format of all tensors."""
        return self.node.format

    @property
    def directions(self) -> tuple[str, ...]:
        """Names of the directions: always both."""
        return self.node.directions

    def direction_axis(self, output: str) -> int:
        """Return the axis of directions in an output."""
        return 1

    def with_input(self, name: str, altered: Any) -> ExtendedComputation:
        """Return the computation with the levels of one tensor taken from another computation."""
        own, other = self.quantized, altered.quantized

        def quantized(tensor: str, affine: Affine, array: NDArray[Any]) -> Operand:
            return (other if tensor == name else own)(tensor, affine, array)

        return replace(self, quantized=quantized)

    def bounded(self, accuracy: str, observed: Mapping[str, NDArray[Any]]) -> dict[str, Bounded]:
        """Return Y in a kind of arithmetic, each step from the reported state, or from the computed one without
        `observed`."""
        arithmetic = Leveled(accuracy, self.node.y, self.fed_back, self.state)
        Y = observed.get("Y")
        with np.errstate(over="ignore", invalid="ignore"):
            if Y is None:
                right = ExtendedComputation(node=self.node)
                both = [_from_there_on(right._direction(d, arithmetic, None), d) for d in range(2)]
                return {"Y": arithmetic.concatenate(both, 1)}
            seen = self.seen(Y.astype(np.float64))
            both = [self._direction(d, arithmetic, seen[:, d : d + 1]) for d in range(2)]
            return {"Y": self.placed(arithmetic.concatenate(both, 1))}

    def plain(self, observed: Any = None) -> dict[str, NDArray[Any]]:
        """Return Y in float32, as an implementation with these stages computes it from its own states.

        Y is quantized where y_scale is given. Every step depends on the one before, so each iteration makes one more
        step right.
        """
        node = self.node
        Y = np.zeros(node.shape_of("Y"), np.float32)
        for _ in range(node.T + 1):
            before = Y
            value = self.bounded("float32", {"Y": before})["Y"].value
            Y = (value if node.y is None else np.rint(value / node.y.scale) * node.y.scale).astype(np.float32)
            if np.array_equal(Y, before):
                break
        return {"Y": Y}

    def _direction(self, d: int, arithmetic: Leveled, observed: Array | None) -> Bounded:
        """Return Y (T, 1, N, H) of one direction."""
        tensors = self._tensors(d)
        B = tensors.get("B")
        operands: Any = tensors if B is None else {**tensors, "B": arithmetic.bias(B)}
        configuration = self._one_direction(d)
        order = processing_order(configuration.T, configuration.lengths, configuration.directions[0])
        if observed is not None:
            seen = observed if self.realigned else in_order(observed, order)
            added = self._added(tensors, order, arithmetic, in_order(seen[:, 0], order))
            if np.any(added):
                configuration = replace(configuration, cell=replace(configuration.cell, equations=_Adding(added)))
        else:
            seen = None
        hidden, _ = states_of(configuration, operands, arithmetic, 0, seen)
        shown = arithmetic.quantized(hidden, self.shown) if self.node.T else hidden
        return (in_order(shown, order) if self.realigned else shown)[:, np.newaxis]

    def _one_direction(self, d: int) -> Configuration:
        """Return one direction of the node as an LSTM configuration."""
        functions = self.node.activations[0]
        if self.functions != Stages.functions:
            functions = tuple(_activation(name) for name in self.functions)
        return replace(
            self.node,
            cell=LSTM if self.gates == LSTM.gates else replace(LSTM, gates=self.gates),
            directions=("reverse" if self.backwards[d] else "forward",),
            activations=(functions,),
        )

    def _tensors(self, d: int) -> dict[str, Operand]:
        """Return the operands of one direction."""
        node, own = self.node, slice(self.weights[d], self.weights[d] + 1)
        tensors = dict(node.tensors)
        if self.quantized is not Stages.quantized:
            tensors = {n: self.quantized(n, node.affine[n], array) for n, array in node.given.items()}
        tensors = {name: operand if name == "X" else operand[own] for name, operand in tensors.items()}
        tensors["X"] = self.rows(tensors["X"])
        if "B" in tensors:
            biases = self.biases((tensors["B"].value[:, : 4 * node.H], tensors["B"].value[:, 4 * node.H :]))
            tensors["B"] = replace(tensors["B"], value=np.concatenate(biases, axis=1))
        return tensors

    def _added(self, tensors: Mapping[str, Operand], order: Any, arithmetic: Leveled, seen: Array) -> Array:
        """Return the terms added to the pre-activations of one direction, in processing order: (T, N, 4H)."""
        node, rows = self.node, 4 * self.node.H
        B = np.zeros((2, rows)) if "B" not in tensors else tensors["B"].value.reshape(2, rows)
        if "B" not in tensors:
            B[0] = self.absent_bias
        added = np.broadcast_to(B[0] if "B" not in tensors else 0.0, (node.T, node.N, rows))
        if self.shift is Stages.shift or not node.T:
            return added
        x, w, r = tensors["X"][order], tensors["W"][0], tensors["R"][0]
        h = arithmetic.before(np.zeros((1, node.N, node.H)), seen[:-1])
        total = arithmetic.product(x, w).value + B[0] + (arithmetic.product(h, r).value + B[1])
        return np.asarray(added + self.shift(Sums(x, w, h, r, B[0] + B[1], total)))


class _Adding:
    """Equations of LSTM with terms added to the sums of each step."""

    def __init__(self, added: Array) -> None:
        self._left = added

    def __call__(self, p: Parameters, XW: Gates, HR: Gates, *states: Any) -> States:
        added, self._left = self._left[: len(XW.number)], self._left[len(XW.number) :]
        return LSTM.equations(p, Gates(XW.number + p.arithmetic.exact(added), XW.blocks), HR, *states)


def _from_there_on(number: Bounded, d: int) -> Bounded:
    """Return Y (T, 1, N, H) of a free run, undefined in all steps after an undefined one."""
    undefined = np.zeros(number.value.shape, bool) if number.doubt is None else number.doubt
    order = slice(None, None, -1) if d else slice(None)
    later = np.logical_or.accumulate(np.asarray(undefined.any(-1, keepdims=True))[order], axis=0)[order]
    return replace(number, doubt=np.broadcast_to(later, number.value.shape))


def _activation(name: str) -> Activation:
    kind = kind_named(name)
    assert kind is not None
    # HardSigmoid's defaults, and the identity for Affine; the others have no coefficients.
    return Activation(kind, *map(Coefficient, (1.0, 0.0) if name == "Affine" else (0.2, 0.5)))

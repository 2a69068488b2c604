"""A second derivation of LSTM: scalar loops at 50 digits, written from the operator's document alone.

Its purpose is to find errors of the reference, so it shares neither code nor style with it: no matrices, no
broadcasting, no scan. Every element is one Python loop over mpmath numbers, and each loop body is a line of the
document. It is slow and meant for sizes of a few units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from .second_document import DIGITS, Activation, Choices, clipped, exact, functions, optional, through_time


def second_lstm(
    attributes: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]], choices: Choices | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return LSTM by its document, computed at 50 digits and rounded once to float64 at the end.

    Args:
        attributes: those of the node, by name; FLOAT attributes are rounded to binary32, as a node stores them. inputs:
        by formal name; "X", "W" and "R" at least, an absent optional input is a missing key. Any float type. choices:
        the interpretations to follow.

    Returns:
        "Y", "Y_h" and "Y_c" in the shapes the layout asks for. Past a sequence's length Y is 0; a sequence of length 0
        ends as ``choices`` say.
    """
    choices = choices or Choices()
    with mpmath.workdps(DIGITS):
        chosen = functions(attributes, ("Sigmoid", "Tanh", "Tanh"), choices)
        w, r, b, p = exact(inputs["W"]), exact(inputs["R"]), optional(inputs, "B"), optional(inputs, "P")

        def step(d: int, xt: Sequence[Any], states: list[list[Any]]) -> list[list[Any]]:
            parameters = Parameters(w, r, b, p, d, choices.transpose_r)
            hidden, cell = states
            return list(_step(parameters, chosen[d], attributes, choices, xt, hidden, cell))

        return through_time(attributes, inputs, choices, ("h", "c"), step)


@dataclass(frozen=True)
class Parameters:
    """W, R, B and P of one direction, read one number at a time."""

    w: NDArray[Any]
    r: NDArray[Any]
    b: NDArray[Any] | None
    p: NDArray[Any] | None
    direction: int
    transpose_r: bool

    def argument(self, gate: str, unit: int, xt: Sequence[Any], hidden: Sequence[Any]) -> Any:
        """Return ``Xt*(W^T) + Ht-1*(R^T) + Wb + Rb`` of one unit of a gate.

        The order of blocks is W[iofc], R[iofc], B = [Wb[iofc], Rb[iofc]].
        """
        size, d = len(hidden), self.direction
        block = "iofc".index(gate) * size
        total = mpmath.mpf(0)
        for k, value in enumerate(xt):
            total += value * self.w[d, block + unit, k]
        for k, value in enumerate(hidden):
            total += value * (self.r[d, block + unit, k] if self.transpose_r else self.r[d, block + k, unit])
        if self.b is not None:
            total += self.b[d, block + unit] + self.b[d, 4 * size + block + unit]
        return total

    def peephole(self, gate: str, unit: int, state: Sequence[Any]) -> Any:
        """Return ``P (.) C`` of one unit of a gate: P[iof]."""
        if self.p is None:
            return mpmath.mpf(0)
        return self.p[self.direction, "iof".index(gate) * len(state) + unit] * state[unit]


def _step(
    parameters: Parameters,
    functions: Sequence[Activation],
    attributes: Mapping[str, Any],
    choices: Choices,
    xt: Sequence[Any],
    hidden: Sequence[Any],
    cell: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Return Ht and Ct of one sequence in one direction, from Xt, Ht-1 and Ct-1."""

    def bounded(value: Any) -> Any:
        return clipped(value, attributes, choices)

    f, g, h = functions
    units = range(len(hidden))
    i_gate, f_gate, candidate = [], [], []
    for unit in units:
        it = f(bounded(parameters.argument("i", unit, xt, hidden) + parameters.peephole("i", unit, cell)))
        ft = f(bounded(parameters.argument("f", unit, xt, hidden) + parameters.peephole("f", unit, cell)))
        if attributes.get("input_forget", 0) == 1:
            if choices.coupled_keeps == "i":
                ft = 1 - it
            else:
                it = 1 - ft
        i_gate.append(it)
        f_gate.append(ft)
        candidate.append(g(bounded(parameters.argument("c", unit, xt, hidden))))
    new_cell = [f_gate[unit] * cell[unit] + i_gate[unit] * candidate[unit] for unit in units]
    new_hidden = []
    for unit in units:
        ot = f(bounded(parameters.argument("o", unit, xt, hidden) + parameters.peephole("o", unit, new_cell)))
        shown = bounded(new_cell[unit]) if choices.clip_cell_output else new_cell[unit]
        new_hidden.append(ot * h(shown))
    return new_hidden, new_cell

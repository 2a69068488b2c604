"""Faults of blocks: units that a kernel processes together, in memory that it reads and writes at the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ..alterations import clipped, rounded_state, sums_over, with_equations, with_recurrent_state
from ..fault import ALL_BUT_BFLOAT16, Array, fault

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

@fault("blocks.units-in-place-by-{}", "equations",
    "Writes Ht over Ht-1 in blocks of {0} units: later ones multiply R by what earlier ones have become.",
    types=ALL_BUT_BFLOAT16, layer="operands", numbers=(8, 32, 16, 4))
def units_in_place(c: Computation, block: int) -> Computation:
    units, cell = c.configuration.H, c.configuration.cell
    if units <= block:
        return c

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        return one_by_one(by_blocks, p, XW, HR, H, *inner)

    def by_blocks(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        states = cell.equations(p, XW, HR, H, *inner)
        for first in range(block, units, block):
            before, after = np.arange(units) < first, np.arange(units) >= first
            mixed = p.arithmetic.where(before, states[0], H)
            later = cell.equations(p, XW, sums_over(p, mixed, HR), H, *inner)
            states = tuple(p.arithmetic.where(after, new, old) for new, old in zip(later, states, strict=True))
        return states

    return with_equations(c, equations)


def one_by_one(step: Callable[..., States], p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
    """Return the states after every step of equations that are run step by step."""
    taken: list[States] = []
    for t in range(len(XW.number)):
        steps = slice(t, t + 1)
        states = step(replace(p, t=p.t + t), XW[steps], HR[steps], H[steps], *inner)
        inner = tuple(p.arithmetic.carry_state(state[-1]) for state in states[1:])
        taken.append(states)
    return tuple(p.arithmetic.concatenate(list(parts)) for parts in zip(*taken, strict=True))


def _first_zero(state: Array, block: int) -> Array:
    """Return a state with zeros for the whole blocks of units whose first unit is zero."""
    units = state.shape[-1]
    first = np.arange(units) // block * block
    return np.where((state[..., first] == 0) & (first + block <= units), 0.0, state)


fault("blocks.skipped-by-first-zero-of-{}", "equations",
    "Leaves {0} units out of the product with R where the state of the first of them is zero.",
    lambda c, block: with_recurrent_state(c, lambda state: rounded_state(state, lambda x: _first_zero(x, block))),
    layer="operands", numbers=(4, 16, 8))


@fault("blocks.state-bounded", "equations",
    "Bounds Ht-1 to between -1 and 1 before it is multiplied by R, and there alone.",
    types=ALL_BUT_BFLOAT16, layer="operands")
def state_bounded(c: Computation) -> Computation:
    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        cell = c.configuration.cell
        return cell.equations(p, XW, sums_over(p, clipped(p, H, 1.0), HR), H, *inner)

    return with_equations(c, equations)

"""Faults of blocks: units that a kernel takes several at a time, in memory that it reads and writes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.cell import Gates, Number, Parameters, Recurrent, States
from ...recurrent.recurrence import Computation
from ..alterations import clipped, rounded_state, settled, with_recurrent_state, with_walk
from ..fault import ALL_BUT_BFLOAT16, Alteration, Compute, Outputs, family, fault

__all__: list[str] = []

Array = NDArray[Any]


def from_state(p: Parameters, H: Recurrent, state: Number, letters: str) -> Recurrent:
    """The sums over a state for all gates, where it takes the place of Ht-1 in products."""
    return _with_number(p, H, [settled(H.through(state, letter)) for letter in letters])


def _with_number(p: Parameters, H: Recurrent, sums: list[Number]) -> Recurrent:
    plain = isinstance(sums[0], np.ndarray)
    number = np.concatenate(sums, axis=-1) if plain else p.arithmetic.concatenate(sums, sums[0].value.ndim - 1)
    return type(H)(number, H.blocks, H.state, H.through, H.step)


@family("blocks.units-in-place-by-{}", 8, 32, 16, 4, clause="equations", types=ALL_BUT_BFLOAT16, layer="operands")
def units_in_place(block: int) -> Alteration:
    """Writes Ht over Ht-1 in blocks of {0} units: later ones multiply R by what earlier ones have become."""

    def changed(c: Computation) -> Computation:
        units, cell = c.configuration.H, c.configuration.cell
        if units <= block:
            return c

        def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
            return one_by_one(p, X, H, inner, by_blocks)

        def by_blocks(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
            states = cell.walk(p, X, H, inner)
            for first in range(block, units, block):
                before, after = np.arange(units) < first, np.arange(units) >= first
                mixed = p.arithmetic.where(before, states[0], H.state)
                later = cell.walk(p, X, from_state(p, H, mixed, cell.gates), inner)
                states = tuple(p.arithmetic.where(after, new, old) for new, old in zip(later, states, strict=True))
            return states

        return with_walk(c, walk)

    return changed


def one_by_one(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...], step: Callable[..., States]) -> States:
    """The states after every step of a walk that is taken step by step."""
    taken: list[States] = []
    for t in range(len(X.number.value if hasattr(X.number, "value") else X.number)):
        states = step(p, _slice(X, t), _slice(H, t), inner)
        inner = tuple(p.arithmetic.kept(state[-1]) for state in states[1:])
        taken.append(states)
    return tuple(p.arithmetic.concatenate(list(parts)) for parts in zip(*taken, strict=True))


def _slice(sums: Any, t: int) -> Any:
    """One step of some sums, with the axis of steps."""
    own = dict(vars(sums))
    own["number"] = sums.number[t : t + 1]
    if isinstance(sums, Recurrent):
        own |= {"state": sums.state[t : t + 1], "step": sums.step + t}
    return type(sums)(**own)


@family("blocks.skipped-by-first-zero-of-{}", 4, 16, 8, clause="equations", layer="operands")
def skipped_by_first_zero(block: int) -> Alteration:
    """Leaves {0} units out of the product with R where the state of the first of them is zero."""

    def first_zero(state: Array) -> Array:
        units = state.shape[-1]
        first = np.arange(units) // block * block
        return np.where((state[..., first] == 0) & (first + block <= units), 0.0, state)

    def changed(c: Computation) -> Computation:
        return with_recurrent_state(c, lambda state: rounded_state(state, first_zero))

    return changed


@fault("blocks.state-bounded", clause="equations", types=ALL_BUT_BFLOAT16, layer="operands")
def state_bounded(compute: Compute, c: Computation) -> Outputs:
    """Bounds Ht-1 to between -1 and 1 before it is multiplied by R, and there alone."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        cell = c.configuration.cell
        return cell.walk(p, X, from_state(p, H, clipped(p, H.state, 1.0), cell.gates), inner)

    return compute(with_walk(c, walk))

"""Faults of single steps: left out, done twice, from the state or the input of another step or row.

Hardly a kernel does so everywhere: these are here to be made in some places (:data:`..scope.IN_PART`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.cell import Gates, Number, Parameters, Recurrent, States
from ...recurrent.recurrence import Computation
from ..alterations import by_direction, with_inputs, with_recurrent_state, with_steps, with_walk
from ..fault import ALL_BUT_BFLOAT16, Compute, Outputs, fault
from .block import from_state, one_by_one

__all__: list[str] = []

Array = NDArray[Any]


@fault("steps.skipped", clause="equations")
def steps_skipped(compute: Compute, c: Computation) -> Outputs:
    """Leaves the state as it was, as if a step were none of the sequence."""

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        steps = len(H.state.value if hasattr(H.state, "value") else H.state)
        return (H.state, *(p.arithmetic.stack([state] * steps) for state in inner))

    return compute(with_walk(c, walk))


@fault("steps.twice", clause="equations", types=ALL_BUT_BFLOAT16, layer="operands")
def steps_twice(compute: Compute, c: Computation) -> Outputs:
    """Computes a step twice: once more from the state to which it led."""
    cell = c.configuration.cell

    def twice(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        once = cell.walk(p, X, H, inner)
        moved = from_state(p, H, once[0], cell.gates)
        moved = type(H)(moved.number, H.blocks, once[0], H.through, H.step)
        return cell.walk(p, X, moved, tuple(p.arithmetic.kept(state[-1]) for state in once[1:]))

    def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
        return one_by_one(p, X, H, inner, twice)

    return compute(with_walk(c, walk))


@fault("steps.without-input", clause="equations")
def steps_without_input(compute: Compute, c: Computation) -> Outputs:
    """Leaves the product of X with W out."""
    return compute(with_inputs(c, X=np.zeros_like(c.inputs["X"])))


@fault("steps.input-of-one-before", clause="equations")
def input_of_step_before(compute: Compute, c: Computation) -> Outputs:
    """Takes X of the step that was computed before; the first one takes its own."""
    return _with_neighbour(compute, c, -1)


@fault("steps.input-of-one-after", clause="equations")
def input_of_step_after(compute: Compute, c: Computation) -> Outputs:
    """Takes X of the step that is computed next; the last one of the tensor takes its own."""
    return _with_neighbour(compute, c, 1)


def _with_neighbour(compute: Compute, c: Computation, by: int) -> Outputs:
    T = c.configuration.T

    def moved(by: int) -> Computation:
        return with_steps(c, lambda X: X[np.clip(np.arange(T) + by, 0, T - 1)])

    if "reverse" not in c.configuration.directions:
        return compute(moved(by))
    return by_direction(compute, moved(by), moved(-by), "reverse")


@fault("rows.input-of-row-before", clause="rows.independent")
def input_of_row_before(compute: Compute, c: Computation) -> Outputs:
    """Takes X of the row before."""
    return compute(with_steps(c, lambda X: np.roll(X, 1, axis=1)))


@fault("rows.state-of-row-before", clause="rows.independent", layer="operands")
def state_of_row_before(compute: Compute, c: Computation) -> Outputs:
    """Multiplies R by the state of the row before."""
    rows = np.roll(np.arange(c.configuration.N), 1)
    return compute(with_recurrent_state(c, lambda state: state[..., rows, :]))

"""Faults of single steps: left out, done twice, from the state or the input of another step or row.

Hardly a kernel does so everywhere: these are here to be made in some places (:data:`..scope.IN_PART`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ..alterations import by_direction, sums_over, with_equations, with_inputs, with_recurrent_state, with_steps
from ..fault import ALL_BUT_BFLOAT16, Compute, Outputs, fault
from .block import one_by_one

__all__: list[str] = []

Array = NDArray[Any]


@fault("steps.skipped", clause="equations")
def steps_skipped(compute: Compute, c: Computation) -> Outputs:
    """Leaves the state as it was, as if a step were none of the sequence."""

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        steps = len(H.value if hasattr(H, "value") else H)
        return (H, *(p.arithmetic.stack([state] * steps) for state in inner))

    return compute(with_equations(c, equations))


@fault("steps.twice", clause="equations", types=ALL_BUT_BFLOAT16, layer="operands")
def steps_twice(compute: Compute, c: Computation) -> Outputs:
    """Computes a step twice: once more from the state to which it led."""
    cell = c.configuration.cell

    def twice(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        once = cell.equations(p, XW, HR, H, *inner)
        carried = (p.arithmetic.carry_state(state[-1]) for state in once[1:])
        return cell.equations(p, XW, sums_over(p, once[0], HR), once[0], *carried)

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        return one_by_one(twice, p, XW, HR, H, *inner)

    return compute(with_equations(c, equations))


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

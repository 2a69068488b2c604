"""Faults of single steps: left out, done twice, or with the state or the input of another step or row."""

from __future__ import annotations

import numpy as np

from ...recurrent.cell import Gates, Number, Parameters, States
from ...recurrent.computation import Computation
from ..alterations import by_direction, sums_over, with_equations, with_inputs, with_recurrent_state, with_steps
from ..fault import ALL_BUT_BFLOAT16, Compute, Outputs, fault, fault_of_run
from .block import one_by_one

# Rows: id, clause, words, then the change, and fields of Fault.
# fmt: off

@fault("steps.skipped", "equations", "Leaves the state as it was, as if a step were none of the sequence.")
def steps_skipped(c: Computation) -> Computation:
    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        steps = len(H.value if hasattr(H, "value") else H)
        return (H, *(p.arithmetic.stack([state] * steps) for state in inner))

    return with_equations(c, equations)


@fault("steps.twice", "equations",
    "Computes a step twice: once more from the state to which it led.", types=ALL_BUT_BFLOAT16, layer="operands")
def steps_twice(c: Computation) -> Computation:
    cell = c.configuration.cell

    def twice(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        once = cell.equations(p, XW, HR, H, *inner)
        carried = (p.arithmetic.carry_state(state[-1]) for state in once[1:])
        return cell.equations(p, XW, sums_over(p, once[0], HR), once[0], *carried)

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        return one_by_one(twice, p, XW, HR, H, *inner)

    return with_equations(c, equations)


def _with_neighbour(compute: Compute, c: Computation, by: int) -> Outputs:
    T = c.configuration.T

    def moved(by: int) -> Computation:
        return with_steps(c, lambda X: X[np.clip(np.arange(T) + by, 0, T - 1)])

    if "reverse" not in c.configuration.directions:
        return compute(moved(by))
    return by_direction(compute, moved(by), moved(-by), "reverse")


fault("steps.without-input", "equations", "Leaves the product of X with W out.",
    lambda c: with_inputs(c, X=np.zeros_like(c.inputs["X"])))
fault_of_run("steps.input-of-one-before", "equations",
    "Takes X of the step that was computed before; the first one takes its own.",
    lambda compute, c: _with_neighbour(compute, c, -1))
fault_of_run("steps.input-of-one-after", "equations",
    "Takes X of the step that is computed next; the last one of the tensor takes its own.",
    lambda compute, c: _with_neighbour(compute, c, 1))
fault("rows.input-of-row-before", "rows.independent", "Takes X of the row before.",
    lambda c: with_steps(c, lambda X: np.roll(X, 1, axis=1)))
fault("rows.state-of-row-before", "rows.independent", "Multiplies R by the state of the row before.",
    lambda c: with_recurrent_state(c, lambda state: state[..., np.roll(np.arange(c.configuration.N), 1), :]),
    layer="operands")

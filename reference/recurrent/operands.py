"""Operands that an operator makes of X and of the states before they are multiplied by W and R.

They make rows of a batch depend on each other: a range is taken over several rows. So it matters which steps of
different rows are computed at the same time, and with which states other rows wait.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Number = Any
Steps = NDArray[np.int64]


class Operands(Protocol):
    """The operands of products. Two are equal if they make the same of all numbers.

    by_clock
        Whether the reverse direction computes the steps of all rows at one position of X at the same time. Shorter rows
        then wait, with their initial states.
    """

    @property
    def by_clock(self) -> bool: ...

    def beside(self, runs: int) -> Operands:
        """Return operands of several runs side by side in the batch (:mod:`.stacking`), each with its own ranges."""

    def of_inputs(self, X: Number, lengths: Steps, positions: Steps | slice) -> Number:
        """Return the operand of X (T, N, I), in processing order. `positions`: from that order into X's."""

    def of_states(self, states: Number, had: Steps, lengths: Steps) -> Number:
        """Return the operands of the states before some steps (steps, N, H).

        had
            (steps, N): steps that a row has had; below 0 while it waits, beyond its length after its last step.
        """


def multiplied(operands: Operands, before: Number, T: int, lengths: Steps, wait: Steps | None) -> Number:
    """Return the operands of the states before all steps (T, N, H)."""
    had = steps_had(0, T, len(lengths), wait)
    if (lengths == T).all():
        return operands.of_states(before, had, lengths)
    states = before[np.clip(had, 0, np.minimum(lengths, T - 1)), np.arange(len(lengths))]
    made = operands.of_states(states, had, lengths)
    return made if wait is None else made[later(T, wait)]


def steps_had(start: int, stop: int, N: int, wait: Steps | None) -> Steps:
    """Return the number of steps that each row has had before some steps, (steps, N)."""
    steps = np.broadcast_to(np.arange(start, stop)[:, np.newaxis], (stop - start, N))
    return steps if wait is None else steps - wait


def later(T: int, wait: Steps) -> tuple[Steps, Steps]:
    """Return an index of steps (T, N) that are so many steps later, as far as they exist."""
    return np.clip(np.arange(T)[:, np.newaxis] + wait, 0, T - 1), np.arange(len(wait))


def held(arithmetic: Any, had: Steps, lengths: Steps, before: tuple[Any, Any], after: tuple[Any, Any]) -> Any:
    """Return the states after one step: a row that waits keeps all states, a row past its last step keeps H."""
    runs = ((had >= 0) & (had < lengths))[..., np.newaxis]
    H, inner = after
    H = arithmetic.where(runs, H, before[0])
    if (had < 0).any():
        started = (had >= 0)[0, :, np.newaxis]
        inner = tuple(arithmetic.where(started, new, old) for new, old in zip(inner, before[1], strict=True))
    return H, inner

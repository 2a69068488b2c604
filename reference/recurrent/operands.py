"""Operands that an operator makes of X and of the states before they are multiplied by W and R, where that is not
themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations

Number = Any


class Operands(Protocol):
    """The operands of products, equal to others that make the same of all numbers.

    by_clock
        Whether reverse takes rows of several lengths by the place of their steps in X: shorter ones wait, with their
        initial states, until it is theirs.
    """

    @property
    def by_clock(self) -> bool: ...

    def beside(self, runs: int) -> Operands:
        """Operands of so many runs side by side in the batch (:mod:`.stacking`), each by itself."""

    def of_inputs(self, X: Number, lengths: NDArray[np.int64], positions: NDArray[np.int64] | slice) -> Number:
        """The operand that X (T, N, I), in processing order, goes in as. `positions`: from that order into X's."""

    def of_states(self, states: Number, had: NDArray[np.int64], lengths: NDArray[np.int64]) -> Number:
        """The operands that the states before some steps (steps, N, H) go in as: of rows that wait the initial ones, of
        rows that are through their last ones.

        had
            (steps, N): how many steps a row has had; below 0 where it waits, beyond its length where it is through.
        """


OperandRules = Callable[[Interpretations, bool], Operands]
"""A function from what a target follows where the document is open, and from whether some row has fewer than all steps,
to what goes into products."""

OpenQuestions = Callable[[int, NDArray[np.int64], tuple[str, ...]], frozenset[str]]
"""A function from a node's T, its rows' lengths and its directions to the questions that are open of its operands."""

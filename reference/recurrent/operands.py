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
    """The operands of products, equal to others that make the same of all numbers."""

    def beside(self, runs: int) -> Operands:
        """Operands of so many runs side by side in the batch (:mod:`.stacking`), each by itself."""

    def of_inputs(self, X: Number, lengths: NDArray[np.int64]) -> Number:
        """The operand that X (T, N, I), in processing order, goes in as."""

    def of_states(self, states: Number, there: NDArray[np.bool_]) -> Number:
        """The operands that the states before some steps (steps, N, H) go in as.

        there
            (steps, N, 1): whether a row has had the step before.
        """


OperandRules = Callable[[Interpretations], Operands]
"""A function from what a target follows where the document is open to what goes into products."""

"""A second derivation of RNN: scalar loops at 50 digits, from the operator's document alone; see second_lstm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from .second_document import DIGITS, Choices, clipped, exact, functions, optional, through_time


def second_rnn(
    attributes: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]], choices: Choices | None = None
) -> dict[str, NDArray[np.float64]]:
    """Return RNN by its document, computed at 50 digits and rounded once to float64 at the end.

    Args:
        attributes, inputs, choices: as those of ``second_lstm``.

    Returns:
        "Y" and "Y_h".
    """
    choices = choices or Choices()
    with mpmath.workdps(DIGITS):
        chosen = functions(attributes, ("Tanh",), choices)
        w, r, b = exact(inputs["W"]), exact(inputs["R"]), optional(inputs, "B")
        size = inputs["R"].shape[2]

        def step(d: int, xt: Sequence[Any], states: list[list[Any]]) -> list[list[Any]]:
            (f,), (before,) = chosen[d], states
            after = []
            for unit in range(size):
                argument = mpmath.mpf(0)
                for k, value in enumerate(xt):
                    argument += value * w[d, unit, k]
                for k, value in enumerate(before):
                    argument += value * (r[d, unit, k] if choices.transpose_r else r[d, k, unit])
                if b is not None:  # [Wbi, Rbi]
                    argument += b[d, unit] + b[d, size + unit]
                after.append(f(clipped(argument, attributes, choices)))
            return [after]

        return through_time(attributes, inputs, choices, ("h",), step)

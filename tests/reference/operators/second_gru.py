"""A second derivation of GRU: scalar loops at 50 digits, from the operator's document alone; see second_lstm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from .second_document import DIGITS, Choices, clipped, exact, functions, optional, through_time


def second_gru(
    attributes: Mapping[str, Any],
    inputs: Mapping[str, NDArray[Any]],
    choices: Choices | None = None,
    *,
    says_defaults: bool = True,
) -> dict[str, NDArray[np.float64]]:
    """Return GRU by its document, computed at 50 digits and rounded once to float64 at the end.

    Args:
        attributes, inputs, choices: as those of ``second_lstm``. says_defaults: whether the document has the sentence
        "Default values are the same as of corresponding ONNX operators", which GRU-1 lacks.

    Returns:
        "Y" and "Y_h".
    """
    choices = choices or Choices()
    with mpmath.workdps(DIGITS):
        chosen = functions(attributes, ("Sigmoid", "Tanh"), choices, says_defaults=says_defaults)
        w, r, b = exact(inputs["W"]), exact(inputs["R"]), optional(inputs, "B")
        units = range(inputs["R"].shape[2])

        def row(gate: str, unit: int) -> int:
            return "zrh".index(gate) * len(units) + unit

        def from_x(d: int, gate: str, unit: int, xt: Sequence[Any]) -> Any:
            """Return Xt*(W^T)."""
            total = mpmath.mpf(0)
            for k, value in enumerate(xt):
                total += value * w[d, row(gate, unit), k]
            return total

        def from_h(d: int, gate: str, unit: int, hidden: Sequence[Any]) -> Any:
            """Return Ht-1*(R^T)."""
            total = mpmath.mpf(0)
            for k, value in enumerate(hidden):
                total += value * (r[d, row(gate, unit), k] if choices.transpose_r else r[d, row(gate, k), unit])
            return total

        def bias(d: int, half: str, gate: str, unit: int) -> Any:
            """Return Wb or Rb: B is [Wb[zrh], Rb[zrh]]."""
            if b is None:
                return mpmath.mpf(0)
            return b[d, (3 * len(units) if half == "R" else 0) + row(gate, unit)]

        def step(d: int, xt: Sequence[Any], states: list[list[Any]]) -> list[list[Any]]:
            f, g = chosen[d]
            (before,) = states
            zt, rt, after = [], [], []
            for gate, values in (("z", zt), ("r", rt)):
                for unit in units:
                    argument = from_x(d, gate, unit, xt) + from_h(d, gate, unit, before)
                    argument += bias(d, "W", gate, unit) + bias(d, "R", gate, unit)
                    values.append(f(clipped(argument, attributes, choices)))
            for unit in units:
                wbh, rbh = bias(d, "W", "h", unit), bias(d, "R", "h", unit)
                if attributes.get("linear_before_reset", 0) != 0:
                    inner = rt[unit] * (from_h(d, "h", unit, before) + rbh) + wbh
                else:
                    inner = from_h(d, "h", unit, [rt[k] * before[k] for k in units]) + rbh + wbh
                ht = g(clipped(from_x(d, "h", unit, xt) + inner, attributes, choices))
                after.append((1 - zt[unit]) * ht + zt[unit] * before[unit])
            return [after]

        return through_time(attributes, inputs, choices, ("h",), step)

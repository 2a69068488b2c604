"""First element that differs from its expectation, in the order of computation.

A recurrent node propagates every error, so the worst element is often far behind the first wrong one. A failure is
therefore described by the first element outside its bound. Outputs come before those derived from them, and earlier
steps of the computation before later ones; in reverse, the last position is the first step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import Expectation, Node
from ...reference.operators.operator import Resolved
from ...reference.recurrent.agreement import ratios
from ...reference.recurrent.expectation import Measure
from .places import OutputAxes, OutputPlace

__all__ = ["FAR", "Divergence", "apart", "first_divergence", "ratio_text", "right_levels"]

FAR = 1e6
"""Ratio of |error| to bound above which messages show only this limit: bounds may be as small as 1e-45."""

_FEWEST, _MOST = 9, 17  # digits that identify a number of float32, and of float64


@dataclass(frozen=True)
class Divergence:
    """One element outside its bound.

    expectation
        The expectation that it violates.
    outside
        Number of elements outside, of all outputs.
    levels
        Whether the values are quantization levels, which are written as integers.
    run
        The run of its session, as text; empty if there is a single run.
    """

    expectation: Expectation
    place: OutputPlace
    got: float
    must: float
    bound: float
    outside: int
    levels: bool = False
    run: str = ""

    @property
    def clause(self) -> str:
        return self.expectation.clause

    @property
    def measure(self) -> Measure | None:
        """The size of an error of one level; None where outputs are not quantized."""
        return self.expectation.measure

    @property
    def where(self) -> dict[str, Any]:
        """The value of ``where`` in results."""
        return self.place.where

    def __str__(self) -> str:
        details = ", ".join(filter(None, (self.run, self.place.words)))
        first = f", the first of {self.outside} outside" if self.outside > 1 else ""
        location = f"{self.place} ({details})" if details else str(self.place)
        return f"{location} is {self._levels() if self.levels else self._numbers()} ({self.clause}){first}"

    def _levels(self) -> str:
        least, most = right_levels(self.must, self.bound)
        beyond = int(max(least - self.got, self.got - most))
        number = f"{beyond:,} level{'' if beyond == 1 else 's'}"
        right = f"level {least}, {number} off" if least == most else f"one of levels {least} to {most}, {number} beyond"
        return f"level {int(self.got)}, must be {right}"

    def _numbers(self) -> str:
        got, must = apart(self.got, self.must)
        number = f"{got}, must be {must}, error bound {self.bound:.3g}"
        if self.measure is None:
            return number
        units = abs(self.got - self.must) / self.measure.size
        return f"{number}, {'1 unit' if units == 1 else f'{units:.4g} units'} of {self.measure.name}"


def right_levels(must: float, bound: float) -> tuple[int, int]:
    """Return the least and the greatest level within a bound."""
    return math.ceil(must - bound), math.floor(must + bound)


def apart(got: float, must: float) -> tuple[str, str]:
    """Return two numbers as text, with enough digits to show their difference."""
    digits = _FEWEST
    if math.isfinite(got) and math.isfinite(must) and got != must:
        # Two digits of the difference, below the leading one of the larger number.
        digits = math.ceil(math.log10(max(abs(got), abs(must))) - math.log10(abs(got - must))) + 2
    digits = min(max(digits, _FEWEST), _MOST)
    return f"{got:.{digits}g}", f"{must:.{digits}g}"


def ratio_text(ratio: float) -> str:
    """Return |error| / bound as short text."""
    if not ratio < FAR:
        return f"> {FAR:.0e}".replace("e+0", "e")
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.3g}"


def first_divergence(
    node: Node, c: Resolved, expectations: Sequence[Expectation], outputs: Mapping[str, NDArray[Any]]
) -> Divergence | None:
    """Return the first element outside its bound; None if there is none.

    expectations
        Of the node, whose configuration is `c`; missing outputs are skipped.
    """
    first: tuple[tuple[int, ...], Expectation, OutputPlace] | None = None
    outside = 0
    for e in expectations:
        if e.output not in outputs:
            continue
        beyond = np.argwhere(np.nan_to_num(ratios(e, outputs[e.output]), nan=0.0) > 1)
        outside += len(beyond)
        if len(beyond):
            axes = OutputAxes(node, c, e.output)
            key, index = axes.earliest(beyond)
            if first is None or key < first[0]:
                first = key, e, axes.place(index)
    if first is None:
        return None
    _, e, place = first
    got = outputs[e.output]
    return Divergence(
        expectation=e,
        place=place,
        got=float(got[place.index]),
        must=float(np.broadcast_to(e.number.value, got.shape)[place.index]),
        bound=float(np.broadcast_to(e.number.radius, got.shape)[place.index]),
        outside=outside,
        levels=got.dtype.kind in "iu",
    )

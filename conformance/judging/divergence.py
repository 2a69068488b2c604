"""The first place where a target returns something else than it must, in the order in which numbers are computed.

A recurrent node hands every error on: what is worst lies mostly far behind what is wrong. So a failure is told by the
first element that is outside of its bound: Y before the states that are left after it, the first step of the
computation before later ones, the direction's first position last where it runs in reverse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import Expectation
from ...reference.operators.operator import Resolved
from ...reference.recurrent.agreement import ratios
from ...reference.recurrent.expectation import Measure
from ...reference.recurrent.rnn import processing_order

__all__ = ["FAR", "Divergence", "apart", "earliest", "first_divergence", "ratio_text", "right_levels"]

FAR = 1e6
"""From here on |error| / bound says nothing any more but that it is far outside: bounds may be as small as 1e-45."""

_FEWEST, _MOST = 9, 17  # digits: of float32 and of float64, with which a number can be read back


@dataclass(frozen=True)
class Divergence:
    """One element that is outside of its bound.

    index
        In the output as the node lays it out.
    step
        In the order of computation; None for the states after the last one.
    outside
        How many elements are, of all outputs.
    measure
        The size of an error that is one level; None where outputs are not quantized.
    levels
        Whether what came back are levels themselves, which are told as whole numbers.
    run
        Which run of its session it is in, in words; empty where there is one.
    """

    clause: str
    output: str
    index: tuple[int, ...]
    direction: str
    row: int
    step: int | None
    got: float
    must: float
    bound: float
    outside: int
    measure: Measure | None = None
    levels: bool = False
    run: str = ""

    @property
    def where(self) -> dict[str, Any]:
        """The value as results hold it."""
        return {"output": self.output, "index": list(self.index), "step": self.step}

    def __str__(self) -> str:
        when = f"step {self.step}" if self.step is not None else "after the last step"
        when = f"{self.run}, {when}" if self.run else when
        first = f", the first of {self.outside} outside" if self.outside > 1 else ""
        place = f"{self.output}[{', '.join(map(str, self.index))}] ({when}, {self.direction}, row {self.row})"
        return f"{place} is {self._levels() if self.levels else self._numbers()} ({self.clause}){first}"

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
    """The least and the greatest level within a bound."""
    return math.ceil(must - bound), math.floor(must + bound)


def apart(got: float, must: float) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to see by how much they differ."""
    digits = _FEWEST
    if math.isfinite(got) and math.isfinite(must) and got != must:
        # Two digits of the difference, below the leading one of the larger number.
        digits = math.ceil(math.log10(max(abs(got), abs(must))) - math.log10(abs(got - must))) + 2
    digits = min(max(digits, _FEWEST), _MOST)
    return f"{got:.{digits}g}", f"{must:.{digits}g}"


def ratio_text(ratio: float) -> str:
    """|error| / bound, short."""
    if not ratio < FAR:
        return "far outside"
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.3g}"


def first_divergence(
    c: Resolved, expectations: Sequence[Expectation], outputs: Mapping[str, NDArray[Any]]
) -> Divergence | None:
    """The first element outside of its bound; None where there is none.

    expectations
        Of the node that `c` is the configuration of; outputs that are missing are not looked at.
    """
    first: tuple[tuple[int, ...], Expectation, tuple[int, ...]] | None = None
    outside = 0
    for e in expectations:
        if e.output not in outputs:
            continue
        beyond = np.argwhere(np.nan_to_num(ratios(e, outputs[e.output]), nan=0.0) > 1)
        outside += len(beyond)
        if len(beyond):
            key, index = earliest(c, e.output, beyond)
            if first is None or key < first[0]:
                first = key, e, index
    if first is None:
        return None
    (_, step, d, row, _), e, index = first
    shape = outputs[e.output].shape
    return Divergence(
        clause=e.clause,
        output=e.output,
        index=index,
        direction=c.directions[d],
        row=row,
        step=step if e.output == "Y" else None,
        got=float(outputs[e.output][index]),
        must=float(np.broadcast_to(e.number.value, shape)[index]),
        bound=float(np.broadcast_to(e.number.radius, shape)[index]),
        outside=outside,
        measure=e.measure,
        levels=outputs[e.output].dtype.kind in "iu",
    )


def earliest(c: Resolved, output: str, places: NDArray[np.int64]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The first to be computed of elements of an output (each a row of `places`, at least one): (what orders it:
    output, step, direction, row, unit; its index)."""
    order = _order(c, output, places)
    place = np.lexsort(order.T[::-1])[0]
    return tuple(map(int, order[place])), tuple(map(int, places[place]))


def _order(c: Resolved, output: str, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys that order elements (their indices are the rows of `places`): output, step of the computation, direction,
    row, unit."""
    if output != "Y":
        d, row = (1, 0) if c.layout == 1 else (0, 1)
        rank = 1 + c.states.index(output)
        nothing = np.zeros(len(places), np.int64)
        return np.stack([nothing + rank, nothing, places[:, d], places[:, row], places[:, 2]], axis=1)
    time, d, row = (1, 2, 0) if c.layout == 1 else (0, 1, 2)
    steps = np.stack([_steps(c, direction) for direction in c.directions])
    step = steps[places[:, d], places[:, time], places[:, row]]
    return np.stack([np.zeros_like(step), step, places[:, d], places[:, row], places[:, 3]], axis=1)


def _steps(c: Resolved, direction: str) -> NDArray[np.int64]:
    """At which step each position of each row is computed, (T, N): the table of positions is its own inverse."""
    positions = processing_order(c.T, c.lengths, direction)
    if isinstance(positions, slice):
        return np.broadcast_to(np.arange(c.T)[positions][:, np.newaxis], (c.T, c.N))
    return positions

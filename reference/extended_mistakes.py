"""What deviations of ExtendedLSTM are: its document with one stage wrong, and the table that they register in.

They prove the suite and diagnose targets, as :mod:`.deviations` does for ONNX's operators, but by replacing stages
(:mod:`.extended_stages`): so several are combined by applying one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bounded import RADIUS_SLACK, Bounded
from .clauses import clause_named
from .deviations import DEVIATIONS, Deviation
from .extended_lstm import WIDEST, ExtendedLSTM, expect_extended
from .extended_stages import HONEST, Stages

__all__ = [
    "EXTENDED_DEVIATIONS",
    "ExtendedDeviation",
    "evidence_extended",
    "mistake",
    "mistake_named",
    "register",
    "run_extended",
    "stages_with",
    "within",
]

OP_TYPE = "ExtendedLSTM"
Array = NDArray[np.float64]
Change = Callable[[Stages], Stages]


@dataclass(frozen=True)
class ExtendedDeviation:
    """One plausible mistake; see :class:`.deviations.Deviation` for what the fields mean.

    disagreements
        Ids in extended_lstm_disagreements.toml that the shipped kernel shows it by; empty where it does not.
    change
        Puts the mistake into the stages; None for what consists in accepting a forbidden model.
    fine
        Whether it changes Y by a unit or so, which no single number is eight radii away from.
    feature
        What a case must contain for it to be made; empty for nothing.
    """

    id: str
    topic: str
    summary: str
    disagreements: tuple[str, ...]
    change: Change | None
    fine: bool = False
    feature: str = ""

    @property
    def accepts(self) -> bool:
        """Whether it consists in computing something where the clause makes a model illegal."""
        return self.change is None

    def applies(self, op_type: str, since_version: int, type_name: str | None = None) -> bool:
        """Whether an implementation of that operator version can make this mistake."""
        return op_type == OP_TYPE and since_version == 1 and type_name in (None, "float32")

    def clause(self, op_type: str) -> str:
        """The id of the clause that an implementation violates with it."""
        return f"{OP_TYPE.lower()}.{self.topic}"


EXTENDED_DEVIATIONS: dict[str, ExtendedDeviation] = {}


def mistake_named(id: str) -> Deviation | ExtendedDeviation | None:
    """The deviation of that id, of whichever operator; None where there is none."""
    return DEVIATIONS.get(id) or EXTENDED_DEVIATIONS.get(id)


def register(
    id: str,
    topic: str,
    summary: str,
    change: Change | None,
    disagreements: Sequence[str] = (),
    fine: bool = False,
    feature: str = "",
) -> None:
    """Put a deviation into the table, its id behind ``extended.``.

    Raises ValueError for an id that is taken, KeyError for a clause that is none.
    """
    id = f"extended.{id}"
    if id in EXTENDED_DEVIATIONS:
        raise ValueError(f"deviation {id}: the id is taken")
    clause_named(f"{OP_TYPE.lower()}.{topic}")
    EXTENDED_DEVIATIONS[id] = ExtendedDeviation(id, topic, summary, tuple(disagreements), change, fine, feature)


def mistake(
    id: str, clause: str, *disagreements: str, fine: bool = False, feature: str = ""
) -> Callable[[Change], Change]:
    """Register a function from stages to stages; its docstring's first line says the mistake."""

    def decorate(change: Change) -> Change:
        if not change.__doc__:
            raise ValueError(f"deviation {id}: a docstring must say the mistake")
        register(id, clause, change.__doc__.strip().splitlines()[0], change, disagreements, fine, feature)
        return change

    return decorate


def stages_with(mistakes: Iterable[ExtendedDeviation]) -> Stages:
    """The stages with all of these mistakes, the first one nearest to the document."""
    stages = HONEST
    for each in mistakes:
        stages = each.change(stages) if each.change is not None else stages
    return stages


def evidence_extended(
    mistakes: Sequence[ExtendedDeviation],
    node: ExtendedLSTM,
    observed: NDArray[Any],
    right: NDArray[np.float64],
    state: str = "quantized",
) -> float | None:
    """What speaks for it that a target with these mistakes, in fixed-point arithmetic, returned this Y, in bits: by how
    much nearer it is to what they predict than to what is right, over all elements. None where it cannot have, each
    step from the one that it reported before.

    right
        What Y must be. An element that a bound says nothing of speaks for nothing.
    """
    if any(each.accepts for each in mistakes):
        return None
    with np.errstate(all="ignore"):
        expected = expect_extended(node, observed, "fixed-point", state, stages_with(mistakes))
        if not within(expected, observed):
            return None
        off = np.abs(observed.astype(np.float64) - right)
        bits = np.log2(np.maximum(off / np.maximum(expected.radius, 2.0**-40), 1.0))
    telling = (expected.radius <= WIDEST) & np.isfinite(bits)
    if expected.doubt is not None:
        telling &= ~expected.doubt
    return float(bits[telling].sum())


def within(expected: Bounded, observed: NDArray[Any]) -> bool:
    """Whether every element that is not in doubt lies within its radius."""
    near = np.abs(observed.astype(np.float64) - expected.value) <= expected.radius * RADIUS_SLACK
    return bool((near if expected.doubt is None else near | expected.doubt).all())


def run_extended(
    mistakes: Sequence[ExtendedDeviation], node: ExtendedLSTM, state: str = "quantized"
) -> NDArray[np.float32]:
    """Y as an implementation with these mistakes computes it from its own states, quantized where y_scale is given.

    Every step depends on the one before, so what is predicted from a Y is a Y that is right for one step more.
    """
    stages = stages_with(mistakes)
    Y = np.zeros((node.T, 2, node.N, node.H), np.float32)
    with np.errstate(all="ignore"):
        for _ in range(node.T + 1):
            before = Y
            expected = expect_extended(node, before, "float32", state, stages)
            value = expected.value if node.y is None else (np.rint(expected.value / node.y.scale) * node.y.scale)
            Y = value.astype(np.float32)
            if np.array_equal(Y, before):
                break
    return Y

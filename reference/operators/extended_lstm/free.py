"""What Y must be where nothing is known of what a target reported: each step from the computed one before.

The bound grows with length, as in every free run: a state that may be a level off is so in all that follows. It is for
files of expected outputs and for scripts, which cannot start from states that a target reported; verdicts are given
step by step (:func:`.document.expect_extended`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.bounded import Bounded
from .document import MANTISSA, ExtendedLSTM, Judge
from .stages import Operand, Stages

__all__ = ["expect_free"]

Array = NDArray[np.float64]


def expect_free(node: ExtendedLSTM, arithmetic: str = "fixed-point", state: str = "quantized") -> Bounded:
    """Y (T, 2, N, H), from the inputs alone, in one of ARITHMETICS and by one of STATES."""
    judge = Judge(node, arithmetic, state, Stages())
    with np.errstate(over="ignore", invalid="ignore"):
        both = [_direction(judge, d)[:, np.newaxis] for d in range(2)]
        return judge.bounding.concatenate(both, 1)


def _direction(judge: Judge, d: int) -> Bounded:
    node = judge.node
    if node.T == 0:
        return judge.exact(np.zeros((0, node.N, node.H)))
    order = slice(None, None, -1) if d else slice(None)
    input_sums = judge.input_sums(d, order)
    zeros = np.zeros((node.N, node.H))
    before, cell = _operand(judge, judge.exact(zeros), judge.exact(zeros)), judge.exact(zeros)
    states = []
    doubt = np.zeros((node.N, 1), bool)
    for step in range(node.T):
        here = slice(step, step + 1)
        hidden_sums = judge.hidden_sums(d, before[np.newaxis], _unsure(before, judge.tensors["R"][d]))
        hidden, cells = judge.walk(input_sums[here], hidden_sums, cell)
        shown = judge.shown(hidden)
        doubt = doubt | (np.zeros_like(doubt) if shown.doubt is None else shown.doubt[0].any(-1, keepdims=True))
        states.append(replace(shown, doubt=np.broadcast_to(doubt, shown.value.shape)))
        cell = cells[0]
        before = _operand(judge, hidden[0], shown[0])
    whole: Bounded = judge.bounding.concatenate(states, 0)
    return whole[order]


def _operand(judge: Judge, hidden: Bounded, shown: Bounded) -> Operand:
    """The state that goes into the next step, from Ht and what is shown for it."""
    y, unit = judge.node.y, judge.bounding.budget.unit
    if y is None:
        radius = hidden.radius + unit * np.abs(hidden.value)
        return Operand(hidden.value, radius, np.zeros_like(hidden.value), 0, 0.0)
    half = 2 ** (y.bits - 1)
    if judge.state == "as-computed":
        value, radius = hidden.value, hidden.radius + unit * np.abs(hidden.value)
    else:
        # The level that is shown: half of one at most from the number that is.
        value = y.rounded(shown.value)
        radius = shown.radius + np.abs(shown.value - value)
    centred = (y.levels(value) - half).astype(np.float64)
    return Operand(value, radius, centred, y.zero_point - half, y.scale)


def _unsure(x: Operand, w: Operand) -> Any:
    """What a mantissa costs beside what it costs for the levels of `x`, of which it is not known which they are: they
    are off by the radius and, where states are no levels at all, by half of one."""
    if x.scale == 0:
        return 0.0
    levels = x.radius / x.scale + 0.5
    parts = levels @ np.abs(w.centred).T + abs(w.centre) * levels.sum(-1, keepdims=True)
    return MANTISSA * x.scale * w.scale * parts

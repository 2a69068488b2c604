"""The power of a profile as a number: the smallest relative error of all outputs that most of its cases reject.

A kernel whose every output is 1 + e times what it must be is wrong in no place and in all. A case rejects it from some
e on; the median over cases is what a profile can see at all in one operator and type.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...cases import Spec, build_case
from ...reference import FORMATS, Node, operator_for
from ..judging.judgement import FAILING
from ..judging.verdict import judge
from .staged import Arrays, staged_outcome


@dataclass(frozen=True)
class Power:
    """The power in one operator and type.

    error
        The smallest relative error of all outputs that most cases reject; infinity where most reject none.
    cases
        How many cases had numbers to reject.
    """

    op: str
    type: str
    error: float
    cases: int


def power_of(specs: Sequence[Spec]) -> Iterator[int | list[Power]]:
    """Measure cases; gives the number of those done so far, and at last the powers, in the order of the cases."""
    least_of: dict[tuple[str, str], list[float]] = defaultdict(list)
    for done, spec in enumerate(specs, 1):
        least = least_rejected(spec)
        if least is not None:
            least_of[spec.op, spec.type].append(least)
        yield done
    yield [Power(op, kind, statistics.median_high(each), len(each)) for (op, kind), each in least_of.items()]


def least_rejected(spec: Spec) -> float | None:
    """The smallest relative error, a power of two, of all outputs that a case rejects; infinity where it rejects none
    of 100 %, None for a case that has no numbers.

    A larger error is rejected where a smaller one is, but for what a case's own saturation does: so it is bisected.
    """
    case = build_case(spec)
    first = case.trial.first
    if spec.illegal or not all(first.feeds[-1].inputs[first.node.operator.sequence].shape):
        return None

    def rejects(exponent: int) -> bool:
        def scaled(node: Node, inputs: Arrays) -> Arrays:
            right, kind = operator_for(node).evaluate(node, inputs), inputs[node.operator.sequence].dtype
            with np.errstate(over="ignore", invalid="ignore"):
                return {n: (a * (1 + 2.0**exponent)).astype(kind) for n, a in right.items()}

        outcomes = [staged_outcome(trial, scaled) for trial in case.trials]
        return judge(case.trials, outcomes, wider=False).verdict in FAILING

    low, high = -FORMATS[spec.type].precision - 1, 0
    if not rejects(high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return 2.0**high

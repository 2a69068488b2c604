"""Signed errors: what a target's roundings come to over a whole run, type by type.

A single result cannot show drift that stays inside its radius; the mean of many does. And the tightest class that all
results meet is the target's grade.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ...reference import ACCURACY_CLASSES
from ..judging.judgement import Verdict
from .records import Bias
from .result import Result

__all__ = ["biases", "grades", "passing_grades"]

# A mean signed error of half a unit is far beyond what roundings to nearest leave: they average out to a few hundredths
# (tests/conformance/test_staged.py). The standard error is that of independent elements, but elements that share a
# state or a weight share its roundings, so it is too small by a few times: twelve of them stand for the usual three or
# four, and conforming variants have stayed below them in every one of 25 seeds of their noise.
BIAS_UNITS = 0.5
BIAS_ERRORS = 12.0
BIAS_ELEMENTS = 100

# Errors say as much of drift where bounds are too wide to show that a result is right.
_WITH_ERRORS = frozenset({Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.INACCURATE, Verdict.WRONG})


def biases(results: Iterable[Result]) -> dict[str, Bias]:
    """The mean signed errors in u of a target by type, over its one-step accuracy cases, where every state is exact.

    ``shift`` is the mean of the error itself, ``scale`` of the error towards larger magnitude, ``error`` the standard
    error of both.
    """
    sums: dict[str, list[float]] = {}
    counts: dict[str, int] = defaultdict(int)
    for result in results:
        if result.error_sums and result.verdict in _WITH_ERRORS:
            total = sums.setdefault(result.type, [0.0] * 4)
            sums[result.type] = [a + b for a, b in zip(total, result.error_sums, strict=True)]
            counts[result.type] += result.elements
    found: dict[str, Bias] = {}
    for kind, (shift, scale, square, size) in sums.items():
        if not size or not all(map(math.isfinite, (shift, scale, square))):
            continue
        shift, scale, error = shift / size, scale / size, math.sqrt(square) / size
        largest = max(abs(shift), abs(scale))
        found[kind] = {
            "shift": round(shift, 6),
            "scale": round(scale, 6),
            "error": round(error, 6),
            "elements": counts[kind],
            "biased": largest > max(BIAS_UNITS, BIAS_ERRORS * error) and counts[kind] >= BIAS_ELEMENTS,
        }
    return found


def grades(results: Sequence[Result], declared: str) -> dict[str, str]:
    """For each type the tightest class that all cases of a target meet; types with a wrong result have none."""
    wrong = {result.type for result in results if result.verdict is Verdict.WRONG}
    return {kind: name for kind, name in passing_grades(results, declared).items() if kind not in wrong}


def passing_grades(results: Iterable[Result], declared: str) -> dict[str, str]:
    """For each type the tightest class that all cases of a target meet but those with wrong results: how accurate it is
    where it is right."""
    found: dict[str, set[str]] = defaultdict(set)
    for result in results:
        if result.verdict is Verdict.INACCURATE:
            found[result.type].add(result.accuracy or "")
        elif result.verdict is not Verdict.WRONG and result.strict is not None:
            found[result.type].add("strict" if result.strict else declared)
    order = list(ACCURACY_CLASSES)
    return {
        kind: max(names, key=lambda n: order.index(n) if n in order else len(order))
        for kind, names in sorted(found.items())
        if "" not in names
    }

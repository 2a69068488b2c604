"""Signed errors: what a target's roundings come to over a whole run, type by type.

A single result cannot show drift that stays inside its radius; the mean of many does. And the tightest class that all
results meet is the target's grade.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ...reference import ACCURACY_CLASSES, FORMATS
from ..judging.judgement import Verdict
from .records import Bias
from .result import Result

# A mean signed error of half a unit is far beyond what roundings to nearest leave: they average out to a few hundredths
# (tests/conformance/test_staged.py). The standard error is that of independent elements, but elements that share a
# state or a weight share its roundings, so it is too small by a few times: twelve of them stand for the usual three or
# four, and conforming variants have stayed below them in every one of 25 seeds of their noise.
BIAS_UNITS = 0.5
BIAS_ERRORS = 12.0
BIAS_ELEMENTS = 100

_MEAN_OF_A_CUT = 2 / 3
"""The average error, in u, of a number that is cut off after the last of its type's digits: half a place, which is u
times the power of two below the number, and the number is one and a half of that on average."""

# Errors say as much of drift where bounds are too wide to show that a result is right.
_WITH_ERRORS = frozenset({Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.INACCURATE, Verdict.WRONG})


def biases(results: Iterable[Result]) -> dict[str, Bias]:
    """The mean signed errors in u of a target by type, over its one-step accuracy cases, where every state is exact.

    ``shift`` is the mean of the error itself, ``scale`` of the error towards larger magnitude, ``error`` the standard
    error of both. A type that is biased has ``digits``: see :func:`digits_left`.
    """
    sums: dict[str, list[float]] = {}
    counts: dict[str, int] = defaultdict(int)
    for result in results:
        if result.error_sums and result.verdict in _WITH_ERRORS:
            total = sums.setdefault(result.type, [0.0] * 4)
            sums[result.type] = [a + b for a, b in zip(total, result.error_sums, strict=True)]
            counts[result.type] += result.elements
    by_type: dict[str, Bias] = {}
    for kind, (shift, scale, square, size) in sums.items():
        if not size or not all(map(math.isfinite, (shift, scale, square))):
            continue
        shift, scale, error = shift / size, scale / size, math.sqrt(square) / size
        largest = max(abs(shift), abs(scale))
        by_type[kind] = {
            "shift": round(shift, 6),
            "scale": round(scale, 6),
            "error": round(error, 6),
            "elements": counts[kind],
            "biased": largest > max(BIAS_UNITS, BIAS_ERRORS * error) and counts[kind] >= BIAS_ELEMENTS,
        }
        if by_type[kind]["biased"] and kind in FORMATS:
            by_type[kind]["digits"] = digits_left(largest, kind)
    return by_type


def digits_left(bias: float, kind: str) -> float:
    """The binary digits that results with a mean error of so many u are as good as: one that is cut off after its d-th
    digit, instead of rounded, is off as much on average. Each digit that is cut off more doubles the mean. 0 where not
    even the first is right."""
    precision = FORMATS[kind].precision
    return max(0.0, round(precision - max(0.0, math.log2(bias / _MEAN_OF_A_CUT)), 1))


def biased_types(results: Iterable[Result]) -> dict[str, str]:
    """Digits that are left to types whose errors lean to one side with certainty, as ``22 of 24 digits``."""
    return {kind: digits_text(bias, kind) for kind, bias in biases(results).items() if "digits" in bias}


def digits_text(bias: Bias, kind: str) -> str:
    """The digits that a bias leaves of a type, as ``22 of 24 digits``."""
    return f"{bias['digits']:g} of {FORMATS[kind].precision} digits"


def grades(results: Sequence[Result], declared: str) -> dict[str, str]:
    """The tightest class of each type that all cases of a target meet; types with a wrong result have none."""
    wrong = {result.type for result in results if result.verdict is Verdict.WRONG}
    return {kind: name for kind, name in passing_grades(results, declared).items() if kind not in wrong}


def passing_grades(results: Iterable[Result], declared: str) -> dict[str, str]:
    """The tightest class of each type that all cases of a target meet but those with wrong results: how accurate it is
    where it is right."""
    classes: dict[str, set[str]] = defaultdict(set)
    results = list(results)
    # Each of these results meets the strict class, and all together do not.
    leaning = biased_types(results)
    known = ACCURACY_CLASSES.get(declared)
    wider = declared if known is None or known.biased else "standard"
    for result in results:
        if result.verdict is Verdict.INACCURATE:
            classes[result.type].add(result.accuracy or "")
        elif result.verdict is not Verdict.WRONG and result.strict is not None:
            tight = "strict" if result.strict else declared
            classes[result.type].add(wider if result.type in leaning else tight)
    order = list(ACCURACY_CLASSES)
    return {
        kind: max(names, key=lambda n: order.index(n) if n in order else len(order))
        for kind, names in sorted(classes.items())
        if "" not in names
    }

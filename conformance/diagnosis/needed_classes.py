"""The need of a target for the wider class that holds one of its results: what rounds coarsely does so everywhere.

A result is called inaccurate where a wider class holds it and its errors look like that class's roundings
(:mod:`..judging.rounding`). In a single case a structural fault may look so too. But arithmetic does not change from
case to case: a kernel that computes in bfloat16 misses the bounds of float32 in nearly every case, so one that meets
them in most cases does not compute in bfloat16, and what it gets wrong in the others is no matter of rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from msgspec import structs

from ...reference import operator_of
from ..judging.judgement import Verdict
from ..results.result import Result

__all__ = ["with_needed_classes"]

_LITTLE = 2.0
"""The largest error over its bound that still is a rounding somewhat larger than declared: `prove` asks of the suite
that some case shows every fault at eight bounds, four times as far."""


def with_needed_classes(results: Sequence[Result]) -> list[Result]:
    """Return the results that are inaccurate by a class which the target's results of that operator and type do not
    need as a whole, amended: they are wrong.

    A class is needed where at least as many results are inaccurate as pass. Conforming variants that round to a half
    type inside fail more than half of float32's cases (tests/conformance/proof/test_staged.py); the rest saturate, or
    are exact in both.

    Functions that are approximated coarsely miss the bounds where their errors happen to be large, and then by little:
    Qualcomm's HTP in one LSTM of six, by a factor of 1.0 to 1.5. A structural fault misses them by orders of magnitude
    in some cases and by little in few. So where half of what missed did so by less than `_LITTLE`, that half is
    inaccurate.
    """
    passed: Counter[tuple[str, str]] = Counter()
    missed: Counter[tuple[str, str]] = Counter()
    for result in results:
        passed[result.op, result.type] += result.verdict is Verdict.PASS and result.judged > 0
        missed[result.op, result.type] += _coarse(result)
    near = {place for place, ratios in _ratios(results).items() if median(ratios) < _LITTLE}
    amended = []
    for result in results:
        if (result.op, result.type) in near and (result.worst or 0.0) < _LITTLE:
            continue
        passing, missing = passed[result.op, result.type], missed[result.op, result.type]
        if _coarse(result) and passing > missing:
            message = _message(result, passing, missing)
            amended.append(structs.replace(result, verdict=Verdict.WRONG, accuracy=None, message=message))
    return amended


def _ratios(results: Sequence[Result]) -> dict[tuple[str, str], list[float]]:
    """Ratios by which the results of each operator and type that may be inaccurate miss their bounds."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for result in results:
        if _coarse(result) and result.worst is not None:
            ratios.setdefault((result.op, result.type), []).append(result.worst)
    return ratios


def _coarse(result: Result) -> bool:
    """Return whether a class is named that rounds coarsely, or none. One that flushes differs in the smallest numbers
    only, which few cases have; an operator's own arithmetic without formats is another matter."""
    if result.verdict is not Verdict.INACCURATE:  # as any result of an operator of which no document speaks
        return False
    named = operator_of(result.op, result.domain).roundings(result.accuracy) if result.accuracy else None
    return not result.accuracy or (named is not None and not named.flushes)


def _message(result: Result, passing: int, missing: int) -> str:
    bare = result.message.rpartition("; ")[0] or result.message
    others = f"{passing} results in {result.type} pass and only {missing} need one"
    held = f"class {result.accuracy}" if result.accuracy else "a coarse class"
    return f"{bare}; {held} would hold it, but {others}"

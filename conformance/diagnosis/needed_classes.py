"""Check that a target needs the wider accuracy class of an inaccurate result: coarse arithmetic shows in most cases.

A result is inaccurate if a wider class accepts it and its errors look like that class's roundings
(:mod:`..judging.rounding`). In a single case, the errors of a structural fault may look so too. But arithmetic does not
change from case to case: a kernel that computes in bfloat16 misses the bounds of float32 in nearly every case. A kernel
that meets them in most cases does not compute in bfloat16, and its other errors are not due to rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from msgspec import structs

from ...reference import operator_of
from ..judging.judgement import Verdict
from ..results.result import Result

_LITTLE = 2.0
"""Largest ratio of error to bound that may still be a rounding somewhat larger than declared. `prove` requires that
some case shows every fault at eight bounds, four times as far."""


def with_needed_classes(results: Sequence[Result]) -> list[Result]:
    """Return amended results: inaccurate results become wrong if the target does not need the class for that operator
    and type.

    A class is needed if at least as many results are inaccurate as pass. Conforming variants that round to a half type
    inside fail more than half of float32's cases (tests/conformance/proof/test_staged.py); the rest saturate, or are
    exact in both.

    Coarse approximations of functions miss the bounds only where their errors happen to be large, and then by little:
    Qualcomm's HTP in one LSTM of six, by a factor of 1.0 to 1.5. A structural fault misses them by orders of magnitude
    in some cases and by little in few. So if the median ratio is below `_LITTLE`, the results below `_LITTLE` stay
    inaccurate.
    """
    passed: Counter[tuple[str, str]] = Counter()
    missed: Counter[tuple[str, str]] = Counter()
    for result in results:
        passed[result.op, result.type] += result.verdict is Verdict.PASS and result.judged > 0
        missed[result.op, result.type] += _coarse(result)
    near = {key for key, ratios in _ratios(results).items() if median(ratios) < _LITTLE}
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
    """Return the ratios of error to bound of the inaccurate results, by operator and type."""
    ratios: dict[tuple[str, str], list[float]] = {}
    for result in results:
        if _coarse(result) and result.worst is not None:
            ratios.setdefault((result.op, result.type), []).append(result.worst)
    return ratios


def _coarse(result: Result) -> bool:
    """Return whether a result is inaccurate by a class that rounds coarsely, or by no named class. Classes that only
    flush are excluded, because they differ in the smallest numbers, which few cases have; so is an operator's own
    arithmetic without formats."""
    if result.verdict is not Verdict.INACCURATE:  # includes every result of an operator without a document
        return False
    named = operator_of(result.op, result.domain).roundings(result.accuracy) if result.accuracy else None
    return not result.accuracy or (named is not None and not named.flushes)


def _message(result: Result, passing: int, missing: int) -> str:
    bare = result.message.rpartition("; ")[0] or result.message
    wider = f"the wider class {result.accuracy}" if result.accuracy else "a wider class"
    return f"{bare}; {wider} would accept it, but {passing} {result.type} results pass and only {missing} need it"

"""Grades of a target over a whole run: signed errors by type, and levels of quantized outputs.

A single result cannot show a bias inside its radius; the mean of many can. The target's grade is the tightest class
that all results meet.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ...cases.specs.features import WORDS
from ...reference import ACCURACY_CLASSES, FORMATS
from ..judging.judgement import Verdict
from ..text import plural
from .records import Bias, LevelsRecord
from .result import Result

# A mean signed error of half a unit is far above the effect of rounding to nearest, which averages out to a few
# hundredths (tests/conformance/test_staged.py). The standard error assumes independent elements. But elements that
# share a state or a weight share its roundings, so it is too small by a few times: a factor of twelve replaces the
# usual three or four, and conforming variants have stayed below it in each of 25 seeds of their noise.
BIAS_UNITS = 0.5
BIAS_ERRORS = 12.0
BIAS_ELEMENTS = 100

_MEAN_OF_A_CUT = 2 / 3
"""The mean error, in u, of a number that is cut off after the last of its type's digits.

It is half a place, which is u times the power of two below the number. The number is 1.5 times that power on average.
"""

# Errors are equal evidence of bias where bounds are too wide to prove a result right.
_WITH_ERRORS = frozenset({Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.INACCURATE, Verdict.WRONG})


def biases(results: Iterable[Result]) -> dict[str, Bias]:
    """Return the mean signed errors in u of a target by type, over its one-step accuracy cases.

    Every state is exact in these cases. ``shift`` is the mean of the error itself, ``scale`` of the error towards
    larger magnitude, ``error`` the standard error of both. A biased type has ``digits``: see :func:`digits_left`.
    """
    sums: dict[str, list[float]] = {}
    counts: dict[str, int] = defaultdict(int)
    for result in results:
        if result.error_sums and result.verdict in _WITH_ERRORS:
            total = sums.setdefault(result.type, [0.0] * 4)
            sums[result.type] = [a + b for a, b in zip(total, result.error_sums, strict=True)]
            counts[result.type] += result.elements
    by_type: dict[str, Bias] = {}
    for type_name, (shift, scale, square, size) in sums.items():
        if not size or not all(map(math.isfinite, (shift, scale, square))):
            continue
        shift, scale, error = shift / size, scale / size, math.sqrt(square) / size
        largest = max(abs(shift), abs(scale))
        biased = largest > max(BIAS_UNITS, BIAS_ERRORS * error) and counts[type_name] >= BIAS_ELEMENTS
        by_type[type_name] = {
            "shift": round(shift, 6),
            "scale": round(scale, 6),
            "error": round(error, 6),
            "elements": counts[type_name],
            "biased": biased,
            "digits": digits_left(largest, type_name) if biased and type_name in FORMATS else None,
        }
    return by_type


def digits_left(bias: float, kind: str) -> float:
    """Return the number of binary digits to which results with a mean error of ``bias`` u are equivalent.

    A result that is cut off after its d-th digit, instead of rounded, has the same mean error. Each further digit that
    is cut off doubles the mean. The value is 0 where not even the first digit is right.
    """
    precision = FORMATS[kind].precision
    return max(0.0, round(precision - max(0.0, math.log2(bias / _MEAN_OF_A_CUT)), 1))


def biased_types(results: Iterable[Result]) -> dict[str, str]:
    """Return the digits that remain for types with a certain bias, as ``22 of 24 digits``."""
    return {
        type_name: digits_text(bias, type_name)
        for type_name, bias in biases(results).items()
        if bias["digits"] is not None
    }


def digits_text(bias: Bias, kind: str) -> str:
    """Return the digits of a type that a bias leaves, as ``22 of 24 digits``; empty if it has none."""
    return "" if bias["digits"] is None else f"{bias['digits']:g} of {FORMATS[kind].precision} digits"


def grades(results: Sequence[Result], declared: str) -> dict[str, str]:
    """Return the tightest class of each type that all cases of a target meet; types with a wrong result have none."""
    wrong = {result.type for result in results if result.verdict is Verdict.WRONG}
    return {type_name: name for type_name, name in passing_grades(results, declared).items() if type_name not in wrong}


def passing_grades(results: Iterable[Result], declared: str) -> dict[str, str]:
    """Return the tightest class of each type that all cases of a target meet, except those with wrong results."""
    classes: dict[str, set[str]] = defaultdict(set)
    results = list(results)
    # Each of these results meets the strict class, and all together do not.
    biased = biased_types(results)
    declared_class = ACCURACY_CLASSES.get(declared)
    wider = declared if declared_class is None or declared_class.biased else "standard"
    for result in results:
        if result.verdict is Verdict.INACCURATE:
            classes[result.type].add(result.accuracy or "")
        elif result.verdict is not Verdict.WRONG and result.strict is not None:
            tight = "strict" if result.strict else declared
            classes[result.type].add(wider if result.type in biased else tight)
    order = list(ACCURACY_CLASSES)
    return {
        type_name: max(names, key=lambda n: order.index(n) if n in order else len(order))
        for type_name, names in sorted(classes.items())
        if "" not in names
    }


# Levels of quantized outputs

_BITS = {WORDS["quantized-8-bits"]: 8, WORDS["quantized-16-bits"]: 16}
_HOLDING = (Verdict.PASS, Verdict.INACCURATE, Verdict.INCONCLUSIVE)


def bits_of(result: Result) -> int:
    """Return the bits of the levels of a result's outputs; 0 where they are not quantized."""
    return next((bits for feature, bits in _BITS.items() if feature in result.features), 0)


def level_records(results: Iterable[Result]) -> list[LevelsRecord]:
    """Return the numbers of cases by difference in levels, for each operator and number of bits.

    Results that are wrong by any internal rounding are counted separately.
    """
    cases: dict[tuple[str, int, bool], Counter[int]] = {}
    for result in results:
        bits, off = bits_of(result), None if result.where is None else result.where.get("units")
        if bits and result.judged and off is not None:
            wrong = result.verdict not in _HOLDING
            cases.setdefault((result.op, bits, wrong), Counter())[round(off)] += 1
    records: list[LevelsRecord] = []
    for op, bits in sorted({(op, bits) for op, bits, _ in cases}):
        within, beyond = (cases.get((op, bits, wrong), Counter()) for wrong in (False, True))
        records.append(
            {
                "operator": op,
                "bits": bits,
                "within": max(within) if within else None,
                "off": _pairs(within),
                "wrong": _pairs(beyond),
            }
        )
    return records


def _pairs(counter: Counter[int]) -> list[list[int]]:
    return [[levels, cases] for levels, cases in sorted(counter.items())]


def graded_line(records: Sequence[LevelsRecord], bits: int) -> str:
    """Return one line with the grade for levels of ``bits`` bits; empty where there are none."""
    matching = [record for record in records if record["bits"] == bits]
    held = [(levels, cases) for record in matching for levels, cases in record["off"]]
    wrong = [(levels, cases) for record in matching for levels, cases in record["wrong"]]
    if not held and not wrong:
        return ""
    parts = []
    if held:
        most, total = max(levels for levels, _ in held), sum(cases for _, cases in held)
        off = sum(cases for levels, cases in held if levels)
        distance = f"at most {plural(most, 'level')} off" if most else "exact"
        off_text = f", {off:,} of them by one or more" if off else ""
        parts.append(f"{distance} ({plural(total)}{off_text})")
    if wrong:
        most, total = max(levels for levels, _ in wrong), sum(cases for _, cases in wrong)
        parts.append(f"wrong by up to {most:,} ({plural(total)})")
    return f"levels of {bits} bits: {'; '.join(parts)}"

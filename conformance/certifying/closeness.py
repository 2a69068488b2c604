"""Comparison of what two records say. Texts and counts are equal or they differ; only numbers that a verifier computes
anew have a tolerance, since what one build of NumPy computes another may compute with other last digits. They are
listed here by their fields, each with the reason of its tolerance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

NUMBERS = 1e-6
"""Relative, and absolute, difference of two numbers that count as one. Values and radii are sums of at most some
thousand float64 products, in an order that the build of BLAS chooses: 10^4 * 2^-53 = 1.1e-12 of their size. An error
that is a millionth of a radius wide is the smallest that a result shows."""

_SUMS = 1e-3
"""The same of ``error_sums``, in units of their fourth number, the sum of u|value|: the reference's own rounding is
2^-53 of a value, 2^-29 of its u in float32. In float64 u is 2^-53 itself, so that two of them may be between."""

EACH = "*"
"""Stands for every key of a mapping, or every item of a list."""

Same: TypeAlias = Callable[[Any, Any, Mapping[str, Any]], bool]
"""Tell whether two values that are not equal say the same; the third is the claimed record that they stand in."""

Tolerances: TypeAlias = Mapping[str, "Same | Tolerances"]
"""Fields that have a tolerance, by key. What is not named must be equal."""


def unlike(
    claimed: object, again: object, tolerances: Tolerances | None = None, place: str = ""
) -> Iterator[tuple[str, str, str]]:
    """Places in which two values of JSON, or records, differ: (place, claimed, again), both in short."""
    yield from _unlike(msgspec.to_builtins(claimed), msgspec.to_builtins(again), tolerances or {}, place)


def _unlike(one: Any, other: Any, tolerances: Tolerances, place: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted({*one, *other}, key=str):
            where = f"{place}.{key}".lstrip(".")
            if key not in one or key not in other:
                yield where, _short(one.get(key, "-")), _short(other.get(key, "-"))
            else:
                yield from _field(one[key], other[key], tolerances.get(key, tolerances.get(EACH)), one, where)
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _field(a, b, tolerances.get(EACH), {}, f"{place}[{number}]")
    elif not _equal(one, other):
        yield place, _short(one), _short(other)


def _field(
    one: Any, other: Any, tolerance: Same | Tolerances | None, record: Mapping[str, Any], place: str
) -> Iterator[tuple[str, str, str]]:
    if not callable(tolerance):
        yield from _unlike(one, other, tolerance or {}, place)
    elif not _equal(one, other) and not tolerance(one, other, record):
        yield place, _short(one), _short(other)


def _equal(one: Any, other: Any) -> bool:
    """Equal, and of one kind: 1 is no 1.0, and no true."""
    return bool(type(one) is type(other) and one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _near(one: Any, other: Any, record: Mapping[str, Any]) -> bool:
    """Two computed numbers."""
    return _is_number(one) and _is_number(other) and math.isclose(one, other, rel_tol=NUMBERS, abs_tol=NUMBERS)


def _mean(one: Any, other: Any, record: Mapping[str, Any]) -> bool:
    """Two mean errors in u, which come from sums (see `_sums`) and are rounded to a millionth."""
    return _is_number(one) and _is_number(other) and abs(one - other) <= _SUMS


def _mean_of_float64(one: Any, other: Any, record: Mapping[str, Any]) -> bool:
    return _is_number(one) and _is_number(other) and abs(one - other) <= 2.0


def _sums(one: Any, other: Any, record: Mapping[str, Any]) -> bool:
    """The sums of a result's errors: signed, towards larger magnitude, squared, and the sum of u|value|."""
    both = isinstance(one, (list, tuple)) and isinstance(other, (list, tuple))
    if not both or len(one) != 4 or len(other) != 4 or not all(map(_is_number, (*one, *other))):
        return False
    wide = record.get("type") == "float64"
    size = abs(other[3])
    tolerance = (2.0 if wide else _SUMS) * size
    first = all(abs(a - b) <= tolerance for a, b in zip(one[:2], other[:2], strict=True))
    squares = math.isclose(one[2], other[2], rel_tol=2.0 if wide else 1e-2, abs_tol=tolerance * size)
    return first and squares and math.isclose(one[3], other[3], rel_tol=NUMBERS)


_PRINTED = re.compile(r"(?<![\w.])(-?\d+\.\d+(?:e[+-]\d+)?|-?\d+e[+-]\d+)(?![\w.])")
_COMPUTED = frozenset({"pass", "wrong", "inaccurate", "unstable", "inconclusive"})
_OF_THE_RUNTIME = frozenset({"refused", "open"})  # reasons for a pass, with the runtime's own words for a message
_LAST_DIGIT = 1e-8
"""Relative difference of two printed numbers that count as one: where two of them are close to each other nine digits
are printed at least, and the last may be rounded the other way."""


def _sentence(one: Any, other: Any, record: Mapping[str, Any]) -> bool:
    """Two messages of a verdict by numbers, which print what a target must return. They are sentences of ours: a
    runtime's own words stand in those of other verdicts, and are equal or differ."""
    verdicts = {*record.get("verdicts", ()), record.get("verdict")} - {None}
    ours = verdicts and verdicts <= _COMPUTED and record.get("reason") not in _OF_THE_RUNTIME
    if not (ours and isinstance(one, str) and isinstance(other, str)):
        return False
    pieces, others = _PRINTED.split(one), _PRINTED.split(other)
    return len(pieces) == len(others) and all(
        a == b or (number % 2 == 1 and _rounded_otherwise(float(a), float(b)))
        for number, (a, b) in enumerate(zip(pieces, others, strict=True))
    )


def _rounded_otherwise(one: float, other: float) -> bool:
    """Tell whether two numbers are nearly the same. Equal ones in other digits, 2.1 and 2.10, are two texts."""
    return one != other and math.isclose(one, other, rel_tol=_LAST_DIGIT)


RESULT: Tolerances = {
    "worst": _near,
    "error_sums": _sums,
    "where": {"error": _near, "units": _near, "argument": _near},
    "message": _sentence,
}
"""A field of a result, as a line of results.jsonl has it."""

_MEANS: Tolerances = {"shift": _mean, "scale": _mean, "error": _mean}
_MEANS_OF_FLOAT64: Tolerances = dict.fromkeys(_MEANS, _mean_of_float64)

RUN_INFO: Tolerances = {
    "targets": {
        EACH: {
            "bias": {EACH: _MEANS, "float64": _MEANS_OF_FLOAT64},
            "findings": {EACH: {"message": _sentence}},
        }
    }
}
"""A record of run.json."""


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 160 else f"{text[:120]} ... {text[-30:]}"

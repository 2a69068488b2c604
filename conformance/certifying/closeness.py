"""Whether two records say the same, numbers to a tolerance: what one build of NumPy computes another may compute with
other last digits, and everything else must be equal."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

__all__ = ["NUMBERS", "same_text", "unlike"]

NUMBERS = 1e-6
"""Relative, and absolute, difference of two numbers that count as one. Values and radii are sums of at most some
thousand float64 products, in an order that the build of BLAS chooses: 10^4 * 2^-53 = 1.1e-12 of their size. An error
that is a millionth of a radius wide is the smallest that a result shows."""

_SUMS = 1e-3
"""Of ``error_sums`` the same, in units of their fourth number, the sum of u|value|: the reference's own rounding is
2^-53 of a value, 2^-29 of its u in float32. In float64 u is 2^-53 itself, so that two of them may be between."""

_NUMBER = re.compile(r"(-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+)")
_BIAS = ("shift", "scale", "error")


def unlike(claimed: object, again: object, place: str = "") -> Iterator[tuple[str, str, str]]:
    """Where two values of JSON, or records, differ: (place, claimed, again), both in short."""
    yield from _unlike(msgspec.to_builtins(claimed), msgspec.to_builtins(again), place)


def same_text(claimed: str, again: str) -> bool:
    """Whether two texts are one, but for the last digits of their fractions."""
    return claimed == again or _same_text(claimed, again)


def _unlike(one: Any, other: Any, place: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        wide = _wide(one)
        for key in sorted({*one, *other}, key=str):
            if key not in one or key not in other:
                yield f"{place}.{key}".lstrip("."), _short(one.get(key, "-")), _short(other.get(key, "-"))
            elif key == "error_sums" and not _same_sums(one[key], other[key], wide):
                yield f"{place}.{key}".lstrip("."), _short(one[key]), _short(other[key])
            elif key != "error_sums" and not (key in _BIAS and wide and _near(one[key], other[key], 2.0)):
                yield from _unlike(one[key], other[key], f"{place}.{key}".lstrip("."))
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _unlike(a, b, f"{place}[{number}]")
    elif not _same(one, other):
        yield place, _short(one), _short(other)


def _wide(record: Mapping[str, Any]) -> bool:
    """Whether a record is about float64, of which the reference has no more digits than it judges."""
    return record.get("type") == "float64"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if isinstance(one, str) and isinstance(other, str):
        return same_text(one, other)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        return math.isclose(one, other, rel_tol=NUMBERS, abs_tol=NUMBERS)
    return bool(one == other)


def _same_text(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but the last digits of their fractions, of which nine are printed."""
    pieces, others = _NUMBER.split(one), _NUMBER.split(other)
    return len(pieces) == len(others) and all(
        a == b if number % 2 == 0 else math.isclose(float(a), float(b), rel_tol=NUMBERS, abs_tol=1e-300)
        for number, (a, b) in enumerate(zip(pieces, others, strict=True))
    )


def _near(one: Any, other: Any, tolerance: float) -> bool:
    return isinstance(one, (int, float)) and isinstance(other, (int, float)) and abs(one - other) <= tolerance


def _same_sums(one: Any, other: Any, wide: bool) -> bool:
    if not (isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)) and len(one) == len(other)):
        return False
    if len(one) != 4:
        return list(one) == list(other)
    size = abs(other[3])
    tolerance = (2.0 if wide else _SUMS) * size
    first = all(abs(a - b) <= tolerance for a, b in zip(one[:2], other[:2], strict=True))
    squares = math.isclose(one[2], other[2], rel_tol=2.0 if wide else 1e-2, abs_tol=tolerance * size)
    return first and squares and math.isclose(one[3], other[3], rel_tol=NUMBERS)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 160 else f"{text[:120]} ... {text[-30:]}"

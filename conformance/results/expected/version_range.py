"""Ranges of versions: of runtimes, like ``>=1.20, <1.23``, and of operators, like ``7-14``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

_COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
# No version has more digits in a number, and Python refuses to read thousands of digits.
_BOUND = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d{1,18}(?:\.\d{1,18})*)\s*")
_NUMBERS = re.compile(r"(\d{0,18})-(\d{0,18})")
_VERSION = re.compile(r"v?(\d{1,18}(?:\.\d{1,18})*)(?!\.?\d)")


def is_range(text: str) -> bool:
    """Return whether a text is a range of versions: bounds separated by commas, all of which must hold."""
    return bool(text.strip()) and all(_BOUND.fullmatch(part) for part in text.split(","))


def in_range(version: str, text: str) -> bool:
    """Return whether a version is in a range; a version that does not begin with numbers is in none.

    Only the numbers count: ``1.23.2+gpu`` and ``1.23.2.dev1`` are 1.23.2, and 1.23 is 1.23.0.
    """
    given = _VERSION.match(version)
    if given is None:
        return False
    bounds = [m for part in text.split(",") if (m := _BOUND.fullmatch(part))]
    return all(_COMPARISONS[m[1]](*_alike(given[1], m[2])) for m in bounds)


def _alike(*versions: str) -> tuple[tuple[int, ...], ...]:
    numbers = [[int(part) for part in version.split(".")] for version in versions]
    longest = max(map(len, numbers))
    return tuple((*n, *[0] * (longest - len(n))) for n in numbers)


def is_numbers(text: str) -> bool:
    """Return whether a text is a range of whole numbers: ``7-14``, ``7-`` or ``-14``."""
    return _NUMBERS.fullmatch(text) is not None and text != "-"


def in_numbers(number: int, given: int | str) -> bool:
    """Return whether a number equals the given one, or is in the range given as a text."""
    if isinstance(given, int):
        return number == given
    low, _, high = given.partition("-")
    return (not low or int(low) <= number) and (not high or number <= int(high))

"""Stretches: predicates that select elements numbered from 0 (rows, units, steps, columns) by their position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Stretch = Callable[[Any, Any], Any]
"""A function from (number, count) to whether the number belongs to the stretch."""


def first(n: Any, size: Any) -> Any:
    """Select the first element."""
    return n == 0


def last(most: int) -> Stretch:
    """Return the stretch of the last `most` elements."""
    return lambda n, size: n >= size - most


def beyond(most: int) -> Stretch:
    """Return the stretch of all but the first `most` elements."""
    return lambda n, size: n >= most


def left_over(block: int) -> Stretch:
    """Return the stretch after the last whole block."""
    return lambda n, size: n >= size - size % block


def in_whole(block: int) -> Stretch:
    """Return the stretch of whole blocks."""
    return lambda n, size: n < size - size % block


def at(place: int, every: int) -> Stretch:
    """Return the stretch of every `every`-th element, starting at `place`."""
    return lambda n, size: n % every == place

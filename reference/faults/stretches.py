"""Stretches of things that are numbered from 0 (rows, units, steps, columns), by where they stand among all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Stretch = Callable[[Any, Any], Any]
"""A function from numbers, and from how many there are, to whether each belongs to it."""


def first(n: Any, size: Any) -> Any:
    """Return the first one."""
    return n == 0


def last(most: int) -> Stretch:
    """Return the last ones, so many."""
    return lambda n, size: n >= size - most


def beyond(most: int) -> Stretch:
    """Return all but the first ones, so many."""
    return lambda n, size: n >= most


def left_over(block: int) -> Stretch:
    """Return those behind the last whole block."""
    return lambda n, size: n >= size - size % block


def in_whole(block: int) -> Stretch:
    """Return those in whole blocks."""
    return lambda n, size: n < size - size % block


def at(place: int, every: int) -> Stretch:
    """Return those at one place of every so many."""
    return lambda n, size: n % every == place

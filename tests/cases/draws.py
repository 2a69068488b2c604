"""Draws from strategies, as lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

_Spec = TypeVar("_Spec")
_Value = tuple[Any, ...]

_SEARCHES = 10


def drawn(strategy: SearchStrategy[_Spec], count: int, search: int = 0) -> list[_Spec]:
    """Return `count` draws, the same in every run; each `search` has others."""
    specs: list[_Spec] = []

    @seed(search)
    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None)
    @given(strategy)
    def collect(spec: _Spec) -> None:
        specs.append(spec)

    collect()
    return specs


def drawn_until(
    strategy: SearchStrategy[_Spec], count: int, values: Callable[[_Spec], set[_Value]], wanted: set[_Value]
) -> list[_Spec]:
    """Return draws until their values include all wanted ones, or no further search is likely to find them.

    Hypothesis mutates its earlier draws, so a search of a few hundred may miss a value that one draw in twenty has. The
    next search begins elsewhere.
    """
    specs: list[_Spec] = []
    for search in range(_SEARCHES):
        specs += drawn(strategy, count, search)
        if wanted <= set[_Value]().union(*map(values, specs)):
            break
    return specs

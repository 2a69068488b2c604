"""What strategies draw, as lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

_Spec = TypeVar("_Spec")
_Value = tuple[Any, ...]

_SEARCHES = 10


def drawn(strategy: SearchStrategy[_Spec], count: int, search: int = 0) -> list[_Spec]:
    """So many draws, the same ones every time; each search has other ones."""
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
    """Draws until their values hold all that is wanted, or nobody would expect it any more.

    Hypothesis mutates what it drew before, so a search of a few hundred may leave out what one draw in twenty has: the
    next one begins elsewhere.
    """
    specs: list[_Spec] = []
    for search in range(_SEARCHES):
        specs += drawn(strategy, count, search)
        if wanted <= set[_Value]().union(*map(values, specs)):
            break
    return specs

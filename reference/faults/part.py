"""A part of an operator that can go wrong by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

__all__ = ["Part"]

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Part:
    """One part that can go wrong.

    needs
        What must be there for it to show, in words of the operator's own: the description of its cases says which of
        them have it (``cases/specs/contexts.py``).
    answer
        From a node, its inputs and what the session remembers (the same dictionary for each run) to the outputs of an
        implementation in which this part is wrong.
    """

    id: str
    needs: frozenset[str]
    answer: Callable[[Any, Arrays, dict[str, Any]], dict[str, NDArray[Any]]] = field(compare=False)

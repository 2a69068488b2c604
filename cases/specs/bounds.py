"""Bounds that a caller sets on a strategy, the same words for every operator."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...reference import OperatorVersion
from ..axes.axis import Domain

_SIZES = ("min_steps", "max_steps", "min_rows", "max_rows", "max_inputs", "max_size")


@dataclass(frozen=True)
class Bounds:
    """The smallest and largest sizes, and what else may be drawn; see :func:`..strategies.cases`.

    Raises ValueError for sizes that cannot be. Types, functions and axes are for an operator's strategy to check.
    """

    min_steps: int = 1
    max_steps: int = 6
    min_rows: int = 1
    max_rows: int = 4
    max_inputs: int = 8
    max_size: int = 8
    types: str | Collection[str] | None = None
    activations: Collection[str] | None = None
    only: Mapping[str, Collection[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _SIZES:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(f"{name} is an integer, not {value!r}")
        for name in ("min_steps", "min_rows"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is 0 or more, not {getattr(self, name)}")
        for name, least in (
            *(("max_steps", max(1, self.min_steps)), ("max_rows", max(1, self.min_rows))),
            *(("max_inputs", 1), ("max_size", 1)),
        ):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {least} or more, not {getattr(self, name)}")


def listed(name: str, values: str | Collection[str]) -> list[str]:
    """One or several names as a list. Raises ValueError for what is no list of names."""
    if isinstance(values, str):
        return [values]
    if not isinstance(values, Collection) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} is a list of names, not {values!r}")
    return list(values)


def known_among(operator: OperatorVersion, what: str, given: Collection[Any], known: Sequence[Any]) -> list[Any]:
    """The values that are given, in the order in which they are known. Raises ValueError for one that is not known, and
    where none is given."""
    for value in given:
        if value not in known:
            raise ValueError(not_among(operator, what, value, known))
    if not given:
        raise ValueError(f"{operator.name}: no {what} is left; give at least one of {', '.join(map(str, known))}")
    return [value for value in known if value in given]


def not_among(
    operator: OperatorVersion, what: str, value: Any, known: Sequence[Any], domain: Domain | None = None
) -> str:
    """The sentence that says what there is instead of a value."""
    shown = ", ".join(repr(v) for v in dict.fromkeys(known))
    others = f", and {domain.others}" if domain is not None and domain.others else ""
    return f"{operator.name} has no {what} {value!r}; there are {shown}{others}"

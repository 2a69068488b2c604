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
    """Limits of sizes and other values of a strategy; see :func:`..strategies.cases`.

    Raises ValueError for impossible sizes. Types, functions and axes are checked by an operator's strategy.
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
    """Return one or several names as a list. Raise ValueError for other values."""
    if isinstance(values, str):
        return [values]
    if not isinstance(values, Collection) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} is a list of names, not {values!r}")
    return list(values)


def known_among(operator: OperatorVersion, what: str, given: Collection[Any], known: Sequence[Any]) -> list[Any]:
    """Return the given values in the order of the known ones. Raise ValueError for an unknown value, and for none."""
    for value in given:
        if value not in known:
            raise ValueError(not_among(operator, what, value, known))
    if not given:
        raise ValueError(f"{operator.name}: no {what} is left; give at least one of {', '.join(map(str, known))}")
    return [value for value in known if value in given]


def not_among(
    operator: OperatorVersion, what: str, value: Any, known: Sequence[Any], domain: Domain | None = None
) -> str:
    """Return a message with the possible values."""
    shown = ", ".join(repr(v) for v in dict.fromkeys(known))
    others = f", and {domain.others}" if domain is not None and domain.others else ""
    return f"{operator.name} has no {what} {value!r}; there are {shown}{others}"

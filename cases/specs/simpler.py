"""Simpler cases: changes that take one thing away from a case.

Every field of a spec has the simplest value as its default. Its axis defines the simpler ones
(:meth:`..axes.axis.Axis.simplified`): a change takes one feature away, or the values in between, or makes one size
smaller; dependent fields change with it. Nothing here asks which operator it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .family import family_of

SIZES = ("T", "N", "I", "H")


@dataclass(frozen=True)
class Simpler:
    """A case with one thing less.

    field
        Which one: the name of the spec's field.
    """

    field: str
    spec: Any


def simpler_cases(spec: Any, only: str | None = None) -> list[Simpler]:
    """Yield all cases that are simpler by one change, for each field first those that take most away. Building one
    shows whether the document allows it.

    only
        The one field that may be changed.
    """
    family = family_of(spec.op)
    by_case: dict[Any, Simpler] = {}
    for name, changes in family.simpler(spec):
        if only not in (None, name):
            continue
        changed = _made(spec, changes)
        if changed is not None and changed != spec and changed not in by_case and family.goes_together(changed):
            by_case[changed] = Simpler(name, changed)
    return list(by_case.values())


def _made(spec: Any, changes: Mapping[str, Any]) -> Any | None:
    """Return the spec with other fields; None if its operator version has no such value."""
    try:
        return replace(spec, **changes)
    except ValueError:
        return None

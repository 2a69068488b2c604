"""Ids of faults that only earlier releases have; a list of known failures may still contain them."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ..numbers.activations import ACTIVATIONS

__all__ = ["retirement"]

_MEASURED = "functions and sums of a target are no longer measured; name cases or clauses instead"

_NO_SCOPE = "the scope behind @ is gone; name cases or clauses instead"

_RETIRED = {
    "functions.*": _MEASURED,
    "products.*": _MEASURED,
    "lengths.longest@rows-by-2": "write 'lengths.longest-of-2'",
    "lengths.longest@rows-by-4": "write 'lengths.longest-of-4'",
    "lengths.longest@rows-by-8": "write 'lengths.longest-of-8'",
    **{
        f"*@{scope}*": _NO_SCOPE
        for scope in ("besides", "gate-", "in-part", "rows-", "states", "units-in-", "units-past-", *ACTIVATIONS)
    },
}
"""Patterns of ids, with what to do instead."""


def retirement(id: str) -> str | None:
    """Return advice for the id of a retired fault; None for any other id."""
    return next((instead for pattern, instead in _RETIRED.items() if fnmatchcase(id, pattern)), None)

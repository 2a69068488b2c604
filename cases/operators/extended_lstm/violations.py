"""Building blocks for violations of ExtendedLSTM's document; its axes use them.

Some violations make a kernel without shape checks read or write beyond a tensor. They are marked, and each runs in its
own process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...axes.violation import Draft, Violation, changed

Change = Callable[[Draft], None]


def broken(id: str, topic: str, feature: str, summary: str, change: Change, spoils: bool = False) -> Violation:
    """Return a violation of the clause of a topic, due when the model is loaded."""
    return Violation(id, "load", summary, change, breaks=topic, feature=feature, spoils=spoils)


def each(*changes: Change) -> Change:
    """Return a change that makes several changes in order."""

    def change(draft: Draft) -> None:
        for one in changes:
            one(draft)

    return change


def without(name: str) -> Change:
    """Return a change that removes an attribute."""
    return lambda draft: draft.attributes.__delitem__(name)


def cast(dtype: Any) -> Change:
    """Return a change that converts all inputs to another type."""
    return each(*(changed(name, lambda array: array.astype(dtype)) for name in ("X", "W", "R", "B")))


one_direction: Change = each(*(changed(name, lambda array: array[:1]) for name in ("W", "R", "B")))
"""Change that keeps only the weights of the first direction."""

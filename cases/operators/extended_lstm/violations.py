"""Parts of which violations of ExtendedLSTM's document are made. Its axes name them.

Those that leave a kernel, which looks at no shape, reading or writing past a tensor are marked: each is run in a
process of its own.
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
    """Return several changes, one after the other."""

    def change(draft: Draft) -> None:
        for one in changes:
            one(draft)

    return change


def without(name: str) -> Change:
    """Return an attribute left out."""
    return lambda draft: draft.attributes.__delitem__(name)


def cast(dtype: Any) -> Change:
    """Return all inputs in another type."""
    return each(*(changed(name, lambda array: array.astype(dtype)) for name in ("X", "W", "R", "B")))


one_direction: Change = each(*(changed(name, lambda array: array[:1]) for name in ("W", "R", "B")))
"""Weights of the first direction alone."""

"""Formats, accuracy classes, activation functions, and the arithmetics that a computation can run in."""

from importlib import import_module
from typing import TYPE_CHECKING

# Documented in docs/operators.md.
from .accuracy import Budget as Budget

if TYPE_CHECKING:
    from .bounded import Bounded as Bounded
    from .bounding import Bounding as Bounding
else:

    def __getattr__(name: str) -> object:
        """Return a class of numbers with error bounds; cases do without its module."""
        if name not in ("Bounded", "Bounding"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{name.lower()}", __name__), name)

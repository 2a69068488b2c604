"""The harness: targets and their workers, the run and its verdicts, the command line, the pytest plugin.

Nothing is loaded before it is asked for: pytest imports this package in every session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assertion import NotConforming as NotConforming
    from .assertion import assert_conforms as assert_conforms

__all__ = ["NotConforming", "assert_conforms"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import assertion

        return getattr(assertion, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The memory of an implementation: what it keeps from one run to the next, of a session and of all of them."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

__all__ = ["Memory", "Sessions"]


class Memory(dict[str, Any]):
    """Things that an implementation keeps from one run of a session to the next.

    process
        Those that it keeps for all sessions alike.
    refused
        Whether the session has refused inputs by now.
    overridden
        The values of the model's own for constants that this run is fed.
    """

    def __init__(self, process: MutableMapping[str, Any]) -> None:
        super().__init__()
        self.process, self.refused = process, False
        self.overridden: Mapping[str, Any] = {}

    def of(self, name: str) -> Memory:
        """Return the part of it that one of several faults has for itself."""
        if name not in self:
            self[name] = Memory(self.process.setdefault(name, {}))
        own: Memory = self[name]
        own.refused, own.overridden = self.refused, self.overridden
        return own


class Sessions:
    """The memories of sessions that are alive at the same time, by number."""

    def __init__(self) -> None:
        self._process: dict[str, Any] = {}
        self._known: dict[int, Memory] = {}

    def __getitem__(self, number: int) -> Memory:
        return self._known.setdefault(number, Memory(self._process))

    @property
    def empty(self) -> bool:
        """Tell whether nothing was kept by now."""
        return not (_holds(self._process) or any(map(_holds, self._known.values())))


def _holds(kept: Mapping[str, Any]) -> bool:
    """Return whether something is kept, and not only places where it would be."""
    return any(not isinstance(each, dict) or _holds(each) for each in kept.values())

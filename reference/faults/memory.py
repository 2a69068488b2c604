"""Memory of an implementation between runs, for one session and for all sessions."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

__all__ = ["Memory", "Sessions"]


class Memory(dict[str, Any]):
    """State that an implementation keeps between the runs of a session.

    process
        State that it keeps for all sessions together.
    refused
        Whether the session has refused inputs before.
    overridden
        The model's own values of constants that are fed in this run.
    """

    def __init__(self, process: MutableMapping[str, Any]) -> None:
        super().__init__()
        self.process, self.refused = process, False
        self.overridden: Mapping[str, Any] = {}

    def of(self, name: str) -> Memory:
        """Return the part of the memory that belongs to one of several faults."""
        if name not in self:
            self[name] = Memory(self.process.setdefault(name, {}))
        part: Memory = self[name]
        part.refused, part.overridden = self.refused, self.overridden
        return part


class Sessions:
    """Memories of sessions that are alive at the same time, by number."""

    def __init__(self) -> None:
        self._process: dict[str, Any] = {}
        self._known: dict[int, Memory] = {}

    def __getitem__(self, number: int) -> Memory:
        return self._known.setdefault(number, Memory(self._process))

    @property
    def empty(self) -> bool:
        """Whether nothing has been kept so far."""
        return not (_holds(self._process) or any(map(_holds, self._known.values())))


def _holds(kept: Mapping[str, Any]) -> bool:
    """Return whether a value is kept, and not only empty dictionaries."""
    return any(not isinstance(value, dict) or _holds(value) for value in kept.values())

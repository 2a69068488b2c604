"""Of which expected failures a run can tell whether they still happen."""

from __future__ import annotations

from collections.abc import Sequence, Set

from .expected_failures import Entry
from .selection import probes_of_profile

__all__ = ["decidable"]

_WHOLE = "core"
"""The profile in which every expected failure shows."""


def decidable(entries: Sequence[Entry], done: Set[str], profile: str) -> list[Entry]:
    """The expected failures of which the cases that ran (their ids) tell whether they still happen: those of which no
    case of the profile is missing."""
    everything = probes_of_profile(profile) if entries else []
    # Which cases a mistake explains is known only once they fail: those of a small profile need not be among them.
    more = probes_of_profile(_WHOLE) if any(entry.deviations for entry in entries) else []
    telling = ((entry, more if entry.deviations else everything) for entry in entries)
    return [entry for entry, cases in telling if all(probe.id in done for probe in cases if entry.covers(probe))]

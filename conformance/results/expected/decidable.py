"""Expected failures of which a run can tell whether they still happen."""

from __future__ import annotations

from collections.abc import Sequence, Set

from ....cases import PROFILES
from ...probes.drawn import fresh_profile, split_nonce
from ...probes.selection import probes_of_profile
from .entries import Entry

_WHOLE, _BESIDE = "core", "quantized"
"""The profile in which every expected failure shows, but for what shows in the one beside it alone."""


def decidable_entries(entries: Sequence[Entry], done: Set[str], profile: str) -> list[Entry]:
    """The expected failures of which the cases that ran (their ids) tell whether they still happen: those of which no
    case is missing that could show them. A small profile may have one case that an entry is about, which happens to
    pass, where other cases still need the entry. Fresh cases tell of none."""
    if not entries or fresh_profile(profile) is not None:
        return []
    pinned, _ = split_nonce(profile)
    telling = probes_of_profile(pinned if pinned == PROFILES[2] else _WHOLE)
    decided = []
    for entry in entries:
        covered = [probe for probe in telling if entry.covers(probe)]
        covered = covered or [probe for probe in probes_of_profile(_BESIDE) if entry.covers(probe)]
        if all(probe.id in done for probe in covered):
            decided.append(entry)
    return decided

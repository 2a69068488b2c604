"""What a target lacks, by what became of cases: contexts with which nothing ran, and pairs of them.

A case of many features that is refused says only that the target lacks one of them. So of the contexts with which
nothing ran (or passed) those are taken that some case leaves no doubt about, then those that explain most of the cases
which are left; a context that merely stood beside them is not held to be lacking. What several cases with two contexts
together show, and neither alone, is put down as the pair.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...cases.specs.contexts import ContextSpace

__all__ = ["Lacking", "lacking", "named"]

Mask = NDArray[np.bool_]

_ENOUGH = 2
"""Cases that a context must explain where others might: one may have been refused for what nobody sees."""

_ENOUGH_FOR_PAIRS = 4
"""The same for two contexts together, of which there are thousands. Of dense cases one in four to ten has a pair, so
that four of them without one that ran are no chance where hundreds ran."""


class Lacking(NamedTuple):
    """What there is not, by places of contexts: single ones, and pairs that do not occur together."""

    places: frozenset[tuple[int, ...]]

    def hit(self, held: Mask) -> Mask:
        """Which cases have something of it, by the contexts that they hold, (cases, contexts)."""
        out = np.zeros(len(held), bool)
        for some in self.places:
            out |= held[:, list(some)].all(axis=1)
        return out


def lacking(space: ContextSpace, held: Mask, ran: Mask, without: Mask, known: Collection[int] = ()) -> Lacking:
    """What explains that some cases did not run (or did not pass), where others did.

    held
        (cases, contexts): what each case has.
    ran, without
        Which cases ran, and which did not; others say nothing.
    known
        Contexts of which it was said before.
    """
    usable = ~space.of_half
    places: set[tuple[int, ...]] = {(k,) for k in known}
    left = without & ~Lacking(frozenset(places)).hit(held)
    never = usable & held[left].any(axis=0) & ~held[ran].any(axis=0)
    # No other context could be the reason.
    for row in held[left]:
        (candidates,) = np.nonzero(row & never)
        if len(candidates) == 1:
            places.add((int(candidates[0]),))
    left &= ~Lacking(frozenset(places)).hit(held)
    while left.any():
        counts = np.where(never, held[left].sum(axis=0), 0)
        best = int(counts.argmax())
        if counts[best] < _ENOUGH:
            break
        places.add((best,))
        left &= ~held[:, best]
    groups = np.array([context.group for context in space.contexts])[usable]
    related = groups[:, np.newaxis] == groups
    while left.any():
        own, there = held[left][:, usable].astype(np.float32), held[ran][:, usable].astype(np.float32)
        together = np.where(there.T @ there > 0, 0, np.triu(own.T @ own, 1))
        # Rather two that belong together, like functions and their coefficients.
        first, second = np.unravel_index(int((together * (1 + 0.5 * related)).argmax()), together.shape)
        if together[first, second] < _ENOUGH_FOR_PAIRS:
            break
        numbers = np.flatnonzero(usable)
        pair = (int(numbers[first]), int(numbers[second]))
        places.add(pair)
        left &= ~held[:, list(pair)].all(axis=1)
    return Lacking(frozenset(places))


def named(space: ContextSpace, some: Lacking) -> list[str]:
    """What there is not, in words, single contexts first."""
    order = sorted(some.places, key=lambda places: (len(places), places))
    return [" with ".join(space.contexts[k].id for k in places) for places in order]

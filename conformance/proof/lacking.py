"""Contexts that a target lacks, by what became of cases: contexts with which nothing ran, and pairs of them.

A case of many features that is refused says only that the target lacks one of them. So of the contexts with which
nothing ran (or passed) those are taken that some case leaves no doubt about, then those that explain most of the cases
which are left; a context that merely stood beside them is not held to be lacking. What several cases with two contexts
together show, and neither alone, is put down as the pair. Features that no context is about (a function whose
coefficient is left out) explain what is left in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...cases.specs.contexts import ContextSpace

Mask = NDArray[np.bool_]

_ENOUGH = 2
"""Cases that something must explain where something else might: one may have been refused for what nobody sees."""

_ENOUGH_FEATURES = 3
"""The same for features, alone or two together."""

_ENOUGH_FOR_PAIRS = 4
"""The same for two contexts together, of which there are thousands. Of dense cases one in four to ten has a pair, so
that four of them without one that ran are no chance where hundreds ran."""


class CaseTable(NamedTuple):
    """Cases with what they have, a row each.

    held
        (cases, contexts), in one of their directions at least.
    features
        Of each case, by name.
    plain
        Which cases are of plain numbers and sizes: what becomes of others may have another reason.
    """

    held: Mask
    features: Sequence[frozenset[str]]
    plain: Mask


class Lacking(NamedTuple):
    """Contexts that there are not: single contexts, and pairs that do not occur together, by their places; and features
    that do not occur together."""

    places: frozenset[tuple[int, ...]] = frozenset()
    features: frozenset[frozenset[str]] = frozenset()

    def hit(self, held: Mask) -> Mask:
        """The cases that have some of these contexts, (cases, contexts)."""
        out = np.zeros(len(held), bool)
        for some in self.places:
            out |= held[:, list(some)].all(axis=1)
        return out

    def has(self, features: Collection[str]) -> bool:
        """Tell whether a case with these features has some of those."""
        return any(some <= set(features) for some in self.features)


def lacking_of(
    space: ContextSpace,
    evidence: CaseTable,
    ran: Mask,
    without: Mask,
    known: Iterable[int] = (),
    *,
    final: bool = True,
) -> Lacking:
    """The explanation why some cases did not run (or did not pass), where others did.

    ran, without
        Which cases ran, and which did not; others say nothing.
    known
        Contexts of which it was said before.
    final
        Whether of contexts that explain as many cases the first is taken; else none, since other cases may tell.
    """
    held, usable = evidence.held, ~space.of_half
    places: set[tuple[int, ...]] = {(k,) for k in known}
    left = without & evidence.plain & ~Lacking(frozenset(places)).hit(held)
    never = usable & held[left].any(axis=0) & ~held[ran].any(axis=0)
    # No other context could be the reason.
    for row in held[left]:
        (candidates,) = np.nonzero(row & never)
        if len(candidates) == 1:
            places.add((int(candidates[0]),))
    left &= ~Lacking(frozenset(places)).hit(held)
    while left.any():
        counts = np.where(never, held[left].sum(axis=0), 0)
        # Of two that explain as many the one that more cases have: the other comes with it.
        best = int((counts * (len(held) + 1) + held[without].sum(axis=0) * never).argmax())
        if counts[best] < _ENOUGH or (not final and (counts == counts[best]).sum() > 1):
            break
        places.add((best,))
        left &= ~held[:, best]
    features = _features(evidence.features, ran, left)
    numbers = np.flatnonzero(usable)
    for first, second in _pairs(held[:, usable], ran, left, _ENOUGH_FOR_PAIRS):
        places.add((int(numbers[first]), int(numbers[second])))
    return Lacking(frozenset(places), frozenset(features))


def _features(of_cases: Sequence[frozenset[str]], ran: Mask, left: Mask) -> set[frozenset[str]]:
    """Features, alone or two together, that explain cases which are left; these are taken out of them."""
    names = sorted(frozenset().union(*(of_cases[k] for k in np.flatnonzero(left).tolist())))
    if not names:
        return set()
    held = np.array([[name in features for name in names] for features in of_cases], bool)
    return {frozenset((names[first], names[second])) for first, second in _pairs(held, ran, left, _ENOUGH_FEATURES)}


def _pairs(held: Mask, ran: Mask, left: Mask, enough: int) -> Iterable[tuple[int, int]]:
    """Pairs of columns, or one column twice, that no case which ran has and that explain the cases which are left, the
    most of them first; what is explained is taken out of them."""
    if not left.any():
        return
    # Bits of rows, since a product of so small matrices costs more for the threads that libraries divide it among.
    there = np.packbits(held[ran], axis=0).T
    apart = ~(there[:, np.newaxis] & there).any(axis=2)
    while left.any():
        own = held[left].astype(np.float32)
        counts = np.where(apart, np.triu(own.T @ own), 0)
        # One alone rather than with another that all of its cases have.
        first, second = np.unravel_index(int((counts + 0.5 * np.eye(len(counts))).argmax()), counts.shape)
        if counts[first, second] < enough:
            return
        left &= ~(held[:, first] & held[:, second])
        yield int(first), int(second)


def named(space: ContextSpace, some: Lacking) -> list[str]:
    """The lacking contexts in words: single ones, pairs, features."""
    order = sorted(some.places, key=lambda places: (len(places), places))
    contexts = [" with ".join(space.contexts[k].id for k in places) for places in order]
    return [*contexts, *sorted(" with ".join(sorted(features)) for features in some.features)]

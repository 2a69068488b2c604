"""Interactions: "X goes wrong when Y and Z", all of them, and which of them a list of cases shows.

X is a part of an operator (:class:`...reference.faults.part.Part`), Y and Z are contexts
(:mod:`...cases.specs.contexts`). A kernel in which X goes wrong where Y and Z hold is, in every case where they hold, a
kernel in which X goes wrong; in all other cases it is right. So a list of cases shows that fault where one of its cases
shows X and has Y and Z, and all faults are counted exactly, by going once through the parts that each case shows.

A context about one direction of two leaves the other one right: it counts in the half of a case that goes wrong alone.
What cannot occur, or cannot show because something that the part needs is not there, is no fault
(:meth:`...cases.specs.contexts.ContextSpace.possible`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...cases import Spec
from ...cases.axes.context import Need
from ...cases.profiles.pool import Pooled, pool_of
from ...cases.specs.contexts import ContextSpace, Possible
from ...cases.specs.family import context_space
from ...reference import operator_of
from ...reference.faults.part import Part
from .exposure import Run, Shown

Counts = NDArray[np.int32]


class Faults(Struct, frozen=True):
    """All faults of an operator: for each part (by position in ``parts``) the contexts (by position in ``contexts``) in
    which it can show, and the pairs of contexts (an upper triangle)."""

    parts: tuple[str, ...]
    contexts: tuple[str, ...]
    alone: NDArray[np.bool_]
    together: NDArray[np.bool_]

    def within(self, kept: NDArray[np.bool_]) -> Faults:
        """The faults whose contexts are among those kept."""
        return Faults(self.parts, self.contexts, self.alone & kept, self.together & kept & kept[:, np.newaxis])


@cache
def faults_in(op: str, type: str) -> Faults:
    """All faults of an operator that can show in one type."""
    position = space_of(op).position
    others = {k for id, k in position.items() if id.startswith("type=") and id != f"type={type}"}
    return faults_of(op, frozenset((k,) for k in others))


def space_of(op: str) -> ContextSpace:
    """The contexts that cases of an operator may have. Raises KeyError for one of which that is not counted."""
    space = context_space(op)
    if space is None:
        raise KeyError(op)
    return space


@cache
def faults_of(op: str, without: frozenset[tuple[int, ...]] = frozenset()) -> Faults:
    """All faults of an operator.

    without
        What there is not, by places of contexts: single ones, and pairs of which there is only one at a time.
    """
    parts, space = operator_of(op).parts(), space_of(op)
    contexts = space.contexts
    known: dict[tuple[Need, ...], Possible] = {}

    def shows(part: Part, half: bool) -> Possible:
        needs = space.needs(part.needs, half=half)
        if needs not in known:
            known[needs] = space.possible(needs, without)
        return known[needs]

    halves = space.of_half
    by_half = halves[:, np.newaxis] | halves
    upper = np.triu(np.ones((len(contexts), len(contexts)), bool), 1)
    few = np.array([context.pairs_only for context in contexts])
    upper[few, :] = upper[:, few] = False
    for some in without:
        if len(some) == 2:
            upper[min(some), max(some)] = False
    alone, together = [], []
    for part in parts:
        whole, half = shows(part, False), shows(part, True)
        alone.append(np.where(halves, half.alone, whole.alone))
        together.append(np.where(by_half, half.together, whole.together) & upper)
    return Faults(
        tuple(part.id for part in parts),
        tuple(context.id for context in contexts),
        np.array(alone),
        np.array(together),
    )


GOAL = {"pairs": 0.995, "twice": 0.98, "triples": 0.95}
"""Shares of an operator's faults that ``core`` is meant to show: below them ``onnxspec prove`` fails."""


def measurable(spec: Spec) -> bool:
    """Tell whether it is worth measuring what a case shows."""
    space = context_space(spec.op)
    return space is not None and space.measurable(spec)


class Score(Struct, frozen=True):
    """The number of faults that there are and of those that are shown: single parts, pairs (X, Y), those shown by two
    cases or more, and triples (X, Y, Z)."""

    parts: tuple[int, int]
    pairs: tuple[int, int]
    twice: tuple[int, int]
    triples: tuple[int, int]


class Tally:
    """The interactions that cases of one operator show, case by case."""

    def __init__(self, op: str) -> None:
        self.op = op
        self.space = space_of(op)
        self.contexts = self.space.contexts
        self.position = {part.id: k for k, part in enumerate(operator_of(op).parts())}
        self.of_half = self.space.of_half
        parts, contexts = len(self.position), len(self.contexts)
        self.pairs: Counts = np.zeros((parts, contexts), np.int32)
        self.triples: Counts = np.zeros((parts, contexts, contexts), np.int32)

    def add(self, *runs: Run) -> int:
        """Count one more case, by what its runs show; gives how many pairs and triples it is the first to show."""
        pairs, triples = self.of(*runs[0])
        for run in runs[1:]:
            of_pairs, of_triples = self.of(*run)
            pairs |= of_pairs
            triples |= of_triples
        fresh = int(((self.pairs == 0) & pairs).sum() + ((self.triples == 0) & triples).sum() // 2)
        self.pairs += pairs
        self.triples += triples
        return fresh

    def of(self, spec: Spec, shown: Mapping[str, Shown]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The pairs and triples that one run shows."""
        held = self.space.held(spec)
        whole = np.zeros((len(self.position), 1), bool)
        halves = np.zeros((len(held), len(self.position), 1), bool)
        for id, where in shown.items():
            whole[self.position[id]] = where.whole
            for d, there in enumerate(where.halves):
                halves[d, self.position[id]] = there
        plain = held[0] & ~self.of_half
        pairs = whole & plain
        triples = (pairs[:, :, np.newaxis] & plain).copy()
        for d in range(len(held)):
            # A pair with a context of a half is shown by that half alone.
            own = halves[d] & held[d]
            in_half = own & self.of_half
            pairs |= in_half
            mixed = own[:, :, np.newaxis] & own[:, np.newaxis, :]
            triples |= mixed & (self.of_half[:, np.newaxis] | self.of_half)
        return pairs, triples

    def score(self, faults: Faults) -> Score:
        """The share of some faults that the cases show."""

        def of(counts: Counts, there: NDArray[np.bool_], least: int) -> tuple[int, int]:
            return int(((counts >= least) & there).sum()), int(there.sum())

        some = faults.alone.any(axis=1)
        parts = int(((self.pairs > 0) & faults.alone).any(axis=1).sum()), int(some.sum())
        return Score(
            parts,
            of(self.pairs, faults.alone, 1),
            of(self.pairs, faults.alone, 2),
            of(self.triples, faults.together, 1),
        )

    def surviving(self, faults: Faults) -> list[tuple[str, str]]:
        """The pairs (part, context) that no case shows."""
        return [(faults.parts[x], faults.contexts[y]) for x, y in np.argwhere((self.pairs == 0) & faults.alone)]

    def contradicting(self, faults: Faults) -> list[tuple[str, ...]]:
        """Faults that are held to be impossible and yet are shown: a mistake in what parts are said to need."""
        upper = np.triu(np.ones(self.triples.shape[1:], bool), 1)
        pairs = np.argwhere((self.pairs > 0) & ~faults.alone)
        few = np.array([context.pairs_only for context in self.contexts])
        upper[few, :] = upper[:, few] = False
        triples = np.argwhere((self.triples > 0) & ~faults.together & upper)
        return [
            *((faults.parts[x], faults.contexts[y]) for x, y in pairs),
            *((faults.parts[x], faults.contexts[y], faults.contexts[z]) for x, y, z in triples),
        ]


def tally(op: str, cases: Iterable[Sequence[Run]]) -> Tally:
    """The score of several cases together, by what the runs of each show."""
    total = Tally(op)
    for runs in cases:
        total.add(*runs)
    return total


def shown_by(case: Pooled, parts: Sequence[str]) -> dict[str, Shown]:
    """The parts that a case of the pool shows, as measured when the pool was made."""
    by_part = {}
    for k, id in enumerate(parts):
        shown = Shown(bool(case.whole >> k & 1), tuple(bool(half >> k & 1) for half in case.halves))
        if shown.whole or any(shown.halves):
            by_part[id] = shown
    return by_part


def pool_tally(op: str, cases: Iterable[Pooled]) -> Tally:
    """The score of several cases of the pool by their own runs, which the choice is made by."""
    parts = pool_of(op).parts
    return tally(op, ([(case.spec, shown_by(case, parts))] for case in cases))

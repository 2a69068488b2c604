"""Contexts: everything that may be there when a part of an operator goes wrong, and which of them go together.

An operator's family describes them (:class:`ContextSpace`): each value of each axis, each optional input and output
there or not, and for sizes the classes around the blocks that kernels work in. What can occur together is decided by
going through all combinations of the axes that restrict each other; a pair of contexts that none of them holds cannot
occur.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["HALVES", "Context", "ContextSpace", "Need", "Possible"]

Mask = NDArray[np.bool_]

HALVES = ("forward", "reverse")
"""The ways in which one direction of a node runs: where both are there, each is a half of the case."""


@dataclass(frozen=True)
class Context:
    """One thing that may be so in a case.

    group
        The axes that restrict each other, among which it is: see :attr:`ContextSpace.groups`.
    holds
        Whether it is so, for a case or a row of its group with the same fields.
    half
        Whether it is about one direction of the node alone; its rows have a field ``half``.
    pairs_only
        Whether it counts in faults of one context alone: it is one of a long list whose classes count in all.
    """

    id: str
    group: str
    holds: Callable[[Any], bool]
    half: bool = False
    pairs_only: bool = False


@dataclass(frozen=True)
class Need:
    """What must be there for a part to show: which rows of a group have it."""

    name: str
    group: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Possible:
    """What can occur while a part can show: (contexts,) alone and (contexts, contexts) together."""

    alone: Mask
    together: Mask


class ContextSpace(ABC):
    """What may be there in the cases of an operator, over its versions and types."""

    @property
    @abstractmethod
    def contexts(self) -> tuple[Context, ...]:
        """All contexts, the more general before those that they imply."""

    @property
    @abstractmethod
    def groups(self) -> Mapping[str, tuple[Any, ...]]:
        """For each group of axes that restrict each other all legal combinations of their values."""

    @abstractmethod
    def needs(self, names: frozenset[str], *, half: bool = False) -> tuple[Need, ...]:
        """What parts need (:attr:`...reference.faults.part.Part.needs`); of a part in one direction alone where `half`,
        which may be less."""

    @abstractmethod
    def halves(self, spec: Any) -> tuple[Any, ...]:
        """A legal case as contexts see each of its directions, in the order in which W holds them."""

    @abstractmethod
    def measurable(self, spec: Any) -> bool:
        """Whether it is worth measuring what a case shows: a legal one of plain numbers and of no great size."""

    def models(self, spec: Any) -> int:
        """How many models must be compiled for a legal case, a companion among them."""
        return 1

    def earlier(self, spec: Any) -> Any | None:
        """What the first of a session's runs is a case of; None where there is one run, or no case is like it."""
        return None

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The place of each context by its id."""
        return {context.id: k for k, context in enumerate(self.contexts)}

    @cached_property
    def of_half(self) -> Mask:
        """Which contexts are about one direction alone."""
        return np.array([context.half for context in self.contexts], bool)

    def held(self, spec: Any) -> Mask:
        """(directions, contexts): which contexts a legal case has."""
        return np.array([[context.holds(row) for context in self.contexts] for row in self.halves(spec)], bool)

    def possible(self, needs: Iterable[Need] = (), without: Collection[tuple[int, ...]] = ()) -> Possible:
        """Which contexts can occur, alone and together, where all needs hold.

        without
            What there is not: each a context by its place, or several of one group that do not occur together.
        """
        by_group: dict[str, list[str]] = {}
        for need in needs:
            by_group.setdefault(need.group, []).append(need.name)
            self._required(need)
        alone = np.zeros(len(self.contexts), bool)
        inside: dict[str, Mask] = {}
        satisfied = True
        for group, (own, _) in self._masks.items():
            absent = frozenset(some for some in without if set(some) <= self._members[group])
            there, inside[group] = self._within(group, frozenset(by_group.get(group, ())), absent)
            satisfied = satisfied and there
            alone[own] = inside[group].diagonal()
        if not satisfied:
            return Possible(np.zeros_like(alone), np.zeros((len(alone), len(alone)), bool))
        together = alone[:, np.newaxis] & alone
        for group, (own, _) in self._masks.items():
            together[np.ix_(own, own)] = inside[group]
        return Possible(alone, together)

    def _within(self, group: str, needs: frozenset[str], absent: frozenset[tuple[int, ...]]) -> tuple[bool, Mask]:
        """Whether some row of a group has what is needed and nothing that is absent, and which contexts of the group
        occur together in such rows. Parts differ in a few of their needs, so most answers are there already."""
        if (group, needs, absent) not in self._answers:
            own, held = self._masks[group]
            legal = (1 << len(self.groups[group])) - 1
            for name in needs:
                legal &= self._known[name]
            for some in absent:
                legal &= ~reduce(and_, (held[own.index(place)] for place in some))
            kept = [rows & legal for rows in held]
            inside = np.array([[first & second != 0 for second in kept] for first in kept], bool)
            self._answers[group, needs, absent] = legal != 0, inside.reshape(len(own), len(own))
        return self._answers[group, needs, absent]

    @cached_property
    def _answers(self) -> dict[tuple[str, frozenset[str], frozenset[tuple[int, ...]]], tuple[bool, Mask]]:
        return {}

    @cached_property
    def _members(self) -> Mapping[str, frozenset[int]]:
        """The places of the contexts of each group."""
        return {group: frozenset(own) for group, (own, _) in self._masks.items()}

    @cached_property
    def _masks(self) -> Mapping[str, tuple[list[int], list[int]]]:
        """For each group the places of its contexts, and in which of its rows each holds: bit k for row k."""
        masks = {}
        for group, table in self._tables.items():
            own = [k for k, context in enumerate(self.contexts) if context.group == group]
            masks[group] = own, [table.holding(self.contexts[k].holds) for k in own]
        return masks

    @cached_property
    def _tables(self) -> Mapping[str, _Table]:
        return {group: _Table(rows) for group, rows in self.groups.items()}

    @cached_property
    def _known(self) -> dict[str, int]:
        return {}

    def _required(self, need: Need) -> None:
        """Learn which rows of its group have what is needed."""
        if need.name not in self._known:
            self._known[need.name] = self._tables[need.group].holding(need.holds)


class _Table:
    """Rows of a group, of which it is asked what holds: once for each combination of the fields that the answer asks
    for, since most answers ask for one or two of many."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows
        self._codes: dict[str, tuple[NDArray[np.intp], int]] = {}
        self._combinations: dict[tuple[str, ...], tuple[NDArray[np.intp], NDArray[np.intp]]] = {}

    def holding(self, holds: Callable[[Any], bool]) -> int:
        """For which rows it holds: bit k for row k."""
        fields: dict[str, None] = {}
        while True:
            # Which fields are asked for can depend on others: again, until those that differ in nothing that any of
            # them was asked for stand for each other.
            before = len(fields)
            first, which = self._distinct(tuple(fields))
            answers = np.array([bool(holds(_Asked(self._rows[k], fields))) for k in first.tolist()], bool)
            if len(fields) == before:
                return int.from_bytes(np.packbits(answers[which], bitorder="little").tobytes(), "little")

    def _distinct(self, fields: tuple[str, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """A row of each combination of these fields, and which of these combinations each row has."""
        if fields not in self._combinations:
            place = np.zeros(len(self._rows), np.intp)
            size = 1
            for field in fields:
                code, count = self._coded(field)
                place, size = place * count + code, size * count
            _, first, which = np.unique(place, return_index=True, return_inverse=True)
            self._combinations[fields] = first, which.reshape(-1)
        return self._combinations[fields]

    def _coded(self, field: str) -> tuple[NDArray[np.intp], int]:
        """A field of each row as a number, and how many there are."""
        if field not in self._codes:
            numbers: dict[Any, int] = {}
            code = [
                numbers.setdefault((type(value), value), len(numbers))
                for value in (getattr(row, field) for row in self._rows)
            ]
            self._codes[field] = np.array(code, np.intp), len(numbers)
        return self._codes[field]


class _Asked:
    """A row that writes down which of its fields are asked for."""

    def __init__(self, row: Any, fields: dict[str, None]) -> None:
        self._row, self._fields = row, fields

    def __getattr__(self, name: str) -> Any:
        self._fields[name] = None
        return getattr(self._row, name)


def values_of(group: str, field: str, values: Sequence[Any]) -> Iterable[Context]:
    """A context for each value of a field."""
    for value in values:
        yield Context(f"{field}={value}", group, lambda row, value=value: getattr(row, field) == value)  # type: ignore[misc]

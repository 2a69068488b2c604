"""The contexts that a case has, and those that can be there together.

An operator's family describes them (:class:`ContextSpace`): contexts say which fields of a case they ask for, and a few
values stand for all that each field may be. What can occur together is derived from the rules over the fields that
are asked for, and from no others: a rule that makes a field give way can be kept by its simplest value, so where nobody
asks for that field it says nothing. So the number of axes does not multiply.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..axes.context import Context, Need

_UNASKED = -1

Mask = NDArray[np.bool_]
Fields = frozenset[str]


class Relation(Struct, frozen=True):
    """The rules between fields of every case.

    fields
        The first gives way to the others: where nobody asks for it, some value of it keeps the relation.
    holds
        holds(row), of rows with these fields.
    """

    fields: tuple[str, ...]
    holds: Callable[[Any], bool]


class Possible(Struct, frozen=True):
    """Contexts that can occur while a part can show: (contexts,) alone and (contexts, contexts) together."""

    alone: Mask
    together: Mask


@dataclass(frozen=True)
class _Demand:
    """The needs of a row, by the fields that it asks for and those that rules tie to them."""

    key: object
    fields: Fields
    holds: Callable[[Any], bool]


class ContextSpace(ABC):
    """The contexts that may be there in the cases of an operator, over its versions and types."""

    @property
    @abstractmethod
    def contexts(self) -> tuple[Context, ...]:
        """All contexts, the more general before those that they imply."""

    @property
    @abstractmethod
    def occurring(self) -> Mapping[str, Sequence[Any]]:
        """Values that stand for all that contexts and needs tell apart, by field."""

    @property
    @abstractmethod
    def relations(self) -> Sequence[Relation]:
        """The rules between fields of every case."""

    @abstractmethod
    def needs(self, names: frozenset[str], *, half: bool = False) -> tuple[Need, ...]:
        """The needs of parts (:attr:`...reference.faults.part.Part.needs`); of a part in one direction alone where
        `half`, which may be less."""

    @abstractmethod
    def halves(self, spec: Any) -> tuple[Any, ...]:
        """A legal case as contexts see each of its directions, in the order in which W holds them."""

    @abstractmethod
    def measurable(self, spec: Any) -> bool:
        """Tell whether it is worth measuring what a case shows: a legal one of plain numbers and of no great size."""

    def models(self, spec: Any) -> int:
        """The number of models to be compiled for a legal case, a companion among them."""
        return 1

    def measured(self, spec: Any) -> Any:
        """The case by which it is told what a case shows: what sessions do beside the case's own run takes nothing from
        that."""
        return spec

    def earlier(self, spec: Any) -> Any | None:
        """The case that the first of a session's runs is; None where there is one run, or no case is like it."""
        return None

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The place of each context by its id."""
        return {context.id: k for k, context in enumerate(self.contexts)}

    @cached_property
    def of_half(self) -> Mask:
        """The contexts that are about one direction alone."""
        return np.array([context.half for context in self.contexts], bool)

    def held(self, spec: Any) -> Mask:
        """(directions, contexts): which contexts a legal case has."""
        return np.array([[context.holds(row) for context in self.contexts] for row in self.halves(spec)], bool)

    def possible(self, needs: Collection[Need] = (), without: Collection[tuple[int, ...]] = ()) -> Possible:
        """The contexts that can occur, alone and together, where all needs hold.

        without
            What there is not: each a context by its place, or several that do not occur together.
        """
        demands = [_Demand(need.name, self._tied(need.fields), need.holds) for need in needs]
        filters: list[_Demand] = []
        for some in without:
            absence = self._absence(some)
            if self._leaves_free(absence, filters):
                filters.append(absence)
            elif any(self._tied(absence.fields) <= region for region in self._regions):
                demands.append(replace(absence, fields=self._tied(absence.fields)))
        joined = [_Cluster(fields, tuple(own)) for fields, own in _clusters(demands)]
        clusters = [self._around(cluster.fields, joined, filters) for cluster in joined]
        clusters += [self._around(absence.fields, joined, filters) for absence in filters]
        count = len(self.contexts)
        together = np.zeros((count, count), bool)
        if not all(self._rows(cluster).any() for cluster in clusters):
            return Possible(together.diagonal().copy(), together)
        by_cluster: dict[_Cluster, list[int]] = {}
        for place, fields in enumerate(self._asked):
            by_cluster.setdefault(self._around(fields, joined, filters), []).append(place)
        near = {cluster: tuple(places) for cluster, places in by_cluster.items()}
        # Most clusters are as they are where nothing is needed, and so is what occurs together in them.
        known, usual = self._usually(without) if needs else (frozenset(), Possible(np.zeros(count, bool), together))
        new = {cluster for cluster in near if cluster.key not in known}
        alone, fresh = usual.alone.copy(), np.zeros(count, bool)
        for cluster in new:
            fresh[list(near[cluster])] = True
            alone[list(near[cluster])] = self._holding(cluster, near[cluster]).any(axis=1)
        together = np.where(fresh[:, np.newaxis] | fresh, alone[:, np.newaxis] & alone, usual.together)
        for (first, ours), (second, theirs) in itertools.combinations_with_replacement(near.items(), 2):
            shared = first.fields & second.fields
            if shared and (first in new or second in new):
                # No rule and no demand is about fields of both that they do not share.
                those = self._showing(first, ours, shared) @ self._showing(second, theirs, shared).T > 0
                together[np.ix_(ours, theirs)], together[np.ix_(theirs, ours)] = those, those.T
        for some in without:
            if len(some) == 2:
                together[some[0], some[1]] = together[some[1], some[0]] = False
        possible = Possible(alone, together)
        if not needs:
            self._usual[frozenset(without)] = frozenset(cluster.key for cluster in near), possible
        return possible

    def _usually(self, without: Collection[tuple[int, ...]]) -> tuple[frozenset[object], Possible]:
        """The clusters where nothing is needed, and what can occur there."""
        if frozenset(without) not in self._usual:
            self.possible((), without)
        return self._usual[frozenset(without)]

    def _showing(self, cluster: _Cluster, places: tuple[int, ...], shared: Fields) -> NDArray[np.float32]:
        """(contexts, values): which of them hold with which values of some fields of a cluster that has all that is
        demanded. Worked out once: most clusters are the same for most needs."""
        key = cluster.key, places, shared
        if key not in self._shown:
            held = self._holding(cluster, places)
            codes, count = self._table(cluster.fields).codes(shared)
            codes = codes[self._rows(cluster)]
            shown = np.zeros((len(places), count), np.float32)
            for row, of_context in zip(shown, held, strict=True):
                row[codes[of_context]] = 1
            self._shown[key] = shown
        return self._shown[key]

    @cached_property
    def _shown(self) -> dict[object, NDArray[np.float32]]:
        return {}

    @cached_property
    def _usual(self) -> dict[frozenset[tuple[int, ...]], tuple[frozenset[object], Possible]]:
        return {}

    @cached_property
    def _asked(self) -> list[Fields]:
        """The fields of each context, and those that they give way to."""
        return [self._tied(context.fields) for context in self.contexts]

    def _absence(self, places: tuple[int, ...]) -> _Demand:
        contexts = [self.contexts[place] for place in places]
        fields = frozenset(name for context in contexts for name in context.fields)
        return _Demand(("without", places), fields, lambda row: not all(context.holds(row) for context in contexts))

    def _leaves_free(self, absence: _Demand, others: Iterable[_Demand]) -> bool:
        """Tell whether what is absent is some values of one field, and one is left with which no relation is ever
        broken: then nothing else need give way to it."""
        if len(absence.fields) > 1:
            return False
        (name,) = absence.fields
        own = [absence, *(other for other in others if other.fields == absence.fields)]
        kept = [v for v in self.occurring[name] if all(one.holds(SimpleNamespace(**{name: v})) for one in own)]
        return any(value in self._free(name) for value in kept)

    def _free(self, name: str) -> list[Any]:
        """The values of a field with which every relation in which it gives way holds, whatever the others are."""
        if name not in self._free_values:
            free = list(self.occurring[name])
            for relation in self._by_first.get(name, ()):
                others = {other: self.occurring[other] for other in relation.fields[1:]}
                rows = [dict(zip(others, some, strict=True)) for some in itertools.product(*others.values())]
                free = [v for v in free if all(relation.holds(SimpleNamespace(**row, **{name: v})) for row in rows)]
            self._free_values[name] = free
        return self._free_values[name]

    @cached_property
    def _free_values(self) -> dict[str, list[Any]]:
        return {}

    @cached_property
    def _regions(self) -> list[Fields]:
        """The fields that contexts ask for, in parts that no relation joins. What is absent across parts is two things
        that are known to be apart, and says nothing of others."""
        regions: list[Fields] = []
        for context in self.contexts:
            tied = self._tied(context.fields)
            regions = [r for r in regions if not r & tied] + [tied.union(*(r for r in regions if r & tied))]
        return regions

    def _tied(self, fields: Iterable[str]) -> Fields:
        """These fields, and those that they give way to."""
        tied, waiting = set[str](), list(fields)
        while waiting:
            name = waiting.pop()
            if name not in tied:
                tied.add(name)
                waiting += [other for relation in self._by_first.get(name, ()) for other in relation.fields]
        return frozenset(tied)

    @cached_property
    def _by_first(self) -> Mapping[str, list[Relation]]:
        by_first: dict[str, list[Relation]] = {}
        for relation in self.relations:
            by_first.setdefault(relation.fields[0], []).append(relation)
        return by_first

    def _around(self, fields: Fields, clusters: Iterable[_Cluster], filters: Iterable[_Demand]) -> _Cluster:
        """These fields with the demands that touch them, and what is filtered out of any of them."""
        touching = [cluster for cluster in clusters if cluster.fields & fields]
        joined = fields.union(*(cluster.fields for cluster in touching))
        demands = [demand for cluster in touching for demand in cluster.demands]
        return _Cluster(joined, (*demands, *(absence for absence in filters if absence.fields <= joined)))

    def _table(self, fields: Fields) -> _Table:
        if fields not in self._tables:
            own = [relation for relation in self.relations if fields.issuperset(relation.fields)]
            order = [name for name in self.occurring if name in fields]
            values = {name: self.occurring[name] for name in order}
            self._tables[fields] = _Table.of(values, own, self._answers)
        return self._tables[fields]

    @cached_property
    def _answers(self) -> dict[object, NDArray[np.int8]]:
        return {}

    @cached_property
    def _tables(self) -> dict[Fields, _Table]:
        return {}

    def _rows(self, cluster: _Cluster) -> Mask:
        """The rows of a cluster's table that have all that is demanded."""
        table = self._table(cluster.fields)
        rows = np.ones(table.count, bool)
        for demand in cluster.demands:
            rows &= table.holding(demand.key, demand.fields, demand.holds)
        return rows

    def _holding(self, cluster: _Cluster, places: Sequence[int]) -> Mask:
        """(contexts, rows of the cluster that have all that is demanded): which contexts hold."""
        table, rows = self._table(cluster.fields), self._rows(cluster)
        contexts = [self.contexts[place] for place in places]
        held = [table.holding(context.id, frozenset(context.fields), context.holds)[rows] for context in contexts]
        return np.array(held, bool).reshape(len(contexts), int(rows.sum()))


class _Cluster(Struct, frozen=True, eq=False, dict=True):
    """Fields that belong together, and what is demanded of them."""

    fields: Fields
    demands: tuple[_Demand, ...]

    def __eq__(self, other: object) -> bool:
        # Of one call, so the same fields have the same demands.
        return isinstance(other, _Cluster) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    @cached_property
    def key(self) -> object:
        """Stands for it in whatever call."""
        return self.fields, frozenset(demand.key for demand in self.demands)


def _clusters(demands: Iterable[_Demand]) -> Iterator[tuple[Fields, list[_Demand]]]:
    """Demands that share fields, together with all their fields."""
    clusters: list[tuple[Fields, list[_Demand]]] = []
    for demand in demands:
        touching = [cluster for cluster in clusters if cluster[0] & demand.fields]
        clusters = [cluster for cluster in clusters if not cluster[0] & demand.fields]
        fields = demand.fields.union(*(fields for fields, _ in touching))
        clusters.append((fields, [*(one for _, own in touching for one in own), demand]))
    yield from clusters


class _Table:
    """All legal combinations of the values of some fields, each by the number of its value.

    asked
        What was asked of combinations of values already, of whatever table: by what it was, and over which fields, the
        answers in the order in which fields stand, :data:`_UNASKED` where there is none so far.
    """

    def __init__(
        self,
        values: Mapping[str, Sequence[Any]],
        codes: NDArray[np.uint16],
        asked: dict[object, NDArray[np.int8]],
    ) -> None:
        self._values, self._codes, self._asked = values, codes, asked
        self._places = {name: place for place, name in enumerate(values)}
        self._answers: dict[object, Mask] = {}
        self._numbered: dict[Fields, tuple[NDArray[np.intp], int]] = {}

    @staticmethod
    def of(
        values: Mapping[str, Sequence[Any]], relations: Sequence[Relation], asked: dict[object, NDArray[np.int8]]
    ) -> _Table:
        """The table of these fields in which all relations hold; field after field, so that it never gets large."""
        table, waiting = _Table({}, np.zeros((1, 0), np.uint16), asked), list(relations)
        for name, own in values.items():
            count, size = table.count, len(own)
            own_codes = np.tile(np.arange(size, dtype=np.uint16), count)
            codes = np.hstack([np.repeat(table._codes, size, axis=0), own_codes[:, np.newaxis]])
            table = _Table({**table._values, name: own}, codes, asked)
            ready = [relation for relation in waiting if set(relation.fields) <= set(table._values)]
            for relation in ready:
                kept = table.holding(relation, frozenset(relation.fields), relation.holds)
                table = _Table(table._values, table._codes[kept], asked)
            waiting = [relation for relation in waiting if relation not in ready]
        return table

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self._codes)

    def holding(self, key: object, fields: Fields, holds: Callable[[Any], bool]) -> Mask:
        """The rows in which it holds: asked once for each combination of the fields. `key` stands for ``holds``."""
        if key not in self._answers:
            place, size = self.codes(fields)
            # One absence is asked over its own fields here and with those that they are tied to there.
            answers = self._asked.setdefault((key, fields), np.full(size, _UNASKED, np.int8))
            there = np.zeros(size, bool)
            there[place] = True
            unasked = np.flatnonzero(there & (answers == _UNASKED))
            answers[unasked] = [bool(holds(row)) for row in self._combinations(unasked, fields)]
            self._answers[key] = answers[place].astype(bool)
        return self._answers[key]

    def codes(self, fields: Fields) -> tuple[NDArray[np.intp], int]:
        """For each row the number of its combination of some fields, and how many numbers there are."""
        if fields not in self._numbered:
            size, place = 1, np.zeros(self.count, np.intp)
            for name, own in self._values.items():
                if name in fields:
                    place = place * len(own) + self._codes[:, self._places[name]]
                    size *= len(own)
            self._numbered[fields] = place, size
        return self._numbered[fields]

    def _combinations(self, codes: NDArray[np.intp], fields: Fields) -> Iterator[SimpleNamespace]:
        """The combinations of some fields that have these numbers."""
        columns: dict[str, list[Any]] = {}
        for name in reversed([*self._values]):
            if name in fields:
                own = self._values[name]
                codes, places = np.divmod(codes, len(own))
                columns[name] = [own[place] for place in places.tolist()]
        return (SimpleNamespace(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))

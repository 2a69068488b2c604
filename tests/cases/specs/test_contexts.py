"""Contexts: which can be there together, derived from rules over the fields that are asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from onnxspec.cases.axes import Context, Need
from onnxspec.cases.profiles import pool_of
from onnxspec.cases.specs import ContextSpace, Relation, context_space, counted_operators
from onnxspec.reference import operator_of


def space_of(op: str) -> ContextSpace:
    space = context_space(op)
    assert space is not None
    return space


def rows(values: Mapping[str, Sequence[Any]], fields: Sequence[str]) -> Iterator[SimpleNamespace]:
    for some in itertools.product(*(values[name] for name in fields)):
        yield SimpleNamespace(**dict(zip(fields, some, strict=True)))


@pytest.mark.parametrize("op", counted_operators())
def test_contexts_and_needs_ask_for_no_fields_but_those_that_they_name(op: str) -> None:
    space = space_of(op)
    parts = operator_of(op).parts()
    needs = {need.name: need for part in parts for need in space.needs(part.needs)}
    for asked in (*space.contexts, *needs.values()):
        for row in itertools.islice(rows(space.occurring, asked.fields), 500):
            assert asked.holds(row) in (True, False)


@pytest.mark.parametrize("op", counted_operators())
def test_what_gives_way_can_always_give_way(op: str) -> None:
    """So where nobody asks for the first field of a relation, the relation says nothing."""
    space = space_of(op)
    for relation in space.relations:
        first, *others = relation.fields
        own = space.occurring[first]
        for row in itertools.islice(rows(space.occurring, others), 2000):
            assert any(relation.holds(SimpleNamespace(**vars(row), **{first: value})) for value in own)


class Small(ContextSpace):
    """Few enough fields for every combination to be listed."""

    occurring: ClassVar[Mapping[str, Sequence[Any]]] = {"a": (0, 1, 2), "b": (0, 1, 2), "c": (0, 1), "d": (0, 1, 2)}
    relations = (
        Relation(("a", "b"), lambda row: row.a == 0 or row.b > 0),
        Relation(("b", "c"), lambda row: row.b < 2 or row.c == 1),
        Relation(("d",), lambda row: row.d != 2),
    )
    contexts = tuple(
        Context(f"{name}={value}", (name,), lambda row, name=name, value=value: getattr(row, name) == value)
        for name, values in occurring.items()
        for value in values
    )

    def needs(self, names: frozenset[str], *, half: bool = False) -> tuple[Need, ...]:
        return ()

    def halves(self, spec: Any) -> tuple[Any, ...]:
        return (spec,)

    def measurable(self, spec: Any) -> bool:
        return True


@pytest.mark.parametrize(
    "needs",
    [
        (),
        (Need("both", ("a", "d"), lambda row: row.a == row.d),),
        (Need("a", ("a",), lambda row: row.a > 0), Need("c", ("c",), lambda row: row.c == 0)),
        (Need("never", ("d",), lambda row: row.d == 2),),
    ],
)
@pytest.mark.parametrize("without", [(), ((1,),), ((1, 4),), ((0,), (6,), (3, 8))])
def test_what_is_possible_is_what_some_listed_combination_has(
    needs: tuple[Need, ...], without: tuple[tuple[int, ...], ...]
) -> None:
    space = Small()
    listed = [
        row
        for row in rows(space.occurring, tuple(space.occurring))
        if all(relation.holds(row) for relation in space.relations)
        and all(need.holds(row) for need in needs)
        and not any(all(space.contexts[place].holds(row) for place in some) for some in without)
    ]
    possible = space.possible(needs, without)
    for k, first in enumerate(space.contexts):
        assert possible.alone[k] == any(first.holds(row) for row in listed)
        for m, second in enumerate(space.contexts):
            together = any(first.holds(row) and second.holds(row) for row in listed)
            assert possible.together[k, m] == together, (first.id, second.id)


def test_what_was_asked_before_changes_no_answer() -> None:
    """b=0 can be left out by itself, but without b=1 c must give way to it: one absence over other fields."""
    need = (Need("tied", ("c", "d"), lambda row: row.c == row.d),)
    asked: tuple[tuple[tuple[Need, ...], tuple[tuple[int, ...], ...]], ...]
    asked = (((), ((3,),)), (need, ((4,), (3,))))
    for order in (asked, asked[::-1]):
        space = Small()
        for needs, without in order:
            possible, fresh = space.possible(needs, without), Small().possible(needs, without)
            assert (possible.alone == fresh.alone).all()
            assert (possible.together == fresh.together).all()


def test_a_case_without_a_sessions_axes_is_measured_as_it_is() -> None:
    """Operators share a space of contexts, though not all have each of its axes."""
    spec = pool_of("ExtendedLSTM").dense[0].spec
    assert context_space("ExtendedLSTM").measured(spec) == spec

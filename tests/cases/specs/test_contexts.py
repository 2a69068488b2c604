"""Contexts: what holds for which rows, by fewer questions than there are rows."""

from types import SimpleNamespace

import pytest

from onnxspec.cases.specs import RecurrentContexts, context_space, counted_operators
from onnxspec.cases.specs.contexts import _Table
from onnxspec.cases.specs.recurrent_contexts import _NEEDS


@pytest.mark.parametrize("op", counted_operators())
def test_what_holds_is_what_every_single_row_answers(op: str) -> None:
    space = context_space(op)
    assert space is not None
    needs = _NEEDS.values() if isinstance(space, RecurrentContexts) else ()
    for group, rows in space.groups.items():
        table, some = _Table(rows), range(0, len(rows), max(1, len(rows) // 100))
        for asked in (*space.contexts, *needs):
            if asked.group == group:
                answers = table.holding(asked.holds)
                assert answers.bit_length() <= len(rows)
                assert [bool(answers >> k & 1) for k in some] == [bool(asked.holds(rows[k])) for k in some], asked


def test_a_field_that_is_asked_for_only_where_another_has_some_value_counts() -> None:
    rows = [SimpleNamespace(a=a, b=b, c=c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    asked = []

    def holds(row: SimpleNamespace) -> bool:
        asked.append(row)
        return bool(row.a and (row.b or row.c))

    assert _Table(rows).holding(holds) == sum(1 << k for k, r in enumerate(rows) if r.a and (r.b or r.c))
    assert _Table(()).holding(holds) == 0
    many = [SimpleNamespace(a=k % 2, b=k % 3, c=0, d=k) for k in range(1000)]
    asked.clear()
    _Table(many).holding(holds)
    assert len(asked) < 20

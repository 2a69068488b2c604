"""``onnxspec clauses``: the tables for people and for programs."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from onnxspec.conformance.cli import clauses as clauses_cli
from onnxspec.reference import clauses_of, operator_names

from ..miniatures import Inside


def test_one_version_is_listed_a_clause_a_line(inside: Inside) -> None:
    done = inside("clauses", "gru-3")
    rows = [line.split("\t") for line in done.out.splitlines()]
    expected = clauses_of("GRU", 3)
    assert [row[0] for row in rows] == [clause.id for clause in expected]
    by_id = {row[0]: row[1:] for row in rows}
    assert by_id["gru.linear-before-reset"][:2] == ["stated", "3, 7, 14, 22"]
    assert by_id["gru.padding.zero"][2].startswith("Past a row's length Y is zero. [onnxruntime")
    assert by_id["gru.clip.zero"][2].endswith("[interpretation zero_clip]")
    assert (done.code, done.err.split(":")[0]) == (0, f"{len(expected)} clauses")


def test_without_an_operator_all_are_listed(inside: Inside) -> None:
    listed = {line.split("\t")[0] for line in inside("clauses").out.splitlines()}
    assert listed == {c.id for op in operator_names() for c in clauses_of(op)}


@pytest.mark.parametrize("width", [40, 80])
def test_on_a_terminal_nothing_of_a_clause_is_cut(width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    expected = clauses_of("GRU", 3)
    for part in clauses_cli._paragraphs(expected):
        console.print(part)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines if line.startswith("gru.")] == [clause.id for clause in expected]
    text = " ".join(" ".join(lines).split())
    for clause in expected:
        assert " ".join(clause.text.split()) in text
        assert clause.source in text


def test_what_does_not_exist_is_said_in_a_line(inside: Inside) -> None:
    done = inside("clauses", "GRU-2")
    assert (done.code, done.out) == (2, "")
    assert "unknown operator 'GRU-2'; nearest: GRU-22, GRU-7, GRU-3" in done.complaint

"""``onnxspec clauses``: the statements of operators' documents."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import click
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from ...reference import Clause, clauses_of, document_saying, operator_names, versions_of
from ...reference.documents.clauses import STATUSES
from ..probes.selection import UnknownName, operator_version_called
from .terminal import console_on, put, warn

_INDENT = 4
_STYLES = {"stated": "green", "implied": "green", "convention": "yellow", "undefined": "magenta", "arithmetic": "cyan"}


@click.command()
@click.argument("operator", metavar="[OP[-VERSION]]", required=False)
def clauses(operator: str | None) -> None:
    """Show the clauses of an operator (GRU), of one version of it (GRU-3), or of all.

    A clause is one statement, with its status: the document states it, it is implied by its equations, it is a
    convention of implementers, the document leaves it undefined, or it is arithmetic. Only what is stated or implied
    can fail.

    On a terminal each has its paragraph; elsewhere a line each, its columns with tabs between them.
    """
    chosen = _chosen(operator)
    selected = [c for op, version in chosen for c in clauses_of(op, version)]
    console = console_on(sys.stdout)
    if console.is_terminal:
        for part in _paragraphs(selected):
            console.print(part)
    else:
        put("".join("\t".join(map(str, _columns(clause))) + "\n" for clause in selected))
    counts = Counter(clause.status for clause in selected)
    warn(f"{len(selected)} clauses: {', '.join(f'{counts[s]} {s}' for s in STATUSES if counts[s]) or 'none'}", "dim")


def _chosen(text: str | None) -> list[tuple[str, int | None]]:
    """Return operators, each with a version or None for all. Raise UnknownName."""
    names: dict[str, tuple[str, int | None]] = {op: (op, None) for op in operator_names()}
    if text is None:
        return list(names.values())
    names |= {f"{op}-{version}": (op, version) for op in operator_names() for version in versions_of(op)}
    op, number = operator_version_called(text)
    called = f"{op}-{number}" if number else op
    found = next((name for name in names if name.upper() == called.upper()), None)
    if found is None:
        raise UnknownName("operator", text, list(names))
    return [names[found]]


def _paragraphs(shown: Sequence[Clause]) -> Iterator[RenderableType]:
    """Yield clauses as paragraphs, because five columns are too narrow on a terminal."""
    for clause in shown:
        id, status, versions, text, source = _columns(clause)
        of = "all versions" if versions == "all" else f"versions {versions}"
        yield Text.assemble((id, "bold"), "  ", (status, _STYLES[status]), (f"  {of}", "dim"))
        yield Padding(Text.assemble(text, "\n", (source, "dim")), (0, 0, 1, _INDENT))


def _columns(clause: Clause) -> tuple[str, str, str, str, str]:
    document = document_saying(clause.id)
    assert document is not None
    versions = "all" if clause.versions == versions_of(document.name) else ", ".join(map(str, clause.versions))
    beside = [f"interpretation {clause.interpretation}"] if clause.interpretation is not None else []
    beside += ["; ".join(clause.implementers)] if clause.implementers else []
    text = f"{clause.text} [{', '.join(beside)}]" if beside else clause.text
    return clause.id, clause.status, versions, text, clause.source

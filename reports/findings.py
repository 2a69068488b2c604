"""What a run found, in the words of its ``run.json``, each tied to the results it rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import fields
from .subject import Subject
from .verdicts import Word, word

NEW, KNOWN, CONVENTION, REFUSED = "new", "known", "convention", "refused"
"""The sections of the page. A refusal and a broken convention are no wrong arithmetic and stand apart."""


@dataclass(frozen=True)
class Clause:
    """One statement of an operator's document, as ``run.json`` gives it; ``status`` is empty where it gives none."""

    id: str
    status: str
    text: str
    source: str


@dataclass(frozen=True)
class Finding:
    """``rows`` are the results of the subject's run that it rests on; ``count`` is how many cases it names, of which
    some may have no result; ``smallest`` is the id of the simplest case."""

    number: int
    subject: Subject
    section: str
    title: str
    kind: str
    verdict: str
    clauses: tuple[Clause, ...]
    types: tuple[str, ...]
    versions: tuple[str, ...]
    rows: tuple[int, ...]
    count: int
    smallest: str
    where: str
    message: str
    why: str
    repeat: str

    @property
    def word(self) -> Word:
        return word(self.verdict or self.kind)

    @property
    def anchor(self) -> str:
        return f"finding-{self.number}"


def findings_of(subjects: Sequence[Subject]) -> list[Finding]:
    """Return the findings of every subject, numbered from 1 in the order of the page.

    A failing result that no finding names is in one all the same, so that no failure hides in the table.
    """
    found: list[dict[str, Any]] = []
    for subject in subjects:
        found += _findings(subject)
    found.sort(key=lambda finding: (NEW, KNOWN, CONVENTION, REFUSED).index(finding["section"]))
    return [Finding(number=number, **finding) for number, finding in enumerate(found, 1)]


def _findings(subject: Subject) -> list[dict[str, Any]]:
    results = subject.run.results
    entries = fields.items(subject.info.get("findings"))
    named = [
        dict.fromkeys(fields.texts(entry.get("cases"), 1_000_000) or fields.texts(entry.get("smallest")))
        for entry in entries
    ]
    wanted = set().union(*named)
    row_of = {
        case: row for row, case in enumerate(results.case) if case in wanted and results.kind_of[row] in subject.kinds
    }
    found = []
    covered: set[int] = set()
    for entry, cases in zip(entries, named, strict=True):
        rows = tuple(sorted(row_of[case] for case in cases if case in row_of))
        covered.update(rows)
        found.append(_finding(subject, entry, rows, len(cases), row_of))
    return found + _unnamed(subject, covered)


def _finding(
    subject: Subject, entry: Mapping[str, Any], rows: tuple[int, ...], count: int, row_of: Mapping[str, int]
) -> dict[str, Any]:
    results = subject.run.results
    kinds = [results.kinds[results.kind_of[row]] for row in rows]
    kind, verdict = fields.text(entry.get("kind"), limit=60), fields.text(entry.get("verdict"), limit=60)
    smallest = fields.text(entry.get("smallest"), limit=300) or (results.case[rows[0]] if rows else "")
    row = row_of.get(smallest)
    note = results.notes.get(row) if row is not None else None
    known = fields.mapping(subject.run.info.get("clauses"))
    return {
        "subject": subject,
        "section": _section(kind, entry.get("expected") is True),
        "title": fields.text(entry.get("title"), limit=400) or f"Finding without a title: {kind or verdict}",
        "kind": kind,
        "verdict": verdict,
        "clauses": tuple(_clause(name, known) for name in fields.texts(entry.get("clauses"), 40)),
        "types": fields.texts(entry.get("types")) or tuple(sorted({kind.type for kind in kinds})),
        "versions": _versions(entry.get("versions")) or tuple(sorted({kind.operator for kind in kinds})),
        "rows": rows,
        "count": count,
        "smallest": smallest,
        "where": note.where if note else "",
        "message": fields.text(entry.get("message")) or (note.message if note else ""),
        "why": fields.text(entry.get("why")),
        "repeat": results.repeat(row) if row is not None else "",
    }


def _unnamed(subject: Subject, covered: set[int]) -> list[dict[str, Any]]:
    results = subject.run.results
    failing = {number for number in subject.kinds if word(results.kinds[number].verdict).failing}
    left: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    if failing:
        for row, number in enumerate(results.kind_of):
            if number in failing and row not in covered:
                left[results.kinds[number].verdict, results.kinds[number].expected].append(row)
    return [
        _finding(
            subject,
            {"title": f"Results that are {verdict} and that no finding names", "kind": verdict, "verdict": verdict}
            | {"expected": expected},
            tuple(rows),
            len(rows),
            {results.case[rows[0]]: rows[0]},
        )
        for (verdict, expected), rows in left.items()
    ]


def _section(kind: str, expected: bool) -> str:
    if kind in ("convention", "refused"):
        return kind
    return KNOWN if expected else NEW


def _versions(value: object) -> tuple[str, ...]:
    return fields.texts(value) if not isinstance(value, int) else (str(value),)


def _clause(name: str, known: Mapping[str, Any]) -> Clause:
    entry = fields.mapping(known.get(name))
    return Clause(
        name,
        fields.text(entry.get("status"), limit=40),
        fields.text(entry.get("text")),
        fields.text(entry.get("source"), limit=300),
    )

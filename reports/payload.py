"""The results as the browser's table reads them: columns of JSON, small enough for a hundred thousand rows.

Ids are written as what they add to the id before them: one character for how many they share (see `SHARED`), then the
rest. Rows that say something are listed by their distance from the one before. ``page.js`` is the other end of this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from ..conformance.judging.vocabulary import VERDICTS, rank, word
from .findings import Finding
from .legible import LONGEST_TEXT, shortened
from .presentation import presentation_of
from .results import Kind, Results, default_repeat
from .run import Run
from .subject import Subject

SHARED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""The character at place k says that k characters are shared; none of them costs more than a byte in JSON or HTML."""

NOTE_BUDGET = 2_500_000
"""Characters of messages in one page; beyond that each is cut, and stands whole in results.jsonl."""


def payload(runs: Sequence[Run], subjects: Sequence[Subject], findings: Sequence[Finding]) -> str:
    """Return the JSON text for the page's table; it is safe inside a ``script`` element."""
    number_of = {(id(subject.run), subject.name): subject.number for subject in subjects}
    verdicts = {kind.verdict for run in runs for kind in run.results.kinds} | set(VERDICTS)
    clauses = {
        name: [entry["status"], shortened(entry["text"], 1000)]
        for run in runs
        for name, entry in run.info["clauses"].items()
    }
    parts = {
        "subjects": _json([subject.label for subject in subjects]),
        "verdicts": _json(
            {name: [*presentation_of(name), int(word(name).failing), rank(name)] for name in sorted(verdicts)}
        ),
        "clauses": _json(clauses),
        "findings": _json([[finding.number, finding.title] for finding in findings]),
        "runs": "[" + ",".join(_run(run, number_of, findings) for run in runs) + "]",
    }
    return _safe(_object(parts))


def _run(run: Run, number_of: dict[tuple[int, str], int], findings: Sequence[Finding]) -> str:
    results = run.results
    clauses = _places(name for labels in results.abouts for name in labels.clauses)
    groups = _places(name for labels in results.abouts for name in labels.groups)
    rows = list(results.notes)
    cut = NOTE_BUDGET // max(1, len(rows))
    if sum(len(note.message) for note in results.notes.values()) <= NOTE_BUDGET:
        cut = LONGEST_TEXT + 8
    messages = [m if len(m) <= cut else m[:cut] + " ..." for m in (note.message for note in results.notes.values())]
    parts = {
        "name": _json(run.name),
        "case": _json(_packed(results.case)),
        "kind": _integers(results.kind_of),
        "kinds": _json([_kind(kind, number_of[id(run), kind.target]) for kind in results.kinds]),
        "about": _integers(results.about_of),
        "abouts": _json([[[clauses[c] for c in a.clauses], [groups[g] for g in a.groups]] for a in results.abouts]),
        "clauseNames": _json(list(clauses)),
        "groupNames": _json(list(groups)),
        "worst": _reals(results.worst),
        "ms": _reals([value * 1000 for value in results.seconds]),
        "noteRows": _integers(_steps(rows)),
        "messages": _json(messages),
        "places": _json([note.where for note in results.notes.values()]),
        "repeat": "[]" if _usual(results) else _integers(results.repeat_of),
        "repeats": "[]" if _usual(results) else _json(results.repeats),
        "found": _json([[f.number, _steps(rows)] for f in findings if (rows := _rows(f, run))]),
    }
    return _object(parts)


def _rows(finding: Finding, run: Run) -> list[int]:
    return sorted({row for member in finding.members if member.subject.run is run for row in member.rows})


def _kind(kind: Kind, subject: int) -> list[object]:
    usual = default_repeat(kind)
    words = [kind.reason, *kind.flags, *kind.diagnosis]
    return [kind.operator, kind.type, subject, kind.verdict, int(kind.expected), [s for s in words if s], usual]


def _usual(results: Results) -> bool:
    """Tell whether every command is the one that the page can write by itself."""
    if len(results.repeats) > len(results.kinds):
        return False
    usual = {default_repeat(kind) for kind in results.kinds}
    return len(usual) == 1 and usual.issuperset(filter(None, results.repeats))


def _packed(names: Sequence[str]) -> str:
    lines: list[str] = []
    before, shared = "", 0
    for name in names:
        # Most ids share with their neighbour what the last two shared; else the length is found by halving.
        if name[:shared] != before[:shared] or name[shared : shared + 1] == before[shared : shared + 1]:
            low, high = 0, min(len(name), len(before), len(SHARED) - 1)
            while low < high:
                middle = (low + high + 1) // 2
                if name[:middle] == before[:middle]:
                    low = middle
                else:
                    high = middle - 1
            shared = low
        lines.append(SHARED[shared] + name[shared:])
        before = name
    text = "\n".join(lines)
    if text.count("\n") >= len(lines) > 0:  # an id with a line break in it, which no conforming run has
        return _packed([name.replace("\n", " ") for name in names])
    return text


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(names))}


def _steps(rows: Sequence[int]) -> list[int]:
    return [row - before for before, row in zip([0, *rows], rows, strict=False)]


def _integers(column: Sequence[int]) -> str:
    return "[" + ",".join(map(str, column)) + "]"


def _reals(column: Sequence[float]) -> str:
    """Three digits each: what a reader compares, and a third of the bytes."""
    return "[" + (("%.3g," * len(column)) % tuple(column))[:-1] + "]"


def _object(parts: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _safe(text: str) -> str:
    """Return JSON with what could end a script element, or open a comment in one, as escapes of the same strings."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

"""Rows of the results table as JSON, which the page's script filters and sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..conformance.judging.vocabulary import VERDICTS, rank, word
from ..conformance.results.result import Result
from .findings import Finding
from .matrix import tone_of
from .run import Run
from .subject import Subject, command_of, groups_of, place_of, version_of
from .text import shortened

LONGEST_MESSAGE = 500
"""Maximum characters of a message in the table; results.jsonl has the full text."""


def table_json(runs: Sequence[Run], subjects: Sequence[Subject], findings: Sequence[Finding]) -> str:
    """Return the JSON text for the page's table, safe inside a ``script`` element.

    A row is an array, in the order that page.js reads. Rows refer by number to the values that they share: lists of
    feature groups and of clauses, messages, and commands with ``{}`` for the case.
    """
    shared: dict[str | tuple[str, ...], int] = {}
    rows = []
    for subject in subjects:
        numbers: dict[str, list[int]] = {}
        for finding in findings:
            for member in finding.members:
                if member.subject is subject:
                    for result in member.results:
                        numbers.setdefault(result.case, []).append(finding.number)
        for result in subject.results:
            values = (
                groups_of(result),
                result.clauses,
                command_of(result).replace(result.case, "{}"),
                shortened(result.message, LONGEST_MESSAGE),
            )
            places = [shared.setdefault(value, len(shared)) for value in values]
            rows.append(_row(result, subject.number, places, numbers.get(result.case, [])))
    verdicts = {result.verdict.value for run in runs for result in run.results} | set(VERDICTS)
    content = {
        "targets": [shortened(subject.label, 200) for subject in subjects],
        "verdicts": {v: [tone_of(v), word(v).failing, rank(v)] for v in sorted(verdicts)},
        "clauses": {
            shortened(name): [shortened(clause["status"]), shortened(clause["text"], 1000)]
            for run in runs
            for name, clause in run.info["clauses"].items()
        },
        "findings": [[finding.number, shortened(finding.title, 400)] for finding in findings],
        "shared": [shortened(v) if isinstance(v, str) else [shortened(text) for text in v] for v in shared],
        "rows": rows,
    }
    text = msgspec.json.encode(content).decode()
    # Escape all that could end a script element, or open a comment in it; the strings stay equal.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _row(result: Result, target: int, shared: list[int], findings: list[int]) -> list[Any]:
    return [
        shortened(result.case),
        target,
        shortened(version_of(result), 200),
        shortened(result.type, 200),
        result.verdict.value,
        result.expected,
        *shared,
        float(f"{result.seconds * 1000:.3g}"),
        None if result.worst is None else float(f"{result.worst:.3g}"),
        shortened(place_of(result), 400),
        [shortened(text, 200) for text in (result.reason, *result.flags[:20], *result.diagnosis[:20]) if text],
        findings,
    ]

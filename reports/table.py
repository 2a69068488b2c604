"""Rows of the results table as JSON, which the page's script filters and sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..conformance.judging.vocabulary import VERDICTS, rank, word
from ..conformance.results.result import Result
from .findings import Finding
from .presentation import FEATURES, presentation_of
from .run import Run
from .subject import Subject, command_of, groups_of, place_of, version_of
from .text import LONGEST_TEXT, shortened

LONGEST_MESSAGES = 2_500_000
"""Maximum characters of all messages in one page. Beyond it each message is cut; results.jsonl has the full text."""


def table_json(runs: Sequence[Run], subjects: Sequence[Subject], findings: Sequence[Finding]) -> str:
    """Return the JSON text for the page's table, safe inside a ``script`` element.

    A row is an array in the order of ``_row``, without the empty values at its end. Rows refer by number to shared
    values: labels (feature groups, clauses, as numbers of names) and texts (messages, and commands with ``{}`` for the
    case).
    """
    lengths = [len(result.message) for run in runs for result in run.results if result.message]
    longest = LONGEST_TEXT if sum(lengths) <= LONGEST_MESSAGES else LONGEST_MESSAGES // len(lengths)
    labels: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    names: dict[str, int] = {}
    texts = {"": 0}
    rows = []
    for subject in subjects:
        numbers: dict[str, list[int]] = {}
        for finding in findings:
            for member in finding.members:
                if member.subject is subject:
                    for result in member.results:
                        numbers.setdefault(result.case, []).append(finding.number)
        for result in subject.results:
            label = labels.setdefault((tuple(groups_of(result)), result.clauses), len(labels))
            message = texts.setdefault(shortened(result.message, longest), len(texts))
            command = texts.setdefault(shortened(command_of(result).replace(result.case, "{}")), len(texts))
            rows.append(_row(result, subject.number, label, message, command, numbers.get(result.case, [])))
    verdicts = {result.verdict.value for run in runs for result in run.results} | set(VERDICTS)
    content = {
        "targets": [shortened(subject.label, 200) for subject in subjects],
        "verdicts": {v: [*presentation_of(v), word(v).failing, rank(v)] for v in sorted(verdicts)},
        "words": FEATURES,
        "clauses": {
            shortened(name): [shortened(clause["status"]), shortened(clause["text"], 1000)]
            for run in runs
            for name, clause in run.info["clauses"].items()
        },
        "findings": [[finding.number, shortened(finding.title, 400)] for finding in findings],
        "texts": list(texts),
        "labels": [[[names.setdefault(shortened(t), len(names)) for t in texts] for texts in pair] for pair in labels],
        "names": list(names),
        "rows": rows,
    }
    text = msgspec.json.encode(content).decode()
    # Escape all that could end a script element, or open a comment in it; the strings stay equal.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _row(result: Result, target: int, label: int, message: int, command: int, findings: list[int]) -> list[Any]:
    remarks = [
        shortened(text, 200) for text in (result.reason or "", *result.flags[:20], *result.diagnosis[:20]) if text
    ]
    row = [
        shortened(result.case),
        target,
        shortened(version_of(result), 200),
        shortened(result.type, 200),
        result.verdict.value,
        label,
        command,
        float(f"{result.seconds * 1000:.3g}"),
        -1 if result.worst is None else float(f"{result.worst:.3g}"),
        int(result.expected),
        message,
        shortened(place_of(result), 400),
        [shortened(text, 200) for text in remarks] or "",
        findings or "",
    ]
    while row[-1] in ("", 0, -1):
        row.pop()
    return row

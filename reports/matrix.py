"""Matrix of operator version, feature group and target; tones of outcomes, which all pages use.

A tone is a colour and a mark (page.css): colour is never the only mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from ..conformance.judging.judgement import DECLINED, FAILING
from ..conformance.judging.vocabulary import DECLINES, FAILS, RIGHT, UNKNOWN
from ..reference import UnknownOperator, document_of
from .subject import Subject, Tally

STATE_TONES = {FAILS: "fail", RIGHT: "pass", DECLINES: "unsupported", UNKNOWN: "none"}


def tone_of(verdict: str) -> str:
    """Return the tone of a verdict."""
    if verdict in FAILING:
        return "fail"
    if verdict in DECLINED:
        return "unsupported"
    return "pass" if verdict == "pass" else "quiet"


ALL = "all cases"


class Cell(NamedTuple):
    """One cell with results: tone, a short text, and a sentence."""

    tone: str
    label: str
    detail: str
    sentence: str
    failed: int


Line = tuple[Subject, tuple[Cell | None, ...]]
"""A target, and its cells in the order of versions."""


class Table(Struct, frozen=True):
    """The matrix of one operator.

    ``rows`` are pairs (feature group, lines). Targets are lines because there may be many of them; versions are
    columns. ``page`` is the address of the specification. Versions and feature groups where every target refuses every
    case have no column or row, and are ``refused``.
    """

    operator: str
    versions: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Line, ...]], ...]
    page: str = ""
    refused: tuple[str, ...] = ()


def matrix(subjects: Sequence[Subject]) -> list[Table]:
    """Return one table per operator, sorted by name. A case counts in the row of every feature that it uses."""
    subjects = [subject for subject in subjects if not subject.info["unavailable"]]
    operators = {name.rpartition("-")[0] for subject in subjects for name in subject.by_version}
    return [_table(name, subjects) for name in sorted(operators)]


def _table(operator: str, subjects: Sequence[Subject]) -> Table:
    tallies = {
        (group or ALL, version, subject.number): tally
        for subject in subjects
        for (group, version), tally in subject.features.items()
        if version.rpartition("-")[0] == operator
    }
    tried = {version for s in subjects for version in s.by_version if version.rpartition("-")[0] == operator}
    versions = tuple(sorted({version for _, version, _ in tallies}, key=_number))
    groups = {group for group, _, _ in tallies}
    accepted = {group for (group, _, _), tally in tallies.items() if tally.declined < tally.total}
    rows = []
    for group in (ALL, *sorted(accepted - {ALL}, key=str.casefold)) if versions else ():
        lines = []
        for subject in subjects:
            cells = (_cell(v, group, subject, tallies.get((group, v, subject.number))) for v in versions)
            lines.append((subject, tuple(cells)))
        rows.append((group, tuple(lines)))
    refused = (*sorted(tried - {*versions}, key=_number), *sorted(groups - accepted, key=str.casefold))
    return Table(operator, versions, tuple(rows), _page_of(operator), refused)


def _number(version: str) -> int:
    return int(version.rpartition("-")[2])


def _page_of(operator: str) -> str:
    """Return the address of an operator's document; empty where there is none, or the operator is unknown."""
    domain, _, name = operator.rpartition("::")
    try:
        return document_of(name, domain).page
    except UnknownOperator:
        return ""


def _cell(operator: str, feature: str, subject: Subject, tally: Tally | None) -> Cell | None:
    if tally is None or not tally.total:
        return None
    verdict, detail = tally.split[0][0], f"of {tally.total:,}"
    tone = tone_of(verdict)
    if tally.new:
        label = f"{tally.new:,} {verdict if tally.split[0][2] == tally.new else 'failing'}"
        detail += f", {tally.known:,} known" if tally.known else ""
    elif tally.known:
        tone, label = "known", f"{tally.known:,} known"
    elif tally.passed:
        others = [(name, n) for name, _, n in tally.split if name != "pass"]
        others += [("unconventional", tally.unconventional), ("lose NaN", tally.special)]
        detail, label = ", ".join(f"{n:,} {name}" for name, n in others if n), f"{tally.passed:,} pass"
        tone = "part" if detail else "pass"
    else:
        label, detail = verdict if len(tally.split) == 1 else "none judged", f"{tally.total:,}"
    every = ", ".join(f"{n:,} {name}" for name, n in tally.verdicts.items())
    known = f" ({tally.known:,} of the failures are known)" if tally.known else ""
    sentence = f"{operator}, {feature}, {subject.label}: {every}{known}"
    return Cell(tone, label, detail, sentence, tally.failed)

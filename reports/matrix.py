"""Operator version x feature group x target: which parts of an operator hold on which target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from ..conformance.judging.vocabulary import rank
from ..reference import UnknownOperator, document_of
from .presentation import presentation_of
from .subject import Subject
from .tally import Tally

ALL = "all cases"


@dataclass(frozen=True)
class Cell:
    """One cell: what it says (``label``, ``detail``) and how it is drawn; ``tally`` is None where nothing was run."""

    operator: str
    feature: str
    subject: Subject
    tally: Tally | None
    icon: str = "dots"
    tone: str = "none"
    label: str = "no case"
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The cell on its own, for a screen reader and a tooltip."""
        counts = ", ".join(f"{n:,} {verdict}" for verdict, n in self.tally.by_rank) if self.tally else "no case"
        known = f" ({self.tally.known:,} of the failures are known)" if self.tally and self.tally.known else ""
        return f"{self.operator}, {self.feature}, {self.subject.label}: {counts}{known}"


Line = tuple[Subject, tuple[Cell, ...]]
"""A target, and its cells in the order of versions."""


class Table(Struct, frozen=True):
    """The matrix of one operator.

    ``rows`` are (feature group, lines): versions are few, targets may be many, so these stand below one another.
    ``page`` is the address of the specification. ``refused`` are versions and feature groups of which every target
    refuses every case; they have no column or row.
    """

    operator: str
    versions: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Line, ...]], ...]
    page: str = ""
    refused: tuple[str, ...] = ()


def matrix(subjects: Sequence[Subject]) -> list[Table]:
    """Return one table per operator, in order of name; a case stands in the row of every feature that it uses."""
    subjects = [subject for subject in subjects if not subject.info["unavailable"]]
    tallies: dict[tuple[str, str, int], Tally] = {}
    versions: dict[str, set[tuple[int, str]]] = {}
    features: defaultdict[str, set[str]] = defaultdict(set)
    refused: defaultdict[str, set[str]] = defaultdict(set)
    for subject in subjects:
        for version in subject.by_version:
            versions.setdefault(version.rpartition("-")[0], set())
        tallies |= {(group or ALL, version, subject.number): t for (group, version), t in subject.features.items()}
    for group, version, _ in tallies:
        operator, _, number = version.rpartition("-")
        versions[operator].add((int(number), version))
        some = [tallies.get((group, version, subject.number)) for subject in subjects]
        if all(tally is None or tally.declined == tally.total for tally in some):
            refused[operator].add(group)
        else:
            features[operator].add(group)
    tables = []
    for operator in sorted(versions):
        names = tuple(name for _, name in sorted(versions[operator]))
        rows = []
        for group in (ALL, *sorted(features[operator] - {ALL}, key=str.casefold)) if names else ():
            lines = []
            for subject in subjects:
                own = [(name, tallies.get((group, name, subject.number))) for name in names]
                lines.append((subject, tuple(_cell(name, group, subject, tally) for name, tally in own)))
            rows.append((group, tuple(lines)))
        tried = {version for subject in subjects for version in subject.by_version}
        missing = sorted({v for v in tried if v.rpartition("-")[0] == operator} - {*names}, key=_number)
        nowhere = sorted(refused[operator] - features[operator], key=str.casefold)
        tables.append(Table(operator, names, tuple(rows), _page_of(operator), (*missing, *nowhere)))
    return tables


def _number(version: str) -> int:
    return int(version.rpartition("-")[2])


def _page_of(operator: str) -> str:
    """The address of an operator's document; empty where there is none, or nobody here knows the operator."""
    domain, _, name = operator.rpartition("::")
    try:
        return document_of(name, domain).page
    except UnknownOperator:
        return ""


def _cell(operator: str, feature: str, subject: Subject, tally: Tally | None) -> Cell:
    if tally is None or not tally.total:
        return Cell(operator, feature, subject, None)

    def cell(verdict: str, label: str, detail: str, tone: str = "") -> Cell:
        icon, usual = presentation_of(verdict)
        return Cell(operator, feature, subject, tally, icon, tone or usual, label, detail)

    of = f"of {tally.total:,}"
    if tally.new:
        worst = min(tally.new_verdicts, key=rank)
        name = worst if len(tally.new_verdicts) == 1 else "failing"
        return cell(worst, f"{tally.new:,} {name}", f"{of}, {tally.known:,} known" if tally.known else of)
    if tally.known:
        return cell(min(tally.known_verdicts, key=rank), f"{tally.known:,} known", of, "known")
    if not tally.passed:
        name = tally.by_rank[0][0]
        return cell(name, name if len(tally.by_rank) == 1 else "none judged", f"{tally.total:,}")
    aside = [
        f"{n:,} {name}"
        for name, n in (
            *(pair for pair in tally.by_rank if pair[0] != "pass"),
            ("unconventional", tally.unconventional),
            ("lose NaN, or overflow", tally.special),
        )
        if n
    ]
    return cell("pass", f"{tally.passed:,} pass", ", ".join(aside), "part" if aside else "pass")

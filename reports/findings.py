"""Findings of a run, in the words of its ``run.json``, each tied to the results it rests on."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msgspec import Struct

from ..conformance.judging.judgement import DECLINED, Verdict
from ..conformance.judging.vocabulary import NO_FAILURE, Word, word
from ..conformance.results.hits import in_words
from ..conformance.results.records import ClauseRecord, EvidenceRecord
from ..conformance.results.records import Finding as Record
from ..conformance.results.support import ShortFinding, short_finding
from .evidence import Exhibit, read_exhibit
from .results import Kind
from .subject import Subject

NEW, KNOWN, VALIDATION, ASIDE, REFUSED = "new", "known", "validation", "aside", "unsupported"
"""The sections of the page. An invalid model that ran, what fails no case, and a refusal are no wrong results and stand
apart."""


@dataclass(frozen=True)
class Clause:
    """One statement of an operator's document, as ``run.json`` gives it; ``status`` is empty where it gives none."""

    id: str
    status: str
    text: str
    source: str


class Member(Struct, frozen=True, dict=True):
    """A finding as one target shows it.

    ``rows`` are the results of the subject's run that it rests on; ``count`` is how many cases it names, of which
    some may have no result; ``smallest`` is the id of the simplest case. ``exhibit`` and ``larger`` are the evidence
    of that case, and of one that shows more of the pattern. ``diagnoses`` are (ids of the faults that explain a
    result together, how many results), the commonest first; ``short`` is what the first lines tell; ``searched`` is
    whether all known faults were tried on what has none.
    """

    subject: Subject
    types: tuple[str, ...]
    operators: tuple[str, ...]
    versions: tuple[str, ...]
    rows: tuple[int, ...]
    cases: tuple[str, ...]
    smallest: str
    where: str
    message: str
    why: str
    repeat: str
    diagnoses: tuple[tuple[tuple[str, ...], int], ...]
    short: ShortFinding
    searched: bool = True

    @property
    def count(self) -> int:
        return len(self.cases)

    @cached_property
    def exhibit(self) -> Exhibit | None:
        return self._read(self.smallest)

    @cached_property
    def larger(self) -> Exhibit | None:
        other = self._evidence["larger"].get(self.smallest)
        return self._read(other) if other else None

    @property
    def missing(self) -> str:
        """The reason for which there is no evidence, where the run says so."""
        return self._evidence["missing"].get(self.smallest, "")

    def alone(self, fault: str) -> int:
        """The number of its results that a fault explains by itself."""
        return sum(count for ids, count in self.diagnoses if ids == (fault,))

    def beside(self, fault: str) -> list[tuple[str, int]]:
        """The other faults that its results show too, and how many do."""
        others: Counter[str] = Counter()
        for ids, count in self.diagnoses:
            others.update({id: count for id in ids if id != fault})
        return others.most_common()

    @property
    def unexplained(self) -> int:
        """The number of its results that nothing explains, though there is something to explain."""
        return sum(count for ids, count in self.diagnoses if not ids)

    @property
    def _evidence(self) -> EvidenceRecord:
        return self.subject.info["evidence"]

    def _read(self, case: str) -> Exhibit | None:
        return read_exhibit(self.subject.run.path, self._evidence["folders"].get(case, ""))


@dataclass(frozen=True)
class Finding:
    """A finding, said once of all targets that show it; their ``members`` are in the order of the page. ``fault`` is
    the id of the fault that it is, ``conditions`` under which it shows; both may be empty. ``when`` says what the
    conditions are worth: whether they were tried, by experiments on the target, or only seen, and whether anything
    passes that meets them; ``known`` whether a list of known failures names it."""

    number: int
    section: str
    title: str
    kind: str
    verdict: str
    clauses: tuple[Clause, ...]
    fault: str
    conditions: str
    when: str
    members: tuple[Member, ...]
    known: bool = False

    @property
    def word(self) -> Word:
        return word(self.verdict or self.kind)

    @property
    def anchor(self) -> str:
        return f"finding-{self.number}"

    @property
    def page(self) -> str:
        """The path of its own page from the report's folder on."""
        words = re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")[:60].strip("-")
        return f"findings/{self.number:02d}-{words or 'finding'}.html"

    @property
    def statements(self) -> list[tuple[tuple[Clause, ...], Clause]]:
        """The clauses by what they say, in order: (those that say the same of several operators, the first)."""
        by_text: dict[tuple[str, str], list[Clause]] = {}
        for clause in self.clauses:
            by_text.setdefault((clause.text or clause.id, clause.status), []).append(clause)
        return [(tuple(clauses), clauses[0]) for clauses in by_text.values()]

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for member in self.members for name in member.types))

    @property
    def versions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for member in self.members for name in member.versions))

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return tuple(member.subject for member in self.members)


def findings_of(subjects: Sequence[Subject]) -> list[Finding]:
    """Return the findings of every subject, numbered from 1 in the order of the page; what is the same finding on
    several targets is one.

    A failing result that no finding names is in one all the same, so that no failure hides in the table.
    """
    grouped: dict[tuple[Any, ...], list[Member]] = {}
    for subject in subjects:
        seen: Counter[tuple[Any, ...]] = Counter()
        for key, member in _findings(subject):
            # Two findings of one target that are called alike stay two.
            seen[key] += 1
            grouped.setdefault((*key, seen[key]), []).append(member)
    order = sorted(grouped, key=lambda key: (NEW, KNOWN, VALIDATION, ASIDE, REFUSED).index(key[0]))
    numbered = []
    for number, key in enumerate(order, 1):
        section, title, kind, verdict, clauses, fault, conditions, when, known, _ = key
        members = tuple(grouped[key])
        numbered.append(
            Finding(number, section, title, kind, verdict, clauses, fault, conditions, when, members, known)
        )
    return numbered


def _findings(subject: Subject) -> list[tuple[tuple[Any, ...], Member]]:
    results = subject.run.results
    entries = subject.info["findings"]
    named = [dict.fromkeys(filter(None, entry["cases"] or [entry["smallest"]])) for entry in entries]
    wanted = set().union(*named)
    row_of = {
        case: row for row, case in enumerate(results.case) if case in wanted and results.kind_of[row] in subject.kinds
    }
    findings = []
    covered: set[int] = set()
    for entry, cases in zip(entries, named, strict=True):
        rows = tuple(sorted(row_of[case] for case in cases if case in row_of))
        covered.update(rows)
        findings.append(_finding(subject, entry, rows, tuple(cases), row_of))
    return findings + _unnamed(subject, covered)


def _finding(
    subject: Subject, entry: Record, rows: tuple[int, ...], cases: tuple[str, ...], row_of: Mapping[str, int]
) -> tuple[tuple[Any, ...], Member]:
    """(what a finding is, as a key; the target's part in it)."""
    results = subject.run.results
    kinds = [results.kinds[results.kind_of[row]] for row in rows]
    kind, verdict = entry["kind"], entry["verdict"]
    smallest = entry["smallest"] or (results.case[rows[0]] if rows else "")
    row = row_of.get(smallest)
    note = results.notes.get(row) if row is not None else None
    known = subject.run.info["clauses"]
    reason = results.kinds[results.kind_of[row]].reason if row is not None else ""
    title = entry["title"] or f"Finding without a title: {kind or verdict}"
    clauses = tuple(_clause(name, known) for name in entry["clauses"])
    expected = entry["expected"]
    section = _section(kind, expected)
    only = "Fails only with" if entry["tried"] else "All that fail have"
    when = "Fails with, not always" if entry.get("passing") else only
    key = (
        section,
        in_words(title, verdict, reason),
        kind,
        verdict,
        clauses,
        entry["fault"],
        entry["conditions"],
        when,
        expected and section in (KNOWN, VALIDATION),
    )
    types = tuple(entry["types"]) or tuple(sorted({kind.type for kind in kinds}))
    operators = tuple(dict.fromkeys(kind.op for kind in kinds)) or tuple(entry["operators"])
    short = short_finding(entry, reason)
    return key, Member(
        subject,
        types,
        operators,
        _operators(kinds) or tuple(map(str, entry["versions"])),
        rows,
        cases,
        smallest,
        note.where if note else "",
        entry["message"] or (note.message if note else ""),
        entry["why"],
        results.repeat(row) if row is not None else entry["repeat"],
        tuple(Counter(kind.diagnosis for kind in kinds if _asks_for_a_fault(kind)).most_common()),
        short._replace(operators=operators, types=types, cases=cases, smallest=smallest),
        entry.get("searched", True),
    )


def _asks_for_a_fault(kind: Kind) -> bool:
    """Tell whether a result has numbers for a fault to explain. Of what is inaccurate the wider class tells, and no
    fault is looked for."""
    return word(kind.verdict).told and (kind.verdict != Verdict.INACCURATE.value or bool(kind.diagnosis))


def _unnamed(subject: Subject, covered: set[int]) -> list[tuple[tuple[Any, ...], Member]]:
    results = subject.run.results
    failing = {number for number in subject.kinds if word(results.kinds[number].verdict).failing}
    left: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    if failing:
        for row, number in enumerate(results.kind_of):
            if number in failing and row not in covered:
                left[results.kinds[number].verdict, results.kinds[number].expected].append(row)
    findings = []
    for (verdict, expected), rows in left.items():
        cases = tuple(results.case[row] for row in rows)
        findings.append(_finding(subject, _nameless(verdict, expected), tuple(rows), cases, {cases[0]: rows[0]}))
    return findings


def _nameless(verdict: str, expected: bool) -> Record:
    """A finding of which nothing is known but the verdict."""
    return {
        "title": f"Results that are {verdict} and that no finding names",
        "what": "",
        "kind": verdict,
        "clauses": [],
        "statuses": [],
        "verdict": verdict,
        "fault": "",
        "foretold": 0,
        "conditions": "",
        "tried": False,
        "tries": 0,
        "needs": [],
        "types": [],
        "versions": [],
        "operators": [],
        "cases": [],
        "smallest": "",
        "expected": expected,
        "new": 0,
        "why": "",
        "message": "",
        "repeat": "",
    }


def _section(kind: str, expected: bool) -> str:
    if kind in DECLINED or kind in NO_FAILURE:
        return REFUSED if kind in DECLINED else ASIDE
    if kind == Verdict.NOT_REJECTED.value:
        return VALIDATION
    return KNOWN if expected else NEW


def _operators(kinds: Sequence[Kind]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind.operator for kind in sorted(kinds, key=lambda k: (k.domain, k.op, k.version or 0))))


def _clause(name: str, known: Mapping[str, ClauseRecord]) -> Clause:
    entry = known.get(name)
    return Clause(name, "", "", "") if entry is None else Clause(name, **entry)

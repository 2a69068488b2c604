"""Findings of runs, with the texts of their ``run.json`` and with their results.

Refusals with the same message are one line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from msgspec import Struct

from ..conformance.judging.judgement import DECLINED, Verdict
from ..conformance.judging.vocabulary import NO_FAILURE, Word, word
from ..conformance.results.records import ClauseRecord, EvidenceRecord
from ..conformance.results.records import Finding as Record
from ..conformance.results.result import Result
from ..conformance.results.summary import in_words
from ..conformance.results.support import by_message
from .evidence import Exhibit, read_exhibit
from .run import empty
from .subject import Subject, command_of, place_of, version_of
from .text import slug

NEW, KNOWN, VALIDATION, ASIDE, REFUSED = "new", "known", "validation", "aside", "unsupported"
"""The sections of the page.

Accepted invalid models, observations that fail no case, and refusals are not wrong results; they have sections of their
own.
"""


@dataclass(frozen=True)
class Clause:
    """One statement of an operator's document, from ``run.json``; ``status`` is empty where the run has none."""

    id: str
    status: str
    text: str
    source: str


class Member(Struct, frozen=True, dict=True):
    """A finding on one target, as ``run.json`` has it.

    ``exhibit`` and ``larger`` are the evidence of its smallest case, and of a case that shows more of the pattern.
    """

    subject: Subject
    record: Record

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """The results of its cases in the run."""
        by_case = self.subject.by_case
        return tuple(by_case[case] for case in self.record["cases"] if case in by_case)

    @cached_property
    def diagnoses(self) -> Counter[tuple[str, ...]]:
        """The number of results by the ids of the faults that together explain them; ``()`` counts the unexplained."""
        return Counter(result.diagnosis for result in self.results if _asks_for_a_fault(result))

    @property
    def versions(self) -> tuple[str, ...]:
        """Operators with their versions."""
        ordered = sorted(self.results, key=lambda result: (result.domain, result.op, result.version))
        return tuple(dict.fromkeys(map(version_of, ordered)))

    @property
    def where(self) -> str:
        """The first wrong element of its smallest case, as text."""
        result = self.subject.by_case.get(self.record["smallest"])
        return place_of(result) if result else ""

    @property
    def count(self) -> int:
        return len(self.record["cases"])

    @cached_property
    def exhibit(self) -> Exhibit | None:
        return self._read(self.record["smallest"])

    @cached_property
    def larger(self) -> Exhibit | None:
        return self._read(self._evidence["larger"].get(self.record["smallest"], ""))

    @property
    def missing(self) -> str:
        """The reason why there is no evidence, where the run has one."""
        return self._evidence["missing"].get(self.record["smallest"], "")

    def beside(self, fault: str) -> list[tuple[str, int]]:
        """Return the other faults that explain its results together with ``fault``, each with the number of results."""
        counts: Counter[str] = Counter()
        for ids, count in self.diagnoses.most_common():
            counts.update({id: count for id in ids if id != fault})
        return counts.most_common()

    @property
    def _evidence(self) -> EvidenceRecord:
        return self.subject.info["evidence"]

    def _read(self, case: str) -> Exhibit | None:
        return read_exhibit(self.subject.run.path, self._evidence["folders"].get(case, ""))


@dataclass(frozen=True)
class Finding:
    """A finding, with all targets that show it as ``members``, in the order of the page.

    ``fault`` is the id of its fault, ``conditions`` are those under which it shows; both may be empty. ``when`` is the
    strength of the conditions: whether experiments on the target confirmed them, or results only agree with them, and
    whether cases that meet them also pass. ``known``: a list of known failures names the finding.
    """

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
    def possible(self) -> bool:
        """Whether the fault is only a hypothesis."""
        return self.title.startswith("Consistent with")

    @property
    def refused(self) -> str:
        """The feature that the target refuses, as text."""
        return "no common condition" if self.title.startswith("Refuses, ") else self.title.removeprefix("Refuses ")

    @property
    def anchor(self) -> str:
        return f"finding-{self.number}"

    @property
    def page(self) -> str:
        """The path of the finding's page, relative to the report's folder."""
        return f"findings/{self.number:02d}-{slug(self.title)[:60].strip('-') or 'finding'}.html"

    @property
    def statements(self) -> list[tuple[tuple[Clause, ...], Clause]]:
        """The clauses grouped by text, in order: (clauses with the same text, the first of them)."""
        by_text: dict[tuple[str, str], list[Clause]] = {}
        for clause in self.clauses:
            by_text.setdefault((clause.text or clause.id, clause.status), []).append(clause)
        return [(tuple(clauses), clauses[0]) for clauses in by_text.values()]

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for member in self.members for name in member.record["types"]))

    @property
    def versions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for member in self.members for name in member.versions))


def findings_of(subjects: Sequence[Subject]) -> list[Finding]:
    """Return the findings of all subjects, numbered from 1 in the order of the page, with one finding for all targets.

    Failing results without a finding get one here, so that every failure is on the page.
    """
    grouped: dict[tuple[Finding, int], list[Member]] = {}
    for subject in subjects:
        seen: Counter[Finding] = Counter()
        for finding, member in _findings(subject):
            # Two findings of one target with the same title stay separate.
            seen[finding] += 1
            grouped.setdefault((finding, seen[finding]), []).append(member)
    order = (NEW, KNOWN, VALIDATION, ASIDE, REFUSED)
    ordered = sorted(grouped.items(), key=lambda item: order.index(item[0][0].section))
    return [
        replace(finding, number=number, members=tuple(members))
        for number, ((finding, _), members) in enumerate(ordered, 1)
    ]


def _findings(subject: Subject) -> Iterator[tuple[Finding, Member]]:
    """Yield the findings of a target, still without members, each with the member of the target."""
    covered = set[str]()
    for entry in subject.info["findings"]:
        covered.update(entry["cases"])
        yield _finding(subject, entry), Member(subject, entry)
    unnamed: defaultdict[tuple[str, bool], list[Result]] = defaultdict(list)
    for result in subject.results:
        if result.failing and result.case not in covered:
            unnamed[result.verdict.value, result.expected].append(result)
    for results in unnamed.values():
        entry = _nameless(results)
        yield _finding(subject, entry), Member(subject, entry)


def _finding(subject: Subject, entry: Record) -> Finding:
    kind, verdict = entry["kind"], entry["verdict"]
    result = subject.by_case.get(entry["smallest"])
    section = _section(kind, entry["expected"])
    condition_text = "Fails only with" if entry["tried"] else "All that fail have"
    return Finding(
        0,
        section,
        in_words(entry["title"], verdict, (result.reason or "") if result else ""),
        kind,
        verdict,
        tuple(_clause(name, subject.run.info["clauses"]) for name in entry["clauses"]),
        entry["fault"],
        entry["conditions"],
        "Fails with, not always" if entry["passing"] else condition_text,
        (),
        entry["expected"] and section in (KNOWN, VALIDATION),
    )


def _asks_for_a_fault(result: Result) -> bool:
    """Return whether a fault may explain a result's values. An inaccurate result has its wider class instead."""
    return word(result.verdict.value).has_numbers and (
        result.verdict is not Verdict.INACCURATE or bool(result.diagnosis)
    )


def _nameless(results: Sequence[Result]) -> Record:
    """Return a finding for failures with one verdict that no finding names."""
    first = results[0]
    verdict = first.verdict.value
    return {
        **empty(Record),
        "title": f"Results that are {verdict} and that no finding names",
        "kind": verdict,
        "verdict": verdict,
        "expected": first.expected,
        "operators": sorted({result.op for result in results}),
        "types": sorted({result.type for result in results}),
        "cases": [result.case for result in results],
        "smallest": first.case,
        "message": first.message,
        "repeat": command_of(first),
        "searched": True,
    }


def _section(kind: str, expected: bool) -> str:
    if kind in DECLINED or kind in NO_FAILURE:
        return REFUSED if kind in DECLINED else ASIDE
    if kind == Verdict.NOT_REJECTED.value:
        return VALIDATION
    return KNOWN if expected else NEW


def _clause(name: str, known: Mapping[str, ClauseRecord]) -> Clause:
    entry = known.get(name)
    return Clause(name, "", "", "") if entry is None else Clause(name, **entry)


@dataclass(frozen=True)
class Refusal:
    """Findings that a target refuses with the same message."""

    findings: tuple[Finding, ...]
    message: str

    @property
    def count(self) -> int:
        return len({(id(m.subject), case) for f in self.findings for m in f.members for case in m.record["cases"]})

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(type for finding in self.findings for type in finding.types))

    @property
    def targets(self) -> tuple[str, ...]:
        """Labels of the targets that refuse."""
        return tuple(dict.fromkeys(member.subject.label for f in self.findings for member in f.members))


def refusals_of(findings: Sequence[Finding]) -> list[Refusal]:
    """Return findings on refusals grouped into lines, in their order."""
    keys = [(finding.verdict, *(id(member.subject) for member in finding.members)) for finding in findings]
    lines = by_message([finding.members[0].record["message"] for finding in findings], keys)
    return [Refusal(tuple(findings[k] for k in indices), message) for indices, message in lines]

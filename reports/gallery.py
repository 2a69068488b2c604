"""The gallery: what real runtimes do, a paragraph for each finding, from run folders."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..conformance.text import plural
from .answers import told_of
from .findings import ASIDE, KNOWN, NEW, VALIDATION, Finding, Member, findings_of
from .markdown import code, plain
from .run import Run
from .subject import Subject, subjects_of
from .text import flattened

_VERSIONS_NAMED = 6
_CHOSEN = ("op", "type")


@dataclass(frozen=True)
class Entry:
    """One finding on one target."""

    subject: Subject
    finding: Finding
    member: Member

    @property
    def verdict(self) -> str:
        """The verdict of its smallest case; of one that the run made up itself, which has no result, the finding's."""
        result = self.subject.by_case.get(self.member.smallest)
        return result.verdict.value if result else self.finding.verdict

    @property
    def case(self) -> str:
        """The name of its smallest case on a command line: its id, or for one that is in no profile its text."""
        words = shlex.split(self.member.repeat)
        return words[2] if words[:2] == ["onnxspec", "explain"] and len(words) > 2 else self.member.smallest


def entries_of(runs: Sequence[Run]) -> list[Entry]:
    """All findings of the runs that rest on a case, target by target; what is unsupported is no entry."""
    subjects = subjects_of(runs)
    findings = [finding for finding in findings_of(subjects) if finding.section in (NEW, KNOWN, VALIDATION, ASIDE)]
    entries = [
        Entry(subject, finding, member)
        for subject in subjects
        for finding in findings
        for member in finding.members
        if member.subject is subject
    ]
    return [entry for entry in entries if entry.verdict and entry.member.smallest]


def gallery_markdown(runs: Sequence[Run], entries: Sequence[Entry], command: str) -> str:
    """Return the page.

    entries
        Those of `entries_of` that are shown.
    command
        The command that makes it, which the page names.
    """
    subjects = [subject for subject in subjects_of(runs) if subject.tally.total]
    findings = findings_of(subjects)
    lines = [
        "# Gallery",
        "",
        "What real runtimes compute otherwise than the documents say, with the command that shows it. Refusals are not",
        "listed. `onnxspec generate --out DIR --all --case ID` writes a case as an ONNX test-case directory.",
        "",
        "Made by a command, not by hand:",
        "",
        "```sh",
        command,
        "```",
        "",
        "| runtime | run with | conforms | entries |",
        "|---|---|---|--:|",
    ]
    for subject in subjects:
        own = [entry for entry in entries if _same(entry.subject, subject)]
        badge = plain(told_of(subject, findings).answer.badge)
        lines.append(f"| {plain(_name(subject))} | {plain(_release(subject))} | {badge} | {len(own)} |")
    lines.append("")
    for subject in subjects:
        lines += _target(subject, [entry for entry in entries if _same(entry.subject, subject)], findings)
    return "\n".join(lines).rstrip() + "\n"


def _same(one: Subject, other: Subject) -> bool:
    return one.run is other.run and one.name == other.name


def _name(subject: Subject) -> str:
    return f"{subject.label} {subject.version}".strip()


def _release(subject: Subject) -> str:
    info = subject.run.info
    release = info["onnxspec"]
    selection = info["selection"]
    chosen = [value for name, value in flattened(selection) if name in _CHOSEN and value]
    single = selection["case"]
    what = plural(len(single), "chosen case") if single else " of ".join([info["profile"], *chosen])
    return f"onnxspec {release}, {what}, {info['started'][:10]}"


def _target(subject: Subject, entries: Sequence[Entry], findings: Sequence[Finding]) -> Iterator[str]:
    answer = told_of(subject, findings).answer
    yield f"## {plain(_name(subject))}"
    yield ""
    lacking = f" Not: {plain(answer.lacking)}." if answer.lacks else ""
    yield f"Runs {plain(answer.supported)}.{lacking}"
    yield ""
    for entry in entries:
        yield f"### {plain(entry.finding.title)}"
        yield ""
        yield " ".join(_paragraph(entry))
        yield ""
        if entry.member.repeat:
            yield "```sh"
            yield " ".join(entry.member.repeat.split())
            yield "```"
            yield ""


def _paragraph(entry: Entry) -> Iterator[str]:
    finding, member = entry.finding, entry.member
    versions = list(member.versions)
    named = ", ".join(map(plain, versions[:_VERSIONS_NAMED]))
    more = f" and {len(versions) - _VERSIONS_NAMED} more" if len(versions) > _VERSIONS_NAMED else ""
    count, types = plural(member.count, "case"), ", ".join(map(plain, member.types))
    yield f"**{plain(entry.verdict)}** in {count} of {named}{more}; {types}."
    if member.message:
        message = " ".join(member.message.split())
        yield f"The smallest says: {plain(message if len(message) <= 300 else message[:300] + ' ...')}."
    if member.why:
        yield plain(member.why.rstrip(".")) + "."
    for clauses, first in finding.statements[:2]:
        status = f" ({plain(first.status)})" if first.status else ""
        text = f": {plain(first.text)}" if first.text else ""
        yield f"Clause {', '.join(code(clause.id) for clause in clauses)}{status}{text}"
    yield f"Smallest case: {code(member.smallest)}."

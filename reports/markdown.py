"""Runs and differences as Markdown: for a job's page, a pull request, a document.

Text that comes from elsewhere (names, messages of runtimes) is escaped: it can neither format nor link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..conformance.results.hits import Hit
from ..conformance.text import plural
from .answers import Told, told_of
from .comparison import HEADINGS, Changes, Comparison
from .findings import findings_of
from .run import Run
from .subject import Subject, subjects_of
from .text import code, plain

SHOWN = 20
"""Cases, or findings, listed by name in one place."""


def summary_markdown(runs: Sequence[Run], problems: Sequence[str] = ()) -> str:
    """The first lines on each target of some runs, and whom it hits."""
    subjects = subjects_of(runs)
    findings = findings_of(subjects)
    lines = ["# Conformance", ""]
    lines += [f"> {plain(problem)}  " for problem in problems] + [""] * bool(problems)
    answers = [told_of(subject, findings) for subject in subjects]
    if len(subjects) > 1:
        lines += [
            "| target | conforms | pass | fail | unsupported | fallback | other |",
            "|---|---|--:|--:|--:|--:|--:|",
        ]
        lines += [_row(subject, of) for subject, of in zip(subjects, answers, strict=True)] + [""]
    for subject, of in zip(subjects, answers, strict=True):
        lines += _target(subject, of)
    return "\n".join(lines).rstrip() + "\n"


def _row(subject: Subject, told: Told) -> str:
    tally = subject.tally
    counts = (tally.passed, tally.failed, tally.verdicts["unsupported"], tally.verdicts["fallback"], tally.other)
    return f"| {_name(subject)} | {plain(told.answer.badge)} | {' | '.join(f'{n:,}' for n in counts)} |"


def _name(subject: Subject) -> str:
    return plain(f"{subject.label} {subject.version}".strip())


def _target(subject: Subject, told: Told) -> Iterator[str]:
    answer = told.answer
    yield f"## {_name(subject)}"
    yield ""
    if not subject.tally.total:
        yield "There is no result for this target."
        yield ""
        return
    lacking = f" **Not:** {plain(answer.lacking)}." if answer.lacks else ""
    yield f"- **{answer.question}:** {plain(answer.conforms)}"
    if answer.comparison:
        yield f"- **Against the list of known failures:** {plain(answer.comparison)}"
    if not answer.chosen:
        yield f"- **Runs, right or wrong:** {plain(answer.supported)}.{lacking}"
    if answer.shown:
        yield f"- **Shown:** {plain(answer.shown)}"
    if answer.follows:
        yield f"- **Deviates from the literal text (allowed):** {plain(answer.follows)}"
    yield ""
    yield from _hits(answer.who_of_shared, answer.relied_on)
    yield from _hits("Input validation, of forbidden models that ran", answer.validation)
    new_ones = [(hit, finding) for hit, finding in (*told.hits, *told.validation) if not hit.known]
    if new_ones:
        yield "What is new, as commands:"
        yield ""
        yield "```sh"
        for _, finding in new_ones[:SHOWN]:
            member = next(m for m in finding.members if m.subject is subject)
            if member.repeat:
                yield " ".join(member.repeat.split())
        yield "```"
        yield ""


def _hits(title: str, hits: Sequence[Hit]) -> Iterator[str]:
    if not hits:
        return
    yield title
    yield ""
    for hit in hits[:SHOWN]:
        new = "**new**, " if hit.all_new else ""
        why = f": {plain(hit.why)}" if hit.why else ""
        where = f"; {plain(hit.where)}" if hit.where else ""
        yield f"- {plain(hit.text)}{why} ({new}{hit.count}{where})"
    if len(hits) > SHOWN:
        yield f"- and {len(hits) - SHOWN} more"
    yield ""


def difference_markdown(comparison: Comparison) -> str:
    """The differences between two runs."""
    lines = ["# Difference", "", f"{plain(comparison.old.name)}, then {plain(comparison.new.name)}.", ""]
    lines += [f"> {plain(warning)}  " for warning in comparison.warnings] + [""] * bool(comparison.warnings)
    for changes in comparison.targets:
        lines += _changes(changes)
    for names, which in ((comparison.only_old, "earlier"), (comparison.only_new, "later")):
        lines += [f"Only in the {which} run: {', '.join(map(plain, names))}.", ""] if names else []
    return "\n".join(lines).rstrip() + "\n"


def _changes(changes: Changes) -> Iterator[str]:
    yield f"## {plain(changes.title)}"
    yield ""
    yield f"**{plain(changes.verdict[:1].upper() + changes.verdict[1:])}.**"
    yield ""
    for kind, heading in HEADINGS.items():
        groups = changes.groups[kind]
        if not groups:
            continue
        yield f"### {heading} ({changes.count(kind):,})"
        yield ""
        for group in groups:
            first = group.changes[0]
            title = plain(group.finding or first.message or "no finding names these")
            yield f"- {title}: {len(group.changes):,} ({plain(first.how)}), smallest {code(first.case)}"
            if first.repeat:
                yield f"  {code(first.repeat)}"
        yield ""
    if changes.accuracy:
        yield "### Accuracy"
        yield ""
        yield "| type | grade | largest error / error bound of a pass |"
        yield "|---|---|---|"
        for moved in changes.accuracy:
            grades = f"{plain(moved.grade_was or 'none')} to {plain(moved.grade_now or 'none')}"
            grades = plain(moved.grade_now or "none") if moved.grade_was == moved.grade_now else grades
            ratios = f"{moved_ratio(moved.worst_was)} to {moved_ratio(moved.worst_now)}"
            yield f"| {plain(moved.type)} | {grades} | {ratios} |"
        yield ""
    for cases, which in ((changes.only_old, "earlier"), (changes.only_new, "later")):
        if cases:
            yield f"Only in the {which} run: {plural(len(cases), 'case')}, e.g. {code(cases[0])}."
            yield ""


def moved_ratio(value: float | None) -> str:
    """A largest error over its bound, as text."""
    return "none" if value is None else f"{value:.2g}"

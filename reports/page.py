"""Report page: one HTML file with its styles, script and data inside, which opens from disk without a network."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from ..conformance.judging.vocabulary import VERDICTS
from ..conformance.results.sections import undecided
from ..conformance.results.summary import Summary, summary_of
from ..conformance.text import listed
from .finding_page import MOST_PAGES, means, places_of, write_pages
from .findings import ASIDE, KNOWN, NEW, REFUSED, VALIDATION, Finding, findings_of
from .matrix import matrix
from .run import Run, read_runs
from .subject import Subject, subjects_of
from .table import table_json
from .templates import html_of
from .text import flattened


def _to_stderr(line: str) -> None:
    print(f"warning: {line}", file=sys.stderr)


def write_report(runs: Sequence[Path], out: Path, *, warn: Callable[[str], None] = _to_stderr) -> Path:
    """Write the report on ``runs`` to ``out``/index.html, with a page for each finding; return the first page's path.

    A run directory that is missing, incomplete, empty or of another schema gives one warning, passed to ``warn`` and
    shown on the page; the readable content is reported. Raise OSError if ``out`` cannot be written.
    """
    readable, problems = read_runs([Path(run) for run in runs])
    for problem in problems:
        warn(problem)
    return report_on(readable, problems, out)


def report_on(runs: Sequence[Run], problems: Sequence[str], out: Path) -> Path:
    """Write the report on runs that have been read, with their problems; otherwise like `write_report`."""
    subjects = subjects_of(runs)
    findings = findings_of(subjects)
    out.mkdir(parents=True, exist_ok=True)
    write_pages(out, ((finding, render_finding(finding, findings, subjects)) for finding in findings[:MOST_PAGES]))
    page = out / "index.html"
    # Write a temporary file, then rename it: a reader never gets half a page, and a full disk keeps the old page.
    unfinished = out / f".index.html.{os.getpid()}"
    try:
        text = render(runs, problems, subjects, findings)
        unfinished.write_bytes(text.encode())
        unfinished.replace(page)
    finally:
        unfinished.unlink(missing_ok=True)
    return page


def render(
    runs: Sequence[Run], problems: Sequence[str], subjects: Sequence[Subject], findings: Sequence[Finding]
) -> str:
    """Return the HTML of the page on ``runs``, with ``problems`` as its first lines."""
    targets = {subject.number: _target_summary(subject, findings) for subject in subjects}
    total = sum(len(run.results) for run in runs)
    return html_of(
        "page.html",
        scripts=("page.js",) if total else (),
        title=_title(subjects),
        several=len(subjects) > 1,
        summaries=targets,
        chosen=bool(targets) and all(target.summary.chosen for target in targets.values()),
        runs=[_about_run(run) for run in runs],
        subjects=subjects,
        models=[(run, [subject for subject in subjects if subject.run is run]) for run in runs if run.nodes],
        problems=problems,
        sections=[
            (name, heading, text, [finding for finding in findings if finding.section == name])
            for name, heading, text in SECTIONS
        ],
        findings=findings,
        known=_by_fault(findings),
        tables=matrix(subjects),
        COLUMNS=COLUMNS,
        TONES=TONES,
        SHOWN=SHOWN,
        LACKS=LACKS,
        words=list(VERDICTS.values()),
        seen={verdict for subject in subjects for verdict in subject.tally.verdicts},
        total=total,
        data=Markup(table_json(runs, subjects, findings)),
    )


SHOWN, LACKS = 8, 12
"""Maximum numbers of failure groups and of unsupported features in the summary of a target."""

TONES = {
    "conforms": ("pass", "Conforms"),
    "known": ("known", "Fails, all known"),
    "lacks": ("unsupported", "Not all supported"),
    "departs": ("fail", "Fails"),
    "open": ("quiet", "Unknown"),
}
"""Tone and words of each state of a summary."""


class TargetSummary(NamedTuple):
    """The summary of one target, whose indices point into ``findings``.

    ``undecided`` says why cases are inconclusive or were not tried: (verdict, reason, number of cases, their operators
    and types).
    """

    summary: Summary
    findings: list[Finding]
    undecided: list[tuple[str, str, int, str]]


def _target_summary(subject: Subject, findings: Sequence[Finding]) -> TargetSummary:
    """Return the summary of a target; ``findings`` are the findings of the page."""
    own_findings = [(finding, m) for finding in findings for m in finding.members if m.subject is subject]
    info = subject.run.info
    summary = summary_of(
        subject.results,
        [member.record for _, member in own_findings],
        stale=len(subject.info["stale"]),
        unlisted=len(subject.info["unlisted"]),
        lists_used=info["expected_failures"],
        profile=info["profile"],
        chosen=bool(info["selection"]["case"] or info["selection"]["directories"]),
    )
    reasons = []
    for verdict, reason, results in undecided(subject.results):
        operators, types = sorted({r.op for r in results}), sorted({r.type for r in results})
        reasons.append((verdict, reason, len(results), f"{listed(operators)}; {', '.join(types)}"))
    return TargetSummary(summary, [finding for finding, _ in own_findings], reasons)


def render_finding(finding: Finding, findings: Sequence[Finding], subjects: Sequence[Subject]) -> str:
    """Return the HTML of the page of one finding."""
    index = finding.number - 1
    return html_of(
        "finding.html",
        "finding.css",
        finding=finding,
        before=findings[index - 1] if index else None,
        after=findings[index + 1] if finding.number < min(len(findings), MOST_PAGES) else None,
        total=len(findings),
        subjects=len(subjects),
        report=_title(subjects),
        means=means(finding),
        known=_by_fault(findings),
        places=places_of(finding),
    )


def _by_fault(findings: Sequence[Finding]) -> dict[tuple[int, str], Finding]:
    """Return the finding by (number of the target, id of the fault)."""
    return {(member.subject.number, f.fault): f for f in findings if f.fault for member in f.members}


SECTIONS = (
    (NEW, "New failures", "Not on the list of known failures: they fail the run."),
    (KNOWN, "Known failures", "On the target's list of known failures, with the reason; they do not fail the run."),
    (
        VALIDATION,
        "Invalid models that were accepted",
        "Valid models are not affected. New ones fail the run.",
    ),
    (
        ASIDE,
        "Other observations",
        "They fail no case: broken conventions, lost NaN, two answers to one open question, biased errors.",
    ),
    (REFUSED, "Refused", "Valid models that the target refused with a clean error, or left to another provider."),
)
"""(section of a finding, heading, description), in the order of the page."""

COLUMNS = (
    ("verdict", "Verdict"),
    ("case", "Case"),
    ("op", "Operator"),
    ("type", "Type"),
    ("target", "Target"),
    ("worst", "Error/bound"),
    ("message", "Message"),
    ("ms", "ms"),
)
"""(key, heading) of each column of the results table."""


def _about_run(run: Run) -> dict[str, Any]:
    """Return a run's name, and its facts, environment and digests as pairs of name and text."""
    info = run.info
    selection = ", ".join(f"{name}: {value}" for name, value in flattened(info["selection"]) if value)
    facts = [
        ("Run", run.name),
        ("Profile", info["profile"]),
        ("Selection", selection),
        ("Started", info["started"]),
        ("Took", _duration(info["seconds"]) if run.described else ""),
        ("onnxspec", info["onnxspec"]),
        ("Command", " ".join(info["command"])),
    ]
    targets = [
        (f"{target['name']}: {name}", value)
        for target in info["targets"]
        for key in ("adapter", "class", "description", "options")
        for name, value in flattened(dict(target)[key], key)
        if value
    ]
    return {
        "name": run.name,
        "facts": [fact for fact in facts if fact[1]],
        "environment": [*flattened(info["environment"] if run.described else {}), *targets],
        "digests": list(info["digests"].items()),
    }


def _title(subjects: Sequence[Subject]) -> str:
    names = list(dict.fromkeys(f"{s.name} {s.version}".strip() for s in subjects))
    operators = list(dict.fromkeys(result.op for subject in subjects for result in subject.results if result.op))
    who = " and ".join(names) if len(names) < 3 else f"{len(names)} targets"
    operator_text = ", ".join(operators[:4]) + (" and others" if len(operators) > 4 else "")
    return f"{who or 'No target'} on {operator_text}" if operator_text else who or "Nothing to report"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"

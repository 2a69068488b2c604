"""Summaries of targets, as the terminal shows them, each tied to the findings of the page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..conformance.results.sections import undecided
from ..conformance.results.summary import FailureGroup, Summary, look_of, summary_of
from ..conformance.text import listed
from .findings import Finding
from .subject import Subject

SHOWN = 8
"""Groups of failures on the first screen; the others are a click away."""

LACKS = 12
"""The unsupported, on the first screen; the rest is a click away."""

_TONES = {
    "conforms": ("check", "pass"),
    "few": ("cross", "known"),
    "lacks": ("bar", "unsupported"),
    "departs": ("cross", "fail"),
    "open": ("question", "quiet"),
}


class TargetSummary(Struct, frozen=True):
    """The summary of one target; ``findings`` are those that its indices mean.

    ``undecided`` says why cases are inconclusive: (why, how many, in which operators and types).
    """

    summary: Summary
    findings: tuple[Finding, ...]
    undecided: tuple[tuple[str, int, str], ...]

    @property
    def badge(self) -> tuple[str, str, str]:
        """(icon, tone, words)."""
        return (*_TONES[self.summary.state], self.summary.badge)

    @property
    def lacks(self) -> list[tuple[str, Finding | None]]:
        """Features that are not supported, each with the finding that says more."""
        return [(k.what, None if k.problem is None else self.findings[k.problem]) for k in self.summary.lacks]

    @property
    def failures(self) -> list[tuple[FailureGroup, Finding]]:
        """Groups of failures, each with the first finding that says more."""
        return [(group, self.findings[group.problems[0]]) for group in self.summary.failures]

    @property
    def validation(self) -> list[tuple[FailureGroup, Finding]]:
        """Models that ran though they must be rejected, in the same way."""
        return [(group, self.findings[group.problems[0]]) for group in self.summary.validation]


def target_summary(subject: Subject, findings: Sequence[Finding]) -> TargetSummary:
    """Return the summary of a target; ``findings`` are those of the page."""
    own = [(finding, m) for finding in findings for m in finding.members if m.subject is subject]
    info = subject.run.info
    chosen = [*info["selection"]["case"], *info["selection"].get("directories", [])]
    summary = summary_of(
        subject.results,
        [member.record for _, member in own],
        stale=len(subject.info["stale"]),
        unlisted=len(subject.info.get("unlisted", [])),
        lists_used=info["expected_failures"],
        look=look_of(info["profile"], chosen),
        chosen=bool(chosen),
    )
    reasons = []
    for words, some in undecided(subject.results):
        operators, types = sorted({r.op for r in some}), sorted({r.type for r in some})
        reasons.append((words, len(some), f"{listed(operators)}; {', '.join(types)}"))
    return TargetSummary(summary, tuple(finding for finding, _ in own), tuple(reasons))

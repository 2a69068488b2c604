"""Summaries of targets, as the terminal shows them, each linked to the findings of the page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..conformance.results.sections import undecided
from ..conformance.results.summary import FailureGroup, Summary, summary_of
from ..conformance.text import listed
from .findings import Finding
from .subject import Subject

SHOWN = 8
"""Maximum number of failure groups on the first screen; a click shows the others."""

LACKS = 12
"""Maximum number of unsupported features on the first screen; a click shows the others."""

_TONES = {
    "conforms": ("check", "pass"),
    "few": ("cross", "known"),
    "lacks": ("bar", "unsupported"),
    "departs": ("cross", "fail"),
    "open": ("question", "quiet"),
}


class TargetSummary(Struct, frozen=True):
    """The summary of one target. Its indices point into ``findings``.

    ``undecided`` says why cases are inconclusive or were not tried: (verdict, reason, number of cases, their operators
    and types).
    """

    summary: Summary
    findings: tuple[Finding, ...]
    undecided: tuple[tuple[str, str, int, str], ...]

    @property
    def badge(self) -> tuple[str, str, str]:
        """(icon, tone, text)."""
        return (*_TONES[self.summary.state], self.summary.badge)

    @property
    def lacks(self) -> list[tuple[str, Finding | None]]:
        """Unsupported features, each with the finding that explains it."""
        return [(k.text, None if k.problem is None else self.findings[k.problem]) for k in self.summary.lacks]

    @property
    def failures(self) -> list[tuple[FailureGroup, Finding]]:
        """Groups of failures, each with the first finding that explains it."""
        return [(group, self.findings[group.problems[0]]) for group in self.summary.failures]

    @property
    def validation(self) -> list[tuple[FailureGroup, Finding]]:
        """Groups of models that ran although they must be rejected, each with the first finding that explains it."""
        return [(group, self.findings[group.problems[0]]) for group in self.summary.validation]


def target_summary(subject: Subject, findings: Sequence[Finding]) -> TargetSummary:
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
    return TargetSummary(summary, tuple(finding for finding, _ in own_findings), tuple(reasons))

"""The first lines on a target, as the terminal says them, each tied to the findings of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import Struct

from ..conformance.judging.vocabulary import happening
from ..conformance.results.answer import Answer, answer_of, look_of
from ..conformance.results.hits import Hit
from ..conformance.results.interpreted import followed_line, shown_line
from ..conformance.results.support import ResultsAlike, tried_of
from ..conformance.text import listed
from .findings import Finding
from .subject import Subject

SHOWN = 8
"""Hits on the first screen; the others are a click away."""

LACKS = 12
"""The unsupported, on the first screen; the rest is a click away."""

_TONES = {
    "conforms": ("check", "pass"),
    "few": ("cross", "known"),
    "lacks": ("bar", "unsupported"),
    "departs": ("cross", "fail"),
    "open": ("question", "quiet"),
}


class Told(Struct, frozen=True):
    """The answer on one target; ``findings`` are those that the places in it mean.

    ``undecided`` says why cases are inconclusive: (why, how many, in which operators and types).
    """

    answer: Answer
    findings: tuple[Finding, ...]
    undecided: tuple[tuple[str, int, str], ...] = ()

    @property
    def badge(self) -> tuple[str, str, str]:
        """(icon, tone, words)."""
        return (*_TONES[self.answer.state], self.answer.badge)

    @property
    def lacks(self) -> list[tuple[str, Finding | None]]:
        """Features that are not supported, each with the finding that says more."""
        return [
            (lack.what, None if lack.problem is None else self.findings[lack.problem]) for lack in self.answer.lacks
        ]

    @property
    def hits(self) -> list[tuple[Hit, Finding]]:
        """Groups of users that failures hit, each with the first finding that says more."""
        return self._with_findings(self.answer.relied_on)

    @property
    def validation(self) -> list[tuple[Hit, Finding]]:
        """Models that ran though they must be rejected, in the same way."""
        return self._with_findings(self.answer.validation)

    def _with_findings(self, hits: Sequence[Hit]) -> list[tuple[Hit, Finding]]:
        return [(hit, self.findings[hit.problems[0]]) for hit in hits]


def told_of(subject: Subject, findings: Sequence[Finding]) -> Told:
    """The answer on a target; ``findings`` are those of the page."""
    own = [(finding, m) for finding in findings for m in finding.members if m.subject is subject]
    tried = tried_of(subject.results)
    stale = len(subject.info["stale"])
    lists_used = subject.run.info["expected_failures"]
    selection = subject.run.info["selection"]
    chosen = [*selection["case"], *selection.get("directories", [])]
    answer = answer_of(
        tried,
        [member.short for _, member in own],
        stale=stale,
        lists_used=lists_used,
        look=look_of(subject.run.info["profile"], chosen),
        chosen=bool(chosen),
    )
    answer = replace(
        answer,
        follows=followed_line(subject.info.get("interpretations", [])),
        shown=shown_line(subject.info.get("shown", {})),
    )
    return Told(answer, tuple(finding for finding, _ in own), tuple(_undecided(tried)))


def _undecided(tried: Sequence[ResultsAlike]) -> Iterator[tuple[str, int, str]]:
    by_words: dict[str, list[ResultsAlike]] = {}
    for one in tried:
        if one.verdict == "inconclusive":
            why = happening(one.verdict, one.reason) or one.reason or "no reason is recorded"
            by_words.setdefault(why, []).append(one)
    for words, some in by_words.items():
        operators, types = (sorted({getattr(one, name) for one in some}) for name in ("op", "type"))
        yield words, sum(one.times for one in some), f"{listed(operators)}; {', '.join(types)}"

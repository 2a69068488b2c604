"""The first screen on a target: whether it conforms, what fails, what it does not support, and what is left to know.

The terminal, a run in Python and a notebook show the same lines; how they look is theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from msgspec import Struct

from ..diagnosis.failing_case import DIAGNOSED
from ..judging.judgement import DECLINED, UNTRIED, Verdict
from ..judging.vocabulary import FLAGS, NO_FAILURE, happening
from ..results.answer import Answer, answer_of
from ..results.hits import Hit
from ..results.interpreted import followed_interpretations, followed_line, shown_elements, shown_line
from ..results.level_grades import graded_line, level_records
from ..results.records import Finding
from ..results.result import Result
from ..results.support import refused_words, short_finding, tried_of
from ..text import plural
from ..workers.worker import one_line

_WORDS = 160  # characters of what a runtime says of what it declines

KNOWN = "Known failures"
RUNS = "Accepts"
VALIDATION = "Invalid models that were accepted:"

NEW, FAILS = "NEW", "fails"
"""Labels of failures that are on no list, and of all where no list was asked: nobody knows whether those are new."""

_EXPLAINABLE = frozenset(verdict.value for verdict in DIAGNOSED - {Verdict.INACCURATE, Verdict.MALFORMED})
"""Verdicts of which it is said that no fault explains them. Of what is inaccurate the title names the wider class."""


class Remark(Struct, frozen=True):
    """One thing about a target, behind a label: ``NEW``, ``fails``, ``known``, a verdict, ``remark``, ``note``.

    extent
        In how many cases of what.
    message
        What the runtime, or its list of known failures, says of it.
    command
        The line that shows it again; empty where there is nothing to look up.
    """

    label: str
    text: str
    extent: str = ""
    message: str = ""
    command: str = ""


class Shelf(Struct, frozen=True):
    """Remarks that belong together, below a line of their own; empty where they need none."""

    heading: str
    remarks: tuple[Remark, ...]


def told_answer(
    results: Sequence[Result],
    findings: Sequence[Finding],
    *,
    stale: int = 0,
    lists_used: bool = True,
    look: str = "",
    chosen: bool = False,
) -> Answer:
    """The answer that a target's results and findings give, with the arguments of ``answer_of``."""
    reasons = {result.case: result.reason or "" for result in results}
    problems = [short_finding(finding, reasons.get(finding["smallest"], "")) for finding in findings]
    return replace(
        answer_of(tried_of(results), problems, stale=stale, lists_used=lists_used, look=look, chosen=chosen),
        follows=followed_line(followed_interpretations(results)),
        shown=shown_line(shown_elements(results)),
    )


def screen_of(answer: Answer, findings: Sequence[Finding], results: Sequence[Result]) -> Iterator[Shelf]:
    """Shelves of what fails, what is not supported, and what is left to know; in this order, and none that is empty."""
    news = NEW if answer.compared else FAILS
    shelves = [
        Shelf(f"{answer.who}:", tuple(hits_of(answer.relied_on, findings, news))),
        Shelf(VALIDATION, tuple(hits_of(answer.validation, findings, news))),
        Shelf("It does not support:", tuple(_refusals(findings))),
        Shelf("Also:", (*_asides(findings), *_undecided(results), *_grades(results), *_notes(results))),
    ]
    if not findings:
        text = "no case was judged" if results else "no case ran"
        if any(result.verdict not in UNTRIED for result in results):
            text = "every judged case passed"
        shelves.insert(0, Shelf("", (Remark("", text),)))
    yield from (shelf for shelf in shelves if shelf.remarks)


_NONE, _UNSEARCHED = "; cause unknown", "; cause not found in the time allowed"


def hits_of(hits: Iterable[Hit], findings: Sequence[Finding], news: str = NEW) -> Iterator[Remark]:
    """Remarks on failures. Of what is known there is nothing to look up; the report has its command all the same."""
    counts = Counter(case for finding in findings if finding["kind"] not in NO_FAILURE for case in finding["cases"])
    for hit in hits:
        members = [findings[place] for place in hit.problems]
        first = members[0]
        remark = ""
        if first["verdict"] in _EXPLAINABLE and not first["fault"] and not first["expected"]:
            remark = _NONE if first.get("searched") else _UNSEARCHED
        own = Counter(case for finding in members for case in finding["cases"])
        shared = sum(counts[case] > count for case, count in own.items())
        extent = f" ({_extent(members, shared)}){remark}"
        label, command = ("known", "") if hit.known else (news, first["repeat"])
        why = f"Listed as known: {first['why']}" if first["why"] else first["message"]
        yield Remark(label, hit.text, extent, why, command)


def _refusals(findings: Iterable[Finding]) -> Iterator[Remark]:
    """Remarks on what is declined. Where nothing is known of it but the runtime's words, they stand for it."""
    for finding in findings:
        if finding["verdict"] in DECLINED:
            text, message = refused_words(finding["conditions"]), finding["message"]
            yield Remark(finding["verdict"], text or message, f" ({_extent([finding])})", message if text else "")


def _asides(findings: Iterable[Finding]) -> Iterator[Remark]:
    for finding in findings:
        if finding["kind"] in NO_FAILURE:
            extent = f" ({_extent([finding])})"
            yield Remark("remark", finding["title"], extent, finding["message"], finding["repeat"])


def _grades(results: Iterable[Result]) -> Iterator[Remark]:
    """The number of levels that quantized outputs are off, by the bits of their levels."""
    records = level_records(results)
    for bits in sorted({record["bits"] for record in records}):
        yield Remark("note", graded_line(records, bits))


def _undecided(results: Iterable[Result]) -> Iterator[Remark]:
    """The reasons for which cases are inconclusive."""
    reasons: dict[str, list[Result]] = {}
    for result in results:
        if result.verdict is Verdict.INCONCLUSIVE:
            reasons.setdefault(result.reason or "", []).append(result)
    for reason, some in reasons.items():
        named = ", ".join([*dict.fromkeys(r.op for r in some), *dict.fromkeys(r.type for r in some)])
        text = happening(Verdict.INCONCLUSIVE.value, reason) or some[0].message or reason
        yield Remark("inconclusive", text, f" ({plural(len(some))}, {named})")


def _notes(results: Sequence[Result]) -> Iterator[Remark]:
    for flag, text in FLAGS.items():
        count = sum(flag in result.flags and not result.failing for result in results)
        if count:
            yield Remark("note", f"{text}, within what is allowed, in {plural(count)}")


def _extent(findings: Sequence[Mapping[str, Any]], shared: int = 0) -> str:
    """The number of cases, each counted once, and of what: ``14 cases, 2 of them new, GRU, LSTM, float32``.

    shared
        How many of them other findings have, too: several things are wrong with them.
    """
    count = len({case for f in findings for case in f["cases"]})
    new = min(count, sum(f["new"] for f in findings))
    some = [f"{new} of them new"] if 0 < new < count else []
    some += [f"{shared} of them in other findings too"] if shared else []
    names = [name for key in ("operators", "types") for f in findings for name in f[key]]
    return ", ".join([plural(count), *some, *dict.fromkeys(names)])


def _first_lines(answer: Answer) -> list[tuple[str, str]]:
    lines = [(answer.question, answer.conforms), (KNOWN, answer.comparison)]
    if not answer.chosen:
        lines.append((RUNS, answer.supported))
    return [(name, text) for name, text in lines if text]


def screen_text(heading: str, answer: Answer, shelves: Iterable[Shelf]) -> str:
    """The first screen as plain text, for a run in Python."""
    lines = [heading, *(f"  {name}: {text}" for name, text in _first_lines(answer))]
    for shelf in shelves:
        lines += [f"  {shelf.heading}"] if shelf.heading else []
        for remark in shelf.remarks:
            lines.append(f"    {remark.label + ' ' if remark.label else ''}{remark.text}{remark.extent}")
            message = one_line(remark.message, _WORDS) if remark.label in DECLINED else remark.message
            lines += [f"        {line}" for line in (message, remark.command) if line]
    return "\n".join(lines)


_CELL = "text-align: left; vertical-align: top"
_NEWS = "color: #d32f2f; font-weight: bold"
"""Legible on white and on black."""


def screen_html(heading: str, answer: Answer, shelves: Iterable[Shelf]) -> str:
    """The first screen as markup, for a notebook: nothing but text of ours and escaped text of others."""
    parts = [f"<p><b>{escape(heading)}</b></p><p>"]
    parts += [f"{name}: <b>{escape(text)}</b><br>" for name, text in _first_lines(answer)]
    parts.append("</p>")
    for shelf in shelves:
        rows = [
            f"<tr><td style='{_CELL}; {_NEWS if remark.label in (NEW, FAILS) else ''}'>{escape(remark.label)}</td>"
            f"<td style='{_CELL}'>{escape(remark.text + remark.extent)}"
            f"{''.join(f'<br><small>{escape(line)}</small>' for line in (remark.message, remark.command) if line)}"
            "</td></tr>"
            for remark in shelf.remarks
        ]
        parts += [f"<p>{escape(shelf.heading)}</p>", f"<table>{''.join(rows)}</table>"]
    return "".join(parts)

"""Sections of a summary: failures, refusals and notes, item by item, as text."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..judging.judgement import DECLINED, UNTRIED, Verdict
from ..judging.vocabulary import FLAGS, NO_FAILURE, happening
from ..text import plural
from ..workers.worker import one_line
from .grades import graded_line, level_records
from .records import Finding
from .result import Result
from .summary import FailureGroup, Summary, extent_of
from .support import by_message, refused_words

KNOWN, RUNS = "Known failures", "Accepts"
VALIDATION = "Invalid models that were accepted:"
NEW, FAILS = "NEW", "fails"
"""Labels of failures that are on no list, and of all failures where no list was used, so that new ones are unknown."""

_MESSAGE = 160  # maximum characters of a runtime's message on a refusal

_MESSAGES = 4
"""Maximum number of refusals that are shown by their message alone, because the refused feature is unknown."""


class Item(Struct, frozen=True):
    """One fact on a target, with a label: ``NEW``, ``fails``, ``known``, a verdict, ``remark``, ``note``.

    extent
        The number of cases, with operators and types.
    message
        The message of the runtime, or of its list of known failures.
    command
        The command that repeats it; empty where there is nothing to look up.
    """

    label: str
    text: str
    extent: str = ""
    message: str = ""
    command: str = ""


class Section(Struct, frozen=True):
    """Items that belong together, below a heading, which may be empty."""

    heading: str
    items: tuple[Item, ...]


def sections_of(
    summary: Summary, findings: Sequence[Finding], results: Sequence[Result], *, only_new: bool = False
) -> Iterator[Section]:
    """Yield the non-empty sections in this order: failures, unsupported features, notes."""
    groups = [
        [group for group in half if not (only_new and group.known)] for half in (summary.failures, summary.validation)
    ]
    news = NEW if summary.compared or only_new else FAILS
    sections = [
        Section("" if only_new else f"{summary.heading}:", tuple(_failure_items(groups[0], findings, news))),
        Section(VALIDATION, tuple(_failure_items(groups[1], findings, news))),
    ]
    if not only_new:
        notes = (*_asides(findings), *_undecided_items(results), *_notes(results))
        sections += [Section("It does not support:", tuple(_refusals(findings))), Section("Also:", notes)]
        if not findings:
            text = "no case was judged" if results else "no case ran"
            if any(result.verdict not in UNTRIED for result in results):
                text = "every judged case passed"
            sections.insert(0, Section("", (Item("", text),)))
    yield from (section for section in sections if section.items)


def _failure_items(groups: Iterable[FailureGroup], findings: Sequence[Finding], news: str) -> Iterator[Item]:
    """Yield items on failures. A known failure has no command here; the report has it."""
    for group in groups:
        first, remark = findings[group.problems[0]], ""
        # The title of an inaccurate finding names the wider class.
        if first["verdict"] in (Verdict.WRONG, Verdict.UNSTABLE) and not first["fault"] and not first["expected"]:
            remark = "; cause unknown" if first["searched"] else "; cause unknown, not all faults were tried"
        label, command = ("known", "") if group.known else (news, first["repeat"])
        why = f"Listed as known: {first['why']}" if first["why"] else first["message"]
        yield Item(label, group.text, f" ({group.extent}){remark}", why, command)


def _refusals(findings: Iterable[Finding]) -> Iterator[Item]:
    """Yield refusals, those with one message together; without a known condition, the message stands for it. Of many
    messages, the last item has the number."""
    refusals = [finding for finding in findings if finding["verdict"] in DECLINED]
    keys = [(finding["verdict"], bool(finding["conditions"])) for finding in refusals]
    unknown: defaultdict[str, list[Item]] = defaultdict(list)
    rest: defaultdict[str, list[list[Finding]]] = defaultdict(list)
    for indices, message in by_message([finding["message"] for finding in refusals], keys):
        members = [refusals[k] for k in indices]
        verdict, extent = members[0]["verdict"], f" ({extent_of(members)})"
        if text := ", ".join(filter(None, dict.fromkeys(refused_words(f["conditions"]) for f in members))):
            yield Item(verdict, text, extent, message)
        elif len(unknown[verdict]) < _MESSAGES:
            unknown[verdict].append(Item(verdict, message, extent))
        else:
            rest[verdict].append(members)
    for verdict, items in unknown.items():
        yield from items
        if others := rest[verdict]:
            text = "one other message" if len(others) == 1 else f"{len(others)} other messages"
            yield Item(verdict, text, f" ({extent_of([*itertools.chain(*others)])})", "see the report")


def _asides(findings: Iterable[Finding]) -> Iterator[Item]:
    for finding in findings:
        if finding["kind"] in NO_FAILURE:
            extent = f" ({extent_of([finding])})"
            yield Item("remark", finding["title"], extent, finding["message"], finding["repeat"])


def undecided(results: Iterable[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    """Yield the reasons why cases are inconclusive or were not tried: (verdict, text, results)."""
    by_text: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        if result.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_TRIED):
            text = happening(result.verdict.value, result.reason or "") or result.message or result.reason
            by_text[result.verdict.value, text or "no reason is recorded"].append(result)
    for (verdict, text), members in sorted(by_text.items()):
        yield verdict, text, members


def _undecided_items(results: Iterable[Result]) -> Iterator[Item]:
    for verdict, text, members in undecided(results):
        named = ", ".join([*dict.fromkeys(r.op for r in members), *dict.fromkeys(r.type for r in members)])
        yield Item(verdict, text, f" ({plural(len(members))}, {named})")


def _notes(results: Sequence[Result]) -> Iterator[Item]:
    """Yield the differences of quantized outputs in levels, and remarks on allowed behaviour."""
    records = level_records(results)
    for bits in sorted({record["bits"] for record in records}):
        yield Item("note", graded_line(records, bits))
    for flag, text in FLAGS.items():
        if count := sum(flag in result.flags and not result.failing for result in results):
            yield Item("note", f"{text}, within what is allowed, in {plural(count)}")


def first_lines(summary: Summary) -> list[tuple[str, str]]:
    """Return the heading and the text of each of the first lines."""
    lines = [(summary.question, summary.conforms), (KNOWN, summary.comparison)]
    if not summary.chosen:
        lines.append((RUNS, summary.supported))
    return [(name, text) for name, text in lines if text]


def summary_text(heading: str, summary: Summary, sections: Iterable[Section]) -> str:
    """Return the first screen as plain text, for a run in Python."""
    lines = [heading, *(f"  {name}: {text}" for name, text in first_lines(summary))]
    for section in sections:
        lines += [f"  {section.heading}"] if section.heading else []
        for item in section.items:
            lines.append(f"    {item.label + ' ' if item.label else ''}{item.text}{item.extent}")
            message = one_line(item.message, _MESSAGE) if item.label in DECLINED else item.message
            lines += [f"        {line}" for line in (message, item.command) if line]
    return "\n".join(lines)

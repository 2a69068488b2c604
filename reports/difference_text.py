"""Differences between two runs, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from ..conformance.text import plural
from .comparison import HEADINGS, Changes, Comparison
from .markdown import moved_ratio
from .text import printable

_SHOWN = 12  # groups of changes of one kind


def difference_text(comparison: Comparison) -> str:
    """The whole text."""
    return "\n".join(map(printable, _lines(comparison))) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    for warning in comparison.warnings:
        yield f"note: {warning}"
    for changes in comparison.targets:
        yield from _target(changes)
    for names, which in ((comparison.only_old, "earlier"), (comparison.only_new, "later")):
        if names:
            yield f"only in the {which} run: {', '.join(names)}"


def _target(changes: Changes) -> Iterator[str]:
    yield f"{changes.title}: {changes.verdict}"
    for kind, heading in HEADINGS.items():
        groups = changes.groups[kind]
        for group in groups[:_SHOWN]:
            first = group.changes[0]
            title = group.finding or first.message or "no finding names these"
            yield f"  {heading.lower()}: {title} ({plural(len(group.changes), 'case')}; {first.how})"
            yield f"    {first.repeat or first.case}"
        if len(groups) > _SHOWN:
            yield f"  {heading.lower()}: {len(groups) - _SHOWN} more kinds; --format json has all"
    for moved in changes.accuracy:
        was, now = moved.grade_was or "none", moved.grade_now or "none"
        grade = "" if was == now else f"; grade {was} to {now}"
        ratios = f"{moved_ratio(moved.worst_was)} to {moved_ratio(moved.worst_now)}"
        yield f"  accuracy in {moved.type}: largest error over its bound {ratios}{grade}"
    for cases, which in ((changes.only_old, "earlier"), (changes.only_new, "later")):
        if cases:
            yield f"  only in the {which} run: {plural(len(cases), 'case')}, e.g. {cases[0]}"

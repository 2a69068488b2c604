"""Facts on a target from all its results: answers to open questions, and the share of elements that prove something.

The share of elements whose bounds are too wide to prove anything is reported by type, so that it cannot grow unnoticed
when a target declares a wider class.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ...reference import clauses_of
from ...reference.documents.interpretations import QUESTIONS
from ..judging.judgement import Verdict
from ..text import listed
from .records import FollowedRecord, ShownRecord
from .result import Result

_SHOWING = frozenset({Verdict.PASS, Verdict.INCONCLUSIVE})


def shown_elements(results: Iterable[Result]) -> dict[str, ShownRecord]:
    """Return, by type, the elements of results that pass or are inconclusive, and how many of them prove something."""
    by_type: dict[str, ShownRecord] = {}
    for result in results:
        if result.verdict in _SHOWING and result.elements:
            record = by_type.setdefault(result.type, {"elements": 0, "judged": 0})
            record["elements"] += result.elements
            record["judged"] += result.judged
    return by_type


def shown_line(shown: Mapping[str, ShownRecord]) -> str:
    """Return one line with the share of elements whose bounds are small enough to prove something."""
    shares = ", ".join(
        f"{type_name} {100 * record['judged'] // record['elements']} %"
        for type_name, record in shown.items()
        if record["elements"]
    )
    return f"share of numbers whose error bound is below 1 % of their size: {shares}" if shares else ""


def followed_interpretations(results: Iterable[Result]) -> list[FollowedRecord]:
    """Return the options of open questions that passing results rest on, by operator, the commonest first."""
    votes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for result in results:
        if result.verdict is Verdict.PASS:
            for question, option in result.interpretations.items():
                votes[result.op, question][option] += 1
    return [
        {
            "operator": op,
            "interpretation": question,
            "clause": next((c.id for c in clauses_of(op) if c.interpretation == question), ""),
            "option": option,
            "cases": cases,
            "generous": question in QUESTIONS and QUESTIONS[question].generous == option,
        }
        for (op, question), options in sorted(votes.items())
        for option, cases in options.most_common()
    ]


def followed_line(followed: Sequence[FollowedRecord]) -> str:
    """Return one line on the lenient options that the target follows, against the letter of a document."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for record in followed:
        if record["generous"]:
            question = record["interpretation"]
            text = QUESTIONS[question].words if question in QUESTIONS else ""
            by_text[text or f"{question} {record['option']}"].append(record["operator"])
    return "; ".join(f"{description} ({listed(ops)})" for description, ops in by_text.items())

"""Facts that a target's results show as a whole: which open questions it answers how, and how much is shown.

A share of elements that lie within bounds too wide to show anything is said for each type, so that it cannot grow
unseen where a target declares a wider class.
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
    """Elements of results that agree or are inconclusive, and how many of them show something, by type."""
    by_type: dict[str, ShownRecord] = {}
    for result in results:
        if result.verdict in _SHOWING and result.elements:
            record = by_type.setdefault(result.type, {"elements": 0, "judged": 0})
            record["elements"] += result.elements
            record["judged"] += result.judged
    return by_type


def shown_line(shown: Mapping[str, ShownRecord]) -> str:
    """The share of elements whose bounds are small enough to show something, in one line."""
    shares = ", ".join(
        f"{kind} {100 * record['judged'] // record['elements']} %"
        for kind, record in shown.items()
        if record["elements"]
    )
    return f"share of numbers whose error bound is below 1 % of their size: {shares}" if shares else ""


def followed_interpretations(results: Iterable[Result]) -> list[FollowedRecord]:
    """The options of open questions that passing results rest on, operator by operator, the commonest first."""
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
    """The places where the target reads a document otherwise than its letter, in one line."""
    generous: dict[str, list[str]] = defaultdict(list)
    for each in followed:
        if each["generous"]:
            question = each["interpretation"]
            words = QUESTIONS[question].words if question in QUESTIONS else ""
            generous[words or f"{question} {each['option']}"].append(each["operator"])
    return "; ".join(f"{what} ({listed(ops)})" for what, ops in generous.items())

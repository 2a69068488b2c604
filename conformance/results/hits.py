"""Failures of a target for its first screen: causes in words, findings with the same cause together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..judging.judgement import DECLINED, FAILING, Verdict
from ..judging.vocabulary import NO_FAILURE, happening, short_title, word
from ..text import listed, plural
from .support import ResultsAlike, ShortFinding

_FORBIDDEN = Verdict.NOT_REJECTED.value


class Hit(Struct, frozen=True):
    """Findings with one cause; ``text`` says what is wrong, and when.

    ``why`` is the reason on the list of known failures where the text says little; ``where`` has operators and types,
    ``problems`` the indices of the findings. ``forbidden`` is whether it is about invalid models only.
    """

    text: str
    why: str
    where: str
    known: bool
    cases: int
    new: int
    problems: tuple[int, ...]
    forbidden: bool = False

    @property
    def all_new(self) -> bool:
        """Tell whether none of its cases is on a list, or nobody has counted those that are not."""
        return not self.known and self.new in (0, self.cases)

    @property
    def count(self) -> str:
        """The number of cases, and of new ones where only some are."""
        words = plural(self.cases)
        return f"{words}, {self.new:,} of them new" if 0 < self.new < self.cases else words


def hits_of(problems: Sequence[ShortFinding], tried: Sequence[ResultsAlike]) -> Iterator[Hit]:
    """Yield the failures: new before known, many cases before few, known invalid models that were accepted as one."""
    failing = [k for k, p in enumerate(problems) if p.verdict not in DECLINED and p.kind not in NO_FAILURE]
    accepted = [k for k in failing if problems[k].kind == _FORBIDDEN and problems[k].expected]
    order = {k: _order(problems[k]) for k in failing}
    by_cause: dict[tuple[str, str, bool, bool], list[int]] = {}
    for k in sorted(failing, key=lambda k: order[k]):
        problem = problems[k]
        if k not in accepted:
            text = _text(problem, tried)
            why = "" if problem.clauses or problem.conditions else problem.why
            by_cause.setdefault((text, why, problem.expected, problem.kind == _FORBIDDEN), []).append(k)
    for (text, why, expected, forbidden), indices in by_cause.items():
        members = [problems[k] for k in indices]
        yield Hit(text, why, _where(*members), expected, *_counts(members), tuple(indices), forbidden)
    if accepted:
        members = [problems[k] for k in accepted]
        cases, new = _counts(members)
        text = f"Accepts {plural(cases, 'invalid model')}"
        yield Hit(text, "", _where(*members), True, cases, new, tuple(accepted), True)


def _order(problem: ShortFinding) -> tuple[bool, bool, bool, int]:
    """New before known; a cause of which every case is new before one that shares some case with a new cause."""
    shares = problem.new < len(problem.cases)
    return problem.expected, problem.kind == _FORBIDDEN, shares, -len(problem.cases)


def _counts(problems: Sequence[ShortFinding]) -> tuple[int, int]:
    """(distinct cases, how many of them are new)."""
    cases = len({case for problem in problems for case in problem.cases})
    return cases, min(cases, sum(problem.new for problem in problems))


_UNTOLD = (Verdict.CRASHED.value, Verdict.TIMED_OUT.value)
"""Verdicts whose title alone does not say when they occur."""


_INCIDENTAL = re.compile(r"[1-4] .* or more( \(.*\))?|outputs? .*")
"""Conditions of any smallest case: it has some size and some output."""


def _text(problem: ShortFinding, tried: Sequence[ResultsAlike]) -> str:
    """Return a finding's cause in words, with the conditions that tell something."""
    title = in_words(problem.title, problem.verdict, problem.reason)
    conditions = [condition for condition in problem.conditions.split(" and ") if condition]
    if conditions:
        for known in ("with", "seen with", "seen only with"):
            title = title.removesuffix(f" ({known} {problem.conditions})")
        if problem.clauses:  # a known fault: it does not come of a size
            conditions = [condition for condition in conditions if not _INCIDENTAL.fullmatch(condition)]
        return f"{title} (with {' and '.join(conditions)})" if conditions else title
    if problem.clauses or problem.why:
        return title
    if _always(problem, tried):
        return f"{title}, whatever the features"
    if problem.verdict in _UNTOLD:
        return f"{title}; no common condition found; smallest case {problem.smallest}"
    return title


def _always(problem: ShortFinding, tried: Sequence[ResultsAlike]) -> bool:
    """Tell whether nothing of the finding's operators is right."""
    ran = [t for t in tried if t.op in problem.operators and t.verdict not in DECLINED]
    failed = sum(t.times for t in ran if t.verdict in FAILING)
    return bool(ran) and failed == len(problem.cases) and all(t.verdict != Verdict.PASS.value for t in ran)


def _where(*problems: ShortFinding) -> str:
    operators = list(dict.fromkeys(op for p in problems for op in p.operators))
    types = list(dict.fromkeys(t for p in problems for t in p.types))
    return "; ".join(filter(None, [listed(operators), ", ".join(types)]))


_INACCURATE = "inaccurate (no better than "
"""The beginning of a title that names the accuracy class by which results are right."""


def in_words(title: str, verdict: str, reason: str) -> str:
    """A finding's title for people: ``wrong (value) with clip`` is ``Wrong values with clip``."""
    # By which id a fault is known, and how often it foretold results, is for those who open the finding.
    title = re.sub(r" \([\w.-]+, which foretold \d+ fresh cases\)", "", title)
    title = re.sub(r", consistent with [\w.-]+: ", ", as if this were done: ", title)
    lost = title.removeprefix(_INACCURATE)
    if lost != title:
        wider, _, rest = lost.partition(")")
        return f"{happening(verdict, 'value')}, right only by {wider}{rest}"
    happens = word(verdict).happens
    for why, words in happens.items():
        short = short_title(verdict, why)
        if title == short or title.startswith((f"{short} with ", f"{short} (", f"{short}, ")):
            return words + title[len(short) :]
    if reason and title.startswith(short_title(verdict, reason)) and "" in happens:
        return happens[""] + title[len(short_title(verdict, reason)) :]
    # A name from the documents keeps its form: input_forget, Y.
    return title[:1].upper() + title[1:] if _first_word(title).isalpha() else title


def _first_word(title: str) -> str:
    return title.split(" ", 1)[0].rstrip(",:;")

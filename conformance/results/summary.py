"""Summary of a target's results: whether it conforms, its failures, its unsupported features.

The terminal, a run in Python, Markdown and the report show the same sentences, which are made here.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import Struct

from ...reference.documents.interpretations import QUESTIONS
from ..judging.judgement import DECLINED, FAILING, NO_CLEAN_REFUSAL, OF_FORBIDDEN, RANDOM_WEIGHTS, Verdict
from ..judging.vocabulary import NO_FAILURE, happening, short_title, word
from ..text import listed, plural
from .records import Finding
from .result import Result
from .support import Lack, support_of, verdict_of

_SMALL = "smoke"
_FORBIDDEN = Verdict.NOT_REJECTED


class FailureGroup(Struct, frozen=True):
    """Findings with one cause; ``text`` describes the failure and its conditions.

    ``why`` is the reason on the list of known failures where the text has few details; ``extent`` has the number of
    cases, operators and types, ``problems`` the indices of the findings. ``forbidden``: only invalid models have it.
    """

    text: str
    why: str
    extent: str
    known: bool
    cases: int
    new: int
    problems: tuple[int, ...]
    forbidden: bool = False

    @property
    def all_new(self) -> bool:
        """Whether none of its cases is on a list, or the new ones were not counted."""
        return not self.known and self.new in (0, self.cases)


@dataclass(frozen=True)
class Summary:
    """The first lines on a target.

    ``state`` is ``conforms``, ``known`` (every failure is known), ``lacks`` (chosen cases of which some are not
    supported), ``departs`` or ``open`` (unknown); ``conforms`` is the answer in a line. ``comparison`` is the line on
    the list of known failures, ``follows`` names interpretations against a document's letter, ``shown`` is the share of
    numbers whose bounds prove something. ``chosen``: the cases were chosen one by one, or are a model's nodes.
    ``compared``: a list of known failures was used. ``shared``: some cases have several causes, so that several groups
    count them.
    """

    state: str
    conforms: str
    comparison: str
    supports: tuple[str, ...]
    lacks: tuple[Lack, ...]
    groups: tuple[FailureGroup, ...]
    follows: str
    shown: str
    chosen: bool
    compared: bool
    shared: bool

    @property
    def question(self) -> str:
        """The question that ``conforms`` answers, as a heading."""
        return "Of these cases" if self.chosen else "Conforms"

    @property
    def heading(self) -> str:
        """The heading of failures, with a note if some cases count in several groups."""
        return f"What is wrong{' (a case with several causes counts in each)' if self.shared else ''}"

    @property
    def conforming(self) -> bool | None:
        """Whether the target conforms; None if unknown."""
        return None if self.state in ("open", "lacks") else self.state == "conforms"

    @property
    def failures(self) -> tuple[FailureGroup, ...]:
        """The failures on legal models."""
        return tuple(group for group in self.groups if not group.forbidden)

    @property
    def validation(self) -> tuple[FailureGroup, ...]:
        """The accepted invalid models, whose results are not wrong values."""
        return tuple(group for group in self.groups if group.forbidden)

    @property
    def supported(self) -> str:
        """The supported operators and types, in a line."""
        return "; ".join(self.supports) or "nothing that was tried"

    @property
    def lacking(self) -> str:
        """The unsupported features, in a line; empty where there are none."""
        return ", ".join(lack.text for lack in self.lacks)


def summary_of(
    results: Sequence[Result],
    findings: Sequence[Finding],
    *,
    stale: int = 0,
    unlisted: int = 0,
    lists_used: bool = True,
    profile: str = "",
    chosen: bool = False,
) -> Summary:
    """Return the summary of one target.

    stale
        Number of entries of the target's list of known failures that no longer fail.
    unlisted
        Number of known failures with a confirmed cause that the list does not name.
    lists_used
        Whether lists of known failures were used at all.
    profile
        The profile that was run; smoke is too small for conclusions.
    chosen
        Whether the cases were chosen one by one.
    """
    started = not results or any(r.verdict is not Verdict.UNAVAILABLE for r in results)
    small = profile.startswith(_SMALL) and not chosen
    state, conforms = _conclusion(results, started, lists_used, small, chosen)
    if any(RANDOM_WEIGHTS in r.flags for r in results):
        conforms = f"{conforms}, with random weights"
    failed = _count(results, FAILING - DECLINED)
    comparison = _comparison(results, stale, unlisted) if lists_used else "not compared (--expected none)"
    supports, lacks = support_of(results, findings)
    groups = tuple(_groups(findings, results))
    return Summary(
        state,
        conforms,
        comparison if started else "",
        supports,
        lacks,
        groups,
        _follows(results),
        _shown(results),
        chosen,
        lists_used,
        sum(group.cases for group in groups) > failed,
    )


def _follows(results: Iterable[Result]) -> str:
    """Return one line on the lenient options that passing results follow, against the letter of a document."""
    followed = {
        (r.op, question): QUESTIONS[question].words or f"{question} {option}"
        for r in results
        if r.verdict is Verdict.PASS
        for question, option in r.interpretations.items()
        if question in QUESTIONS and QUESTIONS[question].generous == option
    }
    by_text: dict[str, list[str]] = defaultdict(list)
    for (op, _), text in sorted(followed.items()):
        by_text[text].append(op)
    return "; ".join(f"{text} ({listed(ops)})" for text, ops in by_text.items())


def _shown(results: Iterable[Result]) -> str:
    """Return one line with the share of elements whose bounds are small enough to prove something, by type."""
    elements, judged = Counter[str](), Counter[str]()
    for result in results:
        if result.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE):
            elements[result.type] += result.elements
            judged[result.type] += result.judged
    shares = ", ".join(f"{name} {100 * judged[name] // count} %" for name, count in elements.items() if count)
    return f"share of numbers whose error bound is below 1 % of their size: {shares}" if shares else ""


# Conclusion


def _count(results: Iterable[Result], verdicts: Collection[Verdict], expected: bool | None = None) -> int:
    return sum(r.verdict in verdicts and expected in (None, r.expected) for r in results)


def _conclusion(results: Sequence[Result], started: bool, compared: bool, small: bool, chosen: bool) -> tuple[str, str]:
    """Return the state, and the conclusion as text."""
    right, failed = _count(results, {Verdict.PASS}), _count(results, FAILING - DECLINED)
    judged, declined = right + failed, _count(results, DECLINED)
    left_out, unjudged = _count(results, {Verdict.NOT_RUN}), _count(results, {Verdict.NOT_JUDGED})
    unknown = [f"{left_out:,} not run"] if left_out else []
    unknown += [f"{unjudged:,} could not be judged"] if unjudged else []
    if failed:
        # A fallback is no failure of arithmetic; if it fails the run, it is new nevertheless.
        known = compared and not _count(results, FAILING, expected=False)
        parts = [f"{failed:,} of {plural(judged, 'checked case')} {'fails' if failed == 1 else 'fail'}", *unknown]
        parts += [f"{declined:,} not supported"] if chosen and declined else []
        return "known" if known else "departs", f"{'' if chosen else 'no: '}{', '.join(parts)}"
    # A target that refuses everything refuses forbidden models, too.
    if not _count([r for r in results if r.reason not in OF_FORBIDDEN] or results, {Verdict.PASS}):
        return "open", f"unknown: {'nothing could be judged' if started else 'could not start'}"
    correct = f"all {judged:,} checked cases are correct" if judged > 1 else "the one checked case is correct"
    unclean = sum(r.verdict is Verdict.UNSUPPORTED and NO_CLEAN_REFUSAL in r.flags for r in results)
    unknown += [f"{unclean:,} ended without a clean refusal"] if unclean else []
    undecided = _count(results, {Verdict.INCONCLUSIVE})
    if undecided > judged:  # the cases that could fail are too few to speak for the others
        unknown.append(f"{undecided:,} of {judged + undecided:,} inconclusive")
    if unknown:
        return "open", f"unknown: {', '.join(unknown)}; {correct}"
    if chosen:
        lacking = f"{declined:,} of {judged + declined:,} not supported, " if declined else ""
        return "lacks" if declined else "conforms", f"{lacking}{correct}"
    return "conforms", f"yes in {_SMALL}, a small sample: {correct}; run core" if small else f"yes: {correct}"


def _comparison(results: Sequence[Result], stale: int, unlisted: int) -> str:
    new = _count(results, FAILING, expected=False)
    failed = new + _count(results, FAILING - DECLINED, expected=True)
    parts = []
    if new:
        missing = f"{new:,} of them not" if new < failed else "none of them" if new > 1 else "not"
        parts.append(f"{plural(failed, 'failure')}, {missing} on the list")
    elif failed:
        parts.append("every failure is on the list")
    if unlisted:
        parts.append(
            f"{unlisted:,} known {'has' if unlisted == 1 else 'have'} a confirmed cause that the list does not name"
        )
    if stale:
        parts.append(f"{plural(stale, 'entry', 'entries')} no longer {'fails' if stale == 1 else 'fail'}")
    return "; ".join(parts)


# What fails


def _groups(findings: Sequence[Finding], results: Sequence[Result]) -> Iterator[FailureGroup]:
    """Yield the failures in the order of the findings; known accepted invalid models are one group."""
    failing = [k for k, f in enumerate(findings) if verdict_of(f) not in DECLINED and f["kind"] not in NO_FAILURE]
    accepted = [k for k in failing if findings[k]["kind"] == _FORBIDDEN and findings[k]["expected"]]
    reasons = {result.case: result.reason or "" for result in results}
    by_cause: dict[tuple[str, str, bool, bool], list[int]] = {}
    for k in failing:
        finding = findings[k]
        if k not in accepted:
            text = _text(finding, results, reasons.get(finding["smallest"], ""))
            why = "" if finding["clauses"] or finding["conditions"] else finding["why"]
            by_cause.setdefault((text, why, finding["expected"], finding["kind"] == _FORBIDDEN), []).append(k)
    for (text, why, expected, forbidden), indices in by_cause.items():
        yield _group(text, why, expected, forbidden, indices, findings)
    if accepted:
        cases = len({case for k in accepted for case in findings[k]["cases"]})
        yield _group(f"Accepts {plural(cases, 'invalid model')}", "", True, True, accepted, findings)


def _group(
    text: str, why: str, known: bool, forbidden: bool, indices: Sequence[int], findings: Sequence[Finding]
) -> FailureGroup:
    members = [findings[k] for k in indices]
    cases = len({case for f in members for case in f["cases"]})
    new = min(cases, sum(f["new"] for f in members))
    return FailureGroup(text, why, extent_of(members), known, cases, new, tuple(indices), forbidden)


def extent_of(findings: Sequence[Finding]) -> str:
    """Return the number of cases, each counted once, operators and types: ``14 cases, 2 of them new, GRU, float32``."""
    count = len({case for f in findings for case in f["cases"]})
    new = min(count, sum(f["new"] for f in findings))
    names = [name for key in ("operators", "types") for f in findings for name in f[key]]
    return ", ".join([plural(count), *([f"{new} of them new"] if 0 < new < count else []), *dict.fromkeys(names)])


_INCIDENTAL = re.compile(r"[1-4] .* or more( \(.*\))?|outputs? .*")
"""Conditions of any smallest case: it has some size and some output."""


def _without_conditions(title: str, conditions: str) -> tuple[str, str]:
    """Return a title without its conditions, and the words before these, which tell how sure they are."""
    for relation in ("with", "seen with", "seen only with"):
        if title.endswith(suffix := f" ({relation} {conditions})"):
            return title.removesuffix(suffix), relation
    return title, "with"


def _text(finding: Finding, results: Sequence[Result], reason: str) -> str:
    """Return a finding's cause as text, with its informative conditions."""
    title = in_words(finding["title"], verdict_of(finding), reason)
    conditions = [condition for condition in finding["conditions"].split(" and ") if condition]
    if conditions:
        title, relation = _without_conditions(title, finding["conditions"])
        if finding["clauses"]:  # a known fault, which no size causes
            conditions = [condition for condition in conditions if not _INCIDENTAL.fullmatch(condition)]
        return f"{title} ({relation} {' and '.join(conditions)})" if conditions else title
    if finding["clauses"] or finding["why"]:
        return title
    ran = [r for r in results if r.op in finding["operators"] and r.verdict not in DECLINED]
    if ran and _count(ran, FAILING) == len(finding["cases"]) and not _count(ran, {Verdict.PASS}):
        return f"{title}, whatever the features"
    if verdict_of(finding) in (Verdict.CRASHED, Verdict.TIMED_OUT):  # the title has no condition
        return f"{title}; no common condition found; smallest case {finding['smallest']}"
    return title


_INACCURATE = "inaccurate (no better than "
"""The start of a title that names the accuracy class which results meet."""


def in_words(title: str, verdict: str, reason: str) -> str:
    """Return a finding's title for people: ``wrong (value) with clip`` is ``Wrong values with clip``."""
    without_class = title.removeprefix(_INACCURATE)
    if without_class != title:
        wider, _, rest = without_class.partition(")")
        return f"{happening(verdict, 'value')}, within {wider} accuracy{rest}"
    happens = word(verdict).happens
    for case_reason, text in happens.items():
        short = short_title(verdict, case_reason)
        if title == short or title.startswith((f"{short} with ", f"{short} (", f"{short}, ")):
            return text + title[len(short) :]
    if reason and title.startswith(short_title(verdict, reason)) and "" in happens:
        return happens[""] + title[len(short_title(verdict, reason)) :]
    # A name from the documents keeps its form: input_forget, Y.
    first = title.split(" ", 1)[0].rstrip(",:;")
    return title[:1].upper() + title[1:] if first.isalpha() else title

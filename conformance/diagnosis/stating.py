"""Statements of findings whose causes were searched: conditions, smallest cases and error patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from ...reference import fault_named
from ..probes.probe import Probe
from ..results.records import Finding
from .causes import Cause, DiagnosisContext
from .conditions import would_show
from .findings import alone, counted, of_clauses, passing_of, titled
from .findings import beside_others as words_beside_others
from .needs import Stated, meeting, stated

_FIRST_RUN = re.compile(r"\(run 1 of \d+\b")
"""Pattern for messages whose first wrong element is in the first of several runs."""

_OF_RUNS = frozenset({"reruns", "session"})
"""Fields that add runs to a session."""


def by_fault(causes: Sequence[Cause], findings: Sequence[Finding]) -> tuple[dict[str, Cause], list[Cause]]:
    """Return the best cause of each finding with a fault, by fault, and the remaining causes."""
    names = {finding["fault"] for finding in findings if finding["fault"]}
    named: dict[str, Cause] = {}
    left: list[Cause] = []
    for cause in causes:
        name = next((id for id in (cause.fault, cause.finding["fault"]) if id in names), "")
        if name and (name not in named or _rank(cause, name) < _rank(named[name], name)):
            named[name] = cause
        # A refuted or withdrawn fault no longer explains its cases.
        if not name and not cause.refuted and (cause.predicted or not cause.finding["fault"]):
            left.append(cause)
    return named, left


def _rank(cause: Cause, name: str) -> tuple[bool, int, bool, tuple[float, int]]:
    """Return the sort key of a cause of a fault: confirmed ones come first, then small ones."""
    return name != cause.fault, -cause.predicted, not cause.said, cause.shrunk.one.probe.size


def beside_others(cause: Cause, context: DiagnosisContext) -> Cause:
    """Return a cause whose title says that its fault occurs beside others, if none of its cases is a result of the run.
    Then the fault is confirmed on the smallest and on fresh cases, and the run's cases show other faults too."""
    if not cause.predicted or all(context.kept.get(case) is None for case in cause.finding["cases"]):
        return cause
    return replace(cause, what=words_beside_others(cause.what))


def divided(finding: Finding, causes: Sequence[Cause], context: DiagnosisContext) -> Iterator[Finding]:
    """Yield a finding for each of its causes, with the cases that have it, and last one for the remaining cases. A case
    that was not examined gets the first cause whose conditions it meets."""
    left = dict.fromkeys(finding["cases"])
    by_case = {r.case: r for r in context.results}
    ordered = sorted(causes, key=lambda cause: not cause.said)
    sought = {case for cause in ordered if cause.said for case in cause.finding["cases"]}
    for cause in ordered:
        members = [case for case in cause.finding["cases"] if case in left]
        ops = {context.probes[case].op for case in members}
        rest = (context.probes[case] for case in left if case not in sought)
        further = meeting(cause.shrunk.needs, (probe for probe in rest if probe.op in ops)) if cause.said else []
        results = [by_case[case] for case in (*members, *(probe.id for probe in further))]
        if results:
            for result in results:
                del left[result.case]
            yield stated_finding(cast(Finding, {**cause.finding, **counted(results)}), cause, context)
    if len(left) == len(finding["cases"]):
        yield finding
    elif left:
        yield alone([by_case[case] for case in left], context.results, context.probes)


def stated_finding(finding: Finding, cause: Cause, context: DiagnosisContext) -> Finding:
    """Return a finding with the statement of its cause."""
    shrunk = cause.shrunk
    probe, judgement = shrunk.one.probe, shrunk.one.judgement
    finding = cast(Finding, {**finding, **_named(finding, cause)})
    if probe.id != finding["smallest"]:
        context.probes[probe.id] = probe
        context.kept.offer(shrunk.one)
        message = of_clauses(judgement.message, finding["clauses"])
        smallest = {"smallest": probe.id, "message": message, "repeat": context.repeat(probe)}
        finding = cast(Finding, {**finding, **smallest})
    if cause.pattern and fault_named(finding["fault"]) is None:
        what = f"{finding['what']}, {cause.pattern}"
        finding = cast(Finding, {**finding, "what": what, "place": cause.pattern})
    if not cause.said:
        return cast(Finding, {**finding, "title": titled(finding, finding["conditions"], tried=False)})
    state = _stated(finding, cause, context)
    conditions = " and ".join(c.words for c in state.conditions if c.words and not mentions(finding["what"], c.words))
    with_conditions = {
        **finding,
        "title": titled(finding, conditions, tried=True, passing=state.passing),
        "conditions": conditions,
        "passing": state.passing,
        "tried": True,
        "tries": shrunk.tries,
        "searched": cause.searched,
        "needs": [
            {
                "field": need.field,
                "value": str(need.value),
                "instead": [str(other) for other in need.instead],
                "verdict": need.verdict.value,
            }
            for need in shrunk.needs
        ],
    }
    return cast(Finding, with_conditions)


def _named(finding: Finding, cause: Cause) -> dict[str, Any]:
    """Return the keys of a finding that depend on the fault of its cause."""
    if finding["fault"] and finding["fault"] == cause.fault:
        return {"foretold": cause.predicted}
    keys = {"fault": cause.fault, "what": cause.what, "foretold": cause.predicted}
    return keys if cause.predicted or not finding["fault"] else {}


def _stated(finding: Finding, cause: Cause, context: DiagnosisContext) -> Stated:
    members: list[Probe] = [*(context.probes[case] for case in finding["cases"]), cause.shrunk.one.probe]
    ops = {probe.op for probe in members}
    passing: list[Probe] = [context.probes[r.case] for r in passing_of(context.results, context.probes) if r.op in ops]
    fault = fault_named(finding["fault"]) if finding["fault"] else None
    shows = partial(would_show, fault) if fault is not None else (lambda probe: True)
    # An earlier run is no condition of an error that begins in the first one.
    first = _FIRST_RUN.search(cause.shrunk.one.judgement.message)
    needs = [need for need in cause.shrunk.needs if not (first and need.field in _OF_RUNS)]
    return stated(needs, members, [*passing, *cause.passing], shows, cause.shrunk.absent)


def mentions(sentence: str, words: str) -> bool:
    """Return whether a sentence already contains the words, or the name of the tensor in them: ``peepholes P``."""
    name = re.fullmatch(r"\w+ ([A-Z]\w*)", words)
    return words.casefold() in sentence.casefold() or bool(name and re.search(rf"\b{name[1]}\b", sentence))

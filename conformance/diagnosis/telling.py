"""Telling: the findings of a run, now that causes of some failures are known.

What has foretold fresh cases is a fact, so that results which nothing explains, or only a guess does, are held against
all facts once more. Then each finding states the conditions that all of its cases meet, and whether anything passes
that meets them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import cast

from msgspec import structs

from ...reference import Fault, fault_named
from ..probes.probe import Probe
from ..results.records import Finding
from ..results.result import Result
from .causes import Cause, Subject, causes_of, is_open
from .conditions import would_show
from .experiments import Budget
from .explainer import explained_by
from .failing_case import DIAGNOSED
from .findings import alone, counted, findings_of, passing_of, titled
from .needs import Stated, stated

__all__ = ["with_causes"]


def with_causes(findings: Sequence[Finding], subject: Subject, budget: Budget) -> tuple[list[Finding], list[Result]]:
    """The findings, those that time was enough for with their smallest case and what it cannot do without; and those
    results that are explained otherwise than before."""
    causes = causes_of(findings, subject, budget)
    better = _amended(causes, subject)
    results = [better.get(r.case, r) for r in subject.results]
    probes = dict(subject.probes)
    base = findings_of(results, probes) if better else list(findings)
    by_fault, left = _by_fault(causes, base)
    told: list[Finding] = []
    for finding in base:
        if finding["fault"]:
            cause = by_fault.get(finding["fault"])
            told.append(finding if cause is None else _told(finding, cause, results, subject))
        elif is_open(finding, probes):
            told += _divided(finding, left, results, subject)
        else:
            told.append(finding)
    return told, list(better.values())


def _amended(causes: Sequence[Cause], subject: Subject) -> dict[str, Result]:
    """The results that facts explain otherwise than was thought, by case. What a list of known failures expects is left
    as it is."""
    facts = [d for d in (fault_named(c.fault) for c in causes if c.foretold) if isinstance(d, Fault)]
    sure = {fault.id for fault in facts}
    refuted = {cause.fault for cause in causes if cause.refuted} - sure
    if not facts and not refuted:
        return {}
    settled = (r for r in subject.results if r.diagnosis and (r.expected or sure >= {*r.diagnosis}))
    done = {result.case for result in settled}
    open_ = [r for r in subject.results if r.verdict in DIAGNOSED and r.case not in done]
    known = _known(subject.results, refuted)
    instead = explained_by(facts, open_, subject.results, subject.probes, subject.kept, subject.accuracy)
    unexplained = [r for r in open_ if r.case not in instead and (not r.diagnosis or refuted & {*r.diagnosis})]
    both = [*facts, *(d for d in known if d not in facts)]
    instead |= explained_by(both, unexplained, subject.results, subject.probes, subject.kept, subject.accuracy)
    instead |= {r.case: () for r in unexplained if r.case not in instead}
    return {r.case: structs.replace(r, diagnosis=instead[r.case]) for r in open_ if _differs(r, instead)}


def _differs(result: Result, instead: Mapping[str, tuple[str, ...]]) -> bool:
    return instead.get(result.case, result.diagnosis) != result.diagnosis


def _known(results: Iterable[Result], refuted: Iterable[str]) -> list[Fault]:
    ids = dict.fromkeys(id for r in results for id in r.diagnosis if id not in refuted)
    return [d for d in map(fault_named, ids) if isinstance(d, Fault) and not d.accepts]


def _by_fault(causes: Sequence[Cause], base: Sequence[Finding]) -> tuple[dict[str, Cause], list[Cause]]:
    """For each finding that has a name the cause that tells most of it; and the causes that are left."""
    names = {finding["fault"] for finding in base if finding["fault"]}
    by_fault: dict[str, Cause] = {}
    left: list[Cause] = []
    for cause in causes:
        name = next((n for n in (cause.fault, cause.finding["fault"]) if n in names), "")
        if not name:
            left.append(cause)
        elif name not in by_fault or _rank(cause, name) < _rank(by_fault[name], name):
            by_fault[name] = cause
    return by_fault, left


def _rank(cause: Cause, name: str) -> tuple[bool, int, bool, tuple[float, int]]:
    """What tells most of a fault comes first: what foretold it, and what is small."""
    return cause.fault != name, -cause.foretold, not cause.said, cause.shrunk.one.probe.size


def _divided(
    finding: Finding, causes: Sequence[Cause], results: Sequence[Result], subject: Subject
) -> Iterator[Finding]:
    """A finding by its causes, each with the cases that have it, and last what is left."""
    left = dict.fromkeys(finding["cases"])
    by_case = {r.case: r for r in results}
    for cause in causes:
        mine = [by_case[case] for case in cause.finding["cases"] if case in left]
        if mine:
            for result in mine:
                del left[result.case]
            yield _told(cast(Finding, {**cause.finding, **counted(mine)}), cause, results, subject)
    if len(left) == len(finding["cases"]):
        yield finding
    elif left:
        yield alone([by_case[case] for case in left], results, subject.probes)


def _told(finding: Finding, cause: Cause, results: Sequence[Result], subject: Subject) -> Finding:
    """A finding with its cause."""
    shrunk = cause.shrunk
    probe, judgement = shrunk.one.probe, shrunk.one.judgement
    own = {"fault": cause.fault, "what": cause.what, "foretold": cause.foretold}
    finding = cast(Finding, {**finding, **own}) if cause.foretold or not finding["fault"] else finding
    if probe.id != finding["smallest"]:
        subject.probes[probe.id] = probe
        subject.kept.offer(shrunk.one)
        smallest = {"smallest": probe.id, "message": judgement.message, "repeat": subject.repeat(probe)}
        finding = cast(Finding, {**finding, **smallest})
    if not cause.said:
        return cast(Finding, {**finding, "title": titled(finding, finding["conditions"], tried=False)})
    state = _stated(finding, cause, results, subject)
    conditions = " and ".join(c.words for c in state.conditions if not _mentions(finding["what"], c.words))
    told = {
        **finding,
        "title": titled(finding, conditions, tried=True, passing=state.passing),
        "conditions": conditions,
        "passing": state.passing,
        "tried": True,
        "tries": shrunk.tries,
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
    return cast(Finding, told)


def _stated(finding: Finding, cause: Cause, results: Sequence[Result], subject: Subject) -> Stated:
    members: list[Probe] = [*(subject.probes[case] for case in finding["cases"]), cause.shrunk.one.probe]
    ops = {probe.op for probe in members}
    passing: list[Probe] = [subject.probes[r.case] for r in passing_of(results, subject.probes) if r.op in ops]
    fault = fault_named(finding["fault"]) if finding["fault"] else None
    shows = partial(would_show, fault) if isinstance(fault, Fault) else (lambda probe: True)
    return stated(cause.shrunk.needs, members, [*passing, *cause.passing], shows)


def _mentions(sentence: str, words: str) -> bool:
    """Whether a sentence has some words already, or the input's name that they end with."""
    name = re.search(r"\b([A-Z])$", words)
    return words.casefold() in sentence.casefold() or bool(name and re.search(rf"\b{name[1]}\b", sentence))

"""Telling: the findings of a run, now that causes of some failures are known.

What has foretold fresh cases is a fact, so that results which nothing explains, or only a guess does, are held against
all facts once more. Then each finding states the conditions that all of its cases meet, and whether anything passes
that meets them too.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from msgspec import structs

from ...reference import Fault, fault_named
from ..judging.judgement import Verdict
from ..probes.probe import Probe
from ..results.records import Finding
from ..results.result import Result
from .causes import Cause, Subject, causes_of, is_open
from .conditions import would_show
from .experiments import HYPOTHESIS, Budget
from .explainer import explained_by, failing_cases_of, searched_again
from .failing_case import DIAGNOSED
from .findings import alone, beside_others, counted, exercising_of, findings_of, joined, passing_of, titled
from .needs import Stated, meeting, stated
from .places import looks_of, places_in_words

__all__ = ["with_causes"]


_ROUNDS = 2
"""Number of times that causes are looked for: of the findings, and of those that are left once names are confirmed."""


def with_causes(findings: Sequence[Finding], subject: Subject, budget: Budget) -> tuple[list[Finding], list[Result]]:
    """The findings, those that the budget was enough for with their smallest case and what it cannot do without; and
    those results that are explained otherwise than before."""
    causes: list[Cause] = []
    better: dict[str, Result] = {}
    asked: set[tuple[str, str]] = set()
    before = subject.results
    for number in range(_ROUNDS):
        new = [f for f in findings if (f["fault"], f["smallest"]) not in asked]
        asked |= {(f["fault"], f["smallest"]) for f in new}
        causes += causes_of(new, subject, budget if number == _ROUNDS - 1 else budget.part(_PART))
        changed = _amended(causes, subject, budget)
        better |= changed
        subject = replace(subject, results=[better.get(r.case, r) for r in before])
        if not changed:
            break
        findings = findings_of(subject.results, dict(subject.probes))
    doubtful = _doubtful(causes, subject, {fault for fault, _ in asked})
    if doubtful:
        better |= doubtful
        subject = replace(subject, results=[better.get(r.case, r) for r in before])
        findings = findings_of(subject.results, dict(subject.probes))
    by_fault, left = _by_fault(causes, findings)
    left = [_beside_others(cause, subject) for cause in left]
    told: list[Finding] = []
    for finding in findings:
        if finding["fault"]:
            cause = by_fault.get(finding["fault"])
            told.append(finding if cause is None else _told(finding, cause, subject))
        elif is_open(finding, subject.probes):
            told += _divided(finding, left, subject)
        else:
            told.append(finding)
    return joined(told, subject.results), list(better.values())


def _doubtful(causes: Sequence[Cause], subject: Subject, asked: Container[str]) -> dict[str, Result]:
    """The results of which a fault is thought that foretold nothing, that no case shows alone, and few beside others:
    of so many faults some two explain a few cases by chance. So does one, which was asked about, what comes and goes.
    They are left without a name."""
    sure = {id for cause in causes if cause.foretold for id in cause.faults}
    thought = [r for r in subject.results if r.verdict in DIAGNOSED and r.diagnosis and not r.expected]
    counts = Counter(id for r in thought for id in r.diagnosis)
    alone = {r.diagnosis[0] for r in thought if len(r.diagnosis) == 1}
    doubtful = {id for id, count in counts.items() if count < _ENOUGH and id not in sure | alone}
    comes = (id for r in thought if r.verdict is Verdict.UNSTABLE for id in r.diagnosis)
    doubtful |= {id for id in comes if id in asked and id not in sure}
    return {r.case: structs.replace(r, diagnosis=()) for r in thought if doubtful & {*r.diagnosis}}


_ENOUGH = 3
"""Cases that two faults explain together, of fewer of which neither is told."""

_PART = 0.7
"""The part of what is left of the budget that one round may take."""


def _amended(causes: Sequence[Cause], subject: Subject, budget: Budget) -> dict[str, Result]:
    """The results that facts explain otherwise than was thought, by case. What a list of known failures expects is left
    as it is. Faults are tried on what no fact explains as long as the budget lasts.
    """
    facts = [d for c in causes if c.foretold for d in map(fault_named, c.faults) if isinstance(d, Fault)]
    facts = list(dict.fromkeys(facts))
    sure = {fault.id for fault in facts}
    refuted = ({cause.fault for cause in causes if cause.refuted} | set(_contradicted(subject))) - sure
    if not facts and not refuted:
        return {}
    settled = (r for r in subject.results if r.diagnosis and (r.expected or sure >= {*r.diagnosis}))
    done = {result.case for result in settled}
    open_ = [r for r in subject.results if r.verdict in DIAGNOSED and r.case not in done]
    everything = subject.results, subject.probes, subject.kept, subject.accuracy, subject.arithmetics
    instead = explained_by(facts, open_, *everything)
    unexplained = [r for r in open_ if r.case not in instead and (not r.diagnosis or refuted & {*r.diagnosis})]
    thought = [d for d in _known(subject.results, refuted) if d not in facts]
    instead |= explained_by([*facts, *thought], unexplained, *everything)
    left = [r for r in unexplained if r.case not in instead]
    if budget.left > 0 and left:
        again, spent = searched_again(facts, left, *everything, budget.left / HYPOTHESIS)
        budget.spend(HYPOTHESIS * spent)
        instead |= {case: ids for case, ids in again.items() if not refuted & {*ids}}
    instead |= {r.case: () for r in unexplained if r.case not in instead}
    return {r.case: structs.replace(r, diagnosis=instead[r.case]) for r in open_ if _differs(r, instead)}


def _contradicted(subject: Subject) -> Iterator[str]:
    """The faults that explain results, of which no list speaks, and that more cases would show which pass."""
    explained: dict[str, list[Result]] = {}
    for result in subject.results:
        for id in result.diagnosis if result.verdict in DIAGNOSED and not result.expected else ():
            explained.setdefault(id, []).append(result)
    passing = passing_of(subject.results, subject.probes)
    for id, members in explained.items():
        fault = fault_named(id)
        if isinstance(fault, Fault) and not fault.accepts:
            ops = {result.op for result in members}
            exercising = exercising_of(fault, ops, passing, subject.probes)
            shown = (probe for probe in exercising if would_show(fault, probe))
            if len(list(itertools.islice(shown, len(members) + 1))) > len(members):
                yield id


def _differs(result: Result, instead: Mapping[str, tuple[str, ...]]) -> bool:
    return instead.get(result.case, result.diagnosis) != result.diagnosis


def _known(results: Iterable[Result], refuted: Iterable[str]) -> list[Fault]:
    ids = dict.fromkeys(id for r in results for id in r.diagnosis if id not in refuted)
    return [d for d in map(fault_named, ids) if isinstance(d, Fault) and not d.accepts]


def _by_fault(causes: Sequence[Cause], base: Sequence[Finding]) -> tuple[dict[str, Cause], list[Cause]]:
    """The cause that tells most of a finding, of each that has a name; and the causes that are left."""
    names = {finding["fault"] for finding in base if finding["fault"]}
    by_fault: dict[str, Cause] = {}
    left: list[Cause] = []
    for cause in causes:
        of = [n for n in cause.faults if n in names] or [n for n in (cause.finding["fault"],) if n in names]
        for name in of:
            if name not in by_fault or _rank(cause, name) < _rank(by_fault[name], name):
                by_fault[name] = cause
        # A name that is refuted, or was given up, is no longer that of its cases.
        if not of and not cause.refuted and (cause.foretold or not cause.finding["fault"]):
            left.append(cause)
    return by_fault, left


def _beside_others(cause: Cause, subject: Subject) -> Cause:
    """Return a cause of which no result is with words for that: its name is confirmed on the smallest case and on fresh
    ones, and in the cases from which that was made other faults show, too."""
    if not cause.foretold or all(subject.kept.get(case) is None for case in cause.finding["cases"]):
        return cause
    return replace(cause, what=beside_others(cause.what))


def _rank(cause: Cause, name: str) -> tuple[bool, int, int, bool, tuple[float, int]]:
    """The order in which what tells most of a fault comes first: what foretold it alone, and what is small."""
    return name not in cause.faults, len(cause.faults), -cause.foretold, not cause.said, cause.shrunk.one.probe.size


def _divided(finding: Finding, causes: Sequence[Cause], subject: Subject) -> Iterator[Finding]:
    """A finding by its causes, each with the cases that have it, and last what is left. A case about which nothing was
    to be tried has the first cause whose conditions it meets."""
    left = dict.fromkeys(finding["cases"])
    by_case = {r.case: r for r in subject.results}
    ordered = sorted(causes, key=lambda cause: not cause.said)
    sought = {case for cause in ordered if cause.said for case in cause.finding["cases"]}
    for cause in ordered:
        own = [case for case in cause.finding["cases"] if case in left]
        ops = {subject.probes[case].op for case in own}
        rest = (subject.probes[case] for case in left if case not in sought)
        alike = meeting(cause.shrunk.needs, (probe for probe in rest if probe.op in ops)) if cause.said else []
        mine = [by_case[case] for case in (*own, *(probe.id for probe in alike))]
        if mine:
            for result in mine:
                del left[result.case]
            yield _told(cast(Finding, {**cause.finding, **counted(mine)}), cause, subject)
    if len(left) == len(finding["cases"]):
        yield finding
    elif left:
        yield alone([by_case[case] for case in left], subject.results, subject.probes)


def _told(finding: Finding, cause: Cause, subject: Subject) -> Finding:
    """A finding with its cause."""
    shrunk = cause.shrunk
    probe, judgement = shrunk.one.probe, shrunk.one.judgement
    finding = cast(Finding, {**finding, **_named(finding, cause)})
    if probe.id != finding["smallest"]:
        subject.probes[probe.id] = probe
        subject.kept.offer(shrunk.one)
        smallest = {"smallest": probe.id, "message": judgement.message, "repeat": subject.repeat(probe)}
        finding = cast(Finding, {**finding, **smallest})
    place = _place(finding, cause, subject)
    if place:
        finding = cast(Finding, {**finding, "what": f"{finding['what']}, {place}", "place": place})
    if not cause.said:
        return cast(Finding, {**finding, "title": titled(finding, finding["conditions"], tried=False)})
    state = _stated(finding, cause, subject)
    conditions = " and ".join(c.words for c in state.conditions if not _mentions(finding["what"], c.words))
    told = {
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
    return cast(Finding, told)


def _place(finding: Finding, cause: Cause, subject: Subject) -> str:
    """Where its failures show, in words, as far as that is so in all of its cases; empty where it is nowhere."""
    places = list(cause.places) if fault_named(finding["fault"]) is None else []
    members = {*finding["cases"]}
    chosen = [r for r in subject.results if r.case in members] if places else []
    for case in failing_cases_of(chosen, subject.probes, subject.kept):
        looks = looks_of(case, (subject.accuracy, *subject.arithmetics.get(case.type, ())))
        places = [place for place in places if place.holds(looks)]
    return places_in_words(places)


def _named(finding: Finding, cause: Cause) -> dict[str, Any]:
    """The words of a cause on the name of its finding."""
    if finding["fault"] in cause.faults:
        return {"foretold": cause.foretold}
    own = {"fault": cause.fault, "what": cause.what, "foretold": cause.foretold}
    return own if cause.foretold or not finding["fault"] else {}


def _stated(finding: Finding, cause: Cause, subject: Subject) -> Stated:
    members: list[Probe] = [*(subject.probes[case] for case in finding["cases"]), cause.shrunk.one.probe]
    ops = {probe.op for probe in members}
    passing: list[Probe] = [subject.probes[r.case] for r in passing_of(subject.results, subject.probes) if r.op in ops]
    fault = fault_named(finding["fault"]) if finding["fault"] else None
    shows = partial(would_show, fault) if isinstance(fault, Fault) else (lambda probe: True)
    return stated(cause.shrunk.needs, members, [*passing, *cause.passing], shows, cause.shrunk.absent)


def _mentions(sentence: str, words: str) -> bool:
    """Tell whether a sentence has some words already, or the input's name that they end with."""
    name = re.search(r"\b([A-Z])$", words)
    return words.casefold() in sentence.casefold() or bool(name and re.search(rf"\b{name[1]}\b", sentence))

"""Diagnosis of a run: its findings with their smallest cases, and the faults that fresh cases confirm.

Results are matched with faults, clustered into findings, and the smallest case of each is confirmed on fresh cases.
Confirmed faults are then tried on the results that are still unexplained, once more. Each finding states the conditions
that all of its cases meet, and whether passing cases meet them too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from msgspec import structs

from ...cases.specs.family import SIZES
from ...reference import Fault, fault_named
from ..judging.judgement import Verdict
from ..probes.probe import Probe
from ..probes.stream import CaseRun
from ..results.evidence import Kept
from ..results.expected.entries import Entry
from ..results.records import Finding
from ..results.result import Result, result_of
from ..targets.target import Target
from ..workers.job import TargetUnavailable
from ..workers.process import TargetProcess
from .causes import Cause, DiagnosisContext, causes_of, experiments_of, is_open
from .experiments import Budget
from .explainer import explained, failing_case_of_tried
from .failing_case import DIAGNOSED
from .findings import findings_of, joined
from .stating import beside_others, by_fault, divided, stated_finding

_MOST = 24
"""Maximum number of findings whose causes are searched."""

_ENOUGH = 3
"""Minimum number of cases for a fault that no case shows alone."""


def with_causes(
    findings: Sequence[Finding], context: DiagnosisContext, budget: Budget
) -> tuple[list[Finding], list[Result]]:
    """Return the findings, and the results whose explanation has changed. Findings within the budget have their
    smallest case and its needs."""
    before = context.results
    causes: list[Cause] = []
    asked: set[tuple[str, ...]] = set()
    for _ in range(_MOST):
        confirmed = tuple(sorted({cause.fault for cause in causes if cause.predicted}))
        # A fault may show in smaller sizes than a failure without a name.
        settled = {c.fault for c in causes if c.predicted and not any(need.field in SIZES for need in c.shrunk.needs)}
        left = [f for f in findings if is_open(f, context.probes) and f["fault"] not in settled]
        left = [f for f in left if _key(f, confirmed) not in asked]
        if not left or budget.left <= 0:
            break
        # Findings with a fault come first, because confirming them explains more results; expected ones come last.
        finding = min(left, key=lambda f: (bool(f["expected"]), not f["fault"], -len(f["cases"])))
        asked.add(_key(finding, confirmed))
        # Twice an equal share, because most findings use less than theirs.
        new = _guarded_causes(finding, context, budget.part(min(1.0, 2 / len(left))))
        causes += new
        if any(cause.predicted or cause.refuted for cause in new):
            context = context.amended(_assigned(causes, context))
            findings = findings_of(context.results, dict(context.probes))
    causes, fewer = _reduced(causes, context)
    context = context.amended(fewer)
    context = context.amended(_withdrawn(causes, context, {key[0] for key in asked}))
    findings = findings_of(context.results, dict(context.probes))
    better = [r for r, old in zip(context.results, before, strict=True) if r is not old]
    return joined(_stated(findings, causes, context), context.results), better


def _key(finding: Finding, confirmed: Sequence[str]) -> tuple[str, ...]:
    """Return the key of a search for causes. For an unexplained finding, it includes the confirmed faults."""
    return finding["fault"], finding["smallest"], *(() if finding["fault"] else confirmed)


def _guarded_causes(finding: Finding, context: DiagnosisContext, budget: Budget) -> list[Cause]:
    causes: list[Cause] = []
    try:
        causes.extend(causes_of(finding, context, budget))
    except (TargetUnavailable, OSError):
        raise
    except Exception as error:  # whatever it is, it is ours or the operator's, and costs this finding alone
        context.internal_error(f"experiments on {finding['smallest']}", error)
    return causes


def _stated(findings: Sequence[Finding], causes: Sequence[Cause], context: DiagnosisContext) -> Iterator[Finding]:
    named, left = by_fault(causes, findings)
    left = [beside_others(cause, context) for cause in left]
    for finding in findings:
        if finding["fault"]:
            cause = named.get(finding["fault"])
            yield finding if cause is None else stated_finding(finding, cause, context)
        elif is_open(finding, context.probes):
            yield from divided(finding, left, context)
        else:
            yield finding


def _assigned(causes: Sequence[Cause], context: DiagnosisContext) -> dict[str, Result]:
    """Return the results whose explanation changes through confirmed faults, by case. A confirmed fault explains a
    result alone; if nothing or a refuted fault explained it, also together with other known faults. Expected failures
    with an explanation keep it."""
    confirmed, sure, refuted = _confirmed_and_refuted(causes)
    unsettled = [r for r in context.results if r.verdict in DIAGNOSED and not (r.diagnosis and r.expected)]
    # Explanations are minimal, so confirmed faults that are a part of one do not explain its result alone.
    unsettled = [r for r in unsettled if not r.diagnosis or refuted & {*r.diagnosis} or _apart(sure, {*r.diagnosis})]
    names = {r.case: () if refuted & {*r.diagnosis} else r.diagnosis for r in unsettled}
    names |= _explained_by(confirmed, names, context)
    hypotheses = dict.fromkeys(id for r in context.results for id in r.diagnosis if id not in sure | refuted)
    faults = [d for d in map(fault_named, hypotheses) if d is not None and not d.accepts]
    if faults:
        names |= _explained_by([*confirmed, *faults], [case for case, ids in names.items() if not ids], context)
    return {r.case: structs.replace(r, diagnosis=names[r.case]) for r in unsettled if names[r.case] != r.diagnosis}


def _apart(ids: set[str], others: set[str]) -> bool:
    """Return whether neither of two sets contains the other."""
    return bool(ids - others and others - ids)


def _reduced(causes: Sequence[Cause], context: DiagnosisContext) -> tuple[list[Cause], dict[str, Result]]:
    """Return the causes without those whose fault is not needed: the other confirmed faults explain its smallest case
    and all of its results. Also return the results that they explain instead, by case."""
    left, better = list(causes), dict[str, Result]()
    counts = Counter(id for r in context.results for id in r.diagnosis)
    for cause in sorted((cause for cause in causes if cause.predicted), key=lambda cause: counts[cause.fault]):
        known = _confirmed_and_refuted([other for other in left if other.fault != cause.fault])[0]
        smallest = failing_case_of_tried(cause.shrunk.one)
        if not known or smallest is None:
            continue
        members = [r for r in context.results if cause.fault in better.get(r.case, r).diagnosis]
        if any(r.expected for r in members):
            continue  # a list of known failures names it
        names = context.matcher(known).names([smallest])
        if names and members:
            names |= _explained_by(known, [r.case for r in members], context)
        if smallest.case in names and all(r.case in names for r in members):
            left = [other for other in left if other.fault != cause.fault]
            better |= {r.case: structs.replace(r, diagnosis=names[r.case]) for r in members}
    return left, better


def _confirmed_and_refuted(causes: Iterable[Cause]) -> tuple[list[Fault], set[str], set[str]]:
    """Return the confirmed faults, their ids, and the ids of refuted faults."""
    ids = dict.fromkeys(cause.fault for cause in causes if cause.predicted)
    confirmed = [d for d in map(fault_named, ids) if d is not None]
    return confirmed, {*ids}, {cause.finding["fault"] for cause in causes if cause.refuted} - {*ids}


def _explained_by(
    known: Sequence[Fault], cases: Container[str], context: DiagnosisContext
) -> dict[str, tuple[str, ...]]:
    chosen = [case for case in context.failing_cases if case.case in cases]
    return context.matcher(known).names(chosen)


def _withdrawn(causes: Sequence[Cause], context: DiagnosisContext, asked: Container[str]) -> dict[str, Result]:
    """Return the results without their doubtful faults, by case. Confirmed faults are never doubtful.

    A fault is doubtful if no case shows it alone and it explains few cases, because some pair of faults fits by chance;
    if it explains an unstable result and experiments did not confirm it; or if more passing cases would show it than
    failing ones do.
    """
    _, confirmed, _ = _confirmed_and_refuted(causes)
    named = [r for r in context.results if r.verdict in DIAGNOSED and r.diagnosis and not r.expected]
    counts = Counter(id for r in named for id in r.diagnosis)
    alone = {r.diagnosis[0] for r in named if len(r.diagnosis) == 1}
    intermittent = (id for r in named if r.verdict is Verdict.UNSTABLE for id in r.diagnosis if id in asked)
    doubtful = {*intermittent, *(id for id, count in counts.items() if count < _ENOUGH and id not in alone)}
    for id in counts:
        fault = fault_named(id)
        if fault is not None and not fault.accepts:
            ops = {r.op for r in named if id in r.diagnosis}
            if sum(context.evidence.counterexamples(fault, op) for op in ops) > counts[id]:
                doubtful.add(id)
    doubtful -= confirmed
    return {r.case: structs.replace(r, diagnosis=()) for r in named if doubtful & {*r.diagnosis}}


def findings_of_case(
    one: CaseRun, target: Target, process: TargetProcess, repeat: Callable[[Probe], str], entries: Sequence[Entry] = ()
) -> list[Finding]:
    """Return the findings with a fault that explain a case, as a run of that case alone has them.

    entries
        The target's known failures.
    """
    probe, accuracy = one.probe, target.accuracy
    if one.judgement.verdict not in {*DIAGNOSED, Verdict.NOT_REJECTED}:
        return []
    kept, probes = Kept(), {probe.id: probe}
    kept.offer(one)
    result = result_of(probe, target.name, one.judgement, 0.0, None, repeat(probe))
    names = explained([result], probes, kept, accuracy, entries)
    results = [structs.replace(result, diagnosis=names.get(probe.id, ()))]
    context = DiagnosisContext(process, accuracy, repeat, results, probes, kept)
    findings, _ = with_causes(findings_of(results, probes), context, experiments_of(results))
    return [finding for finding in findings if finding["fault"]]

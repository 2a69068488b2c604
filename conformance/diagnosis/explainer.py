"""Names of failing results without asking the target: by a list of known failures, by an accuracy class, or by the
matcher."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from ...reference import FAULTS, Fault, fault_named, faults_of
from ..judging.judgement import UNTRIED, WITHOUT_RUN, Judgement, Verdict
from ..judging.runs import view_of
from ..probes.probe import Probe
from ..probes.stream import CaseRun
from ..results.evidence import Kept
from ..results.expected.entries import Entry, listed_faults, suspects
from ..results.result import Result
from ..workers.process import Outcome
from .failing_case import DIAGNOSED, FailingCase, ReportInternalError, failing_case_of, reraise
from .match import Explanation, Matcher, ObservedCases
from .target_evidence import TargetEvidence

__all__ = ["Explainer", "accepting", "effort_of", "explained", "failing_case_of_tried", "failing_cases_of"]

# A run costs each case more than 12 hypotheses do, of some 0.4 ms: building it, running it twice, judging it by several
# interpretations. To start it, and to write what it shows, costs as much as some thousands.
_EFFORT, _EACH = 1500, 12

_FEW, _TABLE, _PRODUCTS = 4, 1500, 50_000
"""Failing cases up to which each has an effort of its own: so many hypotheses, times what one costs by the case's
multiplications. A run of a model has few cases, and no other one can show what is wrong."""


def effort_of(results: Iterable[Result]) -> float:
    """Return how many hypotheses a diagnosis of these results may try, in those of small cases."""
    return _EFFORT + _EACH * sum(r.verdict not in WITHOUT_RUN | UNTRIED for r in results)


def explained(
    results: Sequence[Result],
    probes: Mapping[str, Probe],
    kept: Kept,
    accuracy: str,
    entries: Sequence[Entry] = (),
    internal_error: ReportInternalError = reraise,
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the faults that explain all failing cases together, by case, as far as what the target
    returned is still at hand. A forbidden model that ran is explained by not looking at what it breaks.

    entries
        The target's known failures. A case that they cover is explained by the faults that they name for it, if these
        do; the matcher takes them for faults of the target, which no case has to show first.
    """
    taken = (r for r in results if r.verdict is Verdict.NOT_REJECTED)
    accepted = {r.case: faults for r in taken if (faults := accepting(r.op, r.version, r.clause))}
    failing = failing_cases_of(results, probes, kept, internal_error)
    evidence = TargetEvidence(accuracy, results, probes)
    by_class = _by_class(evidence, {case.case: case for case in failing})
    failing = [case for case in failing if case.case not in by_class]
    observed = ObservedCases(evidence)
    listed = _as_listed(failing, entries, observed)
    failing = [case for case in failing if case.case not in listed]
    effort, per_case = effort_of(results), 0.0
    if 0 < len(failing) <= _FEW:
        costs = (1 + case.observation(accuracy).size // _PRODUCTS for case in failing)
        effort = per_case = max(effort, _TABLE * sum(costs))
    # Arithmetic that shows in some results is in those, too, where other faults hide it, or functions that saturate.
    shown = [d for id in sorted({*itertools.chain(*by_class.values())}) if (d := fault_named(id)) is not None]
    matcher = Matcher(observed, effort, [*shown, *_suspected(suspects(entries))], internal_error, per_case)
    return {**accepted, **by_class, **listed, **matcher.names(failing)}


def _suspected(patterns: Sequence[str]) -> list[Fault]:
    """Return the faults that patterns name and that show in what is returned."""
    scoped = (d for name in patterns if name not in FAULTS and (d := fault_named(name)) is not None)
    every = (*FAULTS.values(), *scoped) if patterns else ()
    return [d for d in every if not d.accepts and any(fnmatchcase(d.id, pattern) for pattern in patterns)]


def _as_listed(
    failing: Iterable[FailingCase], entries: Sequence[Entry], observed: ObservedCases
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the faults that entries name for cases, for those cases that they explain."""
    evidence = observed.evidence
    by_case = {result.case: result for result in evidence.results}
    listed: dict[str, tuple[str, ...]] = {}
    for case in failing if entries else ():
        faults = listed_faults(entries, evidence.probes[case.case], by_case[case.case])
        explanation = _by_listed(case, faults, observed) if faults else None
        if explanation is not None:
            listed[case.case] = tuple(fault.id for fault in explanation)
    return listed


def _by_listed(case: FailingCase, faults: Sequence[Fault], observed: ObservedCases) -> Explanation | None:
    """Return the explanation of a case by some faults alone: by all of them that affect it, or by fewer. A list of
    known failures that was written from such an explanation is then read as it was written."""
    matcher = Matcher(observed, math.inf, [*faults])
    return matcher.by_all(case) or matcher.by_known(case)


def _by_class(evidence: TargetEvidence, failing_cases: Mapping[str, FailingCase]) -> dict[str, tuple[str, ...]]:
    """Return the results that are right by a wider class alone, which is the arithmetic that a fault consists in."""
    named: dict[str, tuple[str, ...]] = {}
    for result in evidence.results:
        if result.verdict is Verdict.INACCURATE and result.accuracy:
            faults = faults_of(result.op, result.version, result.type)
            classes = (d for d in faults if d.within == result.accuracy)
            fault = next((d for d in classes if not evidence.counterexamples(d, result.op)), None)
            case = failing_cases.get(result.case)
            if fault is None or (fault.layer == "arithmetic" and case is not None and not case.computed_in(fault)):
                continue
            named[result.case] = (fault.id,)
    return named


def failing_cases_of(
    results: Iterable[Result], probes: Mapping[str, Probe], kept: Kept, internal_error: ReportInternalError = reraise
) -> list[FailingCase]:
    """Return the results that rest on what a target returned, as far as that is at hand."""
    failing = []
    for result in results:
        outcomes = kept.get(result.case) if result.verdict in DIAGNOSED else None
        if outcomes is not None and result.case in probes:
            try:
                case = _failing_case(probes[result.case], *outcomes, result.verdict is Verdict.INACCURATE)
            except Exception as error:  # whatever it is, it is ours or the operator's, and costs this case alone
                internal_error(f"diagnosis of {result.case}", error)
            else:
                failing += [case] if case is not None else []
    return failing


def failing_case_of_tried(one: CaseRun, slight: bool = False) -> FailingCase | None:
    """Return the case with what the target returned; None where it returned nothing."""
    return _failing_case(one.probe, one.judgement, one.outcomes, slight)


def _failing_case(probe: Probe, judgement: Judgement, outcomes: Sequence[Outcome], slight: bool) -> FailingCase | None:
    trials = probe.prepare().trials
    if not trials:
        return None
    own = view_of(trials, outcomes, judgement).own
    return failing_case_of(probe.id, *own, probe.clauses, probe.size, slight)


def accepting(op: str, version: int, clause: str | None) -> tuple[str, ...]:
    """Return the faults that consist in taking models that a clause forbids."""
    return tuple(d.id for d in faults_of(op, version) if d.accepts and d.clause(op) == clause)


class Explainer:
    """Explains one failing case after the other: what explained earlier ones is tried first."""

    def __init__(self, accuracy: str, effort: float, entries: Sequence[Entry] = (), each: float = 0) -> None:
        """`effort` is how many hypotheses may be tried, all in all, and `each` how many at least on any case, whatever
        is left; `entries` are the target's known failures, see :func:`explained`."""
        self._matcher = Matcher(ObservedCases(TargetEvidence(accuracy)), effort, _suspected(suspects(entries)))
        self._entries, self._each = entries, each

    def explain(self, one: CaseRun) -> tuple[str, ...]:
        """Return the ids of the faults that explain a case together; none where it does not fail, or nothing does."""
        probe, judgement = one.probe, one.judgement
        if judgement.verdict is Verdict.NOT_REJECTED:
            return accepting(probe.op, probe.version, judgement.clause)
        slight = judgement.verdict is Verdict.INACCURATE
        case = failing_case_of_tried(one, slight) if judgement.verdict in DIAGNOSED else None
        if case is None:
            return ()
        faults: Explanation | None = None
        if listed := listed_faults(self._entries, probe, judgement):
            faults = _by_listed(case, listed, self._matcher.observed)
        if faults is None:
            self._matcher.effort = max(self._matcher.effort, self._each)
            faults = self._matcher.explain(case)
        return tuple(fault.id for fault in faults or ())

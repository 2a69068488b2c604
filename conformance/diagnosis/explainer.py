"""Explanations of failing results without experiments: from a list of known failures, an accuracy class, or the
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
from .match import Matcher
from .observed_case import Explanation, ObservedCase, ObservedCases
from .target_evidence import TargetEvidence

# A run costs each case more than 12 hypotheses do, of some 0.4 ms: building it, running it twice, judging it by several
# interpretations. To start it, and to write what it shows, costs as much as some thousands.
_EFFORT, _EACH = 1500, 12

_FEW, _TABLE = 4, 1500
"""Maximum number of failing cases for which the effort depends on the cases: `_TABLE` hypotheses each, scaled by the
multiplications of the case. A run of a model has few cases, and no others show the fault."""


def effort_of(results: Iterable[Result]) -> float:
    """Return the number of hypotheses that a diagnosis of these results may try, in units of small cases."""
    return _EFFORT + _EACH * sum(r.verdict not in WITHOUT_RUN | UNTRIED for r in results)


def explained(
    results: Sequence[Result],
    probes: Mapping[str, Probe],
    kept: Kept,
    accuracy: str,
    entries: Sequence[Entry] = (),
    internal_error: ReportInternalError = reraise,
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the faults that explain each failing case together, by case, if its outputs are still in
    memory. The fault for a forbidden model that ran is the missing check.

    entries
        The target's known failures. The faults that they name for a case explain it if they fit its outputs. The
        matcher treats these faults as known from the start.
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
        costs = (case.observation(accuracy).cost for case in failing)
        effort = per_case = max(effort, _TABLE * sum(costs))
    # Arithmetic that some results show affects all results, even if other faults or saturation hide it.
    shown = [d for id in sorted({*itertools.chain(*by_class.values())}) if (d := fault_named(id)) is not None]
    matcher = Matcher(observed, effort, [*shown, *_suspected(suspects(entries))], internal_error, per_case)
    return {**accepted, **by_class, **listed, **matcher.names(failing)}


def _suspected(patterns: Sequence[str]) -> list[Fault]:
    """Return the faults that match patterns, except those that consist in accepting forbidden models."""
    scoped = (d for name in patterns if name not in FAULTS and (d := fault_named(name)) is not None)
    every = (*FAULTS.values(), *scoped) if patterns else ()
    return [d for d in every if not d.accepts and any(fnmatchcase(d.id, pattern) for pattern in patterns)]


def _as_listed(
    failing: Iterable[FailingCase], entries: Sequence[Entry], observed: ObservedCases
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the faults that entries name for cases, for the cases that these faults explain."""
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
    """Return an explanation of a case by given faults: by all that affect it, or by fewer. So an explanation that was
    written to a list of known failures is reproduced when the list is read."""
    matcher = Matcher(observed, math.inf, [*faults])
    return matcher.by_all(case) or matcher.by_known(case)


def _by_class(evidence: TargetEvidence, failing_cases: Mapping[str, FailingCase]) -> dict[str, tuple[str, ...]]:
    """Return the faults of results that a wider class accepts: the arithmetic of that class."""
    named: dict[str, tuple[str, ...]] = {}
    for result in evidence.results:
        if result.verdict is Verdict.INACCURATE and result.accuracy:
            faults = faults_of(result.op, result.version, result.type)
            classes = (d for d in faults if d.within == result.accuracy)
            fault = next((d for d in classes if not evidence.counterexamples(d, result.op, result.type)), None)
            case = failing_cases.get(result.case)
            if fault is None or (fault.layer == "arithmetic" and case is not None and not case.computed_in(fault)):
                continue
            named[result.case] = (fault.id,)
    return named


def failing_cases_of(
    results: Iterable[Result], probes: Mapping[str, Probe], kept: Kept, internal_error: ReportInternalError = reraise
) -> list[FailingCase]:
    """Return the failing cases of results that depend on a target's outputs, if these are still in memory."""
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
    """Return the failing case with its outputs; None if there are none."""
    return _failing_case(one.probe, one.judgement, one.outcomes, slight)


def _failing_case(probe: Probe, judgement: Judgement, outcomes: Sequence[Outcome], slight: bool) -> FailingCase | None:
    trials = probe.prepare().trials
    if not trials:
        return None
    view = view_of(trials, outcomes, judgement)
    case = failing_case_of(probe.id, *view.own, probe.clauses, probe.size, slight)
    wrong_output = (judgement.where or {}).get("output")
    if case is None or view.all_outputs is None or wrong_output in (None, *case.trial.node.outputs):
        return case
    # The case is about its own outputs, if these are wrong, too.
    if not ObservedCase(case, TargetEvidence("standard")).right:
        return case
    return failing_case_of(probe.id, *view.all_outputs, probe.clauses, probe.size, slight)


def accepting(op: str, version: int, clause: str | None) -> tuple[str, ...]:
    """Return the ids of the faults that accept models which a clause forbids."""
    return tuple(d.id for d in faults_of(op, version) if d.accepts and d.clause(op) == clause)


class Explainer:
    """Explainer of failing cases, one at a time; it first tries the faults of earlier cases."""

    def __init__(self, accuracy: str, effort: float, entries: Sequence[Entry] = ()) -> None:
        """`effort` is the number of hypotheses; `entries` are the target's known failures, as for :func:`explained`."""
        self._matcher = Matcher(ObservedCases(TargetEvidence(accuracy)), effort, _suspected(suspects(entries)))
        self._entries = entries

    def explain(self, one: CaseRun) -> tuple[str, ...]:
        """Return the ids of the faults that explain a case together; empty if it passes or has no explanation."""
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
            faults = self._matcher.explain(case)
        return tuple(fault.id for fault in faults or ())

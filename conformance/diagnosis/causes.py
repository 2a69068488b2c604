"""Causes: the smallest case of each finding, and the fault that fresh cases confirm.

The smallest case of each group of failures is reduced as far as possible (:mod:`.experiments`). The features that
remain are the conditions under which the failure occurs. Title, message, pictures and scripts then come from that case.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, cast

from ...cases.specs.family import SIZES
from ...reference import ACCURACY_CLASSES, Fault, fault_named, operator_version, versions_of
from ..judging.judgement import FAILING, UNTRIED, WITHOUT_RUN, Verdict
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import CaseRun, tried
from ..results.evidence import Kept
from ..results.records import Finding
from ..results.result import Result
from ..workers.process import TargetProcess
from .conditions import would_show
from .confirm import FreshCases, confirm
from .error_pattern import error_pattern
from .experiments import Budget, Shrunk, alike, shrink, variant
from .explainer import failing_case_of_tried, failing_cases_of
from .failing_case import DIAGNOSED, FailingCase, ReportInternalError, reraise
from .findings import alone
from .match import Matcher
from .needs import UNSAID, Need, axis_of, meeting, sizes_of
from .observed_case import ObservedCases
from .target_evidence import TargetEvidence

_SHARE = 0.5
"""Share of a run's cases that experiments may cost."""

_ALWAYS, _TIMES, _MOST = 600, 2, 1200
"""Budget after a small run, in cases: `_ALWAYS`, and `_TIMES` for each case of the run, at most `_MOST`. After a run
with unstable results the budget is `_MOST`."""

_KINDS = frozenset(v.value for v in FAILING - {Verdict.NOT_REJECTED})
_OFF = frozenset({Verdict.WRONG, Verdict.INACCURATE})
_CAUSES = 8
"""Maximum number of causes that are searched in one finding."""

_ASKED, _MISSED = 12, 0.02
"""Repetitions of a case that did not fail again, and the accepted probability of missing an intermittent failure."""

_OTHER_SIZES = 3
"""Maximum number of other sizes that are tried for a size on which a confirmed fault may depend."""

_EFFORT = 3000
"""Maximum number of hypotheses that are tried on a smallest case."""


@dataclass(frozen=True)
class DiagnosisContext:
    """Failures of one target, and the target on which experiments run.

    process
        The target's process, started or not.
    repeat
        Returns the command that repeats a case on the target.
    results
        All results of the target.
    probes, kept
        Probes of the results, by id, and the target's outputs. Both also get the smallest cases.
    internal_error
        Called with an exception in the suite's own code or an operator's. The finding then gets no experiments.
    """

    process: TargetProcess
    accuracy: str
    repeat: Callable[[Probe], str]
    results: Sequence[Result]
    probes: dict[str, Probe]
    kept: Kept
    internal_error: ReportInternalError = reraise

    @cached_property
    def evidence(self) -> TargetEvidence:
        return TargetEvidence(self.accuracy, self.results, self.probes)

    def run(self, probes: Sequence[SpecProbe], budget: Budget) -> Iterator[CaseRun]:
        """Run cases and charge them to the budget."""
        for one in tried(self.process, probes, self.accuracy):
            budget.spend_on(one)
            yield one

    def others(self, finding: Finding) -> list[Fault]:
        """Return the faults that explain other failures of the target. A target has its faults in every case."""
        ids = dict.fromkeys(id for r in self.results for id in r.diagnosis if id != finding["fault"])
        return [d for d in map(fault_named, ids) if d is not None and not d.accepts]

    @cached_property
    def observed(self) -> ObservedCases:
        return ObservedCases(self.evidence)

    @cached_property
    def failing_cases(self) -> list[FailingCase]:
        return failing_cases_of(self.results, self.probes, self.kept, self.internal_error)

    def matcher(self, known: Sequence[Fault], effort: float = 0.0) -> Matcher:
        """Return a matcher that tries known faults on failing cases and, with effort, other faults too."""
        return Matcher(self.observed, effort, [*known], self.internal_error)

    def amended(self, better: Mapping[str, Result]) -> DiagnosisContext:
        """Return the context with amended results, by case. Only their explanations may differ."""
        context = replace(self, results=[better.get(result.case, result) for result in self.results])
        context.__dict__.update(observed=self.observed, failing_cases=self.failing_cases, evidence=self.evidence)
        return context


@dataclass(frozen=True)
class Cause:
    """Cause of some failures, as far as experiments show it.

    finding
        The finding that was examined; its cases are those with this cause.
    what, fault, predicted
        As in a finding.
    searched
        Whether all faults were tried on the smallest case.
    refuted
        Whether fresh cases contradict the fault that explains the finding's cases.
    passing
        Fresh cases and tries that passed.
    pattern
        For a cause without a fault: which parts of the smallest case's outputs are wrong, in words.
    """

    finding: Finding
    shrunk: Shrunk
    what: str
    fault: str = ""
    predicted: int = 0
    searched: bool = False
    refuted: bool = False
    passing: tuple[SpecProbe, ...] = ()
    pattern: str = ""

    @property
    def said(self) -> bool:
        """Whether the reduction was completed or found a need."""
        return self.shrunk.complete or bool(self.shrunk.needs)


def experiments_of(results: Sequence[Result]) -> Budget:
    """Return the budget of experiments after a run with these results."""
    ran = sum(r.verdict not in WITHOUT_RUN | UNTRIED for r in results)
    varies = any(r.verdict is Verdict.UNSTABLE for r in results)
    return Budget(max(_SHARE * ran, _MOST if varies else min(_MOST, _ALWAYS + _TIMES * ran)))


def is_open(finding: Finding, probes: Mapping[str, Probe]) -> bool:
    """Return whether experiments are possible: the smallest case fails, is legal and comes from a spec."""
    probe = probes.get(finding["smallest"])
    return finding["kind"] in _KINDS and isinstance(probe, SpecProbe) and not probe.spec.illegal


def causes_of(finding: Finding, context: DiagnosisContext, budget: Budget) -> Iterator[Cause]:
    """Yield the causes of a finding's cases, one after the other, as far as the budget goes.

    Unexplained failures with the same signature may have several causes. Cases that lack a need of the smallest case
    have another cause. Nothing is yielded after a confirmed fault, because it may explain the other cases too.
    """
    results = {r.case: r for r in context.results}
    for _ in range(_CAUSES):
        if budget.left <= 0 or not is_open(finding, context.probes):
            return
        shrunk = _shrunk(finding, context, budget.part(0.7))
        if shrunk is None:
            return
        cause = _confirmed(finding, shrunk, context, budget)
        members = finding["cases"] if finding["fault"] else _members(finding, cause, context, budget)
        if not members or len(members) == len(finding["cases"]):
            yield cause
            return
        yield replace(cause, finding=alone([results[c] for c in members], context.results, context.probes))
        if cause.predicted:
            return
        others = [results[case] for case in finding["cases"] if case not in set(members)]
        finding = alone(others, context.results, context.probes)


def _members(finding: Finding, cause: Cause, context: DiagnosisContext, budget: Budget) -> list[str]:
    """Return the cases of a finding that meet the needs of the smallest one, of all operators in which that one
    fails."""
    probes = [context.probes[case] for case in finding["cases"]]
    probe = cause.shrunk.one.probe
    others = [op for op in finding["operators"] if op != probe.op]
    operators = {probe.op} | {op for op in others if _fails_in(op, cause, context, budget)}
    return [p.id for p in meeting(cause.shrunk.needs, probes) if p.op in operators]


def _fails_in(op: str, cause: Cause, context: DiagnosisContext, budget: Budget) -> bool:
    """Return whether the same case of another operator fails in the same way; False if there is no such case."""
    one = cause.shrunk.one
    assert isinstance(one.probe, SpecProbe)
    spec: Any = one.probe.spec
    if "op" not in {field.name for field in fields(spec)}:
        return False  # specs of a described operator have no field for another operator
    version = spec.version if spec.version in versions_of(op) else max(versions_of(op))
    other = variant(one.probe, op=op, version=version)
    return other is not None and any(map(alike(one), context.run([other], budget)))


def _confirmed(finding: Finding, shrunk: Shrunk, context: DiagnosisContext, budget: Budget) -> Cause:
    """Return the cause of a finding, with the fault that predicts the target's outputs in fresh cases, if there is
    one."""
    cause = Cause(finding, shrunk, finding["what"], finding["fault"], passing=shrunk.passed)
    verdict = shrunk.one.judgement.verdict
    if not shrunk.complete or verdict in (Verdict.CRASHED, Verdict.TIMED_OUT):
        return cause
    fixed = {need.field for need in shrunk.needs if need.field in SIZES and need.passed}
    without = [*_without(shrunk)]
    specs = [probe.spec for _, probe in without]
    accuracy = ACCURACY_CLASSES.get(shrunk.one.judgement.accuracy or "")
    slight = finding["verdict"] == Verdict.INACCURATE.value and accuracy is not None and accuracy.flushes
    fresh = FreshCases(shrunk.one, partial(context.run, budget=budget), fixed, specs, shrunk.passed, slight)
    if verdict not in DIAGNOSED:
        return replace(cause, passing=(*cause.passing, *fresh.passing))
    expected = fault_named(finding["fault"]) if finding["fault"] else None
    matcher = context.matcher(context.others(finding), _EFFORT)
    confirmation = confirm(fresh, matcher, expected, lambda: budget.left <= 0)
    cause = replace(cause, searched=confirmation.searched and expected is None, refuted=confirmation.refuted)
    cause = replace(cause, passing=(*cause.passing, *fresh.passing))
    fault = confirmation.fault
    if fault is None:
        case = failing_case_of_tried(shrunk.one)
        outputs = shrunk.one.prepared.trials[0].node.outputs
        return cause if case is None else replace(cause, pattern=error_pattern(context.observed[case], outputs))
    without += [pair for pair in _larger_without(finding, shrunk, context) if would_show(fault, pair[1])]
    fields = {probe.id: field for field, probe in without}
    failing = (one for one in context.run([probe for _, probe in without], budget) if one.judgement.verdict in FAILING)
    # A feature is no condition if the fault also shows without it.
    shown = {fields[one.probe.id] for one in failing if _explains(fault, matcher.known, context, one, needed=True)}
    if fault.id.partition("@")[2] in operator_version(fresh.probe.op, fresh.probe.version).outputs:
        shown.add("outputs")  # the fault's own words name the output
    shrunk = replace(shrunk, needs=tuple(need for need in shrunk.needs if need.field not in shown))
    needed = {need.field for need in shrunk.needs}
    sizes = (need for need in _sizes_needed(fault, fresh, context, budget) if need.field not in needed)
    shrunk = replace(shrunk, needs=(*shrunk.needs, *sizes))
    what = fault.summary.rstrip(".")
    return replace(cause, shrunk=shrunk, what=what, fault=fault.id, predicted=confirmation.cases)


def _sizes_needed(fault: Fault, fresh: FreshCases, context: DiagnosisContext, budget: Budget) -> Iterator[Need]:
    """Yield the sizes on which a confirmed fault depends, though the fault itself would show in others: a kernel may
    have it in sequences of one step only, and the smallest case has that size anyway."""
    passing = [probe for probe in fresh.passing if would_show(fault, probe)]
    spec: Any = fresh.probe.spec
    for name in sizes_of(spec) if passing else ():
        size = getattr(spec, name)
        seen = dict.fromkeys(getattr(probe.spec, name) for probe in passing)
        others = list(itertools.islice((other for other in seen if other != size), _OTHER_SIZES))
        nearest = min(others, key=lambda other: abs(other - size), default=size)
        # The size next to one that passes may be the least that fails.
        sizes = dict.fromkeys((*others, size + 1, nearest + (1 if nearest < size else -1)))
        controls = (variant(fresh.probe, **{name: other}) for other in sizes)
        passed, failed = set[int](), set[int]()
        for one in context.run([probe for probe in controls if probe is not None], budget):
            passes = one.judgement.verdict is Verdict.PASS and would_show(fault, one.probe)
            (passed if passes else failed).add(getattr(cast(SpecProbe, one.probe).spec, name))
        if passed and passed >= {*others}:
            failed |= {getattr(cast(SpecProbe, one.probe).spec, name) for one in fresh.failing}
            right, wrong = tuple(sorted(passed)), tuple(sorted(failed - passed))
            yield Need(name, size, right, Verdict.PASS, right, wrong, axis=axis_of(spec, name))


def _explains(
    fault: Fault, others: Sequence[Fault], context: DiagnosisContext, one: CaseRun, *, needed: bool = False
) -> bool:
    case = failing_case_of_tried(one)
    return case is not None and context.observed[case].explained_by(fault, others, needed=needed)


def _without(shrunk: Shrunk) -> Iterator[tuple[str, SpecProbe]]:
    """Yield field names and cases. Each case lacks one need and may still fail, in another way."""
    probe = shrunk.one.probe
    assert isinstance(probe, SpecProbe)
    for need in shrunk.needs:
        if need.verdict in FAILING and (other := variant(probe, **{need.field: need.instead[-1]})):
            yield need.field, other
        elif need.field == "outputs":
            yield from ((need.field, other) for other in _with_other_outputs(probe))


def _larger_without(finding: Finding, shrunk: Shrunk, context: DiagnosisContext) -> Iterator[tuple[str, SpecProbe]]:
    """Yield field names and cases like the finding's own example, which is larger than the smallest case. Each lacks
    one need: a coupled gate needs an initial state in one step, and none in several."""
    example = context.probes[finding["smallest"]]
    if isinstance(example, SpecProbe) and example.id != shrunk.one.probe.id:
        for need in shrunk.needs:
            other = variant(example, **{need.field: need.instead[-1]})
            if other is not None and need.field not in (*sizes_of(example.spec), *UNSAID):
                yield need.field, other


def _with_other_outputs(probe: SpecProbe) -> Iterator[SpecProbe]:
    """Yield the case with each single output that it does not have: the smallest case keeps one of the outputs in which
    a fault shows, which says nothing of the others."""
    spec: Any = probe.spec
    outputs = operator_version(spec.op, spec.version).outputs
    for position, name in enumerate(outputs):
        other = variant(probe, outputs=(*("" for _ in outputs[:position]), name))
        if name not in spec.outputs and other is not None:
            yield other


def _shrunk(finding: Finding, context: DiagnosisContext, budget: Budget) -> Shrunk | None:
    """Return the smallest case of a finding; None if its case does not fail again after all repetitions, or needs no
    fault of the finding to be explained."""
    probe = context.probes[finding["smallest"]]
    answers = list(tried(context.process, [probe], context.accuracy))
    # A wider class may accept a single case, although other results of the run contradict this class.
    verdicts = {v.value for v in _OFF} if finding["verdict"] == Verdict.WRONG.value else {finding["verdict"]}
    varies = any(result.verdict is Verdict.UNSTABLE for result in context.results)
    if varies or answers[0].judgement.verdict.value not in verdicts:
        # A first failure may be chance, so the case is repeated.
        answers += itertools.takewhile(lambda _: budget.left > 0, _repeated(probe, context, budget))
    failing = [one for one in answers if one.judgement.verdict.value in verdicts]
    if not failing:
        return None
    first = failing[0]
    why = _why(finding, context) if first.judgement.verdict in DIAGNOSED else None
    if finding["fault"] and why is not None and not why(first):
        return None  # a smaller case that fails would say nothing of the fault
    chance = first.judgement.verdict is Verdict.INACCURATE and Verdict.INACCURATE.value != finding["verdict"]
    same = alike(first, why if why is not None and why(first) else None, chance)
    share = sum(map(same, answers)) / len(answers)
    asked = math.ceil(math.log(_MISSED) / math.log(1 - share)) if share < 1 else 1
    shrunk = shrink(context.process, first, same, context.accuracy, budget, asked)
    if not finding["fault"] and first.judgement.verdict in _OFF:
        # The type is no condition if the same error is wrong in one type and inaccurate in another.
        needs = tuple(need for need in shrunk.needs if need.field != "type" or need.verdict not in _OFF)
        shrunk = replace(shrunk, needs=needs)
    if finding["verdict"] == Verdict.INACCURATE.value:
        # Sizes are no condition: with more numbers, one out of bounds is likelier.
        return replace(shrunk, needs=tuple(need for need in shrunk.needs if need.field not in SIZES))
    return shrunk


def _why(finding: Finding, context: DiagnosisContext) -> Callable[[CaseRun], bool]:
    """Return a predicate: whether a case fails because of the finding's fault. Without a fault: whether no fault of the
    target's other failures explains the case."""
    fault = fault_named(finding["fault"]) if finding["fault"] else None
    others = context.others(finding)
    if fault is not None:
        return lambda one: _explains(fault, others, context, one, needed=True)

    def unexplained(one: CaseRun) -> bool:
        case = failing_case_of_tried(one)
        return case is None or not any(context.observed[case].explained_by(other, others) for other in others)

    return unexplained


def _repeated(probe: Probe, context: DiagnosisContext, budget: Budget) -> Iterator[CaseRun]:
    for _ in range(_ASKED):
        for one in tried(context.process, [probe], context.accuracy):
            budget.spend_on(one)
            yield one

"""Causes: findings whose conditions have been tried on the target, not only seen together.

For each group of failures its smallest case is made as small as it can be (:mod:`.experiments`); what remains in that
case, and cannot be left out, is the condition under which the failure shows. Title, message, pictures and scripts then
come from that case. What has foretold fresh cases is a fact, and other results are held against it once more
(:mod:`.telling`).
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from ...cases.specs.family import SIZES
from ...reference import Fault, fault_named, versions_of
from ..judging.judgement import FAILING, UNTRIED, WITHOUT_RUN, Verdict
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import Tried, tried
from ..results.evidence import Kept
from ..results.records import Finding
from ..results.result import Result
from ..workers.job import TargetUnavailable
from ..workers.process import TargetProcess
from .conditions import would_show
from .experiments import HYPOTHESIS, Budget, Shrunk, alike, shrink
from .explainer import refuting_arithmetic
from .explanations import (
    Explaining,
    Memory,
    agreeing,
    altering,
    leaving_open,
    looks_at,
    refuting,
)
from .failing_case import DIAGNOSED
from .findings import alone
from .foretelling import ENOUGH, Fresh, foretold, is_constant
from .needs import meeting
from .places import Look, Region, other_sizes, places_of, telling_places
from .search import Mishap, unheard

__all__ = ["Cause", "Subject", "causes_of", "experiments_of", "is_open"]

_SHARE = 0.5
"""The part of a run's own cases that experiments may cost."""

_ALWAYS, _TIMES, _MOST = 600, 2, 1200
"""The cases that they may cost after a run of few: as many as one finding needs, and so many for each case of the run,
up to what some findings need. That is also what may be spent where a failure comes and goes."""

_KINDS = frozenset(v.value for v in FAILING - {Verdict.NOT_REJECTED})
_OFF = frozenset({Verdict.WRONG, Verdict.INACCURATE})
_CAUSES = 8
"""Causes that are looked for among failures that are alike."""

_ASKED, _MISSED = 12, 0.02
"""Number of times that a case which did not fail again is asked, and how rarely a failure may be missed that comes and
goes."""


@dataclass(frozen=True)
class Subject:
    """The failures of one target, and the target to ask about them.

    process
        At work or not yet started.
    repeat
        The command that shows a case on the target.
    results
        All of them.
    probes, kept
        What the results are of, by id, and what the target returned; both get the smallest cases too.
    arithmetics
        Type to the accuracy classes that the target's arithmetic shows there, beside that which it is judged by.
    mishap
        Told of what the suite's own code or an operator's raises, which costs a finding its experiments.
    """

    process: TargetProcess
    accuracy: str
    repeat: Callable[[Probe], str]
    results: Sequence[Result]
    probes: dict[str, Probe]
    kept: Kept
    arithmetics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mishap: Mishap = unheard

    def run(self, probes: Sequence[SpecProbe], budget: Budget) -> Iterator[Tried]:
        """Run some cases, all of which are paid for."""
        for one in tried(self.process, probes, self.accuracy):
            budget.spend_on(one)
            yield one


@dataclass(frozen=True)
class Cause:
    """The cause of some failures, as far as experiments tell.

    finding
        That with which they began; its cases are those that have this cause.
    what, foretold
        As in a finding.
    faults
        The ids of those that explain the smallest case together; mostly one.
    searched
        Whether all faults were tried on it.
    refuted
        Whether the fault that was thought of says something else of fresh cases than what is returned there.
    passing
        Fresh cases and tries that came out right.
    places
        Of what has no name: outside of them nothing was wrong, in fresh cases neither.
    """

    finding: Finding
    shrunk: Shrunk
    what: str
    faults: tuple[str, ...] = ()
    foretold: int = 0
    searched: bool = False
    refuted: bool = False
    passing: tuple[SpecProbe, ...] = ()
    places: tuple[Region, ...] = ()

    @property
    def fault(self) -> str:
        """The first of them; empty where there is none."""
        return self.faults[0] if self.faults else ""

    @property
    def said(self) -> bool:
        """Tell whether anything was tried that says something."""
        return self.shrunk.complete or bool(self.shrunk.needs)


def experiments_of(results: Sequence[Result]) -> Budget:
    """The budget of experiments after a run with some results."""
    ran = sum(r.verdict not in WITHOUT_RUN | UNTRIED for r in results)
    varies = any(r.verdict is Verdict.UNSTABLE for r in results)
    return Budget(max(_SHARE * ran, _MOST if varies else min(_MOST, _ALWAYS + _TIMES * ran)))


def causes_of(findings: Sequence[Finding], subject: Subject, budget: Budget) -> list[Cause]:
    """The causes of those findings that the budget was enough for.

    Failures that nothing explains fail alike, but may have several causes: those that have not what the smallest case
    cannot do without have another one.
    """
    # What nobody knows yet comes first.
    asked = sorted((f for f in findings if is_open(f, subject.probes)), key=lambda f: bool(f["expected"]))
    causes: list[Cause] = []
    for number, finding in enumerate(asked):
        # Twice its part: what the others leave over is theirs.
        part = budget.part(min(1.0, 2 / (len(asked) - number)))
        try:
            causes += _apart(finding, subject, part)
        except (TargetUnavailable, OSError):
            raise
        except Exception as error:  # whatever it is, it is ours or the operator's, and costs this finding alone
            subject.mishap(f"experiments on {finding['smallest']}", error)
    return causes


def is_open(finding: Finding, probes: Mapping[str, Probe]) -> bool:
    """Tell whether there is something to try: a legal case that fails, and that is made from a few values."""
    probe = probes.get(finding["smallest"])
    return finding["kind"] in _KINDS and isinstance(probe, SpecProbe) and not probe.spec.illegal


def _apart(finding: Finding, subject: Subject, budget: Budget) -> Iterator[Cause]:
    """The causes of a finding's cases, one after the other."""
    results = {r.case: r for r in subject.results}
    for _ in range(_CAUSES):
        if budget.left <= 0 or not is_open(finding, subject.probes):
            return
        shrunk = _shrunk(finding, subject, budget.part(0.7))
        if shrunk is None:
            return
        cause = _named(finding, shrunk, subject, budget)
        if finding["fault"]:
            yield cause
            return
        mine = _members(finding, cause, subject, budget)
        if not mine or len(mine) == len(finding["cases"]):
            yield cause
            return
        yield replace(cause, finding=alone([results[c] for c in mine], subject.results, subject.probes))
        others = [results[case] for case in finding["cases"] if case not in set(mine)]
        finding = alone(others, subject.results, subject.probes)


def _members(finding: Finding, cause: Cause, subject: Subject, budget: Budget) -> list[str]:
    """The cases of a finding that have what the smallest one cannot do without, of operators in which it fails, too."""
    probes = [subject.probes[case] for case in finding["cases"]]
    probe = cause.shrunk.one.probe
    others = [op for op in finding["operators"] if op != probe.op]
    operators = {probe.op} | {op for op in others if _fails_in(op, cause, subject, budget)}
    return [p.id for p in meeting(cause.shrunk.needs, probes) if p.op in operators]


def _fails_in(op: str, cause: Cause, subject: Subject, budget: Budget) -> bool:
    """Tell whether the same case of another operator fails alike; False where there is none."""
    one = cause.shrunk.one
    assert isinstance(one.probe, SpecProbe)
    spec: Any = one.probe.spec
    if "op" not in {field.name for field in fields(spec)}:
        return False  # cases of a described operator have no other
    version = spec.version if spec.version in versions_of(op) else max(versions_of(op))
    try:
        other = one.probe.like(replace(spec, op=op, version=version))
        other.prepare()
        _ = other.traits  # for which the node is looked at
    except (ValueError, KeyError, IndexError):  # an IllegalNode too
        return False
    same = alike(one)
    return any(same(answer) for answer in subject.run([other], budget))


def _named(finding: Finding, shrunk: Shrunk, subject: Subject, budget: Budget) -> Cause:
    """The cause of a finding with what foretells the target's answers in fresh cases of the same kind, if anything."""
    ids = (finding["fault"],) if finding["fault"] else ()
    cause = Cause(finding, shrunk, finding["what"], ids, passing=shrunk.passed)
    assert isinstance(shrunk.one.probe, SpecProbe)
    verdict = shrunk.one.judgement.verdict
    if not shrunk.complete or verdict in (Verdict.CRASHED, Verdict.TIMED_OUT):
        return cause
    fixed = {need.field for need in shrunk.needs if need.field in SIZES and need.passed}
    without = dict(_without(shrunk))
    fresh = Fresh(shrunk.one.probe, partial(subject.run, budget=budget), fixed, [p.spec for p in without.values()])
    if verdict not in DIAGNOSED:
        return replace(cause, passing=(*cause.passing, *fresh.passing))
    thought = fault_named(finding["fault"]) if finding["fault"] else None
    others = _beside(finding, subject)
    memory = Memory(subject.accuracy, subject.arithmetics)
    holds = _Paid(Explaining(memory, others), budget)
    needs = _Paid(Explaining(memory, others, True), budget) if others else holds
    refuted = refuting_arithmetic(subject.results, subject.probes)

    def needed(fault: Fault, one: Tried) -> bool:
        return not refuted(fault, one.probe.op) and needs(fault, one)

    def explain(fault: Fault, one: Tried) -> bool:
        # Fresh cases may show the others alone; the smallest one must show the fault.
        return needed(fault, one) if one is shrunk.one else not refuted(fault, one.probe.op) and holds(fault, one)

    left_open = leaving_open(subject.accuracy)
    # A look at what was returned costs nothing, and says it before the budget is spent on other names.
    if isinstance(thought, Fault) and left_open(thought, shrunk.one) and is_constant(thought, fresh.failing, left_open):
        return replace(cause, refuted=True)
    # Before names are sought, as that may take all of the budget.
    cause = _placed(cause, fresh, subject, budget) if thought is None else cause
    name = foretold(
        shrunk.one,
        fresh,
        explain,
        lambda: budget.left <= 0,
        thought if isinstance(thought, Fault) else None,
        refuting(subject.accuracy),
        left_open,
        needed,
        altering(memory),
        agreeing(shrunk.one.probe.op),
    )
    if budget.left > 0:
        cause = replace(cause, passing=(*cause.passing, *fresh.passing))
    if name is None:
        if budget.left > 0 and isinstance(thought, Fault) and len(fresh.failing) >= ENOUGH:
            constant = is_constant(thought, fresh.failing, left_open)
            # What holds for one size, and for no larger one, is something else.
            few = any(2 * sum(explain(thought, one) for one in kind) < len(kind) for kind in fresh.kinds)
            return replace(cause, refuted=constant or few)
        return replace(cause, searched=thought is None and budget.left > 0)
    # A kernel has its arithmetic in every case: what passes that it would show refutes it.
    if name.fault.within and any(would_show(name.fault, probe) for probe in cause.passing):
        return replace(cause, faults=(name.fault.id,), refuted=True)
    # Where others foretell as much, nobody knows which it is.
    if name.others:
        return cause
    fields = {probe.id: field for field, probe in without.items()}
    failing = (one for one in subject.run(list(without.values()), budget) if one.judgement.verdict in FAILING)
    # A thing without which it shows, too, is no condition of it.
    shown = {fields[one.probe.id] for one in failing if explain(name.fault, one)}
    shrunk = replace(shrunk, needs=tuple(need for need in shrunk.needs if need.field not in shown))
    what = name.fault.summary.rstrip(".")
    return replace(cause, shrunk=shrunk, what=what, faults=(name.fault.id,), foretold=name.cases)


def _placed(cause: Cause, fresh: Fresh, subject: Subject, budget: Budget) -> Cause:
    """The cause with where its failures show, where fresh cases bear that out, and further ones of other sizes."""

    def seen(several: Sequence[Tried]) -> list[list[Look]]:
        looks = (looks_at(one, subject.accuracy, subject.arithmetics) for one in several)
        return [some for some in looks if some]

    looks = seen([cause.shrunk.one, *fresh.failing])
    places = places_of(looks)
    if len(looks) <= ENOUGH or not telling_places(places, looks) or budget.left <= 0:
        return cause
    further = fresh.tried(other_sizes(fresh.probe.spec, len(fresh.answers)))
    others = seen([one for one in further if one.judgement.verdict in DIAGNOSED])
    if len(others) < _BORNE_OUT:
        return cause
    places = [place for place in places if all(map(place.holds, others))]
    return replace(cause, places=tuple(telling_places(places, [*looks, *others])))


_BORNE_OUT = 3
"""Cases of other sizes that must fail for a place to be told."""


def _without(shrunk: Shrunk) -> Iterator[tuple[str, SpecProbe]]:
    """Cases without one thing each that fail all the same, in another way, by the name of its field."""
    own = shrunk.one.probe
    assert isinstance(own, SpecProbe)
    spec: Any = own.spec
    for need in shrunk.needs:
        if need.verdict in FAILING:
            with contextlib.suppress(ValueError, KeyError, IndexError):  # an IllegalNode too: more goes with it
                other = own.like(replace(spec, **{need.field: need.instead[-1]}))
                other.prepare()
                _ = other.traits  # for which the node is looked at
                yield need.field, other


class _Paid:
    """A test of whether faults explain cases, each asked once, and paid for."""

    def __init__(self, explain: Explaining, budget: Budget) -> None:
        self._explain, self._budget = explain, budget
        self._asked: dict[tuple[Fault, int], tuple[Tried, bool]] = {}

    def __call__(self, fault: Fault, one: Tried) -> bool:
        key = fault, id(one)
        if key not in self._asked:
            self._budget.spend(HYPOTHESIS)
            self._asked[key] = one, self._explain(fault, one)
        return self._asked[key][1]


def _beside(finding: Finding, subject: Subject) -> list[Fault]:
    """The faults that explain other failures of the target: it has them in every case."""
    ids = dict.fromkeys(id for r in subject.results for id in r.diagnosis if id != finding["fault"])
    return [d for d in map(fault_named, ids) if d is not None and not d.accepts]


def _shrunk(finding: Finding, subject: Subject, budget: Budget) -> Shrunk | None:
    """The smallest case of a finding; None where its case does not fail again, however often it is asked."""
    probe = subject.probes[finding["smallest"]]
    answers = list(tried(subject.process, [probe], subject.accuracy))
    # By itself a case may be right by a wider class, which other results of the run do not bear out.
    verdicts = {v.value for v in _OFF} if finding["verdict"] == Verdict.WRONG.value else {finding["verdict"]}
    varies = any(result.verdict is Verdict.UNSTABLE for result in subject.results)
    if varies or answers[0].judgement.verdict.value not in verdicts:
        # One that failed at once may have done so by chance.
        answers += itertools.takewhile(lambda _: budget.left > 0, _repeated(probe, subject, budget))
    failing = [one for one in answers if one.judgement.verdict.value in verdicts]
    if not failing:
        return None
    first = failing[0]
    why = _why(finding, subject) if first.judgement.verdict in DIAGNOSED else None
    chance = first.judgement.verdict is Verdict.INACCURATE and Verdict.INACCURATE.value != finding["verdict"]
    same = alike(first, why if why is not None and why(first) else None, chance)
    share = sum(map(same, answers)) / len(answers)
    asked = math.ceil(math.log(_MISSED) / math.log(1 - share)) if share < 1 else 1
    shrunk = shrink(subject.process, first, same, subject.accuracy, budget, asked)
    if not finding["fault"] and first.judgement.verdict in _OFF:
        # The same error is wrong in one type and inaccurate in another: then the type is no condition of it.
        needs = tuple(need for need in shrunk.needs if need.field != "type" or need.verdict not in _OFF)
        shrunk = replace(shrunk, needs=needs)
    if finding["verdict"] == Verdict.INACCURATE.value:
        # The more numbers there are, the likelier is one that lies outside: their count is no condition of it.
        return replace(shrunk, needs=tuple(need for need in shrunk.needs if need.field not in SIZES))
    return shrunk


def _why(finding: Finding, subject: Subject) -> Callable[[Tried], bool]:
    """Tell whether a case fails for the reason of a finding: its fault; or where it has none, nothing that explains
    other failures of the target."""
    fault = fault_named(finding["fault"]) if finding["fault"] else None
    others = _beside(finding, subject)
    memory = Memory(subject.accuracy, subject.arithmetics)
    explain = Explaining(memory, others, needed=True)
    if isinstance(fault, Fault):
        return partial(explain, fault)
    explain = Explaining(memory, others)
    return lambda one: not any(explain(other, one) for other in others if other.concerns(one.probe.op))


def _repeated(probe: Probe, subject: Subject, budget: Budget) -> Iterator[Tried]:
    for _ in range(_ASKED):
        for one in tried(subject.process, [probe], subject.accuracy):
            budget.spend_on(one)
            yield one

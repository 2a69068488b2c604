"""The explanations of failing cases of any operator: those of a run all together, or one after the other as they
come."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

from ...reference import Fault, UnknownOperator, fault_named, faults_of, operator_of
from ..judging.judgement import UNTRIED, WITHOUT_RUN, Judgement, Verdict
from ..judging.runs import view_of
from ..probes.probe import Probe
from ..probes.stream import Tried
from ..results.evidence import Kept
from ..results.expected.entries import Entry, listed_faults, suspects
from ..results.result import Result
from ..workers.process import Outcome
from .conditions import would_show
from .failing_case import DIAGNOSED, FailingCase, failing_case_of
from .fitting import Arithmetics, Explanation, Followed
from .search import Mishap, Search, Unharmed, unheard

__all__ = [
    "Diagnosis",
    "Explainer",
    "accepting",
    "arithmetics_of",
    "diagnose",
    "explained",
    "explained_by",
    "failing_cases_of",
    "refuting_arithmetic",
    "searched_again",
]

# A run costs each case more than 12 hypotheses do, of some 0.4 ms: building it, running it twice, judging it by several
# interpretations. To start it, and to write what it shows, costs as much as some thousands.
_EFFORT, _EACH = 4000, 12

_FEW, _TABLE, _PRODUCTS = 4, 1500, 50_000
"""Failing cases up to which each has an effort of its own: so many hypotheses, times what one costs by the case's
multiplications. A run of a model has few cases, and no other one can show what is wrong."""

_UNHARMED = 6
"""Cases that passed in which a fault is looked for that explains a failing one: the smallest of its clause."""


@dataclass(frozen=True)
class Diagnosis:
    """The ids of the faults that explain each case together; cases that nothing explains are left out.

    spent
        How many times faults were tried on a small case, or as much work.
    """

    of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spent: float = 0.0


def diagnose(
    failing_cases: Sequence[FailingCase],
    accuracy: str,
    effort: float,
    followed: Followed | None = None,
    unharmed: Unharmed = lambda fault, op: 0,
    suspects: Sequence[str] = (),
    arithmetics: Arithmetics | None = None,
    facts: Sequence[Fault] = (),
    mishap: Mishap = unheard,
    share: int | None = None,
) -> Diagnosis:
    """Explain what can be explained.

    effort
        How many times faults may be tried on a small case, all in all: a diagnosis is to cost less than its run.
    suspects
        Patterns of ids of faults that the target is known for, which no case has to show first.
    facts
        Faults that the target has.
    mishap
        Told of what the suite's own code or an operator's raises, which costs the case its diagnosis.
    share
        The part of the effort, one in so many, that one case may take; a tenth without it.
    """
    search = Search(accuracy, effort, followed, unharmed, suspects, arithmetics)
    search.share = share or search.share

    def asked(failing_case: FailingCase, by: Callable[..., Explanation | None]) -> Explanation | None:
        try:
            return by(failing_case, ordered)
        except Exception as error:  # whatever it is, it costs this case alone
            mishap(f"diagnosis of {failing_case.case}", error)
            broken.add(failing_case.case)
            return None

    broken: set[str] = set()
    for op in {failing_case.op for failing_case in failing_cases}:
        search.known[op] += [d for d in facts if op in d.operators and d not in search.known[op]]
    ordered = sorted(failing_cases, key=lambda failing_case: failing_case.telling)
    explained: dict[str, Explanation] = {}
    waiting: list[FailingCase] = []
    for failing_case in ordered:
        explanation = asked(failing_case, search.explain)
        if explanation is not None:
            explained[failing_case.case] = explanation
        elif failing_case.case not in broken:
            waiting.append(failing_case)
    while waiting:
        # Of what came too early for it more is known now.
        explained |= {w.case: e for w in waiting if (e := asked(w, lambda w, _: search.by_known(w))) is not None}
        waiting = [w for w in waiting if w.case not in explained and w.case not in broken]
        explanation = None
        while explanation is None and (next_one := search.asked_next(waiting)) is not None:
            explanation = asked(next_one, search.by_one_more)
            if explanation is not None:
                explained[next_one.case] = explanation
        if explanation is None:
            break
    try:
        search.spare(explained, {w.case: w for w in ordered})
    except Exception as error:  # whatever it is, what explains a case explains it all the same
        mishap("diagnosis of all cases together", error)
    names = {case: tuple(d.id for d in explanation) for case, explanation in explained.items()}
    return Diagnosis(names, effort - search.effort)


def explained(
    results: Sequence[Result],
    probes: Mapping[str, Probe],
    kept: Kept,
    accuracy: str,
    entries: Sequence[Entry] = (),
    mishap: Mishap = unheard,
) -> dict[str, tuple[str, ...]]:
    """The ids of the faults that explain all failing cases together, by case, as far as what the target
    returned is still at hand; cases that nothing explains are left out. The same for equal results, whatever their
    order. A forbidden model that ran is explained by not looking at what it breaks.

    entries
        The target's known failures. A case that they cover is explained by the faults that they name for it, if these
        do; the search takes them for faults of the target, which no case has to show first.
    mishap
        Told of an exception in the suite's own code or an operator's, which costs a case its diagnosis.
    """
    taken = (r for r in results if r.verdict is Verdict.NOT_REJECTED)
    accepted = {r.case: faults for r in taken if (faults := accepting(r.op, r.version, r.clause))}
    failing = failing_cases_of(results, probes, kept, mishap)
    by_class = _by_class(results, probes, {case.case: case for case in failing})
    failing = [case for case in failing if case.case not in by_class]
    if not failing:
        return {**accepted, **by_class}
    evidence = _followed(results), _unharmed(results, probes)
    arithmetics = arithmetics_of(results, accuracy)
    # Arithmetic that shows in some results is in those, too, where other faults hide it, or functions that saturate.
    shown = [d for id in sorted({*itertools.chain(*by_class.values())}) if isinstance(d := fault_named(id), Fault)]
    effort = _effort(results)
    as_listed = Search(accuracy, math.inf, evidence[0], arithmetics=arithmetics)
    listed = _as_listed(failing, entries, results, probes, as_listed)
    failing = [case for case in failing if case.case not in listed]
    patterns = suspects(entries)
    few = len(failing) if 0 < len(failing) <= _FEW else None
    if few is not None:
        costs = (1 + case.observation(accuracy).size // _PRODUCTS for case in failing)
        effort = max(effort, _TABLE * sum(costs))
    diagnosis = diagnose(failing, accuracy, effort, *evidence, patterns, arithmetics, shown, mishap, few)
    return {**accepted, **by_class, **listed, **diagnosis.of}


def _as_listed(
    failing: Iterable[FailingCase],
    entries: Sequence[Entry],
    results: Iterable[Result],
    probes: Mapping[str, Probe],
    search: Search,
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the faults that entries name for cases, for those cases that they explain."""
    by_case = {result.case: result for result in results} if entries else {}
    listed: dict[str, tuple[str, ...]] = {}
    for case in failing if entries else ():
        faults = listed_faults(entries, probes[case.case], by_case[case.case])
        explanation = search.by_listed(case, faults) if faults else None
        if explanation is not None:
            listed[case.case] = tuple(fault.id for fault in explanation)
    return listed


def _by_class(
    results: Sequence[Result], probes: Mapping[str, Probe], failing_cases: Mapping[str, FailingCase]
) -> dict[str, tuple[str, ...]]:
    """The results that are right by a wider class alone which is the arithmetic that a fault consists in.

    A kernel has its arithmetic in every case: what passes that such a fault would show refutes it.
    """
    refuted = refuting_arithmetic(results, probes)
    named: dict[str, tuple[str, ...]] = {}
    for result in results:
        if result.verdict is Verdict.INACCURATE and result.accuracy:
            faults = faults_of(result.op, result.version, result.type)
            own = next((d for d in faults if d.within == result.accuracy and not refuted(d, result.op)), None)
            case = failing_cases.get(result.case)
            possible = own is not None and (own.layer != "arithmetic" or case is None or case.computed_in(own))
            if own is not None and possible:
                named[result.case] = (own.id,)
    return named


def refuting_arithmetic(results: Iterable[Result], probes: Mapping[str, Probe]) -> Callable[[Fault, str], bool]:
    """Tell whether results of an operator that passed refute an arithmetic: one that they would show."""
    passed = _passed(results, probes)

    @cache
    def refuted(fault: Fault, op: str) -> bool:
        if not fault.within:
            return False
        return any(would_show(fault, probe) for probe in passed[op] if probe.type in fault.types)

    return refuted


def explained_by(
    faults: Sequence[Fault],
    chosen: Sequence[Result],
    results: Sequence[Result],
    probes: Mapping[str, Probe],
    kept: Kept,
    accuracy: str,
    arithmetics: Arithmetics,
) -> dict[str, tuple[str, ...]]:
    """Results like :func:`explained`'s for those that are chosen, by these faults alone."""
    search = Search(accuracy, _effort(results), _followed(results), arithmetics=arithmetics)
    for op in {result.op for result in chosen}:
        search.known[op] = [fault for fault in faults if fault.concerns(op)]
    explanations = {case.case: search.by_known(case) for case in failing_cases_of(chosen, probes, kept)}
    return {case: tuple(d.id for d in some) for case, some in explanations.items() if some is not None}


def searched_again(
    facts: Sequence[Fault],
    chosen: Sequence[Result],
    results: Sequence[Result],
    probes: Mapping[str, Probe],
    kept: Kept,
    accuracy: str,
    arithmetics: Arithmetics,
    effort: float,
) -> tuple[dict[str, tuple[str, ...]], float]:
    """Results like :func:`explained`'s for those that are chosen, now that it is known which faults the target has; and
    how much of the effort it took."""
    failing = failing_cases_of(chosen, probes, kept)
    evidence = _followed(results), _unharmed(results, probes)
    most = min(effort, _effort(chosen))
    diagnosis = diagnose(failing, accuracy, most, *evidence, (), arithmetics, facts)
    return dict(diagnosis.of), diagnosis.spent


def _effort(results: Iterable[Result]) -> float:
    return _EFFORT + _EACH * sum(r.verdict not in WITHOUT_RUN | UNTRIED for r in results)


def failing_cases_of(
    results: Iterable[Result], probes: Mapping[str, Probe], kept: Kept, mishap: Mishap = unheard
) -> list[FailingCase]:
    """The results that rest on what a target returned, as far as that is at hand."""
    failing = []
    for result in results:
        outcomes = kept.get(result.case) if result.verdict in DIAGNOSED else None
        if outcomes is not None and result.case in probes:
            try:
                case = _failing_case(result, probes[result.case], *outcomes)
            except Exception as error:  # whatever it is, it is ours or the operator's, and costs this case alone
                mishap(f"diagnosis of {result.case}", error)
            else:
                failing += [case] if case is not None else []
    return failing


def _failing_case(
    result: Result, probe: Probe, judgement: Judgement, outcomes: Sequence[Outcome]
) -> FailingCase | None:
    trials = probe.prepare().trials
    if not trials:
        return None
    own = view_of(trials, outcomes, judgement).own
    return failing_case_of(probe.id, *own, probe.clauses, probe.size, result.verdict is Verdict.INACCURATE)


def arithmetics_of(results: Sequence[Result], accuracy: str) -> dict[str, tuple[str, ...]]:
    """The wider accuracy classes that results of a target tell of, by type: arithmetic does not change from case
    to case, so that at least as many results need one as pass without. Where no result of a type is right, whatever
    devices compute it in may be what other faults hide."""
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    right: Counter[str] = Counter()
    wider: dict[str, tuple[str, ...]] = {}
    for result in results:
        right[result.type] += result.verdict is Verdict.PASS and result.judged > 0
        if result.verdict is Verdict.INACCURATE and result.accuracy:
            classes[result.type][result.accuracy] += 1
        if result.verdict in DIAGNOSED and result.type not in wider:
            with suppress(UnknownOperator):  # a directory of which no document speaks
                wider[result.type] = operator_of(result.op, result.domain).classes(accuracy, result.type).wider
    needed = {type: seen for type, seen in classes.items() if seen.total() >= right[type]}
    return {
        type: tuple(name for name, _ in needed[type].most_common(2)) if type in needed else others[-1:]
        for type, others in wider.items()
        if type in needed or not right[type]
    }


def accepting(op: str, version: int, clause: str | None) -> tuple[str, ...]:
    """The faults that consist in taking models that a clause forbids."""
    return tuple(d.id for d in faults_of(op, version) if d.accepts and d.clause(op) == clause)


_TELLING = 2  # right results


def _followed(results: Iterable[Result]) -> dict[str, dict[str, str]]:
    """The interpretations of each operator that most of the target's right results tell of; of what one tells alone
    nothing is concluded, as a small fault may make it right."""
    votes: dict[str, Counter[tuple[str, str]]] = {}
    for result in results:
        if result.verdict is Verdict.PASS:
            votes.setdefault(result.op, Counter()).update(result.interpretations.items())
    return {
        op: dict(reversed([option for option, count in options.most_common() if count >= _TELLING]))
        for op, options in votes.items()
    }


def _unharmed(results: Iterable[Result], probes: Mapping[str, Probe]) -> Unharmed:
    """The number of the smallest cases that exercise a fault's clause, and were passed, would have shown it."""
    passed = _passed(results, probes)

    @cache
    def unharmed(fault: Fault, op: str) -> int:
        able = (p for p in passed[op] if p.type in fault.types and fault.applies(op, p.version))
        exercising = (p for p in able if fault.within or fault.clause(op) in p.clauses)
        return sum(would_show(fault, probe) for probe in itertools.islice(exercising, _UNHARMED))

    return unharmed


def _passed(results: Iterable[Result], probes: Mapping[str, Probe]) -> dict[str, list[Probe]]:
    """Cases of each operator that were passed, the smallest first."""
    passed: dict[str, list[Probe]] = defaultdict(list)
    for result in results:
        if result.verdict is Verdict.PASS and "unconventional" not in result.flags and result.case in probes:
            passed[result.op].append(probes[result.case])
    for some in passed.values():
        some.sort(key=lambda probe: (probe.size, probe.id))
    return passed


class Explainer:
    """Explains one failing case after the other: what explained earlier ones is tried first."""

    def __init__(
        self, accuracy: str, effort: int, entries: Sequence[Entry] = (), each: int = 0, share: int | None = None
    ) -> None:
        """`effort` is how many hypotheses may be tried, all in all, of which any case may take one part in `share`, and
        `each` how many at least on any case, whatever is left; `entries` are the target's known failures, see
        :func:`explained`."""
        self._search = Search(accuracy, effort, suspects=suspects(entries))
        self._entries = entries
        self._search.share = share or self._search.share
        self._each = each

    def explain(self, one: Tried) -> tuple[str, ...]:
        """The ids of the faults that explain a case together; none where it does not fail, or nothing does."""
        probe, judgement = one.probe, one.judgement
        if judgement.verdict is Verdict.NOT_REJECTED:
            return accepting(probe.op, probe.version, judgement.clause)
        if judgement.verdict not in DIAGNOSED or not one.prepared.trials:
            return ()
        slight = judgement.verdict is Verdict.INACCURATE
        own = view_of(one.prepared.trials, one.outcomes, judgement).own
        failing_case = failing_case_of(probe.id, *own, probe.clauses, probe.size, slight)
        self._search.effort = max(self._search.effort, self._each)
        faults: Explanation | None = None
        if failing_case is not None:
            if listed := listed_faults(self._entries, probe, judgement):
                # The reading by which least is wrong: right results, which would tell more, are not at hand.
                followed = {probe.op: judgement.interpretations or {}}
                faults = Search(self._search.accuracy, math.inf, followed).by_listed(failing_case, listed)
            faults = faults or self._search.explain(failing_case)
        return tuple(fault.id for fault in faults or ())

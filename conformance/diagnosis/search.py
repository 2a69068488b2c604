"""Diagnosis: the smallest set of faults that explains a target's failing cases, all of them together.

A runtime has its faults in every case: it ignores lengths *and* clip, and a case with both shows both at once. So
faults are found one after the other, simplest case first, and every case is then explained by those of them that it
needs. What none explains is said so.

Hundreds of faults are tried on a case, and in a small one, or in a type of few digits, some fit by chance. So a
fault is believed only if enough speaks for it (:attr:`.hypothesis.Fit.evidence`); and of several that fit, that one
is which explains most other cases, and shows in fewest of those that passed.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property

from ...cases import Trial
from ...reference import (
    FAULTS,
    Fault,
    Interpretations,
    faults_of,
    interpretations_touched,
    operator_for,
    operator_names,
    operator_of,
    resolve,
    versions_of,
)
from ...reference.documents.interpretations import ASKED_ANEW
from ...reference.faults.hypothesis import Fit, Run
from ...reference.operators.observation import Observation
from ..judging.judgement import DECLINED, UNTRIED, Verdict
from ..probes.probe import Probe
from ..results.evidence import Kept
from ..results.result import Result
from ..workers.process import Outcome
from .conditions import would_show

__all__ = [
    "DIAGNOSED",
    "Diagnosis",
    "FailingCase",
    "Search",
    "accepting",
    "diagnose",
    "explain_results",
    "failing_case_of",
]

DIAGNOSED = frozenset({Verdict.WRONG, Verdict.INACCURATE, Verdict.MALFORMED, Verdict.UNSTABLE})
"""Verdicts that rest on what a target returned."""

_INTERPRETATIONS = 4
"""Interpretations that are tried for a case: first what the target's right results tell of it."""

_VOTERS = 8
"""Further cases that choose between faults which explain a case equally well."""

_UNHARMED = 6
"""Cases that passed in which a fault is looked for that explains a failing one: the smallest of its clause."""

_AT_ONCE = 4
"""Faults that one case may show at once."""

_FEW = 10
"""Faults of which any three are tried together."""

_FRUITLESS = 2
"""Cases that exercise the same clauses, after which the search for yet another fault is given up."""

_SPARED = 5
"""The part of the effort, one in so many, that is left for faults already known."""

_PRODUCTS = 50_000
"""Multiplications that cost as much as all that a hypothesis costs beside them."""

Explanation = tuple[Fault, ...]
Followed = Mapping[str, Mapping[str, str]]
"""Operator to the options of interpretations that the target's right results tell of."""
Unharmed = Callable[[Fault, str], int]
"""How many cases of an operator a fault would show in that the target passed nevertheless."""


@dataclass(frozen=True)
class FailingCase:
    """A failing case with what the target returned.

    topics
        Ids of the clauses that it exercises: faults against them are the likeliest.
    slight
        Whether it is right by a wider accuracy class: then only slips of precision are thought of.
    """

    case: str
    trial: Trial
    runs: tuple[Run, ...]
    topics: frozenset[str]
    size: tuple[float, int]
    slight: bool = False

    @property
    def op(self) -> str:
        return self.trial.node.op_type

    @property
    def type(self) -> str:
        return resolve(self.trial.node, self.runs[0].inputs).format.name

    def observation(self, accuracy: str) -> Observation:
        return operator_for(self.trial.node).observation(self.trial.node, self.runs, accuracy)

    @cached_property
    def touched(self) -> frozenset[str]:
        """The interpretations on which its results depend."""
        return interpretations_touched(self.trial.node, self.runs[0].inputs)


@dataclass(frozen=True)
class Diagnosis:
    """For every case the ids of the faults that explain it together; cases that nothing explains are left out."""

    of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def failing_case_of(
    case: str, trial: Trial, outcome: Outcome, topics: Iterable[str], size: tuple[float, int], slight: bool = False
) -> FailingCase | None:
    """The witness that a case's outcome is; None where it did not run, or not as it was asked to."""
    if outcome.status != "ran" or len(outcome.outputs) != len(trial.feeds) or not trial.feeds:
        return None
    varies = any(len(lists) > 1 for lists in outcome.outputs)
    runs = []
    for feed, lists in zip(trial.feeds, outcome.outputs, strict=True):
        # Results that vary are seen in their order; those that agree stand there once for all repeats.
        for arrays in lists if not varies or len(lists) > 1 else [*lists, *lists]:
            named = zip(trial.node.outputs, arrays, strict=False)
            outputs = {name: array for name, array in named if array is not None}
            runs.append(Run(feed.inputs, outputs, feed.fed))
    return FailingCase(case, trial, tuple(runs), frozenset(topics), size, slight)


def diagnose(
    witnesses: Sequence[FailingCase],
    accuracy: str,
    effort: int,
    followed: Followed | None = None,
    unharmed: Unharmed = lambda fault, op: 0,
    suspects: Sequence[str] = (),
) -> Diagnosis:
    """Explain what can be explained.

    suspects
        Patterns of ids of faults that the target is known for, which no case has to show first.

    effort
        How many times faults not yet known may be tried on a small case, all in all: a diagnosis is to cost less than
        its run.
    """
    # What is known is tried on every case; that is not much more than the run did with it, however large it is.
    due = sum(2 * _cost(witness.observation(accuracy)) for witness in witnesses)
    search = Search(accuracy, effort + due, followed, unharmed, suspects)
    search.reserve = due + effort // _SPARED
    ordered = sorted(witnesses, key=_tells)
    found: dict[str, Explanation] = {}
    for witness in ordered:
        explanation = search.explain(witness, ordered)
        if explanation is not None:
            found[witness.case] = explanation
    for witness in ordered:
        # Of what came too early for it more is known now.
        explanation = search.by_known(witness) if witness.case not in found else None
        if explanation is not None:
            found[witness.case] = explanation
    search.spare(found, {w.case: w for w in ordered})
    return Diagnosis({case: tuple(d.id for d in explanation) for case, explanation in found.items()})


def _cost(observation: Observation) -> int:
    """What a hypothesis costs, in those of small cases."""
    return 1 + observation.size // _PRODUCTS


def _tells(witness: FailingCase) -> tuple[object, ...]:
    """An order in which those cases come first that tell most. Little that could have gone wrong, many digits, and
    enough numbers that no other fault happens to give the same ones."""
    inputs = witness.runs[0].inputs
    numbers = sum(array.size for array in witness.runs[0].outputs.values())
    coarse = any(array.dtype.itemsize == 2 for array in inputs.values())
    given = len(witness.trial.node.attributes) + len(inputs) + len(witness.runs)
    return witness.slight, coarse, numbers < 12, given, witness.size, witness.case


class Search:
    """The faults known so far, operator by operator, and the search for more.

    effort
        How many times a hypothesis may still be tried on a small case; large ones count for several.
    reserve
        What of it is left for faults already known.
    """

    def __init__(
        self,
        accuracy: str,
        effort: int,
        followed: Followed | None = None,
        unharmed: Unharmed = lambda fault, op: 0,
        suspects: Sequence[str] = (),
    ) -> None:
        """`suspects` are patterns of ids of faults that are known from the start."""
        self.accuracy, self.effort, self.followed, self.unharmed = accuracy, effort, followed or {}, unharmed
        self.known: dict[str, list[Fault]] = defaultdict(list)
        for op in operator_names() if suspects else ():
            self.known[op] += [d for d in FAULTS.values() if _suspected(d, op, suspects)]
        self.reserve = effort // _SPARED
        self._fruitless: Counter[frozenset[str]] = Counter()
        # What explained the last case that exercised the same clauses: mostly it explains the next one too.
        self._alike: dict[frozenset[str], Explanation] = {}
        self._observations: dict[str, Observation] = {}

    def explain(self, witness: FailingCase, others: Sequence[FailingCase] = ()) -> Explanation | None:
        """The faults that explain a case: of those known, or with one more that then is known too."""
        explanation = self.by_known(witness)
        if explanation is None and self._fruitless[witness.topics] < _FRUITLESS and self.effort > self.reserve:
            choices = self._with_one_more(witness)
            if choices:
                explanation = self._chosen(choices, witness, others)
                self.known[witness.op] += [d for d in explanation if d not in self.known[witness.op]]
                explanation = self._needed(witness, explanation)
                self._alike[witness.topics] = explanation
            else:
                self._fruitless[witness.topics] += 1
        return explanation

    def by_known(self, witness: FailingCase) -> Explanation | None:
        """The faults among those known of the operator that explain a case."""
        version = witness.trial.node.since_version
        known = tuple(d for d in self.known[witness.op] if d.applies(witness.op, version))
        alike = tuple(d for d in self._alike.get(witness.topics, ()) if d in known)
        if self._holds(witness, alike):
            return self._needed(witness, alike)
        near = tuple(d for d in known if d.clause(witness.op) in witness.topics)
        tried = {alike}
        for group in (near, known, *((d,) for d in near), *itertools.combinations(near, 2), *_threes(near)):
            if group and group not in tried and len(group) <= _AT_ONCE:
                tried.add(group)
                if self._holds(witness, group):
                    self._alike[witness.topics] = found = self._needed(witness, group)
                    return found
        return None

    def spare(self, found: dict[str, Explanation], witnesses: Mapping[str, FailingCase]) -> None:
        """Do without every fault whose cases the others of its operator explain as well, the rarest first."""
        for op, known in self.known.items():
            about = {case: e for case, e in found.items() if witnesses[case].op == op}
            for fault in sorted(known, key=lambda d: sum(d in e for e in about.values())):
                its = [case for case, explanation in about.items() if fault in explanation]
                without = Search(self.accuracy, self.effort, self.followed)
                without.known[op] = [d for d in known if d is not fault]
                instead: dict[str, Explanation] = {}
                for case in its:
                    explanation = without.by_known(witnesses[case])
                    if explanation is None:
                        break
                    instead[case] = explanation
                self.effort = without.effort
                if len(instead) == len(its):
                    known.remove(fault)
                    about.update(instead)
                    found.update(instead)

    def _fit(self, witness: FailingCase, faults: Sequence[Fault]) -> Fit | None:
        """How these faults explain a case, by one of the first interpretations; None where they do not."""
        observation = self._observations.get(witness.case)
        if observation is None:
            self._observations.clear()  # one after the other is looked at, and each holds many numbers
            observation = self._observations.setdefault(witness.case, witness.observation(self.accuracy))
        for choice in itertools.islice(self._interpretations(witness), _INTERPRETATIONS):
            if self.effort <= 0:
                return None
            self.effort = max(0, self.effort - _cost(observation))
            fit = observation.fit(faults, choice)
            if fit is not None:
                return fit
        return None

    def _holds(self, witness: FailingCase, faults: Sequence[Fault]) -> bool:
        """Whether these faults, which are known, explain a case, and enough speaks for it. Slips of precision change
        too little for much to speak for them."""
        fit = self._fit(witness, faults) if faults else None
        return fit is not None and (
            fit.evidence >= operator_of(witness.op).evidence.known or not any(d.structural for d in faults)
        )

    def _interpretations(self, witness: FailingCase) -> list[Interpretations]:
        """Interpretations that a target may follow in a case: what its right results tell of, and of the others first
        those that differ least from the reference's own."""
        told = self.followed.get(witness.op, {})
        usual = Interpretations(**told)
        asked = [name for name in witness.touched if name not in told or name in ASKED_ANEW]

        def changes(other: Interpretations) -> int:
            return sum(getattr(other, name) != getattr(usual, name) for name in asked)

        return sorted(usual.alternatives(asked), key=changes)

    def _with_one_more(self, witness: FailingCase) -> list[tuple[Explanation, float]]:
        """All single faults that explain a case, or where there is none, all that do beside known ones, and what
        speaks for each. First those are tried whose clauses the case exercises."""
        op, known, least = witness.op, self.known[witness.op], operator_of(witness.op).evidence.new
        fitting = [
            d
            for d in faults_of(op, witness.trial.node.since_version, witness.type)
            if d not in known and not d.accepts and not d.drifts and not (witness.slight and d.structural)
        ]
        about = [d for d in fitting if d.clause(op) in witness.topics]
        beside = tuple(d for d in known if d.clause(op) in witness.topics)[: _AT_ONCE - 1]
        for candidates in (about, [d for d in fitting if d not in about]):
            for others in ((), beside) if beside else ((),):
                tried: Iterable[Explanation] = ((*others, d) for d in candidates)
                found = [
                    (e, fit.least) for e in tried if (fit := self._fit(witness, e)) is not None and fit.least >= least
                ]
                if found:
                    return found
        return []

    def _chosen(
        self, choices: list[tuple[Explanation, float]], witness: FailingCase, others: Sequence[FailingCase]
    ) -> Explanation:
        """The choice that explains most of the cases that are most alike; of equals that which shows in fewest cases
        that passed, then what a shipped kernel is known to do, then what another operator is known for, then that for
        which most speaks."""
        if len(choices) == 1:
            return choices[0][0]
        voters = [w for w in others if w is not witness and w.op == witness.op]
        voters.sort(key=lambda w: (len(w.topics ^ witness.topics), w.size, w.case))
        votes: Counter[Explanation] = Counter()
        for voter in voters[:_VOTERS]:
            votes.update(choice for choice, _ in choices if self._holds(voter, choice))
        elsewhere = {d for known in self.known.values() for d in known}

        def worth(choice: tuple[Explanation, float]) -> tuple[float, ...]:
            faults, bits = choice
            if votes[faults] < most:
                return (votes[faults], float("-inf"))
            shown = self.unharmed(faults[-1], witness.op)
            self.effort -= _UNHARMED
            shipped = any(d.disagreements for d in faults)
            return votes[faults], -shown, shipped, faults[-1] in elsewhere, bits

        most = max(votes.values(), default=0)
        return max(choices, key=worth)[0]

    def _needed(self, witness: FailingCase, faults: Explanation) -> Explanation:
        """Those of the faults without which the case is not explained."""
        for fault in faults:
            fewer = tuple(d for d in faults if d is not fault)
            if fewer and self._holds(witness, fewer):
                return self._needed(witness, fewer)
        return faults


def _threes(near: Explanation) -> Iterator[Explanation]:
    """Three of few faults at once; of many there are too many to try."""
    return itertools.combinations(near, 3) if len(near) <= _FEW else iter(())


def explain_results(
    results: Sequence[Result], probes: Mapping[str, Probe], kept: Kept, accuracy: str, suspects: Sequence[str] = ()
) -> dict[str, tuple[str, ...]]:
    """For every failing case what explains it, as far as the target's outputs are still at hand. The same for equal
    results, whatever their order. A forbidden model that ran is explained by not looking at what it breaks.

    suspects
        Patterns of ids of faults that the target is known for, which no case has to show first.
    """
    taken = (r for r in results if r.verdict is Verdict.NOT_REJECTED)
    told = {r.case: faults for r in taken if (faults := accepting(r.op, r.version, r.clause))}
    witnesses = []
    for result in results:
        found = kept.get(result.case) if result.verdict in DIAGNOSED else None
        if found is not None and result.case in probes:
            probe, slight = probes[result.case], result.verdict is Verdict.INACCURATE
            for trial in probe.prepare().trials[:1]:
                witness = failing_case_of(probe.id, trial, found[1][0], probe.clauses, probe.size, slight)
                witnesses += [witness] if witness is not None else []
    if not witnesses:
        return told
    # A run costs each case more than a hypothesis does: building it, running it twice, judging it by several
    # interpretations. To start it, and to write what it found, costs as much as some thousands.
    effort = 2500 + 3 * sum(r.verdict not in DECLINED | UNTRIED for r in results)
    about = _followed(results), _unharmed(results, probes)
    return {**told, **diagnose(witnesses, accuracy, effort, *about, suspects).of}


def accepting(op: str, version: int, clause: str | None) -> tuple[str, ...]:
    """The faults that consist in taking models that a clause forbids."""
    return tuple(d.id for d in faults_of(op, version) if d.accepts and d.clause(op) == clause)


def _suspected(fault: Fault, op: str, patterns: Iterable[str]) -> bool:
    """Whether patterns name a fault of an operator that shows in what is returned."""
    named = not fault.accepts and any(fnmatchcase(fault.id, pattern) for pattern in patterns)
    return named and any(fault.applies(op, version) for version in versions_of(op))


def _followed(results: Iterable[Result]) -> dict[str, dict[str, str]]:
    """For each operator the interpretations that most of the target's right results tell of."""
    votes: dict[str, Counter[tuple[str, str]]] = {}
    for result in results:
        if result.verdict is Verdict.PASS:
            votes.setdefault(result.op, Counter()).update(result.interpretations.items())
    return {op: dict(reversed([option for option, _ in told.most_common()])) for op, told in votes.items()}


def _unharmed(results: Iterable[Result], probes: Mapping[str, Probe]) -> Unharmed:
    """How many of the smallest cases that exercise a fault's clause, and were passed, would have shown it."""
    passed: dict[str, list[Probe]] = defaultdict(list)
    for result in results:
        if result.verdict is Verdict.PASS and "unconventional" not in result.flags and result.case in probes:
            passed[result.op].append(probes[result.case])
    for some in passed.values():
        some.sort(key=lambda probe: (probe.size, probe.id))

    @cache
    def unharmed(fault: Fault, op: str) -> int:
        about = (p for p in passed[op] if fault.clause(op) in p.clauses and fault.applies(op, p.version))
        return sum(would_show(fault, probe) for probe in itertools.islice(about, _UNHARMED))

    return unharmed

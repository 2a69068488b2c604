"""Matcher: the faults that explain a target's outputs in failing cases.

A runtime has its faults in every case: if it ignores lengths *and* clip, a case with both shows both at once. So the
search first tries the target's known faults, all together and then fewer of them. Then it tries one more fault, alone
or with known ones; then a fault in one place only; then two new faults at once. Among hundreds of faults some fit by
chance. So the evidence of a fit must suffice (``Fit.evidence``), other failing cases choose between
faults that fit equally well, and passing cases that would show a fault count against it.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ...reference import Fault, fault_named, faults_of, operator_of
from ...reference.faults.fault import variants_of
from ...reference.faults.observation import Fit
from ...reference.faults.scope import base_id, merging, scoped_of
from .failing_case import FailingCase, ReportInternalError, reraise
from .observed_case import Explanation, ObservedCase, ObservedCases

T = TypeVar("T")

_PER_CASE = 700.0
"""Minimum number of hypotheses that may be tried on a case, in units of small cases; a tenth of the effort if that is
more."""

_AT_ONCE = 4
"""Maximum number of faults in one case: more would explain any output."""

_VOTERS = 8
"""Number of other failing cases that choose between faults with equally good fits."""

_SETS = 48
"""Maximum number of sets of known faults that are tried on a case."""

_EXPENSIVE_SETS, _EXPENSIVE = 8, 48.0
"""Number of sets that are tried in any case; more are tried while all of them cost less than `_EXPENSIVE` hypotheses on
a small case."""

_PAIRED = 28
"""Number of faults that are tried in pairs: those nearest to the outputs."""

_NEAREST = 6
"""Number of parametrized faults that are tried in each place: those nearest to the outputs."""

_UNEXPLAINED = 2
"""Number of unexplained cases whose clauses a case includes, after which it waits for all others."""

_GIVEN_UP = 3
"""Number of successive searches without a result after which an operator is given up."""

_FRUITLESS = 1
"""Number of successive searches without a result after which only faults everywhere are tried, not scopes and pairs.
Experiments find those on a smallest case, which costs less."""

_EQUAL = 0.02
"""Relative difference below which evidence counts as equal: radii are no more precise."""


@dataclass(frozen=True)
class Candidate:
    """Explanation of a case: new faults, and known ones together with them."""

    new: Explanation
    faults: Explanation
    fit: Fit


@dataclass
class Matcher:
    """Known faults of a target, and the search for more.

    observed
        Failing cases; several matchers share them.
    known
        Known faults, in order of discovery.
    effort
        Number of hypotheses that may still be tried, in units of small cases.
    internal_error
        Called with an exception in the suite's own code or an operator's. That case then gets no explanation.
    per_case
        Number of hypotheses that may be tried on one case (default: a tenth of the effort).
    """

    observed: ObservedCases
    effort: float
    known: list[Fault] = field(default_factory=list)
    internal_error: ReportInternalError = reraise
    per_case: float = 0.0

    def __post_init__(self) -> None:
        self.per_case = max(self.per_case, _PER_CASE, self.effort / 10)
        self._evidence = self.observed.evidence
        self._given = frozenset(self.known)
        self._broken: set[str] = set()
        self._fruitless = 0
        self._explanations: defaultdict[str, Counter[Explanation]] = defaultdict(Counter)

    def names(self, cases: Sequence[FailingCase]) -> dict[str, tuple[str, ...]]:
        """Return the ids of the faults that explain each case together, by case."""
        return {case: tuple(fault.id for fault in faults) for case, faults in self.explanations(cases).items()}

    def explanations(self, cases: Sequence[FailingCase]) -> dict[str, Explanation]:
        """Return the faults that explain each case together, by case; the simplest cases are explained first."""
        held = [self._guarded(case, self.observed.__getitem__) for case in cases]  # their answers stay meanwhile
        found: dict[str, Explanation] = {}
        unexplained: defaultdict[str, list[FailingCase]] = defaultdict(list)
        waiting = deque(sorted((c for c in cases if c.case not in self._broken), key=lambda case: case.telling))
        left: list[FailingCase] = []
        while waiting:
            case = waiting.popleft()
            explanation = self._guarded(case, self.by_known)
            if explanation is None and self.effort > 0 and len(unexplained[case.op]) < _GIVEN_UP:
                explanation = self._guarded(case, lambda case: self.by_one_more(case, cases))
                if explanation is None:
                    self._fruitless += 1
                    unexplained[case.op].append(case)
                else:
                    self._fruitless = 0
                    unexplained[case.op] = unexplained[case.op][-_UNEXPLAINED:]
                waiting = deque(sorted(waiting, key=lambda case: (_hopeless(case, unexplained), case.telling)))
            if explanation is None:
                left.append(case)
            else:
                found[case.case] = explanation
        # More faults may be known than when their turn came.
        found |= {case.case: e for case in left if (e := self._guarded(case, self.by_known)) is not None}
        return self._reduced(found, {observed.case.case: observed.case for observed in held if observed})

    def _guarded(self, case: FailingCase, ask: Callable[[FailingCase], T | None]) -> T | None:
        if case.case in self._broken:
            return None
        try:
            return ask(case)
        except Exception as error:  # whatever it is, it is the suite's or the operator's, and costs this case alone
            self.internal_error(f"diagnosis of {case.case}", error)
            self._broken.add(case.case)
            return None

    def explain(self, case: FailingCase) -> Explanation | None:
        """Return the faults that explain a case, without other cases."""
        return self.by_known(case) or (self.by_one_more(case, ()) if self.effort > 0 else None)

    def by_known(self, case: FailingCase) -> Explanation | None:
        """Return a minimal set of known faults that explains a case, or None."""
        observed = self.observed[case]
        work = observed.observation.work
        for number, group in enumerate(itertools.islice(self._known_sets(observed), _SETS)):
            if number >= _EXPENSIVE_SETS and observed.observation.work - work > _EXPENSIVE:
                break
            if self._holds(observed, group):
                return self._remember(observed, self._minimal(observed, group))
        return None

    def _known_sets(self, observed: ObservedCase) -> Iterator[Explanation]:
        """Yield sets of known faults: first those that explained other cases, the largest and then the commonest."""
        op, version = observed.case.op, observed.case.trial.node.since_version
        known = {*self.known}
        explanations = [group for group, _ in self._explanations[op].most_common() if known.issuperset(group)]
        explanations.sort(key=len, reverse=True)
        yield from (group for group in explanations if all(map(observed.affected_by, group)))
        active = [fault for fault in self.known if observed.affected_by(fault)]
        # Some faults show only beside others.
        others = [fault for fault in self.known if fault not in active and fault.applies(op, version)]
        yield from (group for group in _sets(active, others) if group not in explanations)

    def by_all(self, case: FailingCase) -> Explanation | None:
        """Return all known faults that affect a case, in an order in which they explain it; None if there is none."""
        observed = self.observed[case]
        active = [fault for fault in self.known if observed.affected_by(fault)]
        orders = itertools.permutations(active) if 0 < len(active) <= _AT_ONCE else ()
        return next((ordered for ordered in orders if self._holds(observed, ordered)), None)

    def by_one_more(self, case: FailingCase, others: Sequence[FailingCase]) -> Explanation | None:
        """Return the faults that explain a case, including one or two new ones; the new ones become known."""
        observed, least = self.observed[case], operator_of(case.op).evidence
        work = observed.observation.work
        candidates = next(self.candidates(case, least.new, least.placed), [])
        self.effort -= observed.observation.work - work
        voters = [self.observed[other] for other in _nearest(case, others)]
        candidates = [c for c in candidates if self._borne_out(c, case, voters)]
        if not candidates:
            return None
        chosen = self._chosen(candidates, case, voters[:_VOTERS])
        explanation = self._minimal(observed, chosen.faults)
        self.known += [fault for fault in explanation if fault not in self.known]
        return self._remember(observed, explanation)

    def _remember(self, observed: ObservedCase, explanation: Explanation) -> Explanation:
        self._explanations[observed.case.op][explanation] += 1
        return explanation

    def _is_shown(self, fault: Fault, op: str) -> bool:
        """Return whether a fault explained a case of an operator, or was known before."""
        return fault in self._given or any(fault in explanation for explanation in self._explanations[op])

    def _holds(self, observed: ObservedCase, faults: Explanation) -> bool:
        """Return whether faults explain a case with enough evidence. Faults of precision need none."""
        fit, least = observed.fit(faults), operator_of(observed.case.op).evidence
        if fit is None:
            return False
        shown = all(self._is_shown(fault, observed.case.op) for fault in faults)
        return fit.evidence >= (least.known if shown else least.new) or not any(d.structural for d in faults)

    def _minimal(self, observed: ObservedCase, faults: Explanation) -> Explanation:
        """Return a minimal subset of the faults that still explains the case."""
        for fault in faults:
            fewer = tuple(d for d in faults if d is not fault)
            if fewer and self._holds(observed, fewer):
                return self._minimal(observed, fewer)
        return faults

    def candidates(
        self, case: FailingCase, least: float = 0.0, placed: float = 0.0, first: Sequence[Fault] | None = None
    ) -> Iterator[list[Candidate]]:
        """Yield candidates that explain a case, for each stage of the search that has any. Candidates that leave some
        numbers open come last.

        least, placed
            Required evidence in bits, and the additional bits for a fault in one place only.
        first
            Faults that are tried together with the whole table. If None, faults of the case's clauses come first, and
            pairs of faults last.
        """
        observed = self.observed[case]
        known = [fault for fault in self.known if observed.affected_by(fault)]
        vague: list[Candidate] = []
        spent = observed.observation.work
        for stage in self._stages(observed, known, first):
            found: list[Candidate] = []
            for new in stage:
                if observed.observation.work - spent > self.per_case:
                    break
                for group in self._beside(observed, new, known):
                    fit = observed.fit(group)
                    if fit is None or (fit.vague and len(group) > 1):
                        continue
                    bits = least + (placed if any(fault.id != base_id(fault.id) for fault in group) else 0.0)
                    if fit.least >= bits:
                        (found if fit.least - fit.vague >= bits else vague).append(Candidate(new, group, fit))
                        break
            if found:
                yield found
        if vague:
            yield vague

    def _beside(self, observed: ObservedCase, new: Explanation, known: Sequence[Fault]) -> Iterator[Explanation]:
        if len(new) > 1:
            yield new
            return
        yield from (group for group in observed.groups(new[0], known) if len(group) <= _AT_ONCE)

    def _stages(
        self, observed: ObservedCase, known: Sequence[Fault], first: Sequence[Fault] | None
    ) -> Iterator[Iterable[Explanation]]:
        case = observed.case
        asked = case.op, case.trial.node.since_version, case.type
        table = [d for d in faults_of(*asked) if d.kind not in ("accepts", "bias") and not d.varies]
        own = [d for d in known if self._is_shown(d, case.op)]
        table = [d for d in table if d not in own and not (case.slight and d.structural)]
        if case.misshapen:
            yield [(fault,) for fault in (*(first or ()), *table) if fault.layer == "form"]
            return
        if first is not None:
            yield [(fault,) for fault in (*first, *(d for d in table if d not in first))]
        else:
            # A known fault may be made in fewer places.
            yield [(fault,) for fault in scoped_of(iter(own)) if fault.concerns(case.op)]
            topical = [fault for fault in table if fault.clause(case.op) in case.topics]
            yield [(fault,) for fault in topical]
            yield [(fault,) for fault in table if fault not in topical]
        if case.slight:
            return
        variants = [fault for fault in variants_of(*asked) if fault not in own]
        yield [(fault,) for fault in variants]
        if first is None and self._fruitless >= _FRUITLESS:
            return
        yield from self._placed(observed, table, variants)
        if first is None:
            near = self._nearest(observed, (fault for fault in table if observed.affected_by(fault)), _PAIRED)
            pairs = sorted(itertools.combinations(range(len(near)), 2), key=lambda pair: (sum(pair), pair))
            yield [(near[a], near[b]) for a, b in pairs]

    def _nearest(self, observed: ObservedCase, faults: Iterable[Fault], most: int) -> list[Fault]:
        usual = observed.interpretations[0]
        return sorted(faults, key=lambda fault: -observed.observation.nearness(fault, usual))[:most]

    def _placed(
        self, observed: ObservedCase, table: Sequence[Fault], variants: Sequence[Fault]
    ) -> Iterator[Iterable[Explanation]]:
        """Yield faults in one place only, then faults of one tensor in one direction."""
        op, usual, observation = observed.case.op, observed.interpretations[0], observed.observation
        active = [fault for fault in table if observed.affected_by(fault)]

        def scoped(faults: Iterable[Fault], places: Sequence[str]) -> list[Fault]:
            return [fault for fault in scoped_of(iter(faults), places) if fault.concerns(op)]

        # Some outputs are right, and a fault in one place explains the rest.
        merges, narrows = merging()
        changing = [fault for fault in variants if observed.affected_by(fault)]
        yield [(d,) for d in scoped((d for d in (*active, *changing) if observation.partly(d, usual)), merges)]
        placed = scoped((*active, *self._nearest(observed, changing, _NEAREST)), narrows)
        yield [(fault,) for fault in (*placed, *(scoped(active, merges) if self.known else ()))]
        # Faults of one tensor in one direction.
        changing = [fault for fault in placed if observed.affected_by(fault) and observation.partly(fault, usual)]
        yield [(fault,) for fault in scoped(self._nearest(observed, changing, _PAIRED), merges)]

    def _borne_out(self, candidate: Candidate, case: FailingCase, voters: Sequence[ObservedCase]) -> bool:
        """Return whether other cases support a candidate. Two faults that no case shows alone must explain most cases
        that show both. An arithmetic must not contradict any passing case."""
        if any(fault.within and self._evidence.counterexamples(fault, case.op, case.type) for fault in candidate.new):
            return False
        if len(candidate.new) < 2:
            return True
        both = [v for v in voters[: 2 * _VOTERS] if all(map(v.affected_by, candidate.new))]
        holding = sum(self._holds(voter, candidate.new) for voter in both)
        return holding >= 2 and 2 * holding >= len(both)

    def _chosen(self, candidates: Sequence[Candidate], case: FailingCase, voters: Sequence[ObservedCase]) -> Candidate:
        """Return the candidate that explains most of the nearest cases. Ties are broken by fewest passing cases against
        it, then by clearly more evidence, then by order (the simplest is first)."""
        if len(candidates) == 1:
            return candidates[0]
        votes = [sum(self._holds(voter, candidate.faults) for voter in voters) for candidate in candidates]
        best = [c for c, count in zip(candidates, votes, strict=True) if count == max(votes)]
        bits = max(candidate.fit.evidence for candidate in candidates)

        def worth(candidate: Candidate) -> tuple[int, bool]:
            against = sum(self._evidence.counterexamples(fault, case.op, case.type) for fault in candidate.new)
            return -against, candidate.fit.evidence >= (1 - _EQUAL) * bits

        return max(best, key=worth)

    def _reduced(self, found: dict[str, Explanation], cases: Mapping[str, FailingCase]) -> dict[str, Explanation]:
        """Return explanations with fewer faults. Each fault found here, the rarest first, is removed if the others
        explain its cases, or replaced by the same fault everywhere. Faults that were known before stay."""
        counts = Counter(fault for explanation in found.values() for fault in explanation)
        self.known = [fault for fault in self.known if counts[fault] or fault in self._given]
        found_here = [fault for fault in self.known if fault not in self._given]
        for fault in sorted(found_here, key=lambda fault: counts[fault]):
            whole = fault_named(base_id(fault.id)) if fault.id != base_id(fault.id) else None
            explained = [cases[case] for case, explanation in found.items() if fault in explanation]
            ops = {case.op for case in explained}
            wider = whole is not None and not any(self._evidence.counterexamples(whole, op) for op in ops)
            others = [d for d in self.known if d is not fault]
            for instead in (others, [*others, whole]) if wider and whole is not None else (others,):
                known, self.known = self.known, list(instead)
                new = self._all_by_known(explained)
                if new is not None:
                    found |= new
                    break
                self.known = known
        return found

    def _all_by_known(self, cases: Sequence[FailingCase]) -> dict[str, Explanation] | None:
        """Return explanations of all cases by known faults; None as soon as one case has none."""
        explanations: dict[str, Explanation] = {}
        for case in cases:
            explanation = self.by_known(case)
            if explanation is None:
                return None
            explanations[case.case] = explanation
        return explanations


def _hopeless(case: FailingCase, unexplained: Mapping[str, Sequence[FailingCase]]) -> int:
    """Return by how many cases too many a case includes all clauses of an unexplained one. Such cases come last."""
    included = sum(other.topics <= case.topics for other in unexplained.get(case.op, ()))
    return max(0, included - _UNEXPLAINED + 1)


def _nearest(case: FailingCase, others: Iterable[FailingCase]) -> list[FailingCase]:
    """Return other cases of the same operator, the most similar first."""
    several = [other for other in others if other is not case and other.op == case.op]
    return sorted(several, key=lambda w: (len(w.topics ^ case.topics), w.size, w.case))[: 2 * _VOTERS]


def _sets(active: Sequence[Fault], others: Sequence[Fault]) -> Iterator[Explanation]:
    """Yield sets of known faults: all that affect a case, because a target has its faults in every case; all but one;
    then few; then all with one more that shows only beside others, such as a sum that wraps if another fault makes it
    large."""
    sizes = dict.fromkeys((len(active), len(active) - 1, 1, 2, 3))
    for count in sizes:
        if 0 < count <= min(len(active), _AT_ONCE):
            yield from itertools.combinations(active, count)
    if 0 < len(active) < _AT_ONCE:
        yield from ((*active, other) for other in others)

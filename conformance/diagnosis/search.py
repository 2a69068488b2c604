"""Diagnosis: the smallest set of faults that explains a target's failing cases, all of them together.

A runtime has its faults in every case: it ignores lengths *and* clip, and a case with both shows both at once. So
faults are found one after the other, simplest case first, and every case is then explained by those of them that it
needs. What none explains is said so.

Hundreds of faults are tried on a case, and in a small one, or in a type of few digits, some fit by chance. So a
fault is believed only if enough speaks for it (:attr:`.hypothesis.Fit.evidence`); and of several that fit, that one
is which explains most other cases, shows in fewest of those that passed, and is the simplest.

A diagnosis is to cost less than its run, so every case has an effort of its own, which one that nothing explains cannot
take from others; and a case that has all that an unexplained one has comes after those that have not.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from ...reference import FAULTS, Fault, fault_named, faults_of, operator_names, operator_of, versions_of
from ...reference.faults.fault import variants_of
from ...reference.faults.hypothesis import Fit
from ...reference.faults.scope import base_id, merging, scoped_of
from .failing_case import FailingCase
from .fitting import Arithmetics, Explanation, Fitting, Followed

__all__ = ["Mishap", "Search", "Unharmed", "unheard"]

_VOTERS = 8
"""Further cases that choose between faults which explain a case equally well."""

_UNHARMED = 6
"""Cases that passed in which a fault is looked for that explains a failing one: the smallest of its clause."""

_AT_ONCE = 4
"""Faults that one case may show at once: more explain whatever there is."""

_FRUITLESS = 2
"""Unexplained cases that had no more than a case has, after which it waits until all others have been looked at."""

_GIVEN_UP = 24
"""Searches for an operator that found nothing, one after the other, after which there is none any more."""

_TRIED, _TRIED_CHEAPLY, _CHEAP = 8, 48, 48.0
"""Sets of known faults that are tried on a case; as many as the second number while all of them cost less effort than
the third."""

_MIXED = 6
"""Known faults of which any three are tried together."""

_PAIRED = 28
"""Faults of which any two are tried together: those nearest to what was returned."""

_NEAREST = 6
"""Faults of several that differ in a number which are tried in each place: those nearest to what was returned."""

_ALTERNATIVES = 3
"""Choices between one fault in several places."""

_EQUAL = 0.02
"""Evidence that differs by less than this share says nothing: radii are no finer."""

Unharmed = Callable[[Fault, str], int]
"""The number of cases of an operator that a fault would show in that the target passed nevertheless."""


Mishap = Callable[[str, Exception], None]
"""Told what was under way, and what was raised there."""


def unheard(doing: str, error: Exception) -> None:
    """Raise what was raised: who asks for a diagnosis alone has it come through."""
    raise error


class Search(Fitting):
    """The faults known so far, operator by operator, and the search for more.

    effort
        How many times a hypothesis may still be tried on a small case; large ones count for several.
    """

    def __init__(
        self,
        accuracy: str,
        effort: float,
        followed: Followed | None = None,
        unharmed: Unharmed = lambda fault, op: 0,
        suspects: Sequence[str] = (),
        arithmetics: Arithmetics | None = None,
    ) -> None:
        """`suspects` are patterns of ids of faults that are known from the start."""
        super().__init__(accuracy, effort, followed, arithmetics)
        self.unharmed = unharmed
        for op in operator_names() if suspects else ():
            scoped = (d for name in suspects if name not in FAULTS and (d := fault_named(name)) is not None)
            self.known[op] += [d for d in (*FAULTS.values(), *scoped) if _suspected(d, op, suspects)]
        self._fruitless: dict[str, list[FailingCase]] = defaultdict(list)
        self._in_vain: Counter[str] = Counter()
        self._asked: set[str] = set()
        # Faults that were known when a case was last looked at in vain.
        self._known_then: dict[str, int] = {}
        # What explained the cases by which faults became known just as well as they did.
        self._rivals: dict[str, list[Fault]] = defaultdict(list)
        # Faults of which nothing is known but that anything may stand somewhere: beside them much else fits.
        self._vague: set[Fault] = set()
        # What explained the last case that exercised the same clauses: mostly it explains the next one too.
        self._alike: dict[frozenset[str], Explanation] = {}

    def explain(self, failing_case: FailingCase, others: Sequence[FailingCase] = ()) -> Explanation | None:
        """The faults that explain a case: of those known, or with one more that then is known too."""
        explanation = self.by_known(failing_case)
        if explanation is None and self.worthwhile(failing_case):
            explanation = self.by_one_more(failing_case, others)
        return explanation

    def worthwhile(self, failing_case: FailingCase) -> bool:
        """Tell whether a case may show something that unexplained ones do not: nothing explained those that have no
        more than it has."""
        return self._less(failing_case) < _FRUITLESS

    def asked_next(self, waiting: Iterable[FailingCase]) -> FailingCase | None:
        """The case that promises most of those that wait, and have not been looked at: it lacks something that all
        unexplained ones have, or has not all that any of them has. None where there is nothing more to be had."""
        left = [w for w in waiting if w.case not in self._asked and self._in_vain[w.op] < _GIVEN_UP]
        if not left or self.effort <= 0:
            return None
        common = {op: frozenset.intersection(*(w.topics for w in them)) for op, them in self._fruitless.items() if them}
        return min(left, key=lambda w: (common.get(w.op, frozenset()) <= w.topics, self._less(w), w.telling))

    def _less(self, failing_case: FailingCase) -> int:
        return sum(other.topics <= failing_case.topics for other in self._fruitless[failing_case.op])

    def by_one_more(self, failing_case: FailingCase, others: Sequence[FailingCase] = ()) -> Explanation | None:
        """The faults that explain a case, at least one of which is known only then."""
        if self.effort <= 0 or self._in_vain[failing_case.op] >= _GIVEN_UP:
            return None
        self._asked.add(failing_case.case)
        before, part = self.effort, self._part
        choices = self._with_one_more(failing_case)
        # To choose among what fits must not be cut short, nor cost other cases more than to find it may.
        with self._free():
            choices = [c for c in choices if self._confirmed(c[0], failing_case, others)]
            chosen = self._chosen(choices, failing_case, others) if choices else ()
        self._charge(min(part, before - self.effort))
        if not choices:
            self._fruitless[failing_case.op].append(failing_case)
            self._in_vain[failing_case.op] += 1
            return None
        self._in_vain[failing_case.op] = 0
        explanation = chosen
        self.known[failing_case.op] += [d for d in explanation if d not in self.known[failing_case.op]]
        self._rivals[failing_case.op] += [
            d for faults, _ in choices for d in faults if d not in self.known[failing_case.op]
        ]
        explanation = self._needed(failing_case, explanation)
        self._alike[failing_case.topics] = explanation
        return explanation

    def by_listed(self, failing_case: FailingCase, faults: Sequence[Fault]) -> Explanation | None:
        """Return the explanation of a case by some faults alone: by all of them that change it, or by fewer. A list of
        known failures that was written from such an explanation is then read as it was written."""
        self.known[failing_case.op] = [*faults]
        active = self._active(failing_case, faults)
        # Of two that alter outputs, either may come first.
        orders = itertools.permutations(active) if len(active) <= _AT_ONCE else ()
        together = next((ordered for ordered in orders if self._holds(failing_case, ordered)), None)
        return together or self.by_known(failing_case)

    def by_known(self, failing_case: FailingCase) -> Explanation | None:
        """The faults among those known of the operator that explain a case."""
        known = self.known[failing_case.op]
        if self._known_then.get(failing_case.case) == len(known):
            return None
        # It is done when nothing is left, too, but what it costs leaves less for the search for others.
        observation, before = self._observed(failing_case), self._observed(failing_case).work
        with self._free():
            explanation = self._as_alike(failing_case, known) or self._by_some(failing_case, known)
        self._charge(observation.work - before)
        return explanation

    def _as_alike(self, failing_case: FailingCase, known: Sequence[Fault]) -> Explanation | None:
        """The faults that explained the last case that exercises the same clauses, if they explain this one: before it
        is asked which of all faults show in it."""
        op, version = failing_case.op, failing_case.trial.node.since_version
        alike = tuple(d for d in self._alike.get(failing_case.topics, ()) if d in known and d.applies(op, version))
        if not alike or not self._holds(failing_case, alike):
            return None
        return self._needed(failing_case, alike)

    def _by_some(self, failing_case: FailingCase, known: Sequence[Fault]) -> Explanation | None:
        active = self._active(failing_case, known)
        alike = tuple(d for d in self._alike.get(failing_case.topics, ()) if d in active)
        tried: set[frozenset[Fault]] = set()
        # Some show only where others are: a sum that wraps, where another makes it too large.
        observation, before = self._observed(failing_case), self._observed(failing_case).work
        beside = [(*active, d) for d in known if d not in active] if 0 < len(active) < _AT_ONCE else []
        for group in (alike, *_groups(active), *beside):
            spent = observation.work - before
            if len(tried) >= (_TRIED if spent >= _CHEAP else _TRIED_CHEAPLY) + len(beside):
                break
            if group and frozenset(group) not in tried and len(group) <= _AT_ONCE:
                tried.add(frozenset(group))
                if self._holds(failing_case, group):
                    explanation = self._needed(failing_case, group)
                    self._alike[failing_case.topics] = explanation
                    return explanation
        self._known_then[failing_case.case] = len(known)
        return None

    def spare(self, explained: dict[str, Explanation], failing_cases: Mapping[str, FailingCase]) -> None:
        """Do without every fault whose cases the others of its operator explain as well, or those of other operators
        if it is known of this one alone, the rarest first; and before that without places of a fault which made
        everywhere explains the same."""
        used = {(failing_cases[case].op, d) for case, explanation in explained.items() for d in explanation}
        for op, known in self.known.items():
            known[:] = [d for d in known if (op, d) in used]
        for op in list(self.known):
            self._widen(op, explained, failing_cases)
        for by_others in (False, True):
            for op in list(self.known):
                self._spare(op, by_others, explained, failing_cases)

    def _widen(self, op: str, explained: dict[str, Explanation], failing_cases: Mapping[str, FailingCase]) -> None:
        """Take a fault that is known in some places only for one that is made everywhere, if that explains their cases
        beside the others: what other faults of a kernel hide in one output or direction leaves it in the rest."""
        for base in dict.fromkeys(d.id.partition("@")[0] for d in self.known[op] if "@" in d.id):
            forms = [d for d in self.known[op] if d.id.startswith(f"{base}@")]
            whole = fault_named(base)
            if whole is None:
                continue
            if self.unharmed(whole, op) > max(self.unharmed(form, op) for form in forms):
                continue  # of what passed, too much would show it
            others = [d for d in self.known[op] if d not in forms and d is not whole]
            instead = self._explained_by([*others, whole], op, forms, explained, failing_cases)
            if instead is not None:
                self.known[op][:] = [*others, whole]
                explained.update(instead)

    def _spare(
        self, op: str, by_others: bool, explained: dict[str, Explanation], failing_cases: Mapping[str, FailingCase]
    ) -> None:
        known = self.known[op]
        of_operator = [e for case, e in explained.items() if failing_cases[case].op == op]
        for fault in sorted(known, key=lambda d: sum(d in e for e in of_operator)):
            shared = any(fault in theirs for other, theirs in self.known.items() if other != op)
            elsewhere = self._elsewhere(op) if by_others and not shared else []
            if by_others and not elsewhere:
                continue
            without = [*(d for d in known if d is not fault), *elsewhere]
            instead = self._explained_by(without, op, [fault], explained, failing_cases)
            if instead is not None:
                known.remove(fault)
                known += [d for d in elsewhere if any(d in explanation for explanation in instead.values())]
                explained.update(instead)

    def _explained_by(
        self,
        known: Sequence[Fault],
        op: str,
        faults: Sequence[Fault],
        explained: Mapping[str, Explanation],
        failing_cases: Mapping[str, FailingCase],
    ) -> dict[str, Explanation] | None:
        """Explanations by other faults of those cases of an operator that some faults explain; None where one is
        not."""
        search = Search(self.accuracy, self.effort, self.followed, arithmetics=self.arithmetics)
        search.known[op] = list(known)
        instead: dict[str, Explanation] = {}
        for case, explanation in explained.items():
            if failing_cases[case].op == op and any(fault in explanation for fault in faults):
                other = search.by_known(failing_cases[case])
                if other is None:
                    return None
                instead[case] = other
        return instead

    def _elsewhere(self, op: str) -> list[Fault]:
        """The faults that are known of other operators, and may be this one's as well."""
        others = dict.fromkeys(d for other, known in self.known.items() if other != op for d in known)
        return [d for d in others if d.concerns(op) and d not in self.known[op]]

    def _with_one_more(self, failing_case: FailingCase) -> list[tuple[Explanation, Fit]]:
        """The explanations of a case, with what speaks for each: first single faults, alone or beside known ones, of
        which those come first whose clauses the case exercises; then those made in one place only; then two at once.

        What says of some numbers only that anything may stand there comes last. Outputs that are missing, or of another
        shape or type, are explained by what gives such ones, alone or beside what is known, and by nothing else.
        """
        evidence = operator_of(failing_case.op).evidence
        floor = max(0.0, self.effort - self._part)
        vague: list[tuple[Explanation, Fit]] = []
        for hypotheses in self._stages(failing_case):
            choices: list[tuple[Explanation, Fit]] = []
            for faults in hypotheses:
                if self.effort <= floor:
                    return choices or vague
                fit = self._fit(failing_case, faults)
                if fit is not None and fit.vague and len(faults) > 1:
                    continue
                least = evidence.new + (evidence.placed if any(d.id != base_id(d.id) for d in faults) else 0.0)
                if fit is not None and fit.least >= least:
                    (choices if fit.least - fit.vague >= least else vague).append((faults, fit))
            if choices:
                return choices
        self._vague.update(d for faults, _ in vague for d in faults)
        return vague

    def _stages(self, failing_case: FailingCase) -> Iterator[Iterable[Explanation]]:
        op, version = failing_case.op, failing_case.trial.node.since_version
        known = tuple(d for d in self._active(failing_case, self.known[op]) if d not in self._vague)
        together = [beside[: _AT_ONCE - 1] for beside in _alternatives(known)] if known else []
        fitting = [
            d
            for d in faults_of(op, version, failing_case.type)
            if d not in self.known[op] and d.kind not in ("accepts", "bias") and not d.varies
            if not (failing_case.slight and d.structural)
        ]
        if failing_case.misshapen:
            forms = [d for d in fitting if d.layer == "form"]
            yield [(d,) for d in forms]
            for beside in together:
                yield [(*beside, d) for d in forms]
            return
        # Operators of one runtime are built alike.
        alike = self._active(failing_case, self._elsewhere(op))[:_AT_ONCE]
        yield [(d,) for d in alike]
        yield [(*beside, d) for beside in together for d in alike]
        yield [some for count in range(2, len(alike) + 1) for some in itertools.combinations(alike, count)]
        # What is known may be another fault, which looks the same in simpler cases, or be made in fewer places.
        rivals = self._active(failing_case, dict.fromkeys((*known, *self._rivals[op])))
        narrow = [d for d in scoped_of(iter(rivals)) if d.concerns(op)]
        yield [(d,) for d in (*rivals, *narrow) if d not in known]
        for others in itertools.combinations(known, len(known) - 1) if len(known) > 1 else ():
            yield [(*others, d) for d in (*rivals, *narrow) if d not in known]
        on_topic = [d for d in fitting if d.clause(op) in failing_case.topics]
        for candidates in (on_topic, [d for d in fitting if d not in on_topic]):
            yield [(d,) for d in candidates]
            for beside in together:
                yield [(*beside, d) for d in candidates]
        if failing_case.slight:
            return
        variants = [d for d in variants_of(op, version, failing_case.type) if d not in self.known[op]]
        yield [(d,) for d in variants]
        for beside in together:
            yield [(*beside, d) for d in variants]
        active = self._active(failing_case, fitting)
        observation, usual = self._observed(failing_case), self._interpretations(failing_case)[0]

        def nearest(faults: Iterable[Fault]) -> list[Fault]:
            return sorted(faults, key=lambda d: -observation.nearness(d, usual))[:_PAIRED]

        def scoped(faults: Iterable[Fault], places: Sequence[str]) -> list[Fault]:
            made = scoped_of(iter(faults), places)
            return [d for d in made if d.concerns(op) and d not in self.known[op]]

        # Some of what is returned is right, and the rest what a fault makes of it, in one place.
        merges, narrows = merging()
        placed = scoped([d for d in (*active, *variants) if observation.partly(d, usual)], merges)
        yield [(d,) for d in placed]
        for beside in together:
            yield [(*beside, d) for d in placed]
        # Of those that differ in a number the nearest ones alone: there are many.
        placed = scoped([*active, *nearest(variants)[:_NEAREST]], narrows)
        yield [(d,) for d in placed]
        for beside in together:
            yield [(*beside, d) for d in scoped(active, merges)] + [(*beside, d) for d in placed]
        # Of a tensor in one direction.
        yield [(d,) for d in scoped([d for d in nearest(placed) if observation.partly(d, usual)], merges)]
        near = nearest(active)
        yield [(d, rival) for d in near for rival in (*rivals, *narrow) if d is not rival]
        pairs = sorted(itertools.combinations(range(len(near)), 2), key=lambda pair: (sum(pair), pair))
        yield [(near[a], near[b]) for a, b in pairs]

    def _confirmed(self, faults: Explanation, failing_case: FailingCase, others: Sequence[FailingCase]) -> bool:
        """Tell whether other cases bear out what explains one. Of tens of thousands of pairs some explain a case by
        chance: two faults that no case shows alone must explain most of those that show both."""
        op = failing_case.op
        if any(d.within and self.unharmed(d, op) for d in faults if d not in self.known[op]):
            return False  # a kernel has its arithmetic in every case
        known = {*self.known[op], *self._rivals[op], *self._elsewhere(op)}
        if len(set(faults) - known) < 2:
            return True
        both = [w for w in _voters(failing_case, others)[: 2 * _VOTERS] if len(self._active(w, faults)) == len(faults)]
        holding = sum(self._holds(w, faults) for w in both)
        return holding >= 2 and 2 * holding >= len(both)

    def _chosen(
        self, choices: list[tuple[Explanation, Fit]], failing_case: FailingCase, others: Sequence[FailingCase]
    ) -> Explanation:
        """The choice that explains most of the cases that are most alike; of equals that which shows in fewest cases
        that passed, then what a shipped kernel is known to do, then what another operator is known for, then that for
        which clearly more speaks, and then the simplest: the first one, as the tables have the plain ones first."""
        if len(choices) == 1:
            return choices[0][0]
        votes: Counter[Explanation] = Counter()
        for voter in _voters(failing_case, others)[:_VOTERS]:
            votes.update(choice for choice, _ in choices if self._holds(voter, choice))
        elsewhere = {d for known in self.known.values() for d in known}
        most = max(votes.values(), default=0)
        bits = max(fit.evidence for _, fit in choices)

        def worth(faults: Explanation, fit: Fit) -> tuple[float, ...]:
            shown = sum(self.unharmed(d, failing_case.op) for d in faults)
            self._charge(_UNHARMED)
            clear = fit.evidence >= (1 - _EQUAL) * bits
            return -shown, faults[-1] in elsewhere, clear

        # Of equals, max takes the first.
        return max((choice for choice in choices if votes[choice[0]] == most), key=lambda choice: worth(*choice))[0]

    def _needed(self, failing_case: FailingCase, faults: Explanation) -> Explanation:
        """Faults without which the case is not explained."""
        for fault in faults:
            fewer = tuple(d for d in faults if d is not fault)
            if fewer and self._holds(failing_case, fewer):
                return self._needed(failing_case, fewer)
        return faults


def _voters(failing_case: FailingCase, others: Iterable[FailingCase]) -> list[FailingCase]:
    """The other cases of its operator, first those that are most alike."""
    voters = [w for w in others if w is not failing_case and w.op == failing_case.op]
    return sorted(voters, key=lambda w: (len(w.topics ^ failing_case.topics), w.size, w.case))


def _groups(active: Explanation) -> Iterator[Explanation]:
    """Hypotheses on a case of the faults that change it: all, as a target has its faults in every case; all but
    one, which shows under some condition only; and then some."""
    yield from _alternatives(active)
    yield from itertools.combinations(active, len(active) - 1) if len(active) > 1 else ()
    for count in (1, 2, 3):
        if count < len(active) - 1 and (count < 3 or len(active) <= _MIXED):
            yield from itertools.combinations(active, count)


def _alternatives(known: Explanation) -> Iterator[Explanation]:
    """Faults that are made together: of those that are one fault, made everywhere or in one place, the newest, as it
    was found where the others did not do; and then each of the others."""
    same: dict[str, list[Fault]] = {}
    for fault in reversed(known):
        same.setdefault(fault.id.partition("@")[0], []).append(fault)
    return itertools.islice(itertools.product(*reversed(same.values())), _ALTERNATIVES)


def _suspected(fault: Fault, op: str, patterns: Iterable[str]) -> bool:
    """Tell whether patterns name a fault of an operator that shows in what is returned."""
    named = not fault.accepts and any(fnmatchcase(fault.id, pattern) for pattern in patterns)
    return named and any(fault.applies(op, version) for version in versions_of(op))

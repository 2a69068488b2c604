"""Experiments: reduction of a failing case to the smallest one that still fails in the same way.

Features that failing cases share may be coincidental. So the search removes one feature at a time and runs the rest on
the target. A case that still fails in the same way replaces the previous one. When nothing more can be removed, the
last tries are the proof: without each remaining feature, the failure disappeared.

Tries run in batches, which suits slow devices. A crash or a hang costs only its own try, because the process
(:class:`..workers.process.TargetProcess`) restarts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...cases.axes.axis import Axis
from ...cases.specs.family import SIZES, Simpler, simpler_cases
from ..judging.judgement import FAILING, UNTRIED, Judgement, Verdict
from ..probes.probe import SpecProbe
from ..probes.stream import CaseRun, tried
from ..workers.process import TargetProcess
from .conditions import message_kind
from .needs import Need, axis_of, sizes_of

_NOT_TRIED = UNTRIED | {Verdict.NOT_TRIED}
"""Verdicts after which the target cannot be tried any more."""

_ROUNDS = 40  # each round removes a feature, and no case has as many

_SURER = 2
"""Number of additional rounds that check the needs of an intermittent failure."""


@dataclass
class Budget:
    """Cost that experiments may have, in cases that a run could have run instead.

    This unit makes the findings of slow and fast machines the same. All findings of a target share one budget.

    within
        The budget of which this one is a part.
    """

    cases: float
    within: Budget | None = None

    @property
    def left(self) -> float:
        return max(0.0, self.cases if self.within is None else min(self.cases, self.within.left))

    def part(self, share: float) -> Budget:
        """Return a share of the remaining budget."""
        return Budget(self.left * share, self)

    def spend(self, cases: float) -> None:
        """Subtract a cost, here and from the budget of which this is a part."""
        self.cases -= cases
        if self.within is not None:
            self.within.spend(cases)

    def spend_on(self, one: CaseRun) -> None:
        """Subtract the cost of a case. Crashes cost more because of the restart, and hangs because of the wait."""
        self.spend(_COST.get(one.judgement.verdict, 1.0))


_COST = {Verdict.CRASHED: 10.0, Verdict.TIMED_OUT: 50.0}
"""Number of cases that could run in the time of one crash or hang."""


@dataclass(frozen=True)
class Shrunk:
    """Smallest case that was found.

    one
        The case with the target's outputs.
    needs
        Features that were tried and cannot be removed.
    tries
        Number of cases that were run.
    complete
        Whether nothing more can be removed; False if the budget ran out first.
    passed
        Tries that passed.
    absent
        Features whose addition makes the failure disappear.
    """

    one: CaseRun
    needs: tuple[Need, ...]
    tries: int
    complete: bool
    passed: tuple[SpecProbe, ...] = ()
    absent: tuple[Need, ...] = ()


Alike = Callable[[CaseRun], bool]


def alike(first: CaseRun, explains: Callable[[CaseRun], bool] | None = None, wrong: bool = False) -> Alike:
    """Return a predicate: whether another case fails in the same way as this one.

    explains
        Returns whether the explanation of the first case also explains another one; None if there is no explanation. In
        both cases, verdict, reason and output must be the same; for a case that did not run, the message.
    wrong
        Whether the case is known to be wrong. If a wider class accepts it, or another case, that is chance.
    """

    def way(one: CaseRun) -> tuple[object, ...]:
        if wrong and one.judgement.verdict is Verdict.INACCURATE:
            one = replace(one, judgement=replace(one.judgement, verdict=Verdict.WRONG))
        return _way(one.judgement, one)

    key = way(first)

    def same(other: CaseRun) -> bool:
        return way(other) == key and (explains is None or explains(other))

    return same


def _way(judgement: Judgement, one: CaseRun) -> tuple[object, ...]:
    verdict = judgement.verdict
    if verdict in (Verdict.CRASHED, Verdict.TIMED_OUT):
        outcome = next((o for o in one.outcomes if o.status == verdict.value), one.outcomes[0])
        # A hang has no message.
        return verdict, outcome.signal, message_kind(outcome.message) if verdict is Verdict.CRASHED else ""
    if verdict not in FAILING:
        return verdict, message_kind(judgement.message) if verdict is Verdict.UNSUPPORTED else ""
    output = (judgement.where or {}).get("output")
    nonfinite = judgement.reason == "nonfinite"
    # Rounding errors of quantized levels differ from those of a smaller case without levels.
    levels = verdict is Verdict.INACCURATE and "quantized" in one.probe.features
    # A target may lose subnormal numbers in one type, and compute another type in a narrower one.
    arithmetic = (one.probe.type, judgement.accuracy) if judgement.accuracy and verdict is Verdict.INACCURATE else ()
    return verdict, nonfinite, output, "unconventional" in judgement.flags, levels, arithmetic


def shrink(
    process: TargetProcess,
    first: CaseRun,
    same: Alike,
    accuracy: str,
    budget: Budget,
    asked: int = 1,
) -> Shrunk:
    """Return the smallest case that fails in the same way as a first one.

    process
        The target, at work or not yet started.
    asked
        How often a try is made until it fails in the same way, where a failure comes and goes.
    """
    search = _Search(process, first, same, accuracy, budget, asked)
    search.take_much()
    complete, needs = search.take_each()
    # If the smallest case does not fail again, the failure is intermittent and the tries prove nothing.
    if needs and not search.fails_again():
        return Shrunk(search.smallest, (), search.tries, False, tuple(search.passed))
    if any(need.field in SIZES for need in needs) and not search.fails_redrawn():
        # The failure may need one rare number. Then a smaller case with other numbers may have it too.
        needs = tuple(need for need in needs if need.field not in SIZES)
    needs = tuple(search.measured(need) for need in needs)
    absent = tuple(search.kept_away()) if complete else ()
    return Shrunk(search.smallest, needs, search.tries, complete, tuple(search.passed), absent)


class _Search:
    """Search for the smallest case.

    smallest
        The smallest case so far that fails in the same way.
    tries
        Number of cases that were run.
    passed
        Tries that passed.
    """

    def __init__(
        self,
        process: TargetProcess,
        first: CaseRun,
        same: Alike,
        accuracy: str,
        budget: Budget,
        asked: int,
    ) -> None:
        self._process, self._same, self._accuracy = process, same, accuracy
        self._budget, self._asked = budget, asked
        self.smallest, self.tries = first, 0
        self.passed: list[SpecProbe] = []

    def take_much(self) -> None:
        """Remove as many features as possible at once, by bisection. This needs few tries, which matters if each
        failure costs a new process or the wait for a hang."""
        blocked: set[str] = set()
        for _ in range(_ROUNDS):
            probe = _probe(self.smallest)
            chain = _joined(probe, [change for change in simpler_cases(probe.spec) if change.field not in blocked])
            holds, fails = 0, len(chain) + 1  # length of the longest prefix of the chain that fails in the same way
            while fails - holds > 1 and self._budget.left > 0:
                middle = len(chain) if fails > len(chain) else (holds + fails) // 2
                failing = self._alike([chain[middle - 1]])
                if failing:
                    self.smallest, holds = failing[0][1], middle
                else:
                    fails = middle
            if fails > len(chain):
                return
            blocked.add(chain[fails - 1].field)

    def take_each(self) -> tuple[bool, tuple[Need, ...]]:
        """Remove one feature at a time, many tries in a batch. Return whether nothing more can be removed, and the
        needs."""
        complete = False
        needs: tuple[Need, ...] = ()
        for _ in range(_ROUNDS):
            probe = _probe(self.smallest)
            changes = [change for change in simpler_cases(probe.spec) if variant(probe, change.spec)]
            results = self._run(changes)
            kept = [(change, one) for change, one in results if self._same(one)]
            if self._asked > 1 and not kept:
                kept = self._missed(results)
            needs = tuple(_needs(probe.spec, results, {change.field for change, _ in kept}))
            complete = len(results) == len(changes) and not kept
            if not kept:
                # A larger previous run may fail by itself, and be the reason why the sizes are needed.
                kept = self._alike(_runs_before(probe, needs))
                if not kept:
                    break
            self.smallest, needs = kept[0][1], ()
            # Features that can be removed one by one can mostly be removed together.
            together = _joined(_probe(self.smallest), [change for change, _ in kept[1:]])
            for _, one in self._run(together):
                if not self._same(one):
                    break
                self.smallest = one
        return complete, needs

    def _missed(self, results: Sequence[tuple[Simpler, CaseRun]]) -> list[tuple[Simpler, CaseRun]]:
        """Return the tries of an intermittent failure that fail in the same way when they are repeated. Among many
        tries, some failures are missed at first."""
        changes = [change for change, _ in results]
        return next(filter(None, (self._alike(changes) for _ in range(_SURER))), [])

    def fails_again(self) -> bool:
        """Return whether the smallest case fails in the same way when it is run again."""
        return bool(self._alike([Simpler("", _probe(self.smallest).spec)]))

    def fails_redrawn(self) -> bool:
        """Return whether the smallest case fails in the same way with all other numbers that are tried."""
        return all(self._same(one) for _, one in self._run(_redrawn(_probe(self.smallest))))

    def measured(self, need: Need) -> Need:
        """Return a need of a size, with the larger sizes that pass and those that fail."""
        results = self._run(_larger(_probe(self.smallest), need))
        outcomes = [(getattr(change.spec, need.field), one) for change, one in results]
        right = tuple(size for size, one in outcomes if one.judgement.verdict is Verdict.PASS)
        wrong = tuple(size for size, one in outcomes if self._same(one))
        return replace(need, passed=(*need.passed, *right), failed=wrong)

    def kept_away(self) -> Iterator[Need]:
        """Yield the features whose addition makes the failure disappear: cases with several other numbers fail in the
        same way, and all of them pass with the feature."""
        spec: Any = _probe(self.smallest).spec
        more = [
            (axis, axis.name, axis.added(spec)[axis.name])
            for axis in getattr(spec, "axes", ())
            if axis.absences and getattr(spec, axis.name) in axis.absences and axis.name in axis.added(spec)
        ]
        drawn = _redrawn(_probe(self.smallest), larger=True)[:_CONTROLS] if more else []
        if not drawn or len(self._alike(drawn)) < len(drawn):
            return
        for axis, name, value in more:
            controls = (variant(_probe(self.smallest), control.spec, **{name: value}) for control in drawn)
            changes = [Simpler(name, probe.spec) for probe in controls if probe is not None]
            results = self._run(changes[:1])
            results += self._run(changes[1:]) if results and _passes(results[0][1]) else []
            if len(results) == len(drawn) and all(_passes(one) for _, one in results):
                yield Need(name, getattr(spec, name), (value,), Verdict.PASS, axis=axis)

    def _alike(self, changes: Sequence[Simpler]) -> list[tuple[Simpler, CaseRun]]:
        """Run changes in order and return those with which the case fails in the same way."""
        return [(change, one) for change, one in self._run(changes) if self._same(one)]

    def _run(self, changes: Sequence[Simpler]) -> list[tuple[Simpler, CaseRun]]:
        """Run changes in order, fewer if the budget is spent. A change without a field name changes nothing and is run
        even then."""
        probe = _probe(self.smallest)
        probes = [probe.like(change.spec) for change in changes]
        results: dict[str, CaseRun] = {}
        if self._budget.left > 0 or (changes and not changes[0].field):
            self._try(probes, results)
            for _ in range(self._asked - 1):
                again = [p for p in probes if p.id in results and not self._same(results[p.id])]
                if not again or self._budget.left <= 0:
                    break
                self._try(again, results)
        outcomes = [(change, results[p.id]) for change, p in zip(changes, probes, strict=True) if p.id in results]
        for _, one in outcomes:
            if one.judgement.verdict is Verdict.PASS and isinstance(one.probe, SpecProbe):
                self.passed.append(one.probe)
        self.tries += len(outcomes)
        return outcomes

    def _try(self, probes: Sequence[SpecProbe], results: dict[str, CaseRun]) -> None:
        """Run cases once and store the results by id, until the target or the budget is exhausted."""
        with contextlib.closing(tried(self._process, probes, self._accuracy)) as running:
            for one in running:
                if one.judgement.verdict in _NOT_TRIED:
                    return
                results[one.probe.id] = one
                self._budget.spend_on(one)
                if self._budget.left <= 0:
                    return


def _larger(own: SpecProbe, need: Need) -> list[Simpler]:
    """Return cases in which one size is larger. Smaller sizes show that this size is necessary, larger ones whether it
    is a threshold."""
    if need.field not in sizes_of(own.spec) or not need.value:
        return []
    size = need.value
    sizes = dict.fromkeys((size + 1, size + 2, 2 * size, 2 * size + 1, 3 * size))
    larger = (variant(own, **{need.field: other}) for other in sizes)
    return [Simpler(need.field, probe.spec) for probe in larger if probe is not None]


def _runs_before(own: SpecProbe, needs: Iterable[Need]) -> list[Simpler]:
    """Return the case without a previous run, in the sizes of that run, if that run cannot be removed."""
    if "reruns" not in {need.field for need in needs}:
        return []
    trial = own.prepare().trials[0].first
    first = trial.feeds[0].inputs[trial.node.operator.sequence].shape
    batch_first = getattr(own.spec, "layout", 0) == 1
    steps, rows = (first[1], first[0]) if batch_first else (first[0], first[1])
    alone = variant(own, reruns="none", T=steps, N=rows)
    return [] if alone is None else [Simpler("reruns", alone.spec)]


def _passes(one: CaseRun) -> bool:
    return one.judgement.verdict is Verdict.PASS


def _redrawn(own: SpecProbe, larger: bool = False) -> list[Simpler]:
    """Return the case with other numbers, and optionally with larger sizes."""
    seed = getattr(own.spec, "seed", None)
    if seed is None:
        return []
    least = {name: size for name, size in _CONTROL.items() if larger and hasattr(own.spec, name)}
    sizes = {name: max(getattr(own.spec, name), size) for name, size in least.items()}
    drawn = (variant(own, **sizes, seed=seed + number) for number in range(1, _REDRAWN + 1))
    return [Simpler("seed", probe.spec) for probe in drawn if probe is not None]


_REDRAWN = 6
"""Number of times that numbers are drawn anew."""

_CONTROLS, _CONTROL = 3, {"T": 3, "N": 3, "H": 5}
"""Number of cases that are tried for absent features, and their minimum sizes: few numbers hide many failures."""


def _probe(one: CaseRun) -> SpecProbe:
    assert isinstance(one.probe, SpecProbe)
    return one.probe


def variant(own: SpecProbe, spec: Any = None, **fields: Any) -> SpecProbe | None:
    """Return a case, or one of another spec, with other values of some fields; None if it is not valid."""
    changed: Any = spec or own.spec
    try:
        probe = own.like(replace(changed, **fields))
        probe.prepare()
    except (ValueError, KeyError, IndexError):  # an IllegalNode too
        return None
    return probe


def _joined(own: SpecProbe, changes: Sequence[Simpler]) -> list[Simpler]:
    """Return cases that each remove one feature more than the one before. For each field, the change that removes most
    is used."""
    joined: list[Simpler] = []
    done: set[str] = set()
    spec: Any = own.spec
    for change in changes:
        if change.field not in done:
            wanted = getattr(change.spec, change.field)
            fitting = (s for s in simpler_cases(spec, change.field) if getattr(s.spec, s.field) == wanted)
            more = next((s for s in fitting if variant(own, s.spec)), None)
            if more is not None:
                done.add(change.field)
                joined.append(more)
                spec = more.spec
    return joined


def _features(spec: Any, simpler: Any, axis: Axis | None) -> tuple[tuple[str, str], ...]:
    """Return names and words of the features of an axis that a case uses and the simpler one does not."""
    if axis is None:
        return ()
    candidates = (feature for feature in axis.features if feature.case is not None and feature.words)
    return tuple((f.name, f.words) for f in candidates if f.case and f.case(spec) and not f.case(simpler))


def _needs(spec: Any, results: Sequence[tuple[Simpler, CaseRun]], left: Container[str]) -> Iterator[Need]:
    """Yield the needs of a case, from the results without each feature."""
    needs: dict[str, Need] = {}
    # If one replacement was inconclusive, it is not proved that every replacement passes.
    unsure = {change.field for change, one in results if one.judgement.verdict is Verdict.INCONCLUSIVE}
    for change, one in results:
        name = change.field
        if name not in left and name not in unsure:
            before = needs.get(name)
            other = getattr(change.spec, name)
            instead = (*before.instead, other) if before else (other,)
            passed = before.passed if before else ()
            axis = axis_of(spec, name)
            features = _features(spec, change.spec, axis)
            if before:
                features = tuple(feature for feature in before.features if feature in features)
            if name in sizes_of(spec) and one.judgement.verdict is Verdict.PASS:
                passed = (*passed, other)
            verdict = one.judgement.verdict
            needs[name] = Need(name, getattr(spec, name), instead, verdict, passed, features=features, axis=axis)
    yield from needs.values()

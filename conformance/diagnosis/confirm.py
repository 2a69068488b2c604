"""Confirmation: does a fault that explains a smallest case predict the target's outputs in fresh cases?

Several faults may explain a small case. So each must predict fresh cases of the same kind, with other numbers and
larger sizes, within the bounds of every number. A fault is confirmed if it is the only one that does. If several
distinct faults do, none is confirmed.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import Trial, build_case, family_of
from ...reference import FAULTS, FORMATS, Fault, operator_for, operator_version, versions_of
from ...reference.faults.scope import base_id, scoped_of
from ..judging.judgement import FAILING, Verdict
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import CaseRun
from .conditions import would_show
from .experiments import variant
from .explainer import failing_case_of_tried
from .failing_case import FailingCase
from .match import Matcher
from .needs import sizes_of
from .observed_case import ObservedCase

FRESH = 10
"""Number of fresh cases in a batch."""

ENOUGH = 5
"""Minimum number of failing fresh cases: a passing case says little about a fault."""

_TIMES = 4
"""Maximum number of batches of fresh cases."""

Array = NDArray[Any]
Run = Callable[[Sequence[SpecProbe]], Iterator[CaseRun]]
"""Run cases on the target and yield the results."""


@dataclass(frozen=True)
class FreshCases:
    """Results of a target on fresh cases of the same kind as a smallest one; the cases run on first access.

    fixed
        Sizes on which the failure was seen to depend; few fresh cases change them.
    without
        Specs that each lack one need and may still fail. A fault that also explains those that fail is likelier.
    passed
        Smaller cases that passed. A fault that would show in these is less likely: it does not explain the need.
    slight
        Whether the failures are lost subnormal numbers. Without these, the products and functions of which they come
        seem to be missing, so only faults of precision are tried.
    """

    smallest: CaseRun
    run: Run
    fixed: Collection[str] = field(default=())
    without: Sequence[Any] = field(default=())
    passed: Sequence[SpecProbe] = field(default=())
    slight: bool = False

    @property
    def probe(self) -> SpecProbe:
        assert isinstance(self.smallest.probe, SpecProbe)
        return self.smallest.probe

    @cached_property
    def answers(self) -> list[CaseRun]:
        """All results. More cases run if few fail, as with a clip that seldom has an effect."""
        answers: list[CaseRun] = []
        for number in range(_TIMES):
            answers += self.tried(fresh_specs(self.probe.spec, self.fixed, number * FRESH))
            if sum(answer.judgement.verdict in FAILING for answer in answers) >= ENOUGH:
                break
        return answers

    @cached_property
    def richer(self) -> list[CaseRun]:
        """Results of cases with more features, in which similar faults differ."""
        return self.tried([*_richer_specs(self.probe.spec), *self.without])

    def tried(self, specs: Sequence[Any]) -> list[CaseRun]:
        """Run the cases that fit into the same surrounding graph."""
        probes: list[SpecProbe] = []
        for spec in specs:
            with contextlib.suppress(ValueError):  # the spec does not fit into the surrounding graph
                probes.append(self.probe.like(spec))
        return list(self.run(probes))

    @property
    def failing(self) -> list[CaseRun]:
        return [answer for answer in self.answers if answer.judgement.verdict in FAILING]

    @property
    def passing(self) -> list[SpecProbe]:
        right = (answer.probe for answer in self.answers if answer.judgement.verdict is Verdict.PASS)
        return [probe for probe in right if isinstance(probe, SpecProbe)]

    @property
    def kinds(self) -> list[list[CaseRun]]:
        """Failing results, grouped by whether sizes are larger, and whether a fixed size is."""
        kinds: dict[tuple[bool, bool], list[CaseRun]] = {}
        for answer in self.failing:
            names = sizes_of(self.probe.spec)
            larger = {name for name in names if _size(answer.probe, name) != _size(self.probe, name)}
            kinds.setdefault((bool(larger), bool(larger & {*self.fixed})), []).append(answer)
        return list(kinds.values())


def _size(probe: Probe, name: str) -> int:
    return int(getattr(getattr(probe, "spec", None), name, 0))


def fresh_specs(spec: Any, fixed: Collection[str] = (), after: int = 0) -> list[Any]:
    """Return cases of the same kind with other numbers; an empty list if the spec has no seed.

    Every second case has other sizes, mostly larger ones: a fault may hold for two rows and not for three.

    fixed
        Sizes that are larger in every fourth case only. The failure may depend on exactly this size.
    after
        Number of earlier fresh cases.
    """
    names = {own.name for own in fields(spec)}
    if "seed" not in names:
        return []
    fresh = []
    family = family_of(spec.op)
    for seed in range(after + 1, after + FRESH + 1):
        changed = {name: getattr(spec, name) + seed for name in _SEEDS if name in names}
        if seed % 2:
            sizes = family.other_sizes(spec, seed // 2)
            changed |= {name: size for name, size in sizes.items() if name not in fixed or seed % 4 == 3}
        fresh.append(replace(spec, **changed))
    return fresh


_SEEDS: tuple[str, ...] = ("seed", "weights_seed")


def _richer_specs(spec: Any) -> Iterator[Any]:
    for number, change in enumerate(family_of(spec.op).richer(spec)):
        richer = variant(SpecProbe(spec), **change, seed=spec.seed + FRESH + number)
        if richer is not None:
            yield richer.spec


@dataclass(frozen=True)
class Confirmation:
    """Result of fresh cases for the faults that explain a smallest case.

    fault
        The confirmed fault, or None.
    cases
        Number of failing fresh cases that it predicted.
    refuted
        Whether fresh cases contradict the expected fault.
    searched
        Whether all faults were tried.
    """

    fault: Fault | None = None
    cases: int = 0
    refuted: bool = False
    searched: bool = True


def confirm(fresh: FreshCases, matcher: Matcher, expected: Fault | None, hurry: Callable[[], bool]) -> Confirmation:
    """Return the fault that explains a smallest case and predicts fresh ones.

    matcher
        Matcher whose known faults are the target's other faults.
    expected
        The fault that explains the results from which the smallest case was made.
    hurry
        Returns whether the budget is spent.
    """
    return _Confirming(fresh, matcher, expected).result(hurry)


class _Confirming:
    def __init__(self, fresh: FreshCases, matcher: Matcher, expected: Fault | None) -> None:
        self._fresh, self._matcher, self._expected = fresh, matcher, expected
        self._cases: dict[int, FailingCase | None] = {}

    def result(self, hurry: Callable[[], bool]) -> Confirmation:
        smallest = self._observed(self._fresh.smallest)
        if smallest is None or self._fresh.probe.spec.illegal:
            return Confirmation()
        # This check needs no further runs.
        if self._expected is not None and self._leaves_open(self._expected) and self._is_constant(self._expected):
            return Confirmation(refuted=True)
        expected = [] if self._expected is None else [self._expected]
        conditional: Confirmation | None = None
        for candidates in self._matcher.candidates(smallest.case, first=expected):
            fitting = [c.new[0] for c in candidates if self._needed(c.new[0], self._fresh.smallest)]
            fitting = [fault for fault in fitting if not self._contradicted_arithmetic(fault)]
            if hurry():
                return conditional or Confirmation(searched=False)
            if fitting and len(self._fresh.failing) < ENOUGH:
                break
            right = self._predicting(fitting)
            if len({base_id(fault.id) for fault in right}) > 1:
                right = [fault for fault in right if not self._counterexamples(fault)] or right
            bases = {base_id(fault.id): fault for fault in reversed(right)}
            alternatives = [fault for id, fault in bases.items() if id != base_id(right[0].id)]
            if not all(_same_thing(right[0], fault, self._fresh.probe.op) for fault in alternatives):
                return conditional or Confirmation()
            if right:
                fault = min(right[:1] + alternatives, key=_place_of)
                conditional = conditional or Confirmation(fault, len(self._fresh.failing))
                # A later candidate may explain why smaller cases pass.
                if not any(would_show(fault, probe) for probe in self._fresh.passed):
                    return Confirmation(fault, len(self._fresh.failing))
        return conditional or Confirmation(refuted=self._expected is not None and self._refuted(self._expected))

    def _predicting(self, fitting: Sequence[Fault]) -> list[Fault]:
        """Return the faults that predict the fresh cases, narrowed by the cases with more features."""
        op, failing = self._fresh.probe.spec.op, self._fresh.failing
        # Each fault may be made in fewer places than assumed.
        narrow = [d for d in scoped_of(iter(fitting), seen=True) if d.concerns(op) and d not in fitting]
        right = [*fitting, *narrow]
        for answer in (self._fresh.smallest, *failing):
            right = [fault for fault in right if self._explains(fault, answer)]
        right = [fault for fault in right if not self._is_constant(fault)]
        # Beside the target's known faults many faults predict the outputs, so the fault must be needed.
        shown = {fault.id: sum(self._needed(fault, answer) for answer in failing) for fault in right}
        most = max(shown.values(), default=0)
        right = [fault for fault in right if shown[fault.id] == most and 2 * most >= len(failing)]
        for answer in self._fresh.richer if right else ():
            # A case that no candidate explains shows another fault.
            if answer.judgement.verdict in FAILING:
                right = [fault for fault in right if self._needed(fault, answer)] or right
            # Candidates that contradict a passing case are not the cause.
            elif answer.judgement.verdict is Verdict.PASS and len(right) > 1:
                observed = self._observed(answer)
                right = [fault for fault in right if observed is None or not observed.contradicts(fault)] or right
        # A fault of one output needs a case with several outputs: only that shows that the others are right.
        several = [a for a in (self._fresh.smallest, *failing, *self._fresh.richer) if len(_outputs(a)) > 1]
        return [d for d in right if not self._of_output(d) or any(self._explains(d, answer) for answer in several)]

    def _observed(self, one: CaseRun) -> ObservedCase | None:
        if id(one) not in self._cases:
            self._cases[id(one)] = failing_case_of_tried(one, self._fresh.slight)
        case = self._cases[id(one)]
        return None if case is None else self._matcher.observed[case]

    def _explains(self, fault: Fault, one: CaseRun) -> bool:
        observed = self._observed(one)
        return observed is not None and observed.explained_by(fault, self._matcher.known)

    def _needed(self, fault: Fault, one: CaseRun) -> bool:
        observed = self._observed(one)
        return observed is not None and observed.explained_by(fault, self._matcher.known, needed=True)

    def _counterexamples(self, fault: Fault) -> int:
        """Return the number of passing cases of the run that would show a fault."""
        return self._matcher.observed.evidence.counterexamples(fault, self._fresh.probe.op, self._fresh.probe.type)

    def _contradicted_arithmetic(self, fault: Fault) -> bool:
        """Return whether a passing case contradicts an arithmetic fault: a kernel has its arithmetic in every case."""
        if not fault.within:
            return False
        return self._counterexamples(fault) > 0 or any(would_show(fault, probe) for probe in self._fresh.passing)

    def _refuted(self, fault: Fault) -> bool:
        """Return whether fresh cases contradict a fault. A fault that holds at one size only is the wrong one."""
        if len(self._fresh.failing) < ENOUGH:
            return False
        few = (2 * sum(self._explains(fault, one) for one in kind) < len(kind) for kind in self._fresh.kinds)
        return self._contradicted_arithmetic(fault) or self._is_constant(fault) or any(few)

    def _leaves_open(self, fault: Fault) -> bool:
        return any(array.size for array in self._open_elements(fault, (self._fresh.smallest,)))

    def _open_elements(self, fault: Fault, answers: Iterable[CaseRun]) -> Iterator[Array]:
        """Yield the returned elements whose value a fault leaves open."""
        for observed in map(self._observed, answers):
            if observed is not None and observed.affected_by(fault):
                yield from observed.observation.left_open(fault, observed.interpretations[0])

    def _is_constant(self, fault: Fault) -> bool:
        """Return whether the target wrote one constant to all elements that a fault leaves open. Unwritten memory
        differs: the worker fills it with equal bytes."""
        returned = list(self._open_elements(fault, (self._fresh.smallest, *self._fresh.failing)))
        numbers = {number for array in returned for number in array.astype(np.float64).tolist()}
        values = {byte for array in returned for byte in array.tobytes()}
        enough = sum(array.size for array in returned) >= ENOUGH
        return enough and len(numbers) == 1 and (len(values) > 1 or values == {0})

    def _of_output(self, fault: Fault) -> bool:
        spec = self._fresh.probe.spec
        return fault.id.partition("@")[2] in operator_version(spec.op, spec.version).outputs


def _outputs(answer: CaseRun) -> tuple[str, ...]:
    return answer.prepared.trials[0].node.outputs if answer.prepared.trials else ()


def _place_of(fault: Fault) -> int:
    """Return the position of a fault in the table; variants come last."""
    places = {id: number for number, id in enumerate(FAULTS)}
    return places.get(base_id(fault.id), len(places))


_LARGE = 4000.0
"""Maximum size of the cases on which two faults are compared."""


def _same_thing(fault: Fault, other: Fault, op: str) -> bool:
    """Return whether two faults are observationally equal on all small cases of `core`, up to rounding."""
    versions = [v for v in reversed(versions_of(op)) if fault.applies(op, v) and other.applies(op, v)]
    every = (spec for version in versions for spec in family_of(op).profile("core", op, version))
    specs = (spec for spec in every if not spec.illegal and spec.size[0] <= _LARGE)
    trials = (build_case(spec).trial.first for spec in specs)
    return all(itertools.starmap(_close, itertools.chain(*(_pairs(trial, fault, other) for trial in trials))))


def _pairs(trial: Trial, *faults: Fault) -> Iterator[tuple[Mapping[str, Array], ...]]:
    """Yield the outputs of targets with each of the faults, for each run."""
    memories: list[dict[str, Any]] = [{} for _ in faults]
    answer = operator_for(trial.node).answer
    for feed in trial.feeds:
        yield tuple(
            answer(trial.node, feed.inputs, (fault,), fed=feed.fed, memory=memory)
            for fault, memory in zip(faults, memories, strict=True)
        )


def _close(outputs: Mapping[str, Array], others: Mapping[str, Array]) -> bool:
    if outputs.keys() != others.keys():
        return False
    pairs = [(array, others[name]) for name, array in outputs.items()]
    return all(a.shape == b.shape and a.dtype == b.dtype and _near(a, b) for a, b in pairs)


def _near(array: Array, other: Array) -> bool:
    unit = 4 * FORMATS[array.dtype.name].unit if array.dtype.name in FORMATS else 0.0
    return np.allclose(array.astype(np.float64), other.astype(np.float64), rtol=unit, atol=unit, equal_nan=True)

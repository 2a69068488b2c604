"""Filling up: which cases follow the pinned ones on a target that lacks features, so that what it has is tried all the
same.

After the pinned cases it is known what a target lacks: contexts with which it ran nothing, since it refused them or
left them to another provider. Contexts with which no case passes are kept clear of too: what fails there hides all
else. Where a context was tried only beside another that is lacking, a case with few others tells. What is left is a
space of its own, and dense cases of a pinned pool follow until they show enough of the faults
that can show in it, or the pool has none that would. Results alone decide which, so that the same results give the same
list anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...cases import features_of
from ...cases.profiles.pool import Pooled, pool_of
from ...cases.specs.contexts import ContextSpace
from ...cases.specs.family import counted_operators
from ...cases.specs.wrapping import can_wrap
from ...reference import document_of
from ..judging.judgement import DECLINED, FAILING, UNTRIED, Verdict
from ..probes.naming import CaseError, portable_probes
from ..probes.probe import Probe, SpecProbe
from ..probes.wrapped import CaseProbe
from ..proof.coverage import MOST_MODELS, Cover, Shares, masks_of
from ..proof.interactions import space_of
from ..proof.lacking import CaseTable, Lacking, lacking_of, named
from ..results.folder import NoRun, read_folder
from ..results.records import CoverageRecord, OperatorCoverage, SharesRecord
from ..results.result import Result
from ..targets.target import Target
from .run import Plan

NOT_ASKED = "it was not asked for"
SHARDS = "parts of a run are not filled up; the merged run is, when it is gone on with (--resume)"

_PROBES = 16
"""Cases of an operator that are tried at a time only to learn what is lacking."""

_MOST = 5000  # cases: of each of a few operators a hundred models, with several cases at most

_TRIES = 2
"""Cases with a context that are tried to learn whether it is lacking."""

_ROUND = 40
"""Models after which it is derived again what a target lacks: a case that is refused shows nothing but that."""

_SAMPLED = 64
"""Cases of the pool with a context that are asked whether one of them fits a wrap."""

Mask = NDArray[np.bool_]
_Observed: TypeAlias = tuple[CaseTable, Sequence[Verdict], Mapping[str, tuple[Pooled, Verdict]]]


@dataclass(frozen=True)
class _Known:
    """The knowledge of one operator on a target.

    outside
        The contexts that no case has in the target's wrap, of which nothing can be shown there, nor declined.
    doubtful
        (contexts,): with which nothing ran, though that may be for what stood beside them.
    tried
        The pooled cases that were tried, with their verdicts.
    """

    declared: frozenset[int]
    lacks: Lacking
    avoided: Lacking
    doubtful: Mask
    passes: bool
    tried: Mapping[str, tuple[Pooled, Verdict]]
    outside: frozenset[int] = frozenset()

    @property
    def without(self) -> frozenset[tuple[int, ...]]:
        return self.lacks.places | self.avoided.places | {(k,) for k in self.outside}


class Filling:
    """A target's results so far, operator by operator, and the cases that would show the rest.

    plan
        The plan of the run, with the cases that follow.
    """

    def __init__(self, plan: Plan, target: Target) -> None:
        self.plan, self._target = plan, target
        there = {probe.op for probe in plan.pinned_of(target)}
        self._ops = [op for op in counted_operators() if op in there]
        self._unfit: set[str] = set()
        self._rows: dict[str, tuple[Mask, frozenset[str], bool]] = {}
        self._results: dict[str, list[tuple[CaseProbe, Verdict]]] = {}
        self._turn: dict[str, _Observed] = {}
        self._covers: dict[tuple[str, frozenset[tuple[int, ...]]], tuple[Cover, frozenset[str]]] = {}

    def next(self, results: Sequence[Result]) -> tuple[Probe, ...]:
        """The cases that are to follow now, which the plan has from now on; none where nothing is owed."""
        self._look(results)
        if any(result.verdict in UNTRIED for result in results):
            return ()
        chosen = [case for op in self._ops for case in self._chosen(op)]
        probes = tuple(SpecProbe(case.spec, fresh=True) for case in chosen)
        self.plan = with_filled(self.plan, self._target, probes)
        planned = {probe.id: probe for probe in self.plan.probes_of(self._target)}
        return tuple(planned[probe.id] for probe in probes)

    def record(self, results: Sequence[Result], left_out: str = "") -> CoverageRecord:
        """The reach of the cases; `left_out` says why none were added, where none were to be."""
        self._look(results)
        texts = [probe.text for probe in self._filled]
        return {
            "operators": [self._of(op) for op in self._ops],
            "cases": texts,
            "digest": digest_of_cases(texts),
            "left_out": left_out,
        }

    def _chosen(self, op: str) -> list[Pooled]:
        known, pool = self._known(op, final=False), pool_of(op)
        if not known.passes:
            return []
        followed = [case for place, (case, _) in known.tried.items() if place not in pool.of_core]
        models = min(MOST_MODELS - _models(followed), _ROUND)
        if models <= 0 or self._cover(op, known).shares.reached:
            return []
        # Where rounding alone hides what a model gives, its siblings mostly show no more.
        blurred = {case.model for case, verdict in known.tried.values() if verdict is Verdict.INCONCLUSIVE}
        further = (case for case in pool.cases[pool.pinned :] if case.model not in blurred)
        left = [case for case in further if case.place not in known.tried and case.place not in self._unfit]
        held = _held(left, len(known.doubtful))
        there = ~Lacking(known.without).hit(held)
        probes = _probing(held & known.doubtful & there[:, np.newaxis], _held(followed, held.shape[1]))
        if probes:
            chosen = [left[k] for k in probes][:_PROBES]
        else:
            known = self._known(op)
            before = {case.model for case, _ in known.tried.values()}
            there = ~Lacking(known.without).hit(held) & ~(held & known.doubtful).any(axis=1)
            sure = [left[k] for k in np.flatnonzero(there).tolist()]
            chosen = self._cover(op, known).copy().choose(sure, models, before)  # which counts what it chooses
        fit = [case for case in chosen if self._fits(case, known)]
        self._unfit |= {case.place for case in chosen if case not in fit}
        return fit if fit or not chosen else self._chosen(op)

    def _fits(self, case: Pooled, known: _Known) -> bool:
        """Tell whether a case has none of the features that are avoided, and can be put in the target's wrap."""
        wrap, features = self._target.wrap, features_of(case.spec)
        if known.lacks.has(features) or known.avoided.has(features):
            return False
        return not wrap or can_wrap(case.spec, wrap)

    def _of(self, op: str) -> OperatorCoverage:
        known, pool = self._known(op), pool_of(op)
        followed = [case for place, (case, _) in known.tried.items() if place not in pool.of_core]
        before, after = self._cover(op, known, pool.of_core).shares, self._cover(op, known).shares
        space = space_of(op)
        return {
            "operator": op,
            "lacks": named(space, known.lacks),
            "declared": [space.contexts[k].id for k in sorted(known.declared)],
            "avoided": named(space, known.avoided),
            "before": shares_record(before),
            "after": shares_record(after),
            "models": _models(followed),
            "cases": len(followed),
            "reached": known.passes and after.reached,
        }

    def _cover(self, op: str, known: _Known, among: Collection[str] | None = None) -> Cover:
        """The cover of the cases that passed; those of some places alone, where they are given. It is kept, and goes on
        with what passed since: it is not to be changed."""
        passed = {
            place: case
            for place, (case, verdict) in known.tried.items()
            if verdict is Verdict.PASS and (among is None or place in among)
        }
        cover, counted = self._covers.get((op, known.without), (None, frozenset[str]()))
        if cover is None or not counted <= passed.keys():
            cover, counted = Cover(op, known.without), frozenset()
        cover.add(*(case for place, case in passed.items() if place not in counted))
        self._covers[op, known.without] = cover, frozenset(passed)
        return cover

    def _known(self, op: str, *, final: bool = True) -> _Known:
        evidence, verdicts, tried = self._observed(op)
        known = _derived(space_of(op), evidence, verdicts, tried, self._target.lacks, final)
        return replace(known, outside=_outside(op, self._target.wrap))

    def _observed(self, op: str) -> _Observed:
        """The contexts and verdicts of an operator's cases, and those of them that are pooled."""
        if op in self._turn:
            return self._turn[op]
        space = space_of(op)
        tried: dict[str, tuple[Pooled, Verdict]] = {}
        rows: list[tuple[Mask, frozenset[str], bool]] = []
        verdicts: list[Verdict] = []
        by_id = self._pooled(op)
        for probe, verdict in self._results.get(op, ()):
            spec = probe.spec
            if probe.id not in self._rows:
                self._rows[probe.id] = (
                    np.array(space.held(spec).any(axis=0)),
                    probe.features,
                    space.measurable(spec),
                )
            rows.append(self._rows[probe.id])
            verdicts.append(verdict)
            case = by_id.get(spec.id)
            if case is not None and case.spec == spec:
                tried[case.place] = case, verdict
        held = np.array([row[0] for row in rows], bool).reshape(len(rows), len(space.contexts))
        evidence = CaseTable(held, [row[1] for row in rows], np.array([row[2] for row in rows], bool))
        self._turn[op] = evidence, verdicts, tried
        return self._turn[op]

    @property
    def _filled(self) -> Sequence[Probe]:
        return self.plan.filled.get(self._target.name, ())

    def _look(self, results: Sequence[Result]) -> None:
        """Take up the legal cases that were run so far, in the order of the plan, with their verdicts."""
        self._turn.clear()
        self._results.clear()
        verdict_of = {result.case: result.verdict for result in results}
        for probe in self.plan.probes_of(self._target):
            if isinstance(probe, CaseProbe) and not probe.spec.illegal and probe.id in verdict_of:
                self._results.setdefault(probe.op, []).append((probe, verdict_of[probe.id]))

    def _pooled(self, op: str) -> Mapping[str, Pooled]:
        """The cases of the pool that may have been tried, by id. All of it is drawn only where a run is gone on with
        in which some followed."""
        pool = pool_of(op)
        by_id = {case.spec.id: case for case in pool.dense}
        followed = {probe.spec.id for probe in self._filled if isinstance(probe, CaseProbe)}
        by_id |= {case.spec.id: case for case in pool.cases[pool.pinned :] if "spec" in vars(case)}
        if any(id.startswith(f"{document_of(op).prefix}-") and id not in by_id for id in followed):
            by_id |= {case.spec.id: case for case in pool.cases}
        return by_id


@cache
def _outside(op: str, wrap: str) -> frozenset[int]:
    """The contexts of which no case of the pool fits a wrap: types that it has not, versions that are older than its
    nodes, what sessions do beside. A sample of the cases with each context tells, since most of the pool is never
    built."""
    if not wrap:
        return frozenset()
    pool = pool_of(op).cases
    held = _held(pool, len(space_of(op).contexts))
    outside = set()
    for context, having in enumerate(map(np.flatnonzero, held.T)):
        sample = having[:: max(1, len(having) // _SAMPLED)].tolist()
        if not any(can_wrap(pool[number].spec, wrap) for number in sample):
            outside.add(context)
    return frozenset(outside)


def _derived(
    space: ContextSpace,
    evidence: CaseTable,
    verdicts: Sequence[Verdict],
    tried: Mapping[str, tuple[Pooled, Verdict]],
    declared: Sequence[str],
    final: bool,
) -> _Known:
    """The contexts that a target lacks and those that are avoided, by the verdicts on legal cases of one operator."""
    own = frozenset(space.position[id] for id in declared if id in space.position)

    def those(some: Iterable[Verdict]) -> Mask:
        chosen = frozenset(some)
        return np.array([verdict in chosen for verdict in verdicts], bool)

    declined, passing, failing = those(DECLINED), those([Verdict.PASS]), those(FAILING)
    ran = ~declined & ~those(UNTRIED | {Verdict.NOT_TRIED})
    # Contexts are not owed that only cases have which the target's sessions cannot try.
    untried = evidence.held[those([Verdict.NOT_TRIED])].any(axis=0) & ~evidence.held[ran | declined].any(axis=0)
    untold = frozenset(np.flatnonzero(untried).tolist()) if final else frozenset[int]()
    lacks = lacking_of(space, evidence, ran, declined, own | untold, final=final)
    doubtful = np.array(~space.of_half & ~evidence.held[ran].any(axis=0))
    if not passing.any():
        return _Known(own, lacks, Lacking(), doubtful, False, tried)
    avoided = lacking_of(space, evidence, passing, failing & ~lacks.hit(evidence.held))
    return _Known(own, lacks, avoided, doubtful, True, tried)


def _probing(doubtful: Mask, followed: Mask) -> list[int]:
    """The cases that tell of each doubtful context whether it is lacking: for each the one with the fewest others.

    doubtful
        (cases, contexts): which of them each case has that may be run.
    followed
        The same of cases that have followed already: where several had a context, no other will tell.
    """
    counts = doubtful.sum(axis=1)
    best = {}
    for k in np.flatnonzero(doubtful.any(axis=0) & (followed.sum(axis=0) < _TRIES)).tolist():
        having = np.flatnonzero(doubtful[:, k])
        best[k] = int(having[counts[having].argmin()])
    chosen: list[int] = []
    decided = np.zeros(doubtful.shape[1], bool)
    for k in sorted(best, key=lambda k: (counts[best[k]], k)):  # first what a case tells of one alone
        if not decided[k]:
            chosen.append(best[k])
            decided |= doubtful[best[k]]
    return chosen


def _held(cases: Sequence[Pooled], contexts: int) -> Mask:
    """(cases, contexts): what pooled cases have, in one of their directions at least."""
    return masks_of([reduce(or_, case.held) for case in cases], contexts)


def _models(cases: Iterable[Pooled]) -> int:
    """Models that are compiled for cases, companions among them."""
    most: dict[tuple[str, int], int] = {}
    for case in cases:
        most[case.model] = max(most.get(case.model, 0), case.models)
    return sum(most.values())


def shares_record(shares: Shares) -> SharesRecord:
    """The records of run.json."""
    return {"pairs": [*shares.pairs], "twice": [*shares.twice], "triples": [*shares.triples]}


def digest_of_cases(texts: Iterable[str]) -> str:
    """SHA-256 of the lines that rebuild cases, in order."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def with_filled(plan: Plan, target: Target, cases: Iterable[Probe | str]) -> Plan:
    """The plan with cases more for a target, as probes or as the lines that rebuild them. Raises CaseError for a line
    that is no case."""
    given = list(cases)
    if len(given) > _MOST:
        raise CaseError(f"{len(given)} cases followed on {target.name}: no run adds more than {_MOST}")
    for each in given:
        if isinstance(each, str) and not each.startswith("{"):  # nothing that lies on this machine
            raise CaseError(f"no case: {each[:60]!a}")
    probes = [probe for each in given for probe in (portable_probes([each]) if isinstance(each, str) else [each])]
    there = plan.filled.get(target.name, ())
    known = {probe.id for probe in there}
    added = (*there, *(probe for probe in probes if probe.id not in known))
    return replace(plan, filled={**plan.filled, target.name: added}) if added else plan


def lacks_of(targets: Sequence[Target], folder: Path | None = None) -> tuple[str, ...]:
    """The contexts that some of the targets lack: what their tables declare, and what a run has found of its targets,
    in operators of which it says something. Raises NoRun for a folder that holds no run, or one that does not say."""
    lacks = {id for target in targets for id in target.lacks}
    if folder is not None:
        info = read_folder(folder).info
        coverage = [target["coverage"] for target in (info["targets"] if info else ()) if "coverage" in target]
        if not coverage:
            raise NoRun(f"{folder}: does not say what its targets lack; whole operators of core or full do")
        known = [{*each["lacks"]} for one in coverage for each in one["operators"] if each["after"]["pairs"][1]]
        lacks |= set[str]().union(*known)
    contexts = {id for op in counted_operators() for id in space_of(op).position}
    return tuple(sorted(lacks & contexts))  # pairs of contexts, and features, are no part of the space

"""The run: every case on every target, judged as results come, and written down at once."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ..cases import Case, CaseSpec, build_case, digests_for
from ..reference import clause_named
from .diagnosis import DIAGNOSED, explain_results
from .disagreements import disagreements_of, write_reproducers
from .environment import environment, version_of
from .evidence import Evidence, Kept, forget_evidence, write_evidence
from .expected_failures import Entry, applying, expectations_of, matching, stale
from .extended_diagnosis import explain_extended
from .findings import findings_of
from .fresh import FreshSample
from .journal import SCHEMA, Journal, RunMismatch
from .probe import AnyProbe, Probe, SpecProbe, job_of
from .process import Job, Outcome, TargetProcess, TargetUnavailable
from .result import Result, result_of
from .selection import Selection, probes_of_profile
from .shard import Shard
from .signed_errors import biases, grades
from .target import Target
from .verdict import Judgement, Verdict
from .wrap_probe import wrapped_probes

__all__ = [
    "Plan",
    "Run",
    "TargetRun",
    "description_of",
    "execute",
    "judgements_of",
    "no_longer_needed",
    "outcomes_of",
]

Subject = TypeVar("Subject")

_LARGE = "core"


@dataclass(frozen=True)
class Plan:
    """What to run.

    require
        (operator version, type) pairs, like ``("LSTM-14", "float32")``, for which a refusal counts as a failure.
    expected
        Whether files of expected failures are used: a target's own, or those that come with this release.
    targets_file
        The file of named targets, where it was given by name: commands that repeat a case must name it too.
    others, digest, skipped
        What is run beside the cases of a profile, the SHA-256 of all of it, and in a line each what cannot be run.
    shard
        The part of all this that is run; None for all of it.
    """

    selection: Selection
    specs: tuple[CaseSpec, ...]
    targets: tuple[Target, ...]
    command: tuple[str, ...] = ()
    require: frozenset[tuple[str, str]] = frozenset()
    expected: bool = True
    targets_file: Path | None = None
    others: tuple[Probe, ...] = ()
    digest: str = ""
    skipped: tuple[str, ...] = ()
    shard: Shard | None = None

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """All that is run, in order."""
        everything = (*map(SpecProbe, self.specs), *self.others)
        return self.shard.of(everything) if self.shard is not None else everything

    @property
    def profiled(self) -> tuple[AnyProbe, ...]:
        """What is run of a profile."""
        return self.specs if self.selection.directories else (*self.specs, *self.others)

    def probes_of(self, target: Target) -> tuple[Probe, ...]:
        """What is run on a target: everything that was asked for by name, else what the target is about; in the lane of
        a wrap what can be wrapped."""
        asked = self.selection.ops or self.selection.cases or self.selection.directories
        about = target.operators
        due = self.probes if asked else tuple(probe for probe in self.probes if probe.op in about)
        return wrapped_probes(due, target.wrap) if target.wrap else due


@dataclass
class TargetRun:
    """What became of one target.

    unavailable
        Why it could not start, or not again after a crash; empty where it could.
    """

    target: Target
    description: dict[str, Any] = field(default_factory=dict)
    unavailable: str = ""
    results: list[Result] = field(default_factory=list)
    stale: list[Entry] = field(default_factory=list)
    evidence: Evidence = field(default_factory=Evidence)
    disagreements: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def counts(self) -> Counter[str]:
        return Counter(result.verdict.value for result in self.results)

    @property
    def unexpected(self) -> list[Result]:
        return [result for result in self.results if result.failing and not result.expected]

    def missing(self, require: frozenset[tuple[str, str]]) -> list[Result]:
        """Refusals of what is required."""
        return [r for r in self.results if r.verdict is Verdict.REFUSED and (f"{r.op}-{r.version}", r.type) in require]


@dataclass
class Run:
    """A run as far as it has come."""

    plan: Plan
    folder: Path
    started: datetime
    targets: list[TargetRun]
    complete: bool = False
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """3: a target could not start; 1: a failing result that nobody expected, or a refusal of what is required."""
        if any(t.unavailable for t in self.targets):
            return 3
        return int(any(t.unexpected or t.missing(self.plan.require) for t in self.targets))


Observer = Callable[[TargetRun, "Result | None"], None]
"""Called when a target begins (None), and with each result."""


def execute(plan: Plan, journal: Journal, observe: Observer = lambda target, result: None) -> Run:
    """Run a plan into an open journal. What the journal already holds is not run again, except for cases that no
    runtime was there for.

    Raises RunMismatch where the journal holds another run, and whatever ends a run early (KeyboardInterrupt, OSError of
    a full disk); run.json is up to date even then, as far as it can be written.
    """
    run = Run(plan, journal.folder, datetime.now(timezone.utc), [TargetRun(target) for target in plan.targets])
    journal.same_run(description_of(run))
    journal.forget_unavailable()
    if not journal.done:
        forget_evidence(journal.folder)
    before = _take_up(run, journal)
    clock = time.monotonic()
    journal.describe(description_of(run))
    try:
        for target_run in run.targets:
            _run_target(run, target_run, journal, observe)
        run.complete = True
    finally:
        run.seconds = before + time.monotonic() - clock
        journal.describe(description_of(run))
    return run


def _take_up(run: Run, journal: Journal) -> float:
    """Give the run what the journal holds of it already; returns the seconds that it took."""
    cases = {probe.id for probe in run.plan.probes}
    earlier = journal.described() or {}
    described = {target["name"]: target for target in earlier.get("targets", ())}
    for target_run in run.targets:
        name = target_run.target.name
        target_run.results = [r for r in journal.done if r.target == name and r.case in cases]
        target_run.description = described.get(name, {}).get("description", {})
        target_run.seconds = described.get(name, {}).get("seconds", 0.0)
    if earlier:
        run.started = datetime.fromisoformat(earlier["started"])
    return float(earlier.get("seconds", 0.0))


def _run_target(whole: Run, run: TargetRun, journal: Journal, observe: Observer) -> None:
    clock = time.monotonic()
    plan, target = whole.plan, run.target
    due = plan.probes_of(target)
    probes = {probe.id: probe for probe in due}
    done = {r.case for r in run.results}
    kept = Kept()
    printed: dict[str, str] = {}
    left = [probe for probe in due if probe.id not in done]
    sample = FreshSample(left)
    listed = expectations_of(target) if plan.expected else ()
    observe(run, None)

    def keep(probe: Probe, judgement: Judgement, outcomes: Sequence[Outcome]) -> None:
        kept.offer(probe, judgement, outcomes)
        sample.offer(probe, judgement, outcomes)
        printed[probe.id] = "\n".join(outcome.captured for outcome in outcomes if outcome.captured)

    def record(probe: Probe, judgement: Judgement, seconds: float) -> None:
        entry = matching(applying(listed, run.description), probe, judgement)
        repeat = _repeat(plan, probe, target)
        why, said = entry.reason if entry else None, printed.pop(probe.id, "")
        result = result_of(probe, target.name, judgement, seconds, why, repeat, said)
        if judgement.verdict is Verdict.UNAVAILABLE:
            run.unavailable = run.unavailable or judgement.message
        journal.append(result)
        run.results.append(result)
        observe(run, result)

    try:
        if left:
            with TargetProcess(target) as process:
                run.description = _same_runtime(process.start(), run)
                # On disk from now on: whoever goes on with this run must have the same runtime.
                journal.describe(description_of(whole))
                for probe, judgement, seconds in judgements_of(process, left, target.accuracy, keep):
                    record(probe, judgement, seconds)
    except TargetUnavailable as error:
        finished = {r.case for r in run.results}
        for probe in left:
            if probe.id not in finished:
                record(probe, Judgement(Verdict.UNAVAILABLE, "unavailable", message=str(error)), 0.0)
    if not run.unavailable:
        entries = applying(listed, run.description)
        _amend(run, sample.differing(target, {r.case: r for r in run.results}), probes, entries, journal)
        _diagnose(run, probes, kept, entries, journal)
    run.stale = no_longer_needed(plan, listed, run)
    if not run.unavailable:
        found = findings_of(run.results, probes)
        run.disagreements = disagreements_of(run.results, probes)
        write_reproducers(whole.folder, target, run.disagreements, probes)
        run.evidence = write_evidence(whole.folder, target, found, probes, run.results, kept)
    run.seconds += time.monotonic() - clock


def _diagnose(run: TargetRun, probes: dict[str, Probe], kept: Kept, entries: Sequence[Entry], journal: Journal) -> None:
    """Find out what explains the failing results, all of them together, and put it down with them."""
    # What an earlier run of this folder obtained must be run again to be explained.
    unseen = [r.case for r in run.results if r.verdict in DIAGNOSED and not r.diagnosis and r.case not in kept.fresh]
    if unseen:
        with contextlib.suppress(TargetUnavailable), TargetProcess(run.target) as process:
            for _ in judgements_of(process, [probes[case] for case in unseen], run.target.accuracy, kept.offer):
                pass
    explained = explain_results(run.results, probes, kept, run.target.accuracy)
    explained |= explain_extended(run.results, probes, kept)
    said = [replace(r, diagnosis=explained[r.case]) for r in run.results if r.case in explained]
    _amend(run, said, probes, entries, journal)


def _amend(
    run: TargetRun, said: Iterable[Result], probes: dict[str, Probe], entries: Sequence[Entry], journal: Journal
) -> None:
    """Put results in the place of those of the same cases, now that more is known of them."""
    amended = {}
    for result in said:
        entry = matching(entries, probes[result.case], result)
        amended[result.case] = replace(result, expected=entry is not None, why=entry.reason if entry else "")
    run.results[:] = [amended.get(result.case, result) for result in run.results]
    if amended:
        journal.amend(list(amended.values()))


def no_longer_needed(plan: Plan, listed: Iterable[Entry], run: TargetRun) -> list[Entry]:
    """The entries for a target that nothing needs any more. Of one that covers cases of the profile which were not run,
    nothing is known; and that somebody else's case passes says nothing about any, nor that a wrapped one does."""
    if run.target.wrap or plan.selection.directories:
        return []
    own = {probe.id: probe for probe in plan.probes}
    ran = [(own[r.case], r) for r in run.results if r.case in own]
    found = stale(applying(listed, run.description), ran)
    if not found:
        return []
    done = {result.case for _, result in ran}
    everything = probes_of_profile(plan.selection.profile)
    # Which cases a mistake explains is known only once they fail: those of a small profile need not be among them.
    more = probes_of_profile(_LARGE) if any(entry.deviations for entry in found) else []
    telling = ((entry, more if entry.deviations else everything) for entry in found)
    return [entry for entry, cases in telling if all(probe.id in done for probe in cases if entry.covers(probe))]


def _same_runtime(description: dict[str, Any], run: TargetRun) -> dict[str, Any]:
    """The description of a runtime that has started. Raises RunMismatch where earlier results are of another one."""
    for key in ("runtime", "version", "build", "provider", "device"):
        was, now = run.description.get(key), description.get(key)
        if run.results and was != now:
            raise RunMismatch(f"the results there are of {run.target.name} with {key} {was}, which now has {now}")
    return description


def _repeat(plan: Plan, probe: Probe, target: Target) -> str:
    """The command that shows a case on a target."""
    where = ["--targets-file", str(plan.targets_file)] if plan.targets_file is not None else []
    return shlex.join([*probe.repeat(target.name), *where])


def outcomes_of(process: TargetProcess, specs: Iterable[CaseSpec]) -> Iterator[tuple[Case, Outcome, Outcome | None]]:
    """Every case, in order, with what the target did with its trial and its twin.

    `specs` is read ahead, and cases are built while the target works.
    """
    cases = map(build_case, specs)
    trials = ((case, [case.trial, *([case.twin] if case.twin is not None else [])]) for case in cases)
    for case, outcomes in _collected(process, ((case, map(job_of, both)) for case, both in trials)):
        yield case, outcomes[0], outcomes[1] if len(outcomes) > 1 else None


def judgements_of(
    process: TargetProcess,
    probes: Iterable[Probe],
    accuracy: str,
    keep: Callable[[Probe, Judgement, Sequence[Outcome]], None] = lambda probe, judgement, outcomes: None,
) -> Iterator[tuple[Probe, Judgement, float]]:
    """Every probe, in order, with the verdict on what the target did, and the seconds that it took.

    `probes` is read ahead, and they are prepared while the target works. `keep` is told what was judged.
    """
    ready = ((probe, probe.prepare()) for probe in probes)
    for (probe, prepared), outcomes in _collected(process, ((pair, pair[1].jobs) for pair in ready)):
        judgement = prepared.judge(outcomes, accuracy)
        keep(probe, judgement, outcomes)
        yield probe, judgement, sum(outcome.seconds for outcome in outcomes)


def _collected(
    process: TargetProcess, work: Iterable[tuple[Subject, Iterable[Job]]]
) -> Iterator[tuple[Subject, list[Outcome]]]:
    """Whatever has jobs, in order, with their outcomes."""
    waiting: deque[tuple[Subject, int]] = deque()

    def jobs() -> Iterator[Job]:
        for subject, its in work:
            due = list(its)
            waiting.append((subject, len(due)))
            yield from due

    outcomes: list[Outcome] = []
    for outcome in process.run(jobs()):
        outcomes.append(outcome)
        if len(outcomes) == waiting[0][1]:
            yield waiting.popleft()[0], outcomes
            outcomes = []


def description_of(run: Run) -> dict[str, Any]:
    """run.json."""
    selection, plan = run.plan.selection, run.plan
    probes = {probe.id: probe for probe in plan.probes}
    targets = [_target_description(target, probes) for target in run.targets]
    named = {c for t in run.targets for r in t.results for c in (*r.clauses, r.clause) if c}
    named |= {c for target in targets for finding in target["findings"] for c in finding["clauses"]}
    clauses = {id: clause_named(id) for id in sorted(named)}
    return {
        "schema": SCHEMA,
        "onnxspec": version_of("onnxspec") or "",
        "started": run.started.isoformat(timespec="seconds"),
        "seconds": round(run.seconds, 3),
        "complete": run.complete,
        "command": list(plan.command),
        "profile": selection.profile,
        "selection": {
            "op": sorted(set(selection.ops)),
            "since_version": sorted(set(selection.versions)),
            "type": sorted(set(selection.types)),
            "case": sorted(set(selection.cases)),
            **({"directories": list(selection.directories)} if selection.directories else {}),
        },
        "shard": str(plan.shard) if plan.shard is not None else None,
        "expected_failures": plan.expected,
        "cases": len(plan.probes),
        **({"skipped": list(plan.skipped)} if plan.skipped else {}),
        "digests": {
            **digests_for(selection.profile, sorted({(p.op, p.version) for p in plan.profiled})),
            **({"directories": plan.digest} if selection.directories else {}),
        },
        "environment": environment(),
        "counts": dict(sum((t.counts for t in run.targets), Counter[str]())),
        "targets": targets,
        "clauses": {id: {"status": c.status, "text": c.text, "source": c.source} for id, c in clauses.items()},
    }


def _target_description(run: TargetRun, probes: dict[str, Probe]) -> dict[str, Any]:
    return {
        "name": run.target.name,
        "adapter": run.target.adapter,
        "description": run.description,
        "unavailable": run.unavailable,
        "class": run.target.accuracy,
        "expected_file": run.target.expected,
        "grade": grades(run.results, run.target.accuracy),
        "options": dict(run.target.options),
        "counts": dict(run.counts),
        "unexpected": len(run.unexpected),
        "seconds": round(run.seconds, 3),
        "bias": biases(run.results),
        "findings": findings_of(run.results, probes),
        **({"disagreements": run.disagreements} if run.disagreements else {}),
        "evidence": {name: dict(value) for name, value in vars(run.evidence).items()},
        "stale": [{"reason": e.reason, "cases": list(e.cases), "features": list(e.features)} for e in run.stale],
    }

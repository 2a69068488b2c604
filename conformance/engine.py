"""The run: every case on every target, judged as results come, and written down at once."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from .decidable import decidable
from .description import description_of
from .diagnosis import DIAGNOSED
from .disagreements import disagreements_of, write_reproducers
from .evidence import Kept, forget_evidence, write_evidence
from .expected_failures import Entry, applying, expectations_of, matching, stale
from .explainer import explained
from .findings import findings_of
from .fresh import FreshSample
from .journal import SAME_RUNTIME, Journal, RunMismatch
from .judgement import Judgement, Verdict
from .probe import Probe
from .process import TargetProcess, TargetUnavailable
from .result import Result, result_of
from .run import Plan, Run, TargetRun
from .stream import tried
from .target import Target

__all__ = ["Observer", "execute", "no_longer_needed"]

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
        for target_run in run.targets:
            if not target_run.findings:  # it was cut short
                probes = {probe.id: probe for probe in plan.probes_of(target_run.target)}
                target_run.findings = findings_of(target_run.results, probes)
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
    left = [probe for probe in due if probe.id not in done]
    sample = FreshSample(left)
    listed = expectations_of(target) if plan.expected else ()
    observe(run, None)

    def record(probe: Probe, judgement: Judgement, seconds: float = 0.0, said: str = "") -> None:
        entry = matching(applying(listed, run.description), probe, judgement)
        repeat = _repeat(plan, probe, target)
        why = entry.reason if entry else None
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
                for one in tried(process, left, target.accuracy):
                    kept.offer(one)
                    sample.offer(one)
                    said = "\n".join(outcome.captured for outcome in one.outcomes if outcome.captured)
                    record(one.probe, one.judgement, one.seconds, said)
    except TargetUnavailable as error:
        finished = {r.case for r in run.results}
        for probe in left:
            if probe.id not in finished:
                record(probe, Judgement(Verdict.UNAVAILABLE, "unavailable", message=str(error)))
    if not run.unavailable:
        entries = applying(listed, run.description)
        _amend(run, sample.differing(target, {r.case: r for r in run.results}), probes, entries, journal)
        _diagnose(run, probes, kept, entries, journal)
    run.stale = no_longer_needed(plan, listed, run)
    run.findings = findings_of(run.results, probes)
    if not run.unavailable:
        run.disagreements = disagreements_of(run.results, probes)
        write_reproducers(whole.folder, target, run.disagreements, probes)
        run.evidence = write_evidence(whole.folder, target, run.findings, probes, run.results, kept)
    run.seconds += time.monotonic() - clock


def _diagnose(run: TargetRun, probes: dict[str, Probe], kept: Kept, entries: Sequence[Entry], journal: Journal) -> None:
    """Find out what explains the failing results, all of them together, and put it down with them."""
    # What an earlier run of this folder obtained must be run again to be explained.
    unseen = [r.case for r in run.results if r.verdict in DIAGNOSED and not r.diagnosis and r.case not in kept.fresh]
    if unseen:
        with contextlib.suppress(TargetUnavailable), TargetProcess(run.target) as process:
            for one in tried(process, [probes[case] for case in unseen], run.target.accuracy):
                kept.offer(one)
    suspects = [pattern for entry in entries for pattern in entry.deviations]
    found = explained(run.results, probes, kept, run.target.accuracy, suspects)
    said = [replace(r, diagnosis=found[r.case]) for r in run.results if r.case in found]
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
    return decidable(found, {result.case for _, result in ran}, plan.selection.profile)


def _same_runtime(description: dict[str, Any], run: TargetRun) -> dict[str, Any]:
    """The description of a runtime that has started. Raises RunMismatch where earlier results are of another one."""
    for key in SAME_RUNTIME:
        was, now = run.description.get(key), description.get(key)
        if run.results and was != now:
            raise RunMismatch(f"the results there are of {run.target.name} with {key} {was}, which now has {now}")
    return description


def _repeat(plan: Plan, probe: Probe, target: Target) -> str:
    """The command that shows a case on a target."""
    where = ["--targets-file", str(plan.targets_file)] if plan.targets_file is not None else []
    return shlex.join([*probe.repeat(target.name), *where])

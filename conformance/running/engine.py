"""The run: every case on every target, as a stream of events; and who writes them down."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from msgspec import structs

from ..diagnosis.causes import Subject, experiments_of
from ..diagnosis.disagreements import disagreements_of, write_reproducers
from ..diagnosis.explainer import arithmetics_of, explained
from ..diagnosis.failing_case import DIAGNOSED
from ..diagnosis.findings import findings_of
from ..diagnosis.needed_classes import with_needed_classes
from ..diagnosis.own_functions import function_classes
from ..diagnosis.telling import with_causes
from ..judging.judgement import Judgement, Verdict
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import Tried, tried
from ..results import lines
from ..results.evidence import Kept, forget_evidence, write_evidence
from ..results.expected.decidable import decidable
from ..results.expected.entries import Entry, applying, expectations_of, matching, stale, suspects
from ..results.folder import Held
from ..results.journal import SAME_RUNTIME, Journal, RunMismatch
from ..results.recorded import CASE, FRESH, Recorder
from ..results.result import Result, place_of
from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.process import TargetProcess, TargetUnavailable
from .description import description_of
from .events import (
    CaseJudged,
    CasesFilled,
    Event,
    ExperimentsMade,
    ResultsAmended,
    RunEnded,
    RunStarted,
    SampleTried,
    TargetBegun,
    TargetFinished,
    TargetStarted,
)
from .filling import NOT_ASKED, Filling, with_filled
from .fresh import FreshSample
from .loop import cases_judged, judged_result
from .run import Plan, Run, TargetRun, stranger_among

__all__ = ["Events", "execute", "looked_up", "no_longer_needed", "run_events", "write_down"]

Events = Generator[Event, None, None]


def execute(plan: Plan, journal: Journal, observe: Callable[[Event], None] = lambda event: None) -> Run:
    """Run a plan into an open journal. What the journal already holds is not run again, except for cases that no
    runtime was there for.

    observe
        Called with each event, once it is written down.

    Raises RunMismatch where the journal holds another run, and whatever ends a run early (KeyboardInterrupt, OSError of
    a full disk); results.jsonl and run.json are up to date even then, as far as they can be written.
    """
    run = Run(plan, journal.folder, datetime.now(timezone.utc), [])
    run.targets += [TargetRun(target, hangs=HangBudget(plan.hang_budget)) for target in plan.targets]
    journal.same_run(begun := lines.begun_of(description_of(run)))
    run.plan = plan = _filled_again(plan, journal.held)
    if strange := stranger_among(journal.held.results.values(), plan):
        raise RunMismatch(f"{journal.folder}: {strange}; was it edited? It is left alone")
    journal.begin(begun)
    if not journal.done:
        forget_evidence(journal.folder)
    _take_up(run, journal.held, journal.done)
    clock = time.monotonic()
    with contextlib.ExitStack() as stack:
        stack.callback(_write_end, run, journal, clock)
        recorder = stack.enter_context(Recorder(journal.folder)) if plan.record else None
        for event in stack.enter_context(contextlib.closing(run_events(run))):
            write_down(event, journal, recorder)
            observe(event)
    return run


def write_down(event: Event, journal: Journal, recorder: Recorder | None = None) -> None:
    """Put down an event in the journal, with what the target did where there is a recorder. Raises OSError where the
    disk has no room for it."""
    if isinstance(event, CaseJudged):
        journal.append(*_recorded(recorder, CASE, event.result.target, event.one), lines.Observed(result=event.result))
    elif isinstance(event, SampleTried):
        journal.append(*_recorded(recorder, FRESH, event.target.target.name, event.one))
    elif isinstance(event, (ResultsAmended, ExperimentsMade)):
        journal.append(*event.lines)
    elif isinstance(event, TargetStarted):
        journal.append(lines.TargetStarted(target=event.target.target.name, description=event.target.description))
        # On disk from now on: whoever goes on with this run must have the same runtime.
        journal.describe(description_of(event.run))
    elif isinstance(event, TargetFinished):
        journal.append(lines.TargetFinished(target=event.target.target.name, seconds=round(event.seconds, 3)))
    elif isinstance(event, CasesFilled):
        texts = [probe.text for probe in event.probes]
        journal.append(lines.Filled(target=event.target.target.name, cases=texts))
    elif isinstance(event, RunStarted):
        journal.describe(description_of(event.run))


def _filled_again(plan: Plan, held: Held) -> Plan:
    """The plan with the cases that a journal says have followed. Raises RunMismatch for what is no case."""
    for target in plan.targets:
        try:
            plan = with_filled(plan, target, held.filled.get(target.name, ()))
        except ValueError as error:
            raise RunMismatch(f"a case that followed on {target.name} cannot be had again: {error}") from None
    return plan


def _recorded(recorder: Recorder | None, purpose: str, target: str, one: Tried | None) -> list[lines.Recorded]:
    """The line that says what a target did, once the bits that it speaks of are on disk."""
    if recorder is None or one is None:
        return []
    jobs = recorder.jobs(target, one.outcomes)
    return [lines.Recorded(purpose=purpose, target=target, case=one.probe.id, jobs=jobs)]


def _write_end(run: Run, journal: Journal, clock: float) -> None:
    """Make what people read of what is known, however the run has ended."""
    took = time.monotonic() - clock
    run.seconds += took
    with contextlib.ExitStack() as stack:  # each of these, even if one of them finds no room
        stack.callback(lambda: journal.describe(description_of(run)))
        stack.callback(journal.publish)
        stack.callback(lambda: journal.append(lines.Ended(complete=run.complete, seconds=round(took, 3))))
        for target in run.targets:
            if not target.findings:  # it was cut short
                with target.guarded("findings"):
                    target.findings = findings_of(target.results, {p.id: p for p in run.plan.probes_of(target.target)})


def _take_up(run: Run, held: Held, done: Sequence[Result]) -> None:
    """Give a run what a journal holds of it already."""
    cases = {probe.id for probe in run.plan.probes}
    for target_run in run.targets:
        name = target_run.target.name
        target_run.results = [r for r in done if r.target == name and r.case in cases]
        target_run.description = held.descriptions.get(name, {})
        target_run.seconds = held.seconds.get(name, 0.0)
    if held.begun:
        run.started = datetime.fromisoformat(held.begun[0].started)
    run.seconds = held.all_seconds


def run_events(run: Run) -> Events:
    """Carry out a run, target by target; what it holds already is not run again. The run is up to date with every event
    that is taken from it.

    Raises RunMismatch where a target has become another runtime. Closing it ends the target that is at work.
    """
    clock = time.monotonic()
    yield RunStarted(run)
    for target_run in run.targets:
        yield from _target_events(run, target_run)
        if run.plan.fail_fast and target_run.unexpected:
            break
    run.complete = not run.lacking
    yield RunEnded(run, time.monotonic() - clock)


def _target_events(whole: Run, run: TargetRun) -> Events:
    clock = time.monotonic()
    plan, target = whole.plan, run.target
    probes = {probe.id: probe for probe in plan.probes_of(target)}
    done = {r.case for r in run.results}
    kept = Kept()
    left = [probe for probe in probes.values() if probe.id not in done]
    sample = FreshSample(plan.selection.profile, len(replace(plan, shard=None).probes_of(target)))
    if plan.record:
        sample.recall(whole.folder, target.name, probes, done)
    listed = expectations_of(target) if plan.expected else ()
    repeat = partial(_repeat, plan, target)
    filling = Filling(whole, run) if plan.counts_coverage else None
    yield TargetBegun(whole, run)
    try:
        with contextlib.ExitStack() as stack:
            process: TargetProcess | None = None
            ended = False
            for number, batch in enumerate(_batches(run, left, filling if plan.fills else None)):
                if number:
                    probes |= {probe.id: probe for probe in batch}
                    yield CasesFilled(whole, run, batch)
                if not batch:
                    continue
                if process is None:
                    process = stack.enter_context(plan.process(target, hangs=run.hangs, measure=plan.record))
                    run.description = _same_runtime(process.start(), run)
                    yield TargetStarted(whole, run)
                    entries = applying(listed, run.description)
                for judged in cases_judged(process, batch, target, entries, repeat):
                    if judged.one is not None:
                        kept.offer(judged.one)
                        sample.offer(judged.one)
                    yield _taken(run, judged)
                    if ended := plan.fail_fast and _is_news(judged.result, probes, entries):
                        break
                if ended:
                    break
    except TargetUnavailable as error:
        finished = {r.case for r in run.results}
        gone = Judgement(Verdict.UNAVAILABLE, "unavailable", message=str(error))
        for probe in probes.values():
            if probe.id not in finished:
                yield _taken(run, CaseJudged(judged_result(probe, target, gone, (), repeat)))
    if filling is not None and run.results and not run.unavailable:
        with run.guarded("coverage"):
            run.coverage = filling.record("" if plan.fills else NOT_ASKED)
    if not run.unavailable:
        entries = applying(listed, run.description)
        again: list[Tried] = []
        differing = sample.differing(target, {r.case: r for r in run.results}, run.hangs, again.append, plan.process)
        yield from (SampleTried(run, one) for one in again)
        yield from _amend(run, "fresh-sample", differing, probes, entries)
        if plan.shard is None:  # a shard's share decides nothing; what is merged of shards does
            needed: Sequence[Result] = ()
            with run.guarded("needed classes"):
                needed = list(with_needed_classes(run.results))
            yield from _amend(run, "needed-classes", needed, probes, entries)
        own: Mapping[str, tuple[str, ...]] = {}
        with run.guarded("the target's own functions"):
            own = _own_functions(plan, run)
        named: list[Result] = []
        with run.guarded("diagnosis"):
            named = _diagnosed(plan, run, probes, kept, entries, own)
        yield from _amend(run, "diagnosis", named, probes, entries)
    run.stale = no_longer_needed(whole.plan, listed, run)
    with run.guarded("findings"):
        run.findings = findings_of(run.results, probes)
    if not run.unavailable:
        if plan.shrinks:
            yield from _experiments(plan, run, probes, kept, entries, own)
        with run.guarded("disagreements"):
            run.disagreements = disagreements_of(run.results, probes)
            write_reproducers(whole.folder, target, run.disagreements, probes)
        run.evidence = write_evidence(
            whole.folder, target, run.findings, probes, run.results, kept, run.hangs, plan.process
        )
    took = time.monotonic() - clock
    run.seconds += took
    yield TargetFinished(whole, run, took)


def _batches(run: TargetRun, left: Sequence[Probe], filling: Filling | None) -> Iterator[Sequence[Probe]]:
    """What is run, one after the other: what is left of the plan, and what is to follow after that."""
    more = left
    while True:
        yield more
        more = ()
        if filling is not None:
            with run.guarded("choosing what follows"):
                more = filling.next()
        if not more:
            return


def _is_news(result: Result, probes: Mapping[str, Probe], entries: Sequence[Entry]) -> bool:
    """Whether no list can name a result any more: what names a diagnosis may, until there is one."""
    anyhow = [replace(entry, faults=()) for entry in entries]
    return result.failing and matching(anyhow, probes[result.case], result) is None


def _taken(run: TargetRun, event: CaseJudged) -> CaseJudged:
    """A verdict, put down with the target that it is on."""
    result = event.result
    if result.verdict is Verdict.UNAVAILABLE:
        run.unavailable = run.unavailable or result.message
    run.results.append(result)
    return event


def _own_functions(plan: Plan, run: TargetRun) -> dict[str, tuple[str, ...]]:
    """Type to the accuracy classes that the target's functions need, where results fail."""
    if not any(r.verdict in DIAGNOSED and not r.expected for r in run.results):
        return {}
    with contextlib.suppress(TargetUnavailable), plan.process(run.target, hangs=run.hangs) as process:
        return function_classes(process.run, run.results, run.target.accuracy)
    return {}


def _diagnosed(
    plan: Plan,
    run: TargetRun,
    probes: Mapping[str, Probe],
    kept: Kept,
    entries: Sequence[Entry],
    own: Mapping[str, tuple[str, ...]],
) -> list[Result]:
    """The failing results with what explains them, all of them together."""
    # What an earlier run of this folder obtained must be run again to be explained.
    unseen = [r.case for r in run.results if r.verdict in DIAGNOSED and not r.diagnosis and r.case not in kept.fresh]
    if unseen:
        with contextlib.suppress(TargetUnavailable), plan.process(run.target, hangs=run.hangs) as process:
            for one in tried(process, [probes[case] for case in unseen], run.target.accuracy):
                kept.offer(one)
    causes = explained(run.results, probes, kept, run.target.accuracy, suspects(entries), own, run.mishap)
    return [structs.replace(r, diagnosis=causes[r.case]) for r in run.results if r.case in causes]


def _experiments(
    plan: Plan,
    run: TargetRun,
    probes: dict[str, Probe],
    kept: Kept,
    entries: Sequence[Entry],
    own: Mapping[str, tuple[str, ...]],
) -> Events:
    """Ask the target under which conditions its failures show, and what they foretell."""
    budget = experiments_of(run.results)
    made: list[lines.Experiment] = []
    better: list[Result] = []

    def observe(smallest: str, one: Tried, changed: str) -> None:
        made.append(_experiment(run.target.name, smallest, one, changed))

    with contextlib.suppress(TargetUnavailable), plan.process(run.target, hangs=run.hangs) as process:
        repeat = partial(_repeat, plan, run.target)
        arithmetics = arithmetics_of(run.results, run.target.accuracy, own)
        subject = Subject(
            process, run.target.accuracy, repeat, run.results, probes, kept, observe, arithmetics, run.mishap
        )
        with run.guarded("experiments"):
            run.findings, better = with_causes(run.findings, subject, budget)
    if made:
        yield ExperimentsMade(run, made)
    yield from _amend(run, "experiments", better, probes, entries)


def _experiment(target: str, smallest: str, one: Tried, changed: str) -> lines.Experiment:
    """An experiment as the journal has it."""
    assert isinstance(one.probe, SpecProbe)
    judgement = one.judgement
    return lines.Experiment(
        target=target,
        smallest=smallest,
        changed=changed,
        case=one.probe.text,
        verdict=judgement.verdict,
        reason=judgement.reason,
        where=place_of(judgement.where),
        message=judgement.message,
        seconds=round(one.seconds, 6),
    )


def _amend(
    run: TargetRun, by: str, better: Iterable[Result], probes: Mapping[str, Probe], entries: Sequence[Entry]
) -> Events:
    """Put results in the place of those of the same cases, now that more is known of them."""
    amended = {result.case: looked_up(result, probes, entries) for result in better}
    changes = [
        line for r in run.results if r.case in amended and (line := lines.amendment(r, amended[r.case], by)) is not None
    ]
    run.results[:] = [amended.get(result.case, result) for result in run.results]
    if changes:
        yield ResultsAmended(run, by, changes)


def looked_up(result: Result, probes: Mapping[str, Probe], entries: Sequence[Entry]) -> Result:
    """A result with what the list of known failures says of it."""
    entry = matching(entries, probes[result.case], result)
    return structs.replace(result, expected=entry is not None, why=entry.reason if entry else "")


def no_longer_needed(plan: Plan, listed: Iterable[Entry], run: TargetRun) -> list[Entry]:
    """The entries for a target that nothing needs any more. Of one that covers cases of the profile which were not run,
    nothing is known; and that somebody else's case passes says nothing about any, nor that a wrapped one does. A case
    that followed may need one, and makes none useless: the next run may have others in its place."""
    if run.target.wrap or plan.selection.directories:
        return []
    own = {probe.id: probe for probe in plan.probes}
    ran = [(own[r.case], r) for r in run.results if r.case in own]
    entries = stale(applying(listed, run.description), ran)
    after = {probe.id: probe for probe in plan.filled.get(run.target.name, ())}
    followed = [(after[r.case], r) for r in run.results if r.case in after]
    entries = [entry for entry in entries if not any(entry.expects(probe, r) for probe, r in followed)]
    if not entries:
        return []
    return decidable(entries, {result.case for _, result in ran}, plan.selection.profile)


def _same_runtime(description: dict[str, Any], run: TargetRun) -> dict[str, Any]:
    """The description of a runtime that has started. Raises RunMismatch where earlier results are of another one."""
    for key in SAME_RUNTIME:
        was, now = run.description.get(key), description.get(key)
        if run.results and was != now:
            raise RunMismatch(f"the results there are of {run.target.name} with {key} {was}, which now has {now}")
    return description


def _repeat(plan: Plan, target: Target, probe: Probe) -> str:
    """The command that shows a case on a target."""
    where = ["--targets-file", str(plan.targets_file)] if plan.targets_file is not None else []
    return shlex.join([*probe.repeat(target.name), *where])

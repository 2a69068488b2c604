"""The run: every case on every target, as a stream of events; and who writes them down."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from ..diagnosis.findings import findings_of
from ..probes.stream import Tried
from ..results import lines
from ..results.evidence import forget_evidence
from ..results.folder import Held
from ..results.journal import Journal, RunMismatch
from ..results.recorded import CASE, FRESH, Recorder
from ..results.result import Result
from ..workers.pool import Pool
from .description import description_of
from .events import CaseJudged, Event, RunBegun, SampleTried, TargetAtWork
from .filling import with_filled
from .run import Plan, Run, TargetRun, stranger_among
from .turn import Events, Turn


def execute(plan: Plan, journal: Journal, observe: Callable[[Event], None] = lambda event: None) -> Run:
    """Run a plan into an open journal. What the journal already holds is not run again, except for cases that no
    runtime was there for.

    observe
        Called with each event, once it is written down.

    Raises RunMismatch where the journal holds another run, and whatever ends a run early (KeyboardInterrupt, OSError of
    a full disk); results.jsonl and run.json are up to date even then, as far as they can be written.
    """
    run = Run(plan, journal.folder, datetime.now(timezone.utc), [])
    run.targets += [TargetRun(target) for target in plan.targets]
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
        run.pool = stack.enter_context(Pool(plan.jobs))
        run.pool.expect(sum(len(plan.probes_of(one.target)) - len(one.results) for one in run.targets))
        for event in stack.enter_context(contextlib.closing(run_events(run))):
            write_down(event, journal, recorder)
            observe(event)
    return run


def write_down(event: Event, journal: Journal, recorder: Recorder | None = None) -> None:
    """Put the lines of an event into the journal, behind what the target did where there is a recorder. Raises OSError
    where the disk has no room for it."""
    kept: list[lines.Recorded] = []
    if isinstance(event, CaseJudged):
        kept = _recorded(recorder, CASE, event.result.target, event.one)
    elif isinstance(event, SampleTried):
        kept = _recorded(recorder, FRESH, event.target.target.name, event.one)
    if kept or event.lines:
        journal.append(*kept, *event.lines)
    if isinstance(event, (RunBegun, TargetAtWork)):
        # On disk from now on: whoever goes on with this run must have the same runtime.
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
    yield RunBegun(run)
    for target_run in run.targets:
        yield from Turn(run, target_run).events()
    run.complete = not run.lacking

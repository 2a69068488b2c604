"""Engine of a run: every case on every target, as a stream of lines of results.jsonl that are written and shown."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from datetime import datetime, timezone

from ..diagnosis.findings import findings_of
from ..results import lines
from ..results.evidence import forget_evidence
from ..results.folder import RunFolder
from ..results.lines import Line
from ..results.recorded import Recorder
from ..results.result import Result
from ..results.writer import RunWriter
from ..workers.pool import Pool
from .conclusion import description_of
from .filling import filled_again
from .run import Plan, Run, TargetRun, require_planned
from .target_runner import TargetRunner

Observe = Callable[[TargetRun, Line], None]
"""Handler of each line, once it is written; the state of the target is up to date."""


def execute(plan: Plan, writer: RunWriter, observe: Observe = lambda target, line: None) -> Run:
    """Run a plan into an open folder. Skip cases that have a result there, unless the target was not available.

    Raise RecordError if the folder holds another run. Pass on exceptions that end a run early (KeyboardInterrupt,
    OSError of a full disk); run.json is up to date even then, as far as it can be written.
    """
    run = Run(plan, writer.folder, datetime.now(timezone.utc), [])
    run.targets += [TargetRun(target) for target in plan.targets]
    writer.require_same_run(header := lines.header_of(description_of(run)))
    run.plan = plan = filled_again(plan, writer.loaded)
    require_planned(writer.loaded, plan)
    writer.begin(header)
    if not writer.done:
        forget_evidence(writer.folder)
    _take_up(run, writer.loaded, writer.done)
    with contextlib.ExitStack() as stack:
        stack.callback(_end_of(run, writer))
        if plan.record:
            run.recorder = stack.enter_context(Recorder(writer.folder))
        run.pool = stack.enter_context(Pool(plan.jobs))
        run.pool.expect(sum(len(plan.probes_of(target.target)) - len(target.results) for target in run.targets))
        writer.describe(description_of(run))
        for target, line in stack.enter_context(contextlib.closing(run_lines(run))):
            writer.append(line)
            if isinstance(line, lines.TargetStarted):
                # Written now, because a resumed run must have the same runtime.
                writer.describe(description_of(run))
            observe(target, line)
    return run


def run_lines(run: Run) -> Generator[tuple[TargetRun, Line], None, None]:
    """Run target by target, without the results that the run has. Yield lines, each with its target.

    Raise RecordError if a target has become another runtime. Closing the generator ends the running target.
    """
    for target in run.targets:
        with contextlib.closing(TargetRunner(run, target).lines()) as target_lines:
            for line in target_lines:
                yield target, line
    run.complete = not run.lacking


def _end_of(run: Run, writer: RunWriter) -> Callable[[], None]:
    """Return a callback that writes the last line and run.json."""
    clock = time.monotonic()
    before = {target.target.name: target.seconds for target in run.targets}

    def write_end() -> None:
        took = time.monotonic() - clock
        run.seconds += took
        seconds = {t.target.name: round(t.seconds - before[t.target.name], 3) for t in run.targets}
        end = lines.RunFinished(complete=run.complete, seconds=round(took, 3), target_seconds=seconds)
        with contextlib.ExitStack() as stack:  # run.json even if there is no room for the line
            stack.callback(lambda: writer.describe(description_of(run)))
            stack.callback(writer.append, end)
            for target in run.targets:
                if not target.findings:  # it was cut short
                    with target.guarded("findings"):
                        probes = {probe.id: probe for probe in run.plan.probes_of(target.target)}
                        target.findings = findings_of(target.results, probes)

    return write_end


def _take_up(run: Run, loaded: RunFolder, done: Sequence[Result]) -> None:
    """Load the results of a folder into a run."""
    for target_run in run.targets:
        name = target_run.target.name
        target_run.results = [r for r in done if r.target == name]
        target_run.description = loaded.descriptions.get(name, {})
        target_run.seconds = loaded.seconds.get(name, 0.0)
    if loaded.headers:
        run.started = datetime.fromisoformat(loaded.headers[0].started)
    run.seconds = loaded.all_seconds

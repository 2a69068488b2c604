"""Engine of a run: every case on every target and the diagnosis of failures, as a stream of lines of results.jsonl."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from msgspec import structs

from ...reference.errors import RecordError
from ..diagnosis.failing_case import DIAGNOSED
from ..diagnosis.findings import findings_of
from ..judging.judgement import Judgement, Verdict
from ..probes.probe import Probe
from ..probes.stream import CaseRun, tried
from ..probes.wrapped import wrapped_probes
from ..results import lines
from ..results.evidence import Kept, write_evidence
from ..results.expected.entries import Entry, applying, expectations_of, matching
from ..results.folder import RunFolder, require_known_clauses
from ..results.lines import Line, other_runtime
from ..results.recorded import CASE, FRESH, Recorder
from ..results.result import Result, result_of
from ..results.writer import RunWriter
from ..targets.target import Target
from ..workers.launch import ForkServer
from ..workers.pool import Pool
from ..workers.process import TargetProcess, TargetUnavailable
from .conclusion import conclude, description_of, looked_up
from .filling import NOT_ASKED, cases_to_add, filled_again, with_filled
from .fresh import FreshSample, amended_by_fresh, fresh_target
from .run import Plan, Run, TargetRun

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
    require_known_clauses(writer.loaded)
    run.plan = plan = filled_again(plan, writer.loaded)
    writer.begin(header)
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
    """Load the planned results of a folder into a run."""
    for target_run in run.targets:
        name = target_run.target.name
        planned = {probe.id for probe in run.plan.probes_of(target_run.target)}
        target_run.results = [r for r in done if r.target == name and r.case in planned]
        target_run.description = loaded.descriptions.get(name, {})
        target_run.seconds = loaded.seconds.get(name, 0.0)
    if loaded.headers:
        run.started = datetime.fromisoformat(loaded.headers[0].started)
    run.seconds = loaded.all_seconds


def judged_result(case_run: CaseRun, target: Target, entries: Sequence[Entry], repeat: str) -> Result:
    """Return the result of a case that was run.

    entries
        The expected failures that apply to this runtime.
    repeat
        The command that shows the case on the target.
    """
    probe, judgement = case_run.probe, case_run.judgement
    printed = "\n".join(outcome.captured for outcome in case_run.outcomes if outcome.captured)
    entry = matching(entries, probe, judgement)
    why = entry.reason if entry else None
    return result_of(probe, target.name, judgement, case_run.seconds, why, repeat, printed)


Lines = Generator[Line, None, None]


class TargetRunner:
    """Runner of one target: `run` is its state in the run `whole`."""

    def __init__(self, whole: Run, run: TargetRun) -> None:
        plan, target = whole.plan, run.target
        self._whole, self._run, self._plan, self._target = whole, run, plan, target
        self._clock = time.monotonic()
        self._probes = {probe.id: probe for probe in plan.probes_of(target)}
        done = {r.case for r in run.results}
        self._left = [probe for probe in self._probes.values() if probe.id not in done]
        self._kept = Kept()
        planned = len(replace(plan, shard=None).probes_of(target))
        self._sample = FreshSample(plan.selection.profile, planned, plan.repeated)
        if plan.record:
            self._sample.recall(whole.folder, target.name, self._probes, done)
        self._listed = expectations_of(target) if plan.expected else ()
        self._entries: Sequence[Entry] = ()
        self._forks = ForkServer()
        self._repeat = partial(plan.repeat, target=target)

    def lines(self) -> Lines:
        """Run the target and yield the lines of results.jsonl. Its state is up to date at every line."""
        with self._forks:
            run = self._run
            try:
                yield from self._run_cases()
            except TargetUnavailable as error:
                yield from self._unavailable(str(error))
            self._entries = applying(self._listed, run.description)
            if not run.unavailable:
                if not self._plan.function:  # a function has no fresh process
                    yield from self._repeated()
                if any(result.failing for result in run.results):
                    yield from self._explained()
            with run.guarded("findings"):
                run.findings = findings_of(run.results, self._probes)
            if self._plan.shrinks and run.findings and not run.unavailable:
                yield from self._experiments()
            left_out = "" if self._plan.fills else NOT_ASKED
            conclude(self._whole, run, self._listed, left_out)
            if self._whole.writes_evidence and not run.unavailable:
                asked = self._whole.folder, self._target, run.findings, self._probes, run.results, self._kept
                run.evidence = write_evidence(*asked, self._process)
            run.seconds += time.monotonic() - self._clock

    def _process(self, **settings: Any) -> TargetProcess:
        """Return the target's process, not started. Its context raises TargetUnavailable if it cannot start."""
        process = self._plan.process(self._target, hangs=self._run.hangs, **settings)
        process.forks = self._forks
        return process

    def _batches(self) -> Iterator[Sequence[Probe]]:
        """Yield the remaining cases of the plan, then the random cases."""
        yield self._left
        target, results = self._target, self._run.results
        with self._run.guarded("choosing what follows"):
            following: Iterable[Sequence[Probe]] = self._plan.draws or ()
            if self._plan.fills and self._plan.can_fill:
                following = [cases_to_add(self._whole.plan, target, results)]
            for added in following:
                self._whole.plan = with_filled(self._whole.plan, target, added)
                more = wrapped_probes(added, target.wrap) if target.wrap else added
                if more := [probe for probe in more if probe.id not in self._probes]:
                    yield more

    def _run_cases(self) -> Lines:
        """Run every case without a result. Raise TargetUnavailable."""
        with contextlib.ExitStack() as stack:
            process: TargetProcess | None = None
            for number, batch in enumerate(self._batches()):
                if number:
                    self._probes |= {probe.id: probe for probe in batch}
                    yield lines.CasesAdded(target=self._target.name, cases=[probe.text for probe in batch])
                if not batch:
                    continue
                if process is None:
                    process = stack.enter_context(self._process(measure=self._plan.record))
                    self._run.description = self._same_runtime(process.start())
                    yield lines.TargetStarted(target=self._target.name, description=self._run.description)
                    self._entries = applying(self._listed, self._run.description)
                for case_run in tried(process, batch, self._target.accuracy, self._whole.pool):
                    self._kept.offer(case_run)
                    self._sample.offer(case_run)
                    yield from self._recorded(CASE, case_run)
                    repeat = self._repeat(case_run.probe)
                    yield self._taken(judged_result(case_run, self._target, self._entries, repeat))

    def _unavailable(self, why: str) -> Lines:
        """Yield the remaining cases of a target that is not available."""
        finished = {r.case for r in self._run.results}
        gone = Judgement(Verdict.UNAVAILABLE, "unavailable", message=why)
        for probe in self._probes.values():
            if probe.id not in finished:
                yield self._taken(result_of(probe, self._target.name, gone, 0.0, None, self._repeat(probe)))

    def _taken(self, result: Result) -> Result:
        """Append a result to the target's results, and return it."""
        if result.verdict is Verdict.UNAVAILABLE:
            self._run.unavailable = self._run.unavailable or result.message
        self._run.results.append(result)
        return result

    def _recorded(self, purpose: str, case_run: CaseRun) -> Lines:
        """Yield the record of a case's outcomes, if the run keeps them."""
        if self._whole.recorder is not None:
            name = self._target.name
            jobs = self._whole.recorder.jobs(name, case_run.outcomes)
            yield lines.Recorded(purpose=purpose, target=name, case=case_run.probe.id, jobs=jobs)

    def _same_runtime(self, description: dict[str, Any]) -> dict[str, Any]:
        """Return the description of a runtime. Raise RecordError if earlier results belong to another one."""
        run = self._run
        if run.results and (why := other_runtime(run.description, description)):
            raise RecordError(f"the results there are of another runtime than {run.target.name} now is: {why}")
        return description

    def _repeated(self) -> Lines:
        """Run a sample of cases again in a fresh process."""
        amended: list[Result] = []
        if probes := self._sample.chosen():
            results = {r.case: r for r in self._run.results}
            fresh = self._plan.process(fresh_target(self._target), hangs=self._run.hangs)
            with contextlib.suppress(TargetUnavailable), fresh as process:
                process.forks = None  # the repeated cases must share no state with the first process
                for again in tried(process, probes, self._target.accuracy):
                    yield from self._recorded(FRESH, again)
                    if again.probe.id in results and self._sample.differs(again):
                        amended.append(amended_by_fresh(results[again.probe.id], again.judgement))
        yield from self._amend("fresh-sample", amended)

    def _amend(self, by: str, better: Iterable[Result]) -> Lines:
        """Replace results by amended ones of the same cases."""
        run = self._run
        amended = {result.case: looked_up(result, self._probes, self._entries) for result in better}
        changes = [lines.update_of(r, amended[r.case], by) for r in run.results if r.case in amended]
        run.results[:] = [amended.get(result.case, result) for result in run.results]
        yield from (change for change in changes if change is not None)

    def _explained(self) -> Lines:
        """Add explanations to failing results."""
        # This module and those below are imported only after a failure.
        from ..diagnosis.needed_classes import with_needed_classes

        run = self._run
        if self._plan.shard is None:  # only the merged shards show which classes are needed
            needed: Sequence[Result] = ()
            with run.guarded("needed classes"):
                needed = list(with_needed_classes(run.results))
            yield from self._amend("needed-classes", needed)
        named: Sequence[Result] = ()
        with run.guarded("diagnosis"):
            named = self._diagnosed()
        yield from self._amend("diagnosis", named)

    def _diagnosed(self) -> list[Result]:
        """Return the failing results with their explanations."""
        from ..diagnosis.explainer import explained

        results, kept, accuracy = self._run.results, self._kept, self._target.accuracy
        # Outputs of an earlier run of this folder are not in memory, so these cases run again.
        unseen = [r.case for r in results if r.verdict in DIAGNOSED and not r.diagnosis and r.case not in kept.fresh]
        if unseen:
            with contextlib.suppress(TargetUnavailable), self._process() as process:
                for case_run in tried(process, [self._probes[case] for case in unseen], accuracy):
                    kept.offer(case_run)
        causes = explained(results, self._probes, kept, accuracy, self._entries, self._run.internal_error)
        return [structs.replace(r, diagnosis=causes[r.case]) for r in results if r.case in causes]

    def _experiments(self) -> Lines:
        """Determine by experiments the conditions of failures, and confirm their faults."""
        from ..diagnosis.causes import DiagnosisContext, experiments_of
        from ..diagnosis.diagnose import with_causes

        run, accuracy = self._run, self._target.accuracy
        budget = experiments_of(run.results)
        better: list[Result] = []
        with contextlib.suppress(TargetUnavailable), self._process() as process:
            asked = process, accuracy, self._repeat, run.results, self._probes, self._kept
            context = DiagnosisContext(*asked, run.internal_error)
            with run.guarded("experiments"):
                run.findings, better = with_causes(run.findings, context, budget)
        yield from self._amend("experiments", better)

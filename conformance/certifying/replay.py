"""Replay of a recorded run, by a process that returns the recorded outputs of the target.

The engine recomputes verdicts, diagnosis, findings and the cases that follow. From the run itself come only the record,
the description of the target, and times, which cannot be recomputed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ...cases import PROFILES
from ...reference.errors import RecordError
from ..diagnosis.findings import titled
from ..judging.judgement import UNTRIED, Verdict
from ..probes.drawn import split_nonce
from ..probes.probe import Probe, SpecProbe
from ..results import lines
from ..results.folder import read_folder, recorded_in
from ..results.recorded import FRESH, JobRecord, Recorder, bits_of, outcome_of
from ..results.records import Finding, RunRecord, TargetRecord
from ..results.result import Result
from ..results.writer import RunWriter
from ..running.conclusion import description_of
from ..running.engine import run_lines
from ..running.fresh import FEWEST, answered, sample_of
from ..running.merge import plan_of
from ..running.run import Plan, Run, TargetRun
from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.job import Job, Outcome
from ..workers.pool import Pool
from ..workers.process import REPEATS, TargetProcess, TargetUnavailable

BY_NUMBERS = frozenset(
    {
        Verdict.PASS,
        Verdict.WRONG,
        Verdict.INACCURATE,
        Verdict.UNSTABLE,
        Verdict.INCONCLUSIVE,
        Verdict.MALFORMED,
    }
)
"""Verdicts that rest on returned numbers. The others rest on events, which a record can only report."""

RUN_FOLDER = "run"

_STATUSES = frozenset({"ran", "refused", "crashed", "timed-out", "fell-back", "unavailable", "not-run", "not-tried"})
_TRIED = _STATUSES - {"not-run", "unavailable"}
_ID = re.compile(r"[A-Za-z0-9.*?_-]{1,200}")

Outcomes = Mapping[str, tuple[Outcome, ...]]


@dataclass(frozen=True)
class Replay:
    """Replay of a run of one target.

    info, entry, claimed
        run.json of the folder, the target's entry in it, and its results by case.
    run
        The run of the replay.
    outcomes, fresh
        The target's outcomes of all cases, and of those that ran once more in a fresh process.
    flaws
        Errors of the record, a line each: cases without one, or with bits of others.
    files
        The run folder of the replay, by paths in a package.
    record
        Its run.json.
    """

    folder: Path
    info: RunRecord
    entry: TargetRecord
    claimed: Mapping[str, Result]
    run: Run
    outcomes: Outcomes
    fresh: Outcomes
    flaws: tuple[str, ...]
    files: Mapping[str, bytes]
    record: RunRecord

    @property
    def plan(self) -> Plan:
        return self.run.plan

    @property
    def target(self) -> Target:
        return self.run.targets[0].target

    @property
    def results(self) -> Sequence[Result]:
        return self.run.targets[0].results

    @cached_property
    def probes(self) -> Mapping[str, Probe]:
        """The cases of the plan, by id."""
        return {probe.id: probe for probe in self.plan.probes_of(self.target)}

    @property
    def asked(self) -> frozenset[str]:
        """Ids of the cases that come from the run's nonce."""
        fresh = (p for p in self.plan.everything if isinstance(p, SpecProbe) and p.fresh)
        return frozenset(probe.id for probe in fresh)

    @property
    def due(self) -> frozenset[str]:
        """Ids of the cases that must have run once more in a fresh process.

        Plan and nonce select them among the cases that the target answered.
        """
        if len(self.probes) < FEWEST:
            return frozenset()
        took = [case for case, outcomes in self.outcomes.items() if answered(outcomes)]
        return sample_of(self.plan.selection.profile, took)

    @property
    def repeated(self) -> frozenset[str]:
        """Ids of the cases that ran once more in a fresh process, with any outcome."""
        return frozenset(case for case, outcomes in self.fresh.items() if all(o.status in _TRIED for o in outcomes))

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Ids of the cases without a record of the number of their runs."""
        both = (*self.outcomes.items(), *self.fresh.items())
        ran = {case for case, outcomes in both if any(o.status == "ran" and not o.returned for o in outcomes)}
        return tuple(case for case in self.probes if case in ran)

    def differing(self) -> Iterator[tuple[str, str, str]]:
        """Yield (case, claimed verdict, verdict of the replay) where they differ."""
        verdicts = {result.case: result.verdict for result in self.results}
        for case, result in self.claimed.items():
            verdict = verdicts.get(case, Verdict.NOT_RUN)
            if result.verdict is not verdict and not {result.verdict, verdict} <= UNTRIED:
                yield case, result.verdict.value, verdict.value


class _Recording:
    """The recorded outcomes of a target's jobs: those of the run, and those of a fresh process."""

    def __init__(self, recorded: Iterable[lines.Recorded], bits: bytes) -> None:
        self.lines = tuple(recorded)
        # After a kill between a record and its verdict, the case is run again; then the last record counts.
        self._jobs = {(line.purpose == FRESH, job.key): job for line in self.lines for job in line.jobs}
        self._bits = bits
        self.missing: set[str] = set()
        self.damaged: dict[str, None] = {}
        self.returned: dict[tuple[bool, str], Outcome] = {}

    def outcome(self, job: Job, fresh: bool) -> Outcome:
        """Return the recorded outcome of a job, ``not-run`` where there is none."""
        record = self._jobs.get((fresh, job.key))
        if record is None:
            self.missing.add(job.key)
            outcome = Outcome(job.key, "not-run", message="nothing is recorded of it")
        else:
            try:
                outcome = _checked(record, self._bits, job)
            except RecordError as error:
                self.damaged[f"case {job.key}{' in a fresh process' if fresh else ''}: {error}"] = None
                outcome = Outcome(job.key, "not-run", message=str(error))
        self.returned[fresh, job.key] = outcome
        return outcome

    def outcomes(self, line: lines.Recorded) -> tuple[Outcome, ...]:
        """Return the outcomes that the replay recorded in a line."""
        return tuple(self.returned[line.purpose == FRESH, job.key] for job in line.jobs)


class _ReplayProcess(TargetProcess):
    """Process that returns the recorded description and outcomes of a target, and runs nothing."""

    def __init__(
        self, recording: _Recording, entry: TargetRecord, target: Target, hangs: HangBudget, fresh: bool
    ) -> None:
        super().__init__(target, hangs=hangs)
        self._recording, self._entry, self._fresh = recording, entry, fresh

    def start(self) -> dict[str, Any]:
        if not self._entry["description"]:
            raise TargetUnavailable(self._entry["unavailable"] or "it was not run")
        return dict(self._entry["description"])

    def run(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        for job in jobs:
            yield self._recording.outcome(job, self._fresh)


def replay(folder: Path, name: str = "", jobs: int = 1) -> Replay:
    """Replay a recorded run.

    `name` is the name of the target if the run has several; `jobs` is the number of processes for judging.

    Raise RecordError where the folder has no run, no record or not that target, or where its cases cannot be rebuilt;
    raise OSError.
    """
    read = read_folder(folder)
    _require_names(folder, read.described)
    plan = plan_of(read)
    if not read.described["keeps_outputs"]:
        raise RecordError(
            f"{folder}: does not keep what its target did: run it again with --nonce N, the auditor's number"
        )
    target = replace(_target(folder, plan, name), expected="")
    entry = read.targets[target.name]
    claimed = {result.case: result for result in read.results if result.target == target.name}
    recording = _Recording(
        (line for line in recorded_in(folder) if line.target == target.name), bits_of(folder, target.name)
    )

    def process(asked: Target, hangs: HangBudget, measure: bool = False) -> TargetProcess:
        return _ReplayProcess(recording, entry, asked, hangs, fresh=asked.environment != target.environment)

    plan = replace(
        plan,
        targets=(target,),
        expected=False,
        shard=None,
        shrinks=False,
        filled={},
        fills=entry["filling"] is not None and entry["filling"]["left_out"] == "",
        repeated=frozenset(line.case for line in recording.lines if line.purpose == FRESH),
        process=process,
    )
    with Pool(jobs) as pool:
        run = Run(plan, folder, datetime.fromisoformat(read.described["started"]), [TargetRun(target)], pool=pool)
        outcomes, fresh, files, record = _carried_out(run, read.described, entry, recording)
    flaws = (*read.problems, *_flaws(run, claimed, outcomes, recording))
    return Replay(folder, read.described, entry, claimed, run, outcomes, fresh, flaws, files, record)


def _require_names(folder: Path, info: RunRecord) -> None:
    """Raise RecordError for a run with cases other than pinned ones and those of a nonce.

    An untrusted package must not make us read files of this machine, or draw cases without end.
    """
    pinned, _ = split_nonce(info["profile"])
    if pinned not in PROFILES:
        raise RecordError(f"{folder}: a run of {info['profile'][:80]!a}; certificates are of {', '.join(PROFILES)}")
    if info["selection"]["directories"]:
        raise RecordError(f"{folder}: a run of directories or of a model; certificates are of profiles")
    if not all(_ID.fullmatch(case) for case in info["selection"]["case"]):
        raise RecordError(f"{folder}: a run of cases that are named by more than their ids")


def _target(folder: Path, plan: Plan, name: str) -> Target:
    """Return the target of that name, or the only one."""
    targets = {target.name: target for target in plan.targets}
    if not name and len(targets) > 1:
        raise RecordError(f"{folder}: has several targets, say which with --target: {', '.join(targets)}")
    chosen = name or next(iter(targets), "")
    if chosen not in targets:
        raise RecordError(f"{folder}: has no target {chosen!r}, but {', '.join(targets)}")
    return targets[chosen]


def _carried_out(
    run: Run, info: RunRecord, entry: TargetRecord, recording: _Recording
) -> tuple[Outcomes, Outcomes, dict[str, bytes], RunRecord]:
    """Return outcomes of cases and of the fresh sample, the files of the run folder, and its run.json."""
    outcomes: dict[str, tuple[Outcome, ...]] = {}
    fresh: dict[str, tuple[Outcome, ...]] = {}
    with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
        run.folder, run.writes_evidence = Path(temporary) / RUN_FOLDER, False
        run.pool.expect(len(run.plan.probes_of(run.targets[0].target)))
        with RunWriter(run.folder) as writer, Recorder(run.folder) as run.recorder:
            writer.append(lines.header_of(_described(run, info)))
            for _, line in run_lines(run):
                writer.append(line)
                if isinstance(line, lines.Recorded):
                    took = fresh if line.purpose == FRESH else outcomes
                    took[line.case] = recording.outcomes(line)
            run.seconds, run.targets[0].seconds, run.complete = info["seconds"], entry["seconds"], info["complete"]
            seconds = {run.targets[0].target.name: entry["seconds"]}
            writer.append(lines.RunFinished(complete=run.complete, seconds=run.seconds, target_seconds=seconds))
            writer.describe(record := _described(run, info))
        paths = sorted(path for path in run.folder.rglob("*") if path.is_file())
        files = {path.relative_to(temporary).as_posix(): path.read_bytes() for path in paths}
    return outcomes, fresh, files, record


def _described(run: Run, info: RunRecord) -> RunRecord:
    """Return run.json: values that depend on results are recomputed, the others come from the run."""
    record = description_of(run)
    record["environment"], record["onnxspec"] = info["environment"], info["onnxspec"]
    record["merged"] = info["merged"]
    name = run.targets[0].target.name
    claimed = [finding for entry in info["targets"] if entry["name"] == name for finding in entry["findings"]]
    for entry in record["targets"]:
        entry["findings"] = [_confirmed(finding, claimed) for finding in entry["findings"]]
    return record


def _confirmed(finding: Finding, claimed: Iterable[Finding]) -> Finding:
    """Return a recomputed finding, confirmed if the run confirmed its fault on new cases, which no replay runs."""
    fault = finding["fault"]
    cases = max((f["foretold"] for f in claimed if fault and f["fault"] == fault and not f["passing"]), default=0)
    if not cases:
        return finding
    confirmed: Finding = {**finding, "foretold": cases}
    confirmed["title"] = titled(confirmed, confirmed["conditions"], tried=False)
    return confirmed


def _flaws(run: Run, claimed: Mapping[str, Result], outcomes: Outcomes, recording: _Recording) -> Iterator[str]:
    """Yield errors of a record, a line each."""
    target = run.targets[0].target
    planned = {probe.id for probe in run.plan.probes_of(target)}
    following = [probe.id for probe in run.plan.filled.get(target.name, ())]
    if absent := [case for case in following if case not in claimed]:
        yield f"{len(following)} cases follow from the results, and {len(absent)} of them have no result"
    yield from (f"case {case} is not among what was to be run" for case in claimed if case not in planned)
    unplanned = (line for line in recording.lines if line.case not in planned)
    yield from (f"a record of {line.purpose} {line.case}, which is none of the run's" for line in unplanned)
    for case, case_outcomes in outcomes.items():
        if (
            case in claimed
            and claimed[case].verdict not in UNTRIED
            and recording.missing & {o.key for o in case_outcomes}
        ):
            yield f"case {case} has a result, and not all of it is recorded"
    yield from recording.damaged


def _checked(record: JobRecord, bits: bytes, job: Job) -> Outcome:
    """Return the outcome of a record. Raise RecordError for one that no worker can have reported.

    Without this check, a record without outputs would contain no wrong value.
    """
    outcome = outcome_of(record, bits)
    if outcome.status not in _STATUSES:
        raise RecordError(f"{outcome.status[:40]!a} is nothing that becomes of a job")
    if outcome.status != "ran":
        return outcome
    if len(outcome.outputs) != len(job.feeds):
        raise RecordError(f"{len(job.feeds)} runs were due, outputs of {len(outcome.outputs)} are recorded")
    times = [REPEATS * job.runs(feed) for feed in range(len(job.feeds))]
    if not all(1 <= len(distinct) <= most for distinct, most in zip(outcome.outputs, times, strict=True)):
        raise RecordError(f"every run is repeated {REPEATS} times, and other outcomes are recorded")
    first_places = [(len(indices), list(dict.fromkeys(indices))) for indices in outcome.returned]
    expected_places = [
        (most, list(range(len(distinct)))) for distinct, most in zip(outcome.outputs, times, strict=True)
    ]
    if outcome.returned and first_places != expected_places:
        raise RecordError(f"every run is repeated {REPEATS} times, and its record says other things of what came back")
    return outcome

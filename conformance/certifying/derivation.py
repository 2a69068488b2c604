"""Results of a run, derived again from the record of its target, and from nothing else in the run.

Packing writes the derived results, and verifying derives them again and compares: lists of known failures, and earlier
judgements of the same outputs, count for neither.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from msgspec import structs

from ...cases import PROFILES
from ...reference.errors import RecordError
from ..diagnosis.explainer import explained
from ..diagnosis.needed_classes import with_needed_classes
from ..judging.judgement import UNTRIED, Judgement, Verdict
from ..probes.drawn import split_nonce
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import NOTHING, Ran, judged_in_order, made_ready
from ..results.evidence import Kept
from ..results.folder import NoRun, read_described, recorded_in
from ..results.lines import Recorded
from ..results.recorded import CASE, FRESH, MissingBits, bits_of, outcome_of
from ..results.records import RunRecord, TargetRecord
from ..results.result import Result, result_of
from ..running.conclusion import conclude
from ..running.description import description_of
from ..running.filling import NOT_ASKED, cases_to_add
from ..running.fresh import FEWEST, amended_by_fresh, answered, differs, sample_of
from ..running.merge import plan_of
from ..running.run import Plan, Run, TargetRun
from ..targets.target import Target
from ..workers.job import Job, Outcome
from ..workers.pool import Pool
from ..workers.process import REPEATS

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

_STATUSES = frozenset({"ran", "refused", "crashed", "timed-out", "fell-back", "unavailable", "not-run", "not-tried"})
_TRIED = _STATUSES - {"not-run", "unavailable"}
_ID = re.compile(r"[A-Za-z0-9.*?_-]{1,200}")


Lines = Mapping[str, dict[str, Recorded]]
"""Lines ``recorded`` by purpose and case."""


@dataclass(frozen=True)
class ClaimedRun:
    """Run of one target, as its folder describes it.

    plan
        The plan of the run, on this target alone.
    info, entry
        run.json of the folder, and the target's entry in it.
    claimed
        Its results, by case.
    """

    folder: Path
    plan: Plan
    info: RunRecord
    entry: TargetRecord
    claimed: Mapping[str, Result]

    @property
    def target(self) -> Target:
        return self.plan.targets[0]

    @cached_property
    def probes(self) -> Mapping[str, Probe]:
        """The cases of the plan, by id."""
        return {probe.id: probe for probe in self.plan.probes_of(self.target)}

    @property
    def asked(self) -> frozenset[str]:
        """Ids of the cases that the run's nonce has asked for."""
        fresh = (p for p in self.plan.everything if isinstance(p, SpecProbe) and p.fresh)
        return frozenset(probe.id for probe in fresh)

    @property
    def left_out(self) -> str:
        """The run's own reason for not running the cases that follow from the results; empty if they were run."""
        filling = self.entry.get("filling")
        return filling["left_out"] if filling is not None else NOT_ASKED


@dataclass(frozen=True)
class Derivation(ClaimedRun):
    """Run of one target, as its record shows it.

    results
        The derived results, in the order of the probes.
    outcomes, fresh
        The target's outcomes of all cases, and of those that ran once more in a fresh process.
    flaws
        Errors of the record, a line each: cases without one, or with bits of others.
    record
        The content that run.json must have.
    lines
        The lines ``recorded`` on which all this rests, by purpose and case.
    """

    results: tuple[Result, ...]
    outcomes: Mapping[str, tuple[Outcome, ...]]
    fresh: Mapping[str, tuple[Outcome, ...]]
    flaws: tuple[str, ...]
    record: RunRecord
    lines: Lines = field(repr=False)

    @property
    def counts(self) -> Counter[str]:
        """Derived results by verdict."""
        return Counter(result.verdict.value for result in self.results)

    @property
    def due(self) -> frozenset[str]:
        """Ids of the cases that must have been run once more in a fresh process: plan and nonce decide, among those
        that the target has answered."""
        if len(self.probes) < FEWEST:
            return frozenset()
        took = [case for case, outcomes in self.outcomes.items() if answered(outcomes)]
        return sample_of(self.plan.selection.profile, took)

    @property
    def repeated(self) -> frozenset[str]:
        """Ids of the cases that ran once more in a fresh process, with any outcome."""
        return frozenset(case for case, some in self.fresh.items() if all(o.status in _TRIED for o in some))

    @property
    def uncounted(self) -> tuple[str, ...]:
        """Ids of the cases without a record of the number of their runs."""
        both = (*self.outcomes.items(), *self.fresh.items())
        ran = {case for case, some in both if any(o.status == "ran" and not o.returned for o in some)}
        return tuple(case for case in self.probes if case in ran)


def derived(folder: Path, name: str = "", jobs: int = 1) -> Derivation:
    """Derive a run from its record.

    name
        Of the target, where the run has several.
    jobs
        How many processes judge.

    Raises RecordError where the folder holds no run, no record, not that target, or cases that cannot be made again;
    and OSError.
    """
    try:
        read = read_described(folder)
        _require_names(folder, read.info)
        plan = plan_of(read)
    except (NoRun, RecordError) as error:
        raise RecordError(str(error)) from None
    if not read.info.get("keeps_outputs"):
        raise RecordError(
            f"{folder}: does not keep what its target did: run it again with --nonce N, the auditor's number"
        )
    if plan.selection.directories:
        raise RecordError(f"{folder}: a run of directories or of a model; certificates are of profiles")
    target = replace(_target(folder, plan, name), expected="")
    plan = replace(plan, targets=(target,), expected=False, shard=None)
    claimed = {result.case: result for result in read.results if result.target == target.name}
    run = ClaimedRun(folder, plan, read.info, read.targets[target.name], claimed)
    flaws = list(read.problems)
    flaws += [f"case {case} is not among what was to be run" for case in claimed if case not in run.probes]
    lines = _by_purpose(run, (line for line in recorded_in(folder) if line.target == target.name), flaws)
    with bits_of(folder, target.name) as bits, Pool(jobs) as pool:
        return _derived(run, lines, bits, flaws, pool)


def _require_names(folder: Path, info: RunRecord) -> None:
    """Raise RecordError for a run of anything but pinned cases and a nonce's: a foreign package must not make us
    read files of this machine, or draw cases without end."""
    pinned, _ = split_nonce(info["profile"])
    if pinned not in PROFILES:
        raise RecordError(f"{folder}: a run of {info['profile'][:80]!a}; certificates are of {', '.join(PROFILES)}")
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


def _by_purpose(run: ClaimedRun, lines: Iterable[Recorded], flaws: list[str]) -> Lines:
    """Return the lines about the run's cases; any other line is a flaw."""
    by_purpose: Lines = {CASE: {}, FRESH: {}}
    for line in lines:
        if line.purpose not in by_purpose or line.case not in run.probes:
            flaws.append(f"a record of {line.purpose} {line.case}, which is none of the run's")
        else:
            # A kill may come between a record and its verdict; the case is then run again, and the last record counts.
            by_purpose[line.purpose][line.case] = line
    return by_purpose


def _answers(run: ClaimedRun, lines: Lines, bits: memoryview | bytes, flaws: list[str]) -> Generator[Ran, None, None]:
    """Return the target's outcomes of all cases, and for some the one in a fresh process."""
    for id, probe in run.probes.items():
        if id not in lines[CASE] and id in run.claimed and run.claimed[id].verdict not in UNTRIED:
            flaws.append(f"case {id} has a result, and nothing is recorded of it")
        for purpose, where in ((CASE, ""), (FRESH, " in a fresh process")):
            if id not in lines[purpose]:
                break
            try:
                yield _ran(probe, lines[purpose][id], bits)
            except MissingBits as error:
                flaws.append(f"case {id}{where}: {error}")
                break


def _derived(run: ClaimedRun, lines: Lines, bits: memoryview | bytes, flaws: list[str], pool: Pool) -> Derivation:
    kept = Kept()
    results: dict[str, Result] = {}
    first_results: dict[str, Result] = {}
    outcomes: dict[str, tuple[Outcome, ...]] = {}
    again: dict[str, tuple[Outcome, ...]] = {}
    for one in judged_in_order(_answers(run, lines, bits, flaws), run.target.accuracy, pool):
        probe, id = one.probe, one.probe.id
        if id in outcomes:
            again[id] = one.outcomes
            if one.judgement.verdict not in UNTRIED and differs(outcomes[id], one.outcomes):
                results[id] = amended_by_fresh(results[id], one.judgement)
            continue
        outcomes[id] = one.outcomes
        kept.offer(one)
        printed = "\n".join(outcome.captured for outcome in one.outcomes if outcome.captured)
        repeat = " ".join(probe.repeat(run.target.name))
        results[id] = result_of(probe, run.target.name, one.judgement, one.seconds, None, repeat, printed)
        first_results[id] = results[id]
    results |= {amended.case: amended for amended in with_needed_classes(list(results.values()))}
    # What breaks off here did so in the run, which says so; no verdict rests on it.
    causes = explained(list(results.values()), run.probes, kept, run.target.accuracy, mishap=lambda doing, error: None)
    final = tuple(structs.replace(r, diagnosis=causes.get(r.case, ())) for r in results.values())
    if strange := _filled_otherwise(run, first_results):
        flaws.append(strange)
    claims = (run.folder, run.plan, run.info, run.entry, run.claimed)
    return Derivation(*claims, final, outcomes, again, tuple(flaws), _described(run, final), lines)


def _ran(probe: Probe, line: Recorded, bits: memoryview | bytes) -> Ran:
    """Return a target's outcome of a case. Raise MissingBits."""
    prepared = made_ready(probe)
    if isinstance(prepared, Judgement):
        return Ran(probe, NOTHING, (), prepared)
    keys = [job.key for job in prepared.jobs]
    if [job.key for job in line.jobs] != keys:
        raise MissingBits(f"its jobs are {', '.join(keys)}, not those that were recorded")
    outcomes = tuple(outcome_of(job, bits) for job in line.jobs)
    for outcome, job in zip(outcomes, prepared.jobs, strict=True):
        _require_outcome(outcome, job)
    left_out = next((outcome for outcome in outcomes if outcome.status == "not-run"), None)
    known = Judgement(Verdict.NOT_RUN, message=left_out.message) if left_out is not None else None
    return Ran(probe, prepared, outcomes, known)


def _require_outcome(outcome: Outcome, job: Job) -> None:
    """Raise MissingBits for an outcome that no worker can have reported: without outputs nothing would be wrong."""
    if outcome.status not in _STATUSES:
        raise MissingBits(f"{outcome.status[:40]!a} is nothing that becomes of a job")
    if outcome.status != "ran":
        return
    if len(outcome.outputs) != len(job.feeds):
        raise MissingBits(f"{len(job.feeds)} runs were due, outputs of {len(outcome.outputs)} are recorded")
    times = [REPEATS * job.runs(feed) for feed in range(len(job.feeds))]
    if not all(1 <= len(distinct) <= most for distinct, most in zip(outcome.outputs, times, strict=True)):
        raise MissingBits(f"every run is repeated {REPEATS} times, and other outcomes are recorded")
    if outcome.returned and [_first_places(each) for each in outcome.returned] != [
        (most, list(range(len(distinct)))) for distinct, most in zip(outcome.outputs, times, strict=True)
    ]:
        raise MissingBits(f"every run is repeated {REPEATS} times, and its record says other things of what came back")


def _first_places(returned: Sequence[int]) -> tuple[int, list[int]]:
    """Return the number of runs of a feed, and the places of its results in the order of their first appearance."""
    return len(returned), list(dict.fromkeys(returned))


def _described(run: ClaimedRun, results: Sequence[Result]) -> RunRecord:
    """Return the correct run.json: everything that rests on results anew, the rest as in the run."""
    info, entry = run.info, run.entry
    one = TargetRun(run.target, dict(entry["description"]), entry["unavailable"], list(results))
    one.seconds = entry["seconds"]
    again = Run(run.plan, run.folder, datetime.fromisoformat(info["started"]), [one], seconds=info["seconds"])
    again.complete = not again.lacking
    conclude(again, one, left_out=run.left_out)
    record = description_of(again)
    record["environment"] = info["environment"]
    record["onnxspec"] = info["onnxspec"]
    if "merged" in info:
        record["merged"] = info["merged"]
    return record


def _filled_otherwise(run: ClaimedRun, results: Mapping[str, Result]) -> str:
    """Return a complaint if the cases that followed the pinned ones are not those that follow from the results, else an
    empty text. Shards are not filled, nor runs that were told so."""
    plan, target = run.plan, run.target
    given = [probe.id for probe in plan.filled.get(target.name, ())]
    if not plan.can_fill or run.left_out:
        return f"{len(given)} cases follow, and none was due" if given else ""
    there = [results[p.id] for p in plan.pinned_of(target) if p.id in results]
    ids = [probe.id for probe in cases_to_add(replace(plan, filled={}), target, there)]
    return "" if ids == given else f"{len(ids)} cases follow from the results, and {len(given)} others are there"


def differing(derivation: Derivation) -> Iterator[tuple[str, str, str]]:
    """(case, claimed verdict, derived verdict) where a run and its record part."""
    again = {result.case: result for result in derivation.results}
    for case, result in derivation.claimed.items():
        there = again[case].verdict.value if case in again else "not recorded"
        if result.verdict.value != there and not (case not in again and result.verdict in UNTRIED):
            yield case, result.verdict.value, there

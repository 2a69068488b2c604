"""Merging of a run's shards.

Results are not changed; findings, grades and counts are computed from all of them. Runs of different plans are refused.
Missing cases can be run in the merged folder, with --resume.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ...reference.errors import RecordError
from ..diagnosis.needed_classes import with_needed_classes
from ..judging.judgement import UNTRIED, Verdict
from ..probes.selection import Selection, UnknownName
from ..results import lines
from ..results.evidence import FOLDER, forget_evidence
from ..results.expected.entries import applying, expectations_of
from ..results.folder import DescribedRun, gist, read_described, recorded_in
from ..results.recorded import MissingBits, Recorder, bits_of
from ..results.records import EvidenceRecord, MergedRecord, TargetRecord
from ..results.result import Result
from ..results.writer import SAME_RUNTIME, SAME_TARGET, RunWriter
from ..targets.target import Target
from .conclusion import conclude, looked_up
from .description import description_of
from .filling import SHARDS, with_filled
from .planning import chosen_probes
from .run import Plan, Run, TargetRun, stranger_among

_SAME = ("onnxspec", "profile", "selection", "expected_failures")
"""Keys of run.json that must be equal in all shards of a run."""


def merge(folders: Sequence[Path], to: Path, *, command: Sequence[str] = ()) -> Run:
    """Merge the shards of a run into the folder `to`, which becomes an ordinary run folder and can be resumed.

    ``problems`` of the returned run has a line for each damaged line and each duplicate result.

    Raise RecordError if the folders have different plans or one cannot be read, OccupiedFolder if `to` holds a run, and
    OSError if it cannot be written.
    """
    parts = [read_described(folder) for folder in folders]
    for part in parts[1:]:
        _compare(parts[0], part)
    if any(to.resolve() == part.path.resolve() for part in parts):
        raise RecordError(f"{to} is one of the runs that are to be merged: give a new folder")
    run = _together(parts, _plan(parts, command), to)
    with RunWriter(to) as writer, Recorder(to) as recorder:
        forget_evidence(to)
        writer.begin(lines.header_of(description_of(run)))
        for target_run in run.targets:
            _finish(run, target_run, parts)
            _write_down(run, target_run, parts, writer, recorder)
        seconds = {target_run.target.name: target_run.seconds for target_run in run.targets}
        writer.append(lines.RunFinished(complete=run.complete, seconds=run.seconds, target_seconds=seconds))
        record = description_of(run)
        record["environment"] = parts[0].info["environment"]
        record["merged"] = _origins(parts)
        writer.describe(record)
    return run


def _together(parts: Sequence[DescribedRun], plan: Plan, to: Path) -> Run:
    """Return a run with the results of all parts, without conclusions. Raise RecordError for a result outside the
    plan."""
    results = _joined(parts)
    for part in parts:
        if strange := stranger_among(part.results, plan):
            raise RecordError(f"{part.path}: {strange}; was the folder edited?")
    run = Run(plan, to, min(datetime.fromisoformat(part.info["started"]) for part in parts), [])
    run.problems = [f"{part.path}: {problem}" for part in parts for problem in part.problems]
    if not plan.record and any(part.info.get("keeps_outputs") for part in parts):
        run.problems.append("not all of the runs kept what the targets did, so the merged one does not keep it either")
    for target in plan.targets:
        entry = _entry(parts, target.name)
        order = {probe.id: number for number, probe in enumerate(plan.probes_of(target))}
        of_target = [result for (name, _), result in results.items() if name == target.name]
        of_target.sort(key=lambda r: order[r.case])
        run.targets.append(TargetRun(target, dict(entry["description"]), entry["unavailable"], of_target))
        run.targets[-1].seconds = sum(part.targets[target.name]["seconds"] for part in parts)
    run.seconds = sum(part.info["seconds"] for part in parts)
    run.complete = not run.lacking
    return run


def _write_down(
    run: Run, target_run: TargetRun, parts: Sequence[DescribedRun], writer: RunWriter, recorder: Recorder
) -> None:
    """Append the lines of one target, and its recorded outcomes if they are kept."""
    name = target_run.target.name
    if filled := [probe.text for probe in run.plan.filled.get(name, ())]:
        writer.append(lines.CasesAdded(target=name, cases=filled))
    if run.plan.record:
        _adopt(parts, name, writer, recorder)
    writer.append(
        lines.TargetStarted(target=name, description=target_run.description),
        *target_run.results,
    )


def plan_of(run: DescribedRun) -> Plan:
    """Return the plan of a run that was read. Its cases are rebuilt from run.json. Raise RecordError."""
    return _plan([run], run.info["command"])


def _compare(first: DescribedRun, other: DescribedRun) -> None:
    """Raise RecordError unless two runs are shards of one plan."""
    where = f"{first.path} and {other.path} are not of one run"
    for key in _SAME:
        if (a := dict(first.info)[key]) != (b := dict(other.info)[key]):
            raise RecordError(f"{where}: {key.replace('_', ' ')} is {a!r} and {b!r}")
    digests = [
        {k: v for k, v in run.info["digests"].items() if not k.startswith(lines.FILLED)} for run in (first, other)
    ]
    if changed := sorted({k for k, _ in digests[0].items() ^ digests[1].items()}):
        raise RecordError(f"{where}: other cases have the same names (digests) for {', '.join(changed)}")
    if first.targets.keys() != other.targets.keys():
        raise RecordError(f"{where}: targets are {', '.join(first.targets)} and {', '.join(other.targets)}")
    for name, entry in first.targets.items():
        _compare_targets(where, entry, other.targets[name])


def _compare_targets(where: str, first: TargetRecord, other: TargetRecord) -> None:
    """Raise RecordError unless two entries are of one target and the same runtime."""
    name = first["name"]
    for key in SAME_TARGET:
        if dict(first)[key] != dict(other)[key]:
            raise RecordError(f"{where}: {key} of target {name!r} differs")
    described = first["description"], other["description"]
    for key in SAME_RUNTIME if all(described) else ():
        a, b = described[0].get(key), described[1].get(key)
        if a != b:
            raise RecordError(f"{where}: {key} of target {name!r} is {a!r} and {b!r}")


def _joined(parts: Sequence[DescribedRun]) -> dict[tuple[str, str], Result]:
    """Return the results by target and case. Raise RecordError if two of them differ."""
    joined: dict[tuple[str, str], tuple[Result, DescribedRun]] = {}
    for part in parts:
        for result in part.results:
            key = result.target, result.case
            earlier = joined.setdefault(key, (result, part))
            if earlier[0].verdict in UNTRIED:
                joined[key] = result, part
            elif result.verdict not in UNTRIED and gist(earlier[0]) != gist(result):
                both = f"{earlier[0].verdict.value} in {earlier[1].path}, {result.verdict.value} in {part.path}"
                raise RecordError(f"case {result.case} on {result.target} has two results that differ: {both}")
    return {key: result for key, (result, _) in joined.items()}


def _plan(parts: Sequence[DescribedRun], command: Sequence[str]) -> Plan:
    """Return the plan that all parts share. Raise RecordError."""
    first, info = parts[0], parts[0].info
    selection = _selection(first)
    targets = tuple(_target(_entry(parts, name)) for name in first.targets)
    try:
        probes, digest = chosen_probes(selection, targets)
    except (UnknownName, OSError, ValueError) as error:
        raise RecordError(f"{first.path}: its cases cannot be had again: {error}") from None
    if selection.directories and digest != info["digests"].get("directories"):
        raise RecordError(f"the directories of {first.path} are not there any more as they were run")
    plan = Plan(selection, probes, targets, tuple(command), frozenset(), bool(info["expected_failures"]))
    record = all(part.info.get("keeps_outputs", False) for part in parts)
    try:
        for part in parts:
            for target in targets:
                plan = with_filled(plan, target, part.filled.get(target.name, ()))
    except ValueError as error:
        raise RecordError(f"a case that followed in one of the runs cannot be had again: {error}") from None
    return replace(plan, digest=digest, skipped=tuple(info.get("skipped", ())), record=record)


def _selection(part: DescribedRun) -> Selection:
    selection = part.info["selection"]
    return Selection(
        part.info["profile"],
        tuple(selection["op"]),
        tuple(selection["since_version"]),
        tuple(selection["type"]),
        tuple(selection["case"]),
        tuple(selection.get("directories", ())),
    )


def _entry(parts: Sequence[DescribedRun], name: str) -> TargetRecord:
    """Return the entry of a target, preferably from a run in which it started."""
    entries = [part.targets[name] for part in parts]
    return next((entry for entry in entries if entry["description"] and not entry["unavailable"]), entries[0])


def _target(entry: TargetRecord) -> Target:
    return Target(
        entry["name"],
        entry["adapter"],
        entry["options"],
        accuracy=entry["class"],
        expected=entry["expected_file"],
        wrap=entry["wrap"],
    )


def _finish(run: Run, target_run: TargetRun, parts: Sequence[DescribedRun]) -> None:
    """Compute the conclusions on a target from all its results."""
    probes = {probe.id: probe for probe in run.plan.probes_of(target_run.target)}
    listed = _listed(target_run.target) if run.plan.expected else ()
    entries = applying(listed, target_run.description)
    amended = with_needed_classes(target_run.results)
    better = {r.case: looked_up(r, probes, entries) if entries else r for r in amended}
    target_run.results[:] = [better.get(r.case, r) for r in target_run.results]
    target_run.unavailable = target_run.unavailable and next(
        (r.message for r in target_run.results if r.verdict is Verdict.UNAVAILABLE), ""
    )
    sharded = any(part.info["shard"] for part in parts)
    conclude(run, target_run, listed, left_out=SHARDS if sharded else "")
    wanted = {finding["smallest"] for finding in target_run.findings}
    target_run.evidence = _evidence(run.folder, target_run.target.name, wanted, parts)


def _adopt(parts: Sequence[DescribedRun], name: str, writer: RunWriter, recorder: Recorder) -> None:
    """Copy the recorded outcomes of a target. Raise RecordError if a folder lacks their bits."""
    copied: set[tuple[str, str]] = set()
    for part in parts:
        with bits_of(part.path, name) as bits:
            for line in recorded_in(part.path):
                if line.target != name or (line.purpose, line.case) in copied:
                    continue
                copied.add((line.purpose, line.case))
                try:
                    jobs = recorder.adopt(name, line.jobs, bits)
                except MissingBits as error:
                    raise RecordError(f"{part.path}: case {line.case} on {name}: {error}") from None
                writer.append(lines.Recorded(purpose=line.purpose, target=name, case=line.case, jobs=jobs))


def _listed(target: Target) -> tuple[Any, ...]:
    try:
        return expectations_of(target)
    except ValueError:  # the list is on the machine of the run; its reasons are in the results
        return ()


def _evidence(to: Path, name: str, wanted: set[str], parts: Sequence[DescribedRun]) -> EvidenceRecord:
    """Copy the evidence of the smallest cases of findings."""
    folders: dict[str, str] = {}
    larger: dict[str, str] = {}
    for part in parts:
        evidence = part.targets[name]["evidence"]
        for small, large in evidence["larger"].items():
            if small in wanted:
                larger.setdefault(small, large)
        for case, path in evidence["folders"].items():
            if case in folders or case not in wanted | set(larger.values()):
                continue
            source = part.path / path
            if source.resolve().is_relative_to((part.path / FOLDER).resolve()) and source.is_dir():
                shutil.copytree(source, to / path, dirs_exist_ok=True)
                folders[case] = path
    missing = dict.fromkeys(sorted(wanted - set(folders)), "no run that was merged has it")
    larger = {small: large for small, large in larger.items() if large in folders}
    return {"folders": folders, "larger": larger, "missing": missing}


def _origins(parts: Sequence[DescribedRun]) -> list[MergedRecord]:
    return [
        {
            "folder": str(part.path),
            "command": part.info["command"],
            "started": part.info["started"],
            "shard": part.info["shard"],
            "complete": part.info["complete"],
            "environment": part.info["environment"],
        }
        for part in parts
    ]

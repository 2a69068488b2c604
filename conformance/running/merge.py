"""Merging of a run's shards.

Results are not changed; findings, grades and counts are computed from all of them. Runs of different plans are refused.
Missing cases can be run in the merged folder, with --resume.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import cast

from ...reference.errors import RecordError
from ..diagnosis.needed_classes import with_needed_classes
from ..judging.judgement import UNTRIED, Verdict
from ..probes.selection import Selection
from ..results import lines
from ..results.evidence import FOLDER
from ..results.expected.entries import Entry, applying, expectations_of
from ..results.folder import RunFolder, gist, read_folder, recorded_in, require_known_clauses
from ..results.recorded import Recorder, bits_of, outcome_of
from ..results.records import EvidenceRecord, MergedRecord
from ..results.result import Result
from ..results.writer import RunWriter
from ..targets.target import Target
from .conclusion import conclude, description_of, looked_up
from .filling import SHARDS, filled_again
from .planning import chosen_probes
from .run import Plan, Run, TargetRun

_SAME = ("onnxspec", "profile", "selection", "expected_failures", "digests", "keeps_outputs")
"""Keys of a header that must be equal in all shards of a run."""

_ORIGIN = ("command", "started", "shard", "complete", "environment")


def merge(folders: Sequence[Path], to: Path, *, command: Sequence[str] = ()) -> Run:
    """Merge the shards of a run into the folder `to`, which becomes an ordinary run folder and can be resumed.

    ``problems`` of the returned run has a line for each damaged line and each duplicate result.

    Raise RecordError if the folders have different plans, one cannot be read, or `to` holds a run; OSError if it cannot
    be written.
    """
    parts = [read_folder(folder) for folder in folders]
    for part in parts:
        if why := _difference(parts[0], part):
            raise RecordError(f"{parts[0].path} and {part.path} are not of one run: they differ in {why}")
        if to.resolve() == part.path.resolve():
            raise RecordError(f"{to} is one of the runs that are to be merged: give a new folder")
    run = _joined(parts, to)
    run.plan = replace(run.plan, command=tuple(command))
    with RunWriter(to) as writer, Recorder(to) as recorder:
        writer.begin(lines.header_of(description_of(run)))
        for target in run.targets:
            _conclude(run, target, parts)
            name = target.target.name
            if filled := run.plan.filled.get(name):
                writer.append(lines.CasesAdded(target=name, cases=[probe.text for probe in filled]))
            if run.plan.record:
                _adopt(parts, name, writer, recorder)
            writer.append(lines.TargetStarted(target=name, description=target.description), *target.results)
        seconds = {target.target.name: target.seconds for target in run.targets}
        writer.append(lines.RunFinished(complete=run.complete, seconds=run.seconds, target_seconds=seconds))
        record = description_of(run)
        record["environment"] = parts[0].described["environment"]
        record["merged"] = [
            cast(MergedRecord, {"folder": str(part.path), **{key: dict(part.described)[key] for key in _ORIGIN}})
            for part in parts
        ]
        writer.describe(record)
    return run


def _difference(first: RunFolder, other: RunFolder) -> str:
    """Return the first difference between two runs that shards of one plan do not have; empty if there is none."""
    headers = [lines.header_of(part.described) for part in (first, other)]
    if why := lines.difference(headers[0], headers[1], _SAME):
        return why
    if first.targets.keys() != other.targets.keys():
        return f"targets: {', '.join(first.targets)} and {', '.join(other.targets)}"
    for asked in headers[0].targets:
        name = asked["name"]
        others = [target for target in headers[1].targets if target["name"] == name]
        described = [part.targets[name]["description"] for part in (first, other)]
        why = lines.difference(asked, others[0]) or (lines.other_runtime(*described) if all(described) else "")
        if why:
            return f"target {name!r}, {why}"
    return ""


def plan_of(run: RunFolder) -> Plan:
    """Return the plan of a run that was read. Its cases are rebuilt from run.json. Raise RecordError."""
    info = run.described
    asked = info["selection"]
    selection = Selection(
        info["profile"],
        tuple(asked["op"]),
        tuple(asked["since_version"]),
        tuple(asked["type"]),
        tuple(asked["case"]),
        tuple(asked["directories"]),
    )
    targets = tuple(
        Target(t["name"], t["adapter"], t["options"], accuracy=t["class"], expected=t["expected_file"], wrap=t["wrap"])
        for t in info["targets"]
    )
    try:
        probes, digest, _ = chosen_probes(selection, targets)
    except (OSError, ValueError) as error:
        raise RecordError(f"{run.path}: its cases cannot be had again: {error}") from None
    if selection.directories and digest != info["digests"].get("directories"):
        raise RecordError(f"the directories of {run.path} are not there any more as they were run")
    plan = Plan(
        selection,
        probes,
        targets,
        command=tuple(info["command"]),
        expected=info["expected_failures"],
        digest=digest,
        skipped=tuple(info["skipped"]),
        record=info["keeps_outputs"],
    )
    return filled_again(plan, run)


def _joined(parts: Sequence[RunFolder], to: Path) -> Run:
    """Return a run with the planned results of all parts, without conclusions. Raise RecordError."""
    plan = plan_of(parts[0])
    for part in parts:
        require_known_clauses(part)
        plan = filled_again(plan, part)
    run = Run(plan, to, min(datetime.fromisoformat(part.described["started"]) for part in parts), [])
    run.problems = [f"{part.path}: {problem}" for part in parts for problem in part.problems]
    results = _results(parts)
    for target in plan.targets:
        # Preferably of a run in which the target started.
        entries = [part.targets[target.name] for part in parts]
        entry = max(entries, key=lambda entry: bool(entry["description"]) and not entry["unavailable"])
        in_order = [(target.name, probe.id) for probe in plan.probes_of(target)]
        of_target = [results[key] for key in in_order if key in results]
        run.targets.append(TargetRun(target, dict(entry["description"]), entry["unavailable"], of_target))
        run.targets[-1].seconds = sum(entry["seconds"] for entry in entries)
    run.seconds = sum(part.described["seconds"] for part in parts)
    run.complete = not run.lacking
    return run


def _results(parts: Sequence[RunFolder]) -> dict[tuple[str, str], Result]:
    """Return the results by target and case. Raise RecordError if two of them differ."""
    joined: dict[tuple[str, str], tuple[Result, Path]] = {}
    for part in parts:
        for key, result in part.by_case.items():
            earlier, path = joined.setdefault(key, (result, part.path))
            if earlier.verdict in UNTRIED:
                joined[key] = result, part.path
            elif result.verdict not in UNTRIED and gist(earlier) != gist(result):
                both = f"{earlier.verdict.value} in {path}, {result.verdict.value} in {part.path}"
                raise RecordError(f"case {result.case} on {result.target} has two results that differ: {both}")
    return {key: result for key, (result, _) in joined.items()}


def _conclude(run: Run, target: TargetRun, parts: Sequence[RunFolder]) -> None:
    """Compute the conclusions on a target from all its results."""
    probes = {probe.id: probe for probe in run.plan.probes_of(target.target)}
    listed: tuple[Entry, ...] = ()
    if run.plan.expected:
        # Without the list, which may be on the machine of the run, the reasons in the results remain.
        with contextlib.suppress(ValueError):
            listed = expectations_of(target.target)
    entries = applying(listed, target.description)
    amended = with_needed_classes(target.results)
    better = {r.case: looked_up(r, probes, entries) if entries else r for r in amended}
    target.results[:] = [better.get(r.case, r) for r in target.results]
    gone = (r.message for r in target.results if r.verdict is Verdict.UNAVAILABLE)
    target.unavailable = target.unavailable and next(gone, "")
    conclude(run, target, listed, SHARDS if any(part.described["shard"] for part in parts) else "")
    wanted = {finding["smallest"] for finding in target.findings}
    target.evidence = _evidence(run.folder, target.target.name, wanted, parts)


def _adopt(parts: Sequence[RunFolder], name: str, writer: RunWriter, recorder: Recorder) -> None:
    """Copy the recorded outcomes of a target. Raise RecordError if a folder lacks their bits."""
    copied: set[tuple[str, str]] = set()
    for part in parts:
        bits = bits_of(part.path, name)
        for line in recorded_in(part.path):
            if line.target != name or (line.purpose, line.case) in copied:
                continue
            copied.add((line.purpose, line.case))
            try:
                jobs = recorder.jobs(name, [outcome_of(job, bits) for job in line.jobs])
            except RecordError as error:
                raise RecordError(f"{part.path}: case {line.case} on {name}: {error}") from None
            writer.append(lines.Recorded(purpose=line.purpose, target=name, case=line.case, jobs=jobs))


def _evidence(to: Path, name: str, wanted: set[str], parts: Sequence[RunFolder]) -> EvidenceRecord:
    """Copy the evidence of the smallest cases of findings."""
    records = [(part, part.targets[name]["evidence"]) for part in parts]
    larger = {small: case for _, record in records for small, case in record["larger"].items() if small in wanted}
    folders: dict[str, str] = {}
    for part, record in records:
        for case, path in record["folders"].items():
            source = part.path / path
            within = source.resolve().is_relative_to((part.path / FOLDER).resolve())
            if case not in folders and case in {*wanted, *larger.values()} and within and source.is_dir():
                shutil.copytree(source, to / path, dirs_exist_ok=True)
                folders[case] = path
    missing = dict.fromkeys(sorted(wanted - folders.keys()), "no run that was merged has it")
    return {
        "folders": folders,
        "larger": {s: case for s, case in larger.items() if case in folders},
        "missing": missing,
    }

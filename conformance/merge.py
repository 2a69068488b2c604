"""Several run folders made one: shards of a run, or runs of several targets over the same cases.

Results are taken as they are; findings, grades and counts are worked out anew from all of them. Nothing is merged that
does not belong together: every refusal says what differs and in which folders.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from .description import description_of
from .directory_probe import digest_of_directories, probe_directories
from .disagreements import disagreements_of, write_reproducers
from .engine import no_longer_needed
from .evidence import FOLDER, Evidence, forget_evidence
from .expected_failures import expectations_of
from .findings import findings_of
from .journal import RESULTS, RUN, SAME_RUNTIME, SAME_TARGET, SCHEMA, Journal
from .judgement import Verdict
from .result import Result
from .run import Plan, Run, TargetRun
from .selection import Selection, UnknownName, narrow, select_probes
from .target import Target

__all__ = ["MergeError", "merge"]

_SAME = ("onnxspec", "profile")


class MergeError(ValueError):
    """The runs cannot be merged; the text says why, in one line."""


@dataclass(frozen=True)
class _Part:
    """A run folder as it was read."""

    folder: Path
    info: Mapping[str, Any]
    results: tuple[Result, ...]

    @property
    def targets(self) -> dict[str, Mapping[str, Any]]:
        return {target["name"]: target for target in self.info["targets"]}


def merge(folders: Sequence[Path], to: Path, *, overwrite: bool = False, command: Sequence[str] = ()) -> Run:
    """Merge run folders into the folder `to`, which becomes a run like any other, and can be gone on with.

    Raises MergeError where they do not belong together or one cannot be read, OccupiedFolder where `to` holds a run,
    and OSError where it cannot be written.
    """
    parts = [_read(folder) for folder in folders]
    for part in parts[1:]:
        _compare(parts[0], part)
    plan = _plan(parts, command)
    results = _joined(parts)
    if any(to.resolve() == part.folder.resolve() for part in parts):
        raise MergeError(f"{to} is one of the runs that are to be merged: give a new folder")
    run = Run(plan, to, min(datetime.fromisoformat(part.info["started"]) for part in parts), [])
    for name in dict.fromkeys(name for part in parts for name in part.targets):
        entry = _entry(parts, name)
        target = next(target for target in plan.targets if target.name == name)
        order = {probe.id: number for number, probe in enumerate(plan.probes_of(target))}
        its = [result for (of, _), result in results.items() if of == name]
        if strange := next((r.case for r in its if r.case not in order), None):
            raise MergeError(f"case {strange} is in no run's selection: a folder holds more than its run.json says")
        its.sort(key=lambda r: order[r.case])
        run.targets.append(TargetRun(target, dict(entry["description"]), entry["unavailable"], its, seconds=0.0))
        run.targets[-1].seconds = sum(float(part.targets[name]["seconds"]) for part in parts if name in part.targets)
    run.seconds = sum(float(part.info.get("seconds", 0.0)) for part in parts)
    run.complete = all(len(t.results) == len(plan.probes_of(t.target)) for t in run.targets)
    with Journal(to, overwrite=overwrite) as journal:
        forget_evidence(to)
        journal.describe(description_of(run))
        for target_run in run.targets:
            _finish(run, target_run, parts)
            for result in target_run.results:
                journal.append(result)
        journal.describe(
            {**description_of(run), "environment": parts[0].info["environment"], "merged": _origins(parts)}
        )
    return run


def _read(folder: Path) -> _Part:
    try:
        info = json.loads((folder / RUN).read_text(encoding="utf-8"))
        lines = (folder / RESULTS).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise MergeError(f"{folder} is no run: it has no {Path(error.filename).name}") from None
    except (OSError, ValueError) as error:
        raise MergeError(f"{folder} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(info, dict) or info.get("schema") != SCHEMA:
        raise MergeError(f"{folder}: {RUN} is not of the format {SCHEMA} that this version merges")
    needed = (*_SAME, "expected_failures", "selection", "digests", "targets", "started", "environment")
    if missing := [key for key in needed if key not in info]:
        raise MergeError(f"{folder}: {RUN} lacks {', '.join(missing)}")
    results = []
    for number, line in enumerate(lines[:-1], 1):  # what follows the last end of a line was cut off by a kill
        try:
            results.append(Result.from_line(line))
        except ValueError:
            raise MergeError(f"{folder / RESULTS}:{number}: no result; is the folder damaged?") from None
    return _Part(folder, info, tuple(results))


def _compare(first: _Part, other: _Part) -> None:
    """Raise MergeError unless two runs asked the same questions of the same targets."""
    where = f"{first.folder} and {other.folder}"
    if first.info["expected_failures"] != other.info["expected_failures"]:
        without, used = (other, first) if first.info["expected_failures"] else (first, other)
        raise MergeError(f"{without.folder} was run with --no-expected, {used.folder} was not: run both alike")
    for key in _SAME:
        a, b = first.info[key], other.info[key]
        if a != b:
            raise MergeError(f"{where} differ in {key}: {a!r} and {b!r}")
    digests = first.info["digests"], other.info["digests"]
    changed = sorted(key for key in digests[0] if key in digests[1] and digests[0][key] != digests[1][key])
    if changed:
        raise MergeError(f"{where} have other cases by the same names (digests) for {', '.join(changed)}")
    if first.info["selection"].get("directories") != other.info["selection"].get("directories"):
        raise MergeError(f"{where} are about other test-case directories")
    for name in first.targets.keys() & other.targets.keys():
        targets = first.targets[name], other.targets[name]
        for key in SAME_TARGET:
            if targets[0].get(key) != targets[1].get(key):
                raise MergeError(f"{where} have other targets by the name {name!r}: their {key} differs")
        described = targets[0]["description"], targets[1]["description"]
        for key in SAME_RUNTIME if all(described) else ():
            a, b = described[0].get(key), described[1].get(key)
            if a != b:
                raise MergeError(f"{where} have other runtimes by the name {name!r}: {key} is {a!r} and {b!r}")


def _joined(parts: Sequence[_Part]) -> dict[tuple[str, str], Result]:
    """The one result of every target and case."""
    found: dict[tuple[str, str], tuple[Result, _Part]] = {}
    for part in parts:
        for result in part.results:
            key = result.target, result.case
            there = found.setdefault(key, (result, part))
            if there[0].verdict is Verdict.UNAVAILABLE:
                found[key] = result, part
            elif result.verdict is not Verdict.UNAVAILABLE and _gist(there[0]) != _gist(result):
                both = f"{there[0].verdict.value} in {there[1].folder}, {result.verdict.value} in {part.folder}"
                raise MergeError(f"case {result.case} on {result.target} has two results that differ: {both}")
    return {key: result for key, (result, _) in found.items()}


def _gist(result: Result) -> tuple[object, ...]:
    return result.verdict, result.reason, result.clause, result.accuracy


def _plan(parts: Sequence[_Part], command: Sequence[str]) -> Plan:
    """What all the runs together were to run."""
    info = parts[0].info
    chosen = [_selection(part) for part in parts]
    ops, versions, types, cases = (
        _union([getattr(c, n) for c in chosen]) for n in ("ops", "versions", "types", "cases")
    )
    names = dict.fromkeys(name for part in parts for name in part.targets)
    targets = tuple(_target(_entry(parts, name)) for name in names)
    whole = Selection(info["profile"], ops, versions, types, cases, chosen[0].directories)
    digest = ""
    try:
        if whole.directories:
            there = probe_directories([Path(root) for root in whole.directories], lambda line: None)
            digest = digest_of_directories(there)
            probes = narrow(whole, there)
        else:
            about = tuple(dict.fromkeys(op for target in targets for op in target.operators))
            several = (select_probes(each, about) for each in dict.fromkeys(chosen))
            probes = list({probe.id: probe for some in several for probe in some}.values())
    except (UnknownName, OSError, ValueError) as error:
        raise MergeError(f"{parts[0].folder}: its cases cannot be had again: {error}") from None
    if whole.directories and digest != info["digests"].get("directories"):
        raise MergeError(f"the directories of {parts[0].folder} are not there any more as they were run")
    plan = Plan(whole, tuple(probes), targets, tuple(command), frozenset(), bool(info["expected_failures"]))
    return replace(plan, digest=digest, skipped=tuple(info.get("skipped", ())))


def _selection(part: _Part) -> Selection:
    given = part.info["selection"]
    ops, versions, types, cases = (tuple(given[key]) for key in ("op", "since_version", "type", "case"))
    return Selection(part.info["profile"], ops, versions, types, cases, tuple(given.get("directories", ())))


def _union(lists: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """All that is in any list; an empty one stands for everything."""
    return tuple(dict.fromkeys(item for each in lists for item in each)) if all(lists) else ()


def _entry(parts: Sequence[_Part], name: str) -> Mapping[str, Any]:
    """What the runs say of a target, one that it started in before one that it did not."""
    entries = [part.targets[name] for part in parts if name in part.targets]
    return next((entry for entry in entries if entry["description"] and not entry["unavailable"]), entries[0])


def _target(entry: Mapping[str, Any]) -> Target:
    return Target(
        entry["name"],
        entry["adapter"],
        entry["options"],
        accuracy=entry["class"],
        expected=entry.get("expected_file", ""),
        wrap=entry.get("wrap", ""),
    )


def _finish(run: Run, target_run: TargetRun, parts: Sequence[_Part]) -> None:
    """What can be said of a target only now that all its results are together."""
    if run.plan.expected:
        target_run.stale = no_longer_needed(run.plan, _listed(target_run.target), target_run)
    target_run.unavailable = target_run.unavailable and next(
        (r.message for r in target_run.results if r.verdict is Verdict.UNAVAILABLE), ""
    )
    probes = {probe.id: probe for probe in run.plan.probes_of(target_run.target)}
    target_run.disagreements = disagreements_of(target_run.results, probes)
    write_reproducers(run.folder, target_run.target, target_run.disagreements, probes)
    target_run.findings = findings_of(target_run.results, probes)
    wanted = {finding["smallest"] for finding in target_run.findings}
    target_run.evidence = _evidence(run.folder, target_run.target.name, wanted, parts)


def _listed(target: Target) -> tuple[Any, ...]:
    try:
        return expectations_of(target)
    except ValueError:  # the list was on the machine of the run: what it said is in the results
        return ()


def _evidence(to: Path, name: str, wanted: set[str], parts: Sequence[_Part]) -> Evidence:
    """Take over the evidence of the cases that stand for findings."""
    folders: dict[str, str] = {}
    larger: dict[str, str] = {}
    for part, evidence in _evidences(parts, name):
        for small, large in evidence.get("larger", {}).items():
            if small in wanted:
                larger.setdefault(small, large)
        for case, place in evidence.get("folders", {}).items():
            if case in folders or case not in wanted | set(larger.values()):
                continue
            source = part.folder / place
            if source.resolve().is_relative_to((part.folder / FOLDER).resolve()) and source.is_dir():
                shutil.copytree(source, to / place, dirs_exist_ok=True)
                folders[case] = place
    missing = dict.fromkeys(sorted(wanted - set(folders)), "no run that was merged has it")
    return Evidence(folders, {small: large for small, large in larger.items() if large in folders}, missing)


def _evidences(parts: Sequence[_Part], name: str) -> Iterator[tuple[_Part, Mapping[str, Any]]]:
    for part in parts:
        evidence = part.targets.get(name, {}).get("evidence")
        if isinstance(evidence, dict):
            yield part, evidence


def _origins(parts: Sequence[_Part]) -> list[dict[str, Any]]:
    keys = ("command", "started", "shard", "complete", "environment")
    return [{"folder": str(part.folder), **{key: part.info.get(key) for key in keys}} for part in parts]

"""A run directory as the pages see it: what it says about itself, its results, and what is amiss with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import fields
from .results import NOTHING, Results, read_results

SCHEMA = 1
"""The version of ``run.json`` that these pages read."""


@dataclass(frozen=True)
class Run:
    """One run directory. ``info`` is its ``run.json``, unchecked; ``problems`` are one line each, for the reader."""

    name: str
    path: Path
    info: Mapping[str, Any]
    results: Results
    problems: tuple[str, ...]
    readable: bool


def read_run(path: Path) -> Run:
    """Read ``path``. Never raises for what the directory holds or lacks: that is said in ``problems``."""
    name = fields.text(path.resolve().name or str(path), limit=200)

    def unreadable(why: str) -> Run:
        return Run(name, path, {}, NOTHING, (f"{shown}: {why}; left out.",), False)

    shown = fields.text(str(path), limit=500)
    if not path.is_dir():
        return unreadable("no such directory" if not path.exists() else "not a directory")
    journal, summary = path / "results.jsonl", path / "run.json"
    if not journal.is_file() and not summary.is_file():
        return unreadable("holds neither results.jsonl nor run.json, so it is no run")

    problems: list[str] = []
    info: Mapping[str, Any] = {}
    try:
        content = json.loads(summary.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("it is no object")
        info = content
    except FileNotFoundError:
        problems.append(f"{shown}: run.json is missing, so findings and environment are unknown.")
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{shown}: run.json cannot be read ({_brief(error)}), so findings and environment are unknown.")
    if info and info.get("schema") != SCHEMA:
        return unreadable(
            f"run.json has schema {fields.text(info.get('schema'), 'none', 40)}, this report reads {SCHEMA}"
        )

    results = NOTHING
    try:
        results = read_results(journal)
    except FileNotFoundError:
        problems.append(f"{shown}: results.jsonl is missing, so no result is shown.")
    except OSError as error:
        problems.append(f"{shown}: results.jsonl cannot be read ({_brief(error)}), so no result is shown.")
    else:
        if results.broken:
            lines = "1 line" if results.broken == 1 else f"{results.broken} lines"
            problems.append(
                f"{shown}: {lines} of results.jsonl cannot be read, the first is line {results.first_broken}; "
                "the others are shown."
            )
        elif not len(results):
            problems.append(f"{shown}: results.jsonl is empty.")
    if info and info.get("complete") is not True:
        asked = fields.integer(info.get("cases"))
        of = f" of {asked:,}" if asked is not None else ""
        problems.append(f"{shown}: the run did not finish; it has {len(results):,} results{of} cases.")
    return Run(name, path, info, results, tuple(problems), True)


def read_runs(paths: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Return (the readable runs under names that differ, every problem found, one line each)."""
    runs: list[Run] = []
    problems: list[str] = []
    for path in paths:
        run = read_run(path)
        problems += run.problems
        if run.readable:
            used = {other.name for other in runs}
            name, again = run.name, 2
            while name in used:
                name, again = f"{run.name} ({again})", again + 1
            runs.append(replace(run, name=name))
    problems += [line for run in runs[1:] if (line := _apart(runs[0], run))]
    return runs, problems


def _apart(first: Run, other: Run) -> str:
    """Say how the cases of two runs differ, since their columns then do not compare case for case."""
    profiles = [fields.text(run.info.get("profile"), "unnamed", 100) for run in (first, other)]
    if profiles[0] != profiles[1]:
        return f"{other.name}: profile {profiles[1]}, but {first.name} has {profiles[0]}; their counts do not compare."
    digests = [fields.mapping(run.info.get("digests")) for run in (first, other)]
    changed = [key for key in digests[0] if key in digests[1] and digests[0][key] != digests[1][key]]
    if changed:
        names = ", ".join(fields.text(key, limit=60) for key in changed[:8])
        return f"{other.name}: its cases for {names} are not those of {first.name}; their counts do not compare."
    return ""


def _brief(error: BaseException) -> str:
    if isinstance(error, OSError):
        return fields.text(error.strerror or type(error).__name__, limit=200)
    return fields.text(str(error).splitlines()[0] if str(error) else type(error).__name__, limit=200)

"""One run folder, read for pages: its ``run.json``, results and problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_origin, get_type_hints, is_typeddict

from ..conformance.judging.judgement import Verdict
from ..conformance.results.folder import NODE_CASES, RunFolder, read_folder
from ..conformance.results.records import SCHEMA, RunRecord, TargetRecord
from ..conformance.results.result import Result
from ..reference.errors import RecordError
from .text import shortened

if TYPE_CHECKING:
    from ..conformance.extraction.cases import NodeCase

R = TypeVar("R")

_LARGEST = 4_000_000
"""Maximum size of a list of nodes in bytes; onnxspec writes no longer one."""


def empty(record: type[R]) -> R:
    """Return a record of ``run.json`` in which every required key has an empty value."""

    def value(kind: Any) -> Any:
        if is_typeddict(kind):
            hints = get_type_hints(kind)
            return {key: value(hints[key]) for key in hints if key in kind.__required_keys__}
        kind = get_origin(kind) or kind
        return None if kind in (Union, UnionType) else kind()

    filled: R = value(record)
    return filled


NO_TARGET = empty(TargetRecord)
"""The entry of a target that ``run.json`` does not describe."""

NO_RUN: RunRecord = {**empty(RunRecord), "schema": SCHEMA, "expected_failures": True}
"""The record for a ``run.json`` that is missing or unreadable."""


@dataclass(frozen=True)
class Run:
    """One run folder. ``info`` is its ``run.json``, or `NO_RUN`; ``problems`` are one line each.

    Texts come from the folder unchanged: code that prints them must make them printable.
    """

    name: str
    path: Path
    info: RunRecord
    results: Sequence[Result]
    problems: tuple[str, ...]

    @property
    def described(self) -> bool:
        """Whether there is a ``run.json``."""
        return self.info is not NO_RUN

    @cached_property
    def nodes(self) -> tuple[NodeCase, ...]:
        """The nodes of the model that was run, in its order; empty if the run used the cases of a profile."""
        folder = self.path / NODE_CASES
        if not folder.is_dir():
            return ()
        from ..conformance.extraction.cases import NODES, read_nodes  # and with them all that reads models

        file = folder / NODES
        try:
            if file.is_symlink() or not file.is_file() or file.stat().st_size > _LARGEST:
                return ()
            return tuple(read_nodes(folder))
        except (OSError, ValueError, RecursionError):
            return ()


def read_run(path: Path) -> Run:
    """Return a run folder, with a line of ``problems`` for each error in it.

    Raise RecordError for another folder, or one in another version's format.
    """
    folder = read_folder(path)
    problems = [f"{path}: {problem}." for problem in folder.problems]
    count = len(folder.results)
    if folder.info is not None and not folder.info["complete"]:
        planned = folder.info["cases"]
        problems.append(f"{path}: the run did not finish; it has {count:,} results of {planned:,} cases.")
    elif not count:
        problems.append(f"{path}: there is no result in it.")
    problems += [f"{path}: {line}" for line in _broken_off(folder)]
    messages = tuple(shortened(problem, 1000) for problem in problems)
    name = shortened(path.resolve().name or str(path), 200)
    return Run(name, path, NO_RUN if folder.info is None else folder.info, folder.results, messages)


def _broken_off(folder: RunFolder) -> Iterator[str]:
    """Yield lines on internal errors, which are errors of the suite or an operator and not failures of a target."""
    for target in folder.info["targets"] if folder.info is not None else ():
        yield from (f"{target['name']}: {internal_error}" for internal_error in target["mishaps"])
    unjudged = [result for result in folder.results if result.verdict is Verdict.NOT_JUDGED]
    for message in dict.fromkeys(result.message for result in unjudged):
        same = [result for result in unjudged if result.message == message]
        counted = f"{len(same):,} results are not judged" if len(same) > 1 else "1 result is not judged"
        yield f"{same[0].target}: {counted}, e.g. of {same[0].case}: {message}"


def read_runs(paths: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Return (the readable runs, with distinct names; every problem found, one line each)."""
    runs: list[Run] = []
    problems: list[str] = []
    for path in paths:
        try:
            run = read_run(path)
        except RecordError as error:
            problems.append(f"{shortened(str(error), 1000)}; left out.")
            continue
        problems += run.problems
        used = {other.name for other in runs}
        name, number = run.name, 2
        while name in used:
            name, number = f"{run.name} ({number})", number + 1
        runs.append(replace(run, name=name))
    problems += [line for run in runs[1:] if (line := _apart(runs[0], run))]
    return runs, problems


def _apart(first: Run, other: Run) -> str:
    """Return why the counts of two runs do not compare: other profile or cases. Empty where they agree."""
    profiles = [run.info["profile"] if run.described else "unnamed" for run in (first, other)]
    if profiles[0] != profiles[1]:
        return f"{other.name}: profile {profiles[1]}, but {first.name} has {profiles[0]}; their counts do not compare."
    if changed := changed_cases(first, other):
        return f"{other.name}: its cases for {changed} are not those of {first.name}; their counts do not compare."
    return ""


def changed_cases(first: Run, other: Run) -> str:
    """Return the first operator versions of which two runs had other cases, as text."""
    digests = [run.info["digests"] for run in (first, other)]
    changed = sorted(key for key in digests[0] if key in digests[1] and digests[0][key] != digests[1][key])
    return ", ".join(changed[:8])

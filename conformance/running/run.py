"""Plan and state of a run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ...reference import LOSES_NAN
from ...reference.errors import DirectoryError, RecordError, format_internal_error
from ..judging.judgement import DECLINED, FAILING, OF_FORBIDDEN, Verdict
from ..probes.drawn import split_nonce
from ..probes.probe import Probe
from ..probes.selection import Selection, Shard
from ..probes.wrapped import wrapped_probes
from ..results.evidence import no_evidence
from ..results.expected.entries import Entry
from ..results.recorded import Recorder
from ..results.records import EvidenceRecord, FillingRecord, Finding
from ..results.result import Result
from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.pool import Pool
from ..workers.process import TargetProcess, TargetUnavailable

_SPEAKING = (OSError, RecordError, TargetUnavailable, DirectoryError)
"""Exceptions that end a run with their own message: from the disk, the target or a file."""

_FILLED = ("core", "full")  # smoke must stay short


@dataclass(frozen=True)
class Plan:
    """Plan of a run.

    require
        (operator version, type) pairs, like ``("LSTM-14", "float32")``, for which a refusal counts as a failure.
    expected
        Whether lists of known failures are used: a target's own, or the shipped ones.
    targets_file
        The file of named targets, if it was given by name: commands that repeat a case must name it too.
    digest, skipped
        For directories: the SHA-256 of all of them, and a line for each that cannot be run.
    record
        Whether all outputs of targets are kept.
    shrinks
        Whether experiments search the smallest case of each failure.
    process
        Factory of the target's process.
    fills
        Whether random cases follow on a target that declines some (:mod:`.filling`).
    draws
        Batches of random cases, for a search.
    filled
        The random cases that follow, by the target's name.
    require_special
        Whether lost NaN counts as a failure.
    function
        The expression that names the function of this process that is the target; empty for other targets.
    excuses
        Whether known failures are excused and refusals are no failures; not for the nodes of a model to be deployed.
    jobs
        Number of processes that judge.
    repeated
        Cases that are run once more in a fresh process; None for a sample.
    """

    selection: Selection
    everything: tuple[Probe, ...]
    targets: tuple[Target, ...]
    command: tuple[str, ...] = ()
    require: frozenset[tuple[str, str]] = frozenset()
    expected: bool = True
    targets_file: Path | None = None
    digest: str = ""
    skipped: tuple[str, ...] = ()
    shard: Shard | None = None
    record: bool = False
    shrinks: bool = True
    process: Callable[..., TargetProcess] = field(default=TargetProcess, repr=False, compare=False)
    function: str = ""
    fills: bool = False
    draws: Iterator[Sequence[Probe]] | None = field(default=None, repr=False, compare=False)
    filled: Mapping[str, tuple[Probe, ...]] = field(default_factory=dict)
    require_special: bool = False
    excuses: bool = True
    jobs: int = 1
    repeated: frozenset[str] | None = None

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """The probes of the shard, in order."""
        return self.shard.of(self.everything) if self.shard is not None else self.everything

    @property
    def can_fill(self) -> bool:
        """Whether random cases may follow: only after whole operators of a large profile."""
        selection = self.selection
        narrowed = selection.versions or selection.types or selection.cases or selection.directories
        return split_nonce(selection.profile)[0] in _FILLED and not narrowed and self.shard is None

    def pinned_of(self, target: Target) -> tuple[Probe, ...]:
        """Return the selected cases for a target: all if the user named them, else those of its operators."""
        asked = self.selection.ops or self.selection.chosen
        return tuple(probe for probe in self.probes if asked or probe.op in target.operators)

    def probes_of(self, target: Target) -> tuple[Probe, ...]:
        """Return the cases that are run on a target, selected and random ones, in its wrap."""
        selected = self.pinned_of(target)
        ids = {probe.id for probe in selected} if self.filled else set()
        probes = (*selected, *(probe for probe in self.filled.get(target.name, ()) if probe.id not in ids))
        return wrapped_probes(probes, target.wrap) if target.wrap else probes

    def repeat(self, probe: Probe, target: Target) -> str:
        """Return the command that repeats a case on a target; for a function, a line of Python."""
        if self.function:
            return f"onnxspec.assert_conforms({probe.text!r}, {self.function})"
        file = ["--targets-file", str(self.targets_file)] if self.targets_file is not None else []
        return shlex.join([*probe.repeat(target.name), *file])


@dataclass
class TargetRun:
    """State of one target in a run.

    unavailable
        Why it could not start, or not again after a crash; empty otherwise.
    unlisted
        Cases of known failures with a confirmed cause that no entry of the list names.
    findings, filling
        As in run.json.
    internal_errors
        A line for each step after judging that an exception in the suite or in an operator's code ended.
    """

    target: Target
    description: dict[str, Any] = field(default_factory=dict)
    unavailable: str = ""
    results: list[Result] = field(default_factory=list)
    stale: list[Entry] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    evidence: EvidenceRecord = field(default_factory=no_evidence)
    filling: FillingRecord | None = None
    seconds: float = 0.0
    hangs: HangBudget = field(default_factory=HangBudget)
    internal_errors: list[str] = field(default_factory=list)

    def internal_error(self, doing: str, error: Exception) -> None:
        """Record an exception, once if several cases raise it."""
        line = f"{doing}: {format_internal_error(error)}"
        if line not in self.internal_errors:
            self.internal_errors.append(line)

    @contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """Return a context that records exceptions of the suite or of an operator, so that they do not end the run."""
        try:
            yield
        except _SPEAKING:
            raise
        except Exception as error:  # whatever it is, it is ours or the operator's
            self.internal_error(doing, error)

    @property
    def unknown(self) -> list[Result]:
        """The results of cases that were not run or not judged."""
        return [r for r in self.results if r.verdict in (Verdict.NOT_RUN, Verdict.NOT_JUDGED)]

    @property
    def counts(self) -> Counter[str]:
        return Counter(result.verdict.value for result in self.results)

    @property
    def unexpected(self) -> list[Result]:
        return [result for result in self.results if result.failing and not result.expected]

    @property
    def judged(self) -> bool:
        """Whether some result is known to be right or wrong. Invalid models do not count: a target that refuses
        everything refuses them too."""
        legal = [r for r in self.results if r.reason not in OF_FORBIDDEN] or self.results
        return any(r.verdict is Verdict.PASS or r.verdict in FAILING - DECLINED for r in legal)

    def special(self, required: bool = True) -> list[Result]:
        """Return the results that lose NaN; empty unless required."""
        return [r for r in self.results if required and not r.failing and LOSES_NAN in r.flags]

    def missing(self, require: frozenset[tuple[str, str]]) -> list[Result]:
        """Return the required results that were refused or left to another provider."""
        return [r for r in self.results if r.verdict in DECLINED and (f"{r.op}-{r.version}", r.type) in require]


@dataclass
class Run:
    """State of a run.

    problems
        A line for each error in the folders that it was read from.
    pool
        Processes that judge.
    recorder
        Writer of all outputs of targets, for a plan that records them.
    writes_evidence
        Whether the folder gets the evidence of findings.
    """

    plan: Plan
    folder: Path
    started: datetime
    targets: list[TargetRun]
    complete: bool = False
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    pool: Pool = field(default_factory=Pool, repr=False, compare=False)
    recorder: Recorder | None = None
    writes_evidence: bool = True

    @property
    def lacking(self) -> bool:
        """Whether a planned case has no result, or nothing was planned."""
        return not any(t.results for t in self.targets) or any(
            len(t.results) < len(self.plan.probes_of(t.target)) for t in self.targets
        )

    @property
    def exit_code(self) -> int:
        """3: a target could not start.

        1: a failing result that is not excused (a refusal too, for nodes of a model), a refusal of what is required,
        lost special values that are required, a case that was not run or not judged, a step that broke off, a planned
        case without a result, or a target of which nothing was judged (but not in a shard).
        """
        if any(t.unavailable for t in self.targets):
            return 3
        plan = self.plan
        fails = any(
            t.unexpected or t.missing(plan.require) or t.special(plan.require_special) or t.unknown or t.internal_errors
            for t in self.targets
        )
        wrong = not plan.excuses and any(
            result.failing or result.verdict in DECLINED for t in self.targets for result in t.results
        )
        idle = plan.shard is None and not all(t.judged for t in self.targets)
        return int(fails or wrong or idle or self.lacking)

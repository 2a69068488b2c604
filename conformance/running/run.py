"""A run: what is to be run, and what has become of it so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from ...cases.directories.directory import DirectoryError
from ...reference import SPECIAL
from ...reference.operators.mishap import told_mishap
from ..judging.judgement import DECLINED, FAILING, OF_FORBIDDEN, Verdict
from ..probes.drawn import split_nonce
from ..probes.probe import Probe
from ..probes.selection import Selection, meant_for
from ..probes.shard import Shard
from ..probes.wrapped import wrapped_probes
from ..results.evidence import no_evidence
from ..results.expected.entries import Entry, ExpectedFailureError
from ..results.records import EvidenceRecord, FillingRecord, Finding
from ..results.result import Result, not_of
from ..results.writer import RunMismatch
from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.pool import Pool
from ..workers.process import TargetProcess, TargetUnavailable

_SPEAKING = (OSError, RunMismatch, TargetUnavailable, DirectoryError, ExpectedFailureError)
"""Exceptions that end a run in a line of their own: the disk, the target, a file."""

_FILLED = ("core", "full")  # smoke is a look


@dataclass(frozen=True)
class Plan:
    """The plan of a run.

    require
        (operator version, type) pairs, like ``("LSTM-14", "float32")``, for which a refusal counts as a failure.
    expected
        Whether files of expected failures are used: a target's own, or those that come with this release.
    targets_file
        The file of named targets, where it was given by name: commands that repeat a case must name it too.
    digest, skipped
        Where directories are run: the SHA-256 of all of them, and in a line each what cannot be run.
    shard
        The part of all this that is run; None for all of it.
    record
        Whether everything that the targets did is kept, bit for bit.
    shrinks
        Whether each target is asked, by experiments, for the smallest case of each of its failures.
    process
        Factory of the target's process.
    fills
        Whether random cases follow on a target that declines some (:mod:`.filling`).
    filled
        Those that follow, by the target's name.
    require_special
        Whether NaN that is lost, and what overflows where the document's value is finite, counts as a failure.
    function
        The expression that names the function of this process that is the target; empty for targets with processes of
        their own, which commands can repeat.
    excuses
        Whether a failure that a list knows is excused, and what is not supported is no failure. Who deploys a model
        asks whether its nodes run and come out right.
    jobs
        How many processes judge, while the target has its own; 1 for this one alone.
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
    filled: Mapping[str, tuple[Probe, ...]] = field(default_factory=dict)
    require_special: bool = False
    excuses: bool = True
    jobs: int = 1
    repeated: frozenset[str] | None = None

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """All that is run, in order."""
        return self.shard.of(self.everything) if self.shard is not None else self.everything

    @property
    def can_fill(self) -> bool:
        """Tell whether random cases may follow: after whole operators of a profile that is meant to show enough. A run
        of some types, versions or cases is a look at those alone."""
        some = self.selection
        narrowed = some.versions or some.types or some.cases or some.directories
        return split_nonce(some.profile)[0] in _FILLED and not narrowed and self.shard is None

    def pinned_of(self, target: Target) -> tuple[Probe, ...]:
        """The cases that are run on a target whatever it lacks: those that are meant for it."""
        return tuple(meant_for(target.operators, self.selection, self.probes))

    def probes_of(self, target: Target) -> tuple[Probe, ...]:
        """The cases that are run on a target: those meant for it and those that follow, in a wrap those that fit."""
        known = self.pinned_of(target)
        ids = {probe.id for probe in known} if self.filled else set()
        probes = (*known, *(probe for probe in self.filled.get(target.name, ()) if probe.id not in ids))
        return wrapped_probes(probes, target.wrap) if target.wrap else probes


def stranger_among(results: Iterable[Result], plan: Plan) -> str:
    """A complaint about the first of the results that cannot be one of a plan's; empty where none is.

    Results that were read have the right types, and may still be of nothing that there is: somebody has edited them.
    """
    planned = {(target.name, probe.id): probe for target in plan.targets for probe in plan.probes_of(target)}
    for result in results:
        name = f"case {result.case[:200]!a} on {result.target[:200]!a}"
        probe = planned.get((result.target, result.case))
        if probe is None:
            return f"{name} is not among what was to be run"
        if wrong := not_of(result, probe):
            return f"the result of {name} does not fit the case: {wrong}"
    return ""


@dataclass
class TargetRun:
    """The state of one target in a run.

    unavailable
        Why it could not start, or not again after a crash; empty where it could.
    findings
        What was found in the results, as run.json holds it.
    filling
        The random cases that followed, likewise; None for a run that is not filled up.
    mishaps
        What broke off in the suite's own code, or an operator's, after the cases were judged, in a line each: that
        step's word is missing, and no verdict.
    """

    target: Target
    description: dict[str, Any] = field(default_factory=dict)
    unavailable: str = ""
    results: list[Result] = field(default_factory=list)
    stale: list[Entry] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    evidence: EvidenceRecord = field(default_factory=no_evidence)
    filling: FillingRecord | None = None
    seconds: float = 0.0
    hangs: HangBudget = field(default_factory=HangBudget)
    mishaps: list[str] = field(default_factory=list)

    def mishap(self, doing: str, error: Exception) -> None:
        """Note what broke off, once where it does so in case after case."""
        line = f"{doing}: {told_mishap(error)}"
        if line not in self.mishaps:
            self.mishaps.append(line)

    @contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """A step after which the run goes on, whatever the suite's own code or an operator's raises in it."""
        try:
            yield
        except _SPEAKING:
            raise
        except Exception as error:  # whatever it is, it is ours or the operator's
            self.mishap(doing, error)

    @property
    def unknown(self) -> list[Result]:
        """The results of what was planned and is not known: not run, or not judged."""
        return [r for r in self.results if r.verdict in (Verdict.NOT_RUN, Verdict.NOT_JUDGED)]

    @property
    def counts(self) -> Counter[str]:
        return Counter(result.verdict.value for result in self.results)

    @property
    def unexpected(self) -> list[Result]:
        return [result for result in self.results if result.failing and not result.expected]

    @property
    def judged(self) -> bool:
        """Tell whether some result says that it is right or wrong. Who refuses everything refuses forbidden models,
        too."""
        telling = [r for r in self.results if r.reason not in OF_FORBIDDEN] or self.results
        return any(r.verdict is Verdict.PASS or r.verdict in FAILING - DECLINED for r in telling)

    def special(self, required: bool = True) -> list[Result]:
        """The results that lose NaN, or overflow where the document's value is finite, if that is required."""
        return [r for r in self.results if required and not r.failing and {*SPECIAL} & {*r.flags}]

    def missing(self, require: frozenset[tuple[str, str]]) -> list[Result]:
        """The results that are required, and refused or left to another provider."""
        return [r for r in self.results if r.verdict in DECLINED and (f"{r.op}-{r.version}", r.type) in require]


@dataclass
class Run:
    """A run as far as it has come.

    problems
        Of the folders that it was read from, a line each.
    pool
        Processes that judge.
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
    writes_evidence: bool = True

    @property
    def lacking(self) -> bool:
        """Tell whether something that was planned has no result, or nothing was planned at all."""
        return not any(t.results for t in self.targets) or any(
            len(t.results) < len(self.plan.probes_of(t.target)) for t in self.targets
        )

    @property
    def exit_code(self) -> int:
        """3: a target could not start.

        1: a failing result that is not excused (of a model's nodes a refusal is one), a refusal of what is required,
        special values that are required and lost, a case that was not run or not judged, a step that broke off, no
        result of what was planned, or a target of which nothing was judged (in a shard that is no matter).
        """
        if any(t.unavailable for t in self.targets):
            return 3
        plan = self.plan
        fails = any(
            t.unexpected or t.missing(plan.require) or t.special(plan.require_special) or t.unknown or t.mishaps
            for t in self.targets
        )
        wrong = not plan.excuses and any(
            result.failing or result.verdict in DECLINED for t in self.targets for result in t.results
        )
        idle = plan.shard is None and not all(t.judged for t in self.targets)
        return int(fails or wrong or idle or self.lacking)

"""A run: what is to be run, and what has become of it so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from .evidence import Evidence
from .expected_failures import Entry
from .judgement import Verdict
from .probe import Probe
from .result import Result
from .selection import Selection, meant_for
from .shard import Shard
from .target import Target
from .wrap_probe import wrapped_probes

__all__ = ["Plan", "Run", "TargetRun"]


@dataclass(frozen=True)
class Plan:
    """What to run.

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

    @cached_property
    def probes(self) -> tuple[Probe, ...]:
        """All that is run, in order."""
        return self.shard.of(self.everything) if self.shard is not None else self.everything

    def probes_of(self, target: Target) -> tuple[Probe, ...]:
        """What is run on a target: what is meant for it, in the lane of a wrap what can be wrapped."""
        due = tuple(meant_for(target.operators, self.selection, self.probes))
        return wrapped_probes(due, target.wrap) if target.wrap else due


@dataclass
class TargetRun:
    """What became of one target.

    unavailable
        Why it could not start, or not again after a crash; empty where it could.
    findings
        What was found in the results, as run.json holds it.
    """

    target: Target
    description: dict[str, Any] = field(default_factory=dict)
    unavailable: str = ""
    results: list[Result] = field(default_factory=list)
    stale: list[Entry] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    evidence: Evidence = field(default_factory=Evidence)
    disagreements: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def counts(self) -> Counter[str]:
        return Counter(result.verdict.value for result in self.results)

    @property
    def unexpected(self) -> list[Result]:
        return [result for result in self.results if result.failing and not result.expected]

    def missing(self, require: frozenset[tuple[str, str]]) -> list[Result]:
        """Refusals of what is required."""
        return [r for r in self.results if r.verdict is Verdict.REFUSED and (f"{r.op}-{r.version}", r.type) in require]


@dataclass
class Run:
    """A run as far as it has come."""

    plan: Plan
    folder: Path
    started: datetime
    targets: list[TargetRun]
    complete: bool = False
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """3: a target could not start; 1: a failing result that nobody expected, or a refusal of what is required."""
        if any(t.unavailable for t in self.targets):
            return 3
        return int(any(t.unexpected or t.missing(self.plan.require) for t in self.targets))

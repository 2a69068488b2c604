"""Events of a run, as values: who starts a run consumes them, and decides what is written, shown or reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..probes.probe import Probe
from ..probes.stream import Tried
from ..results.lines import Amended, Experiment
from ..results.result import Result
from .run import Run, TargetRun

__all__ = [
    "CaseJudged",
    "CasesFilled",
    "Event",
    "ExperimentsMade",
    "ResultsAmended",
    "RunEnded",
    "RunStarted",
    "SampleTried",
]
__all__ += ["TargetBegun", "TargetFinished", "TargetStarted"]


@dataclass(frozen=True)
class RunStarted:
    """A run begins, or goes on with what it holds already."""

    run: Run


@dataclass(frozen=True)
class TargetBegun:
    """It is a target's turn; nothing of it has been started yet."""

    run: Run
    target: TargetRun


@dataclass(frozen=True)
class TargetStarted:
    """A target is at work; its description is known from now on."""

    run: Run
    target: TargetRun


@dataclass(frozen=True)
class CaseJudged:
    """A case has its verdict.

    one
        What the target did and the verdict with its reasons; None where there was no target to try it on.
    """

    result: Result
    one: Tried | None = None


@dataclass(frozen=True)
class CasesFilled:
    """Cases follow on a target, which the run's plan has from now on."""

    run: Run
    target: TargetRun
    probes: Sequence[Probe]


@dataclass(frozen=True)
class SampleTried:
    """A case was run once more, in a fresh process."""

    target: TargetRun
    one: Tried


@dataclass(frozen=True)
class ResultsAmended:
    """More is known of results that were there already. ``by`` says what made it known: `fresh-sample`, `diagnosis`."""

    target: TargetRun
    by: str
    lines: Sequence[Amended]


@dataclass(frozen=True)
class ExperimentsMade:
    """A target was asked under which conditions its failures show."""

    target: TargetRun
    lines: Sequence[Experiment]


@dataclass(frozen=True)
class TargetFinished:
    """All is known of a target that this run finds out; ``seconds`` is what it took this time."""

    run: Run
    target: TargetRun
    seconds: float


@dataclass(frozen=True)
class RunEnded:
    """A run has come to its end, or was cut short; ``seconds`` is what it took this time."""

    run: Run
    seconds: float


Event: TypeAlias = (
    RunStarted
    | TargetBegun
    | TargetStarted
    | CaseJudged
    | CasesFilled
    | SampleTried
    | ResultsAmended
    | ExperimentsMade
    | TargetFinished
    | RunEnded
)

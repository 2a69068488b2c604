"""Events of a run, as values: who starts a run consumes them, and decides what is written, shown or reported.

Each has the ``lines`` that the journal keeps of it, if any: what happens and what is written are one record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from ..probes.probe import Probe
from ..probes.stream import Tried
from ..results.lines import Amended, Filled, Line, Observed, TargetStarted
from ..results.result import Result
from .run import Run, TargetRun


@dataclass(frozen=True)
class RunBegun:
    """A run begins, or goes on with what it holds already."""

    lines: ClassVar[Sequence[Line]] = ()
    run: Run


@dataclass(frozen=True)
class TargetBegun:
    """A target's turn has come; nothing of it has been started yet."""

    lines: ClassVar[Sequence[Line]] = ()
    run: Run
    target: TargetRun


@dataclass(frozen=True)
class TargetAtWork:
    """A target has started; its description is known from now on."""

    run: Run
    target: TargetRun

    @property
    def lines(self) -> Sequence[Line]:
        return (TargetStarted(target=self.target.target.name, description=self.target.description),)


@dataclass(frozen=True)
class CaseJudged:
    """A case has its verdict.

    one
        What the target did and the verdict with its reasons; None where there was no target to try it on.
    """

    result: Result
    one: Tried | None = None

    @property
    def lines(self) -> Sequence[Line]:
        return (Observed(result=self.result),)


@dataclass(frozen=True)
class CasesFilled:
    """Cases follow on a target, which the run's plan has from now on."""

    run: Run
    target: TargetRun
    probes: Sequence[Probe]

    @property
    def lines(self) -> Sequence[Line]:
        return (Filled(target=self.target.target.name, cases=[probe.text for probe in self.probes]),)


@dataclass(frozen=True)
class SampleTried:
    """A case was run once more, in a fresh process."""

    lines: ClassVar[Sequence[Line]] = ()
    target: TargetRun
    one: Tried


@dataclass(frozen=True)
class ResultsAmended:
    """More is known of results that were there already. ``by`` says what made it known: `fresh-sample`, `diagnosis`."""

    target: TargetRun
    by: str
    lines: Sequence[Amended]


@dataclass(frozen=True)
class Noted:
    """More is known of a target, beside its results: experiments that were made, or that its turn is over."""

    target: TargetRun
    lines: Sequence[Line]


Event: TypeAlias = (
    RunBegun | TargetBegun | TargetAtWork | CaseJudged | CasesFilled | SampleTried | ResultsAmended | Noted
)

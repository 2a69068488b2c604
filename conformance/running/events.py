"""Events of a run. Files, terminal and CI are handlers of them.

``lines`` are the lines for results.jsonl.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from msgspec import Struct

from ..probes.probe import Probe
from ..probes.stream import CaseRun
from ..results.lines import CasesAdded, Line, ResultUpdate, TargetStarted
from ..results.result import Result
from .run import Run, TargetRun


class TargetBegun(Struct, frozen=True):
    """Event: a target is next and has not started yet."""

    lines: ClassVar[Sequence[Line]] = ()
    run: Run
    target: TargetRun


class TargetAtWork(Struct, frozen=True):
    """Event: a target has started; its description is known."""

    run: Run
    target: TargetRun

    @property
    def lines(self) -> Sequence[Line]:
        return (TargetStarted(target=self.target.target.name, description=self.target.description),)


class CaseJudged(Struct, frozen=True):
    """Event: a case has its verdict. ``one`` is None if the target was not available."""

    result: Result
    one: CaseRun | None = None

    @property
    def lines(self) -> Sequence[Line]:
        return (self.result,)


class CasesFilled(Struct, frozen=True):
    """Event: random cases follow on a target; they are in the run's plan."""

    run: Run
    target: TargetRun
    probes: Sequence[Probe]

    @property
    def lines(self) -> Sequence[Line]:
        return (CasesAdded(target=self.target.target.name, cases=[probe.text for probe in self.probes]),)


class SampleTried(Struct, frozen=True):
    """Event: a case was run again in a fresh process."""

    lines: ClassVar[Sequence[Line]] = ()
    target: TargetRun
    one: CaseRun


class ResultsUpdated(Struct, frozen=True):
    """Event: earlier results have changed. ``by`` names the step: ``fresh-sample``, ``diagnosis``."""

    target: TargetRun
    by: str
    lines: Sequence[ResultUpdate]


Event: TypeAlias = TargetBegun | TargetAtWork | CaseJudged | CasesFilled | SampleTried | ResultsUpdated

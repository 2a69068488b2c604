"""The stream of probes through a target: they are prepared and judged while it works."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .judgement import Judgement
from .probe import Prepared, Probe
from .process import Job, Outcome, TargetProcess

__all__ = ["Tried", "tried"]


@dataclass(frozen=True)
class Tried:
    """A probe that a target has run, what became of its jobs, in their order, and the verdict on that."""

    probe: Probe
    prepared: Prepared
    outcomes: tuple[Outcome, ...]
    judgement: Judgement

    @property
    def seconds(self) -> float:
        """How long the target took."""
        return sum(outcome.seconds for outcome in self.outcomes)


def tried(process: TargetProcess, probes: Iterable[Probe], accuracy: str) -> Iterator[Tried]:
    """Every probe, in order, with what the target did.

    probes
        Read ahead, as far as the target takes jobs.
    accuracy
        Name of the accuracy class by which it is judged.
    """
    waiting: deque[tuple[Probe, Prepared]] = deque()

    def jobs() -> Iterator[Job]:
        for probe in probes:
            prepared = probe.prepare()
            waiting.append((probe, prepared))
            yield from prepared.jobs

    outcomes: list[Outcome] = []
    for outcome in process.run(jobs()):
        outcomes.append(outcome)
        probe, prepared = waiting[0]
        if len(outcomes) == len(prepared.jobs):
            waiting.popleft()
            yield Tried(probe, prepared, tuple(outcomes), prepared.judge(outcomes, accuracy))
            outcomes = []

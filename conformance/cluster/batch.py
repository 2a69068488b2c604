"""A batch of cases, which is one task of a cluster, and the reply to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..judging.judgement import Judgement
from ..probes.probe import Probe
from ..targets.target import Target
from ..workers.process import Job, Outcome


@dataclass(frozen=True)
class Batch:
    """A batch for one task: probes to be run and judged, or jobs that are judged where the run is.

    session
        Batches of one run share the processes of its target.
    hangs
        How many hangs are waited for.
    """

    session: str
    release: str
    target: Target
    source: str
    measure: bool
    hangs: int
    probes: tuple[Probe, ...] = ()
    jobs: tuple[Job, ...] = ()


@dataclass(frozen=True)
class Reply:
    """The outcome of a batch: those of each of its probes with the verdict on them, or those of each job.

    unavailable
        Why the target does not start on that machine; empty where it does.
    """

    description: dict[str, Any] = field(default_factory=dict)
    judged: tuple[tuple[tuple[Outcome, ...], Judgement], ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    unavailable: str = ""
    captured: str = ""

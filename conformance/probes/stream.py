"""Stream of probes through a target: other probes are built and judged while it works."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from msgspec import Struct

from ...reference.errors import DirectoryError
from ..judging.judgement import Judgement, Verdict, not_judged, not_run
from ..workers.pool import Pool
from ..workers.process import Job, Outcome, TargetProcess
from .probe import Prepared, Probe


@dataclass(frozen=True)
class CaseRun:
    """A probe that a target has run, the outcomes of its jobs, in their order, and the verdict."""

    probe: Probe
    prepared: Prepared
    outcomes: tuple[Outcome, ...]
    judgement: Judgement

    @property
    def seconds(self) -> float:
        """The time that the target took, in seconds."""
        return sum(outcome.seconds for outcome in self.outcomes)


class _Answer(Struct, frozen=True):
    """Outcomes of a probe and its judge, as sent to another process."""

    judge: Callable[[Sequence[Outcome], str], Judgement]
    outcomes: tuple[Outcome, ...]
    accuracy: str

    def judged(self) -> Judgement:
        return judged(self.judge, self.outcomes, self.accuracy)

    def bytes(self) -> int:
        """Return the number of bytes of outputs; 0 if there are no numbers to judge."""
        arrays = (a for o in self.outcomes for feed in o.outputs for outputs in feed for a in outputs if a is not None)
        return sum(array.nbytes for array in arrays)


def tried(
    process: TargetProcess, probes: Iterable[Probe], accuracy: str, pool: Pool | None = None
) -> Generator[CaseRun, None, None]:
    """Run probes on a target and judge them, some while it runs others. Yield them in order.

    probes
        Read ahead as far as the target takes jobs. A probe that cannot be built is ``not-run``, with the reason in its
        message. A probe is ``not-judged`` if code of the suite or of the operator raises.
    accuracy
        Name of the accuracy class for judging.
    pool
        Processes that judge; None: this process.
    """
    running: deque[tuple[Probe, Prepared]] = deque()
    judging: deque[tuple[Probe, Prepared, _Answer]] = deque()

    def jobs() -> Iterator[Job]:
        for probe in probes:
            prepared = made_ready(probe)
            running.append((probe, prepared))
            yield from (replace(job, traits=probe.traits) for job in prepared.jobs)

    def answers() -> Generator[_Answer, None, None]:
        outcomes: list[Outcome] = []

        def complete() -> Iterator[_Answer]:
            while running and len(outcomes) == len(running[0][1].jobs):
                probe, prepared = running.popleft()
                answer = _Answer(prepared.judge, tuple(outcomes), accuracy)
                outcomes.clear()
                judging.append((probe, prepared, answer))
                yield answer

        with contextlib.closing(process.run(jobs())) as returned:
            for outcome in returned:
                yield from complete()  # probes without jobs, before the one of this outcome
                outcomes.append(outcome)
                yield from complete()
        yield from complete()

    with contextlib.closing((pool or Pool()).map(_Answer.judged, answers(), _Answer.bytes)) as judgements:
        for judgement in judgements:
            probe, prepared, answer = judging.popleft()
            if judgement.verdict is Verdict.NOT_JUDGED or judgement.reason == "memory":
                # The other process may lack memory, or an operator that was registered in this one.
                judgement = answer.judged()
            yield CaseRun(probe, prepared, answer.outcomes, judgement)


def made_ready(probe: Probe) -> Prepared:
    """Return the probe with its jobs. If they cannot be built, there are none, and the verdict has the reason."""
    try:
        return probe.prepare()
    except DirectoryError as error:
        judgement = Judgement(Verdict.NOT_RUN, "unprepared", message=str(error))
    except MemoryError:
        message = "not run: there is not enough memory here to build it"
        judgement = Judgement(Verdict.NOT_RUN, "unprepared", message=message)
    except Exception as error:  # an error of the suite or of the operator costs only this case
        judgement = not_judged(error, "building")
    return Prepared((), partial(_decided, judgement))


def _decided(judgement: Judgement, outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
    return judgement


def judged(
    judge: Callable[[Sequence[Outcome], str], Judgement], outcomes: Sequence[Outcome], accuracy: str
) -> Judgement:
    """Return the verdict on a probe, with a flag if one of its jobs was run again."""
    left_out = next((outcome for outcome in outcomes if outcome.status == "not-run"), None)
    if left_out is not None:
        return not_run(left_out)
    try:
        judgement = judge(outcomes, accuracy)
    except MemoryError:
        judgement = Judgement(Verdict.INCONCLUSIVE, "memory", message="there is not enough memory here to judge it")
    except Exception as error:  # as above
        return not_judged(error, "judging")
    again = next((outcome.again for outcome in outcomes if outcome.again), "")
    if not again:
        return judgement
    message = f"{judgement.message}; " if judgement.message else ""
    full_text = f"{message}run a second time, since the first time {again}"
    return replace(judgement, message=full_text, flags=(*judgement.flags, "second-try"))

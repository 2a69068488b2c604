"""The stream of probes through a target: they are prepared and judged while it works."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from ...cases.directories.directory import DirectoryError
from ..judging.judgement import Judgement, Verdict, not_judged, not_run
from ..workers.pool import Pool
from ..workers.process import Job, Outcome, TargetProcess
from .probe import Prepared, Probe


@dataclass(frozen=True)
class Tried:
    """A probe that a target has run, what became of its jobs, in their order, and the verdict on that."""

    probe: Probe
    prepared: Prepared
    outcomes: tuple[Outcome, ...]
    judgement: Judgement

    @property
    def seconds(self) -> float:
        """The time that the target took."""
        return sum(outcome.seconds for outcome in self.outcomes)


def tried(
    process: TargetProcess, probes: Iterable[Probe], accuracy: str, pool: Pool | None = None
) -> Generator[Tried, None, None]:
    """Every probe with what the target did, in order, but for those that the target's budget for hangs puts off: they
    come last, ``not-run`` where nothing is left of it.

    probes
        Read ahead, as far as the target takes jobs. One that cannot be made ready is ``not-run``, and says why; one
        in which the suite's own code or the operator's raises is ``not-judged``.
    accuracy
        Name of the accuracy class by which it is judged.
    pool
        Whoever judges; this process without it.
    """
    put_off: list[Probe] = []
    for one in in_order(process, probes, accuracy, pool):
        if one.prepared.jobs and one.judgement.verdict is Verdict.NOT_RUN:
            put_off.append(one.probe)
        else:
            yield one
    if put_off:
        process.hangs.last = True
        try:
            yield from in_order(process, put_off, accuracy, pool)
        finally:
            process.hangs.last = False


def in_order(
    process: TargetProcess, probes: Iterable[Probe], accuracy: str, pool: Pool | None = None
) -> Generator[Tried, None, None]:
    """Try like :func:`tried`, without another try for what is put off."""
    return judged_in_order(_run(process, probes), accuracy, pool or Pool())


class Ran(Struct, frozen=True):
    """A probe that a target has run, and what became of its jobs, in their order.

    known
        The verdict, where there is nothing to be judged.
    """

    probe: Probe
    prepared: Prepared
    outcomes: tuple[Outcome, ...]
    known: Judgement | None = None


def judged_in_order(ran: Generator[Ran, None, None], accuracy: str, pool: Pool) -> Generator[Tried, None, None]:
    """The verdict on each probe that was run, in order, by whoever is in a pool."""
    under_way: deque[tuple[Ran, _Answered]] = deque()

    def to_judge() -> Generator[_Answered, None, None]:
        with contextlib.closing(ran):
            for one in ran:
                outcomes = one.outcomes if one.known is None else ()
                under_way.append((one, _Answered(one.prepared.judge, outcomes, accuracy)))
                yield under_way[-1][1]

    with contextlib.closing(pool.map(_Answered.judged, to_judge(), _Answered.bytes)) as judgements:
        for judgement in judgements:
            one, answered = under_way.popleft()
            if judgement.verdict is Verdict.NOT_JUDGED or judgement.reason == "memory":
                # Another process may lack memory, or an operator that was made known in this one.
                judgement = answered.judged()
            yield Tried(one.probe, one.prepared, one.outcomes, one.known or judgement)


class _Answered(Struct, frozen=True):
    """A target's answer to a probe, and how that is judged."""

    judge: Callable[[Sequence[Outcome], str], Judgement]
    outcomes: tuple[Outcome, ...]
    accuracy: str

    def judged(self) -> Judgement:
        return judged(Prepared((), self.judge), self.outcomes, self.accuracy) if self.outcomes else _NOTHING_RAN

    def bytes(self) -> int:
        """The bytes that came back: none where there are no numbers to be judged."""
        arrays = (a for o in self.outcomes for feed in o.outputs for outputs in feed for a in outputs if a is not None)
        return sum(array.nbytes for array in arrays)


_NOTHING_RAN = Judgement(Verdict.NOT_RUN, "unprepared")


def _run(process: TargetProcess, probes: Iterable[Probe]) -> Generator[Ran, None, None]:
    """Every probe with what the target did, in order."""
    waiting: deque[tuple[Probe, Prepared | Judgement]] = deque()

    def jobs() -> Iterator[Job]:
        for probe in probes:
            prepared = made_ready(probe)
            waiting.append((probe, prepared))
            if isinstance(prepared, Prepared):
                yield from (replace(job, traits=probe.traits) for job in prepared.jobs)

    def unprepared() -> Iterator[Ran]:
        while waiting and isinstance(unready := waiting[0][1], Judgement):
            probe, _ = waiting.popleft()
            yield Ran(probe, NOTHING, (), unready)

    outcomes: list[Outcome] = []
    for outcome in process.run(jobs()):
        yield from unprepared()
        outcomes.append(outcome)
        probe, prepared = waiting[0]
        assert isinstance(prepared, Prepared)
        if len(outcomes) == len(prepared.jobs):
            waiting.popleft()
            yield Ran(probe, prepared, tuple(outcomes))
            outcomes = []
    yield from unprepared()


def made_ready(probe: Probe) -> Prepared | Judgement:
    """The probe made ready, or the verdict where that cannot be: what one of them takes is no reason to lose others."""
    try:
        return probe.prepare()
    except DirectoryError as error:
        return Judgement(Verdict.NOT_RUN, "unprepared", message=str(error))
    except MemoryError:
        words = "not run: there is not enough memory here to build it"
        return Judgement(Verdict.NOT_RUN, "unprepared", message=words)
    except Exception as error:  # whatever it is, it is ours or the operator's, and costs this case alone
        return not_judged(error, "building")


def judged(prepared: Prepared, outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
    """The verdict on a probe, with a flag where a job of it was given a second chance."""
    left_out = next((outcome for outcome in outcomes if outcome.status == "not-run"), None)
    if left_out is not None:
        return not_run(left_out)
    try:
        judgement = prepared.judge(outcomes, accuracy)
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


def _unjudgeable(outcomes: Sequence[Outcome], accuracy: str) -> Judgement:
    raise AssertionError("nothing was run")


NOTHING = Prepared((), _unjudgeable)
"""A probe that cannot be made ready, as far as it goes."""

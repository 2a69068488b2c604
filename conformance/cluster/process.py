"""A target on the machines of a cluster: batches out, replies in, in the order of a run on one machine."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice
from typing import Any, TypeVar

from ..judging.judgement import Judgement, Verdict
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import Tried, in_order
from ..probes.wrapped import WrapProbe
from ..results.environment import version_of
from ..results.writer import SAME_RUNTIME
from ..targets.adapters import adapter_source
from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.job import ClusterError
from ..workers.process import BATCH_JOBS, Job, Outcome, TargetProcess, TargetUnavailable
from .batch import Batch, Reply
from .machine import carry_out
from .scheduler import Scheduler, WorkersDied

Item = TypeVar("Item", Probe, Job)


class _TriedThere(Tried):
    """A probe that was run and judged elsewhere; it is made ready here only where somebody looks."""

    def __init__(self, probe: Probe, outcomes: tuple[Outcome, ...], judgement: Judgement) -> None:
        for name, value in (("probe", probe), ("outcomes", outcomes), ("judgement", judgement)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name != "prepared":
            raise AttributeError(name)
        prepared = self.probe.prepare()
        object.__setattr__(self, name, prepared)
        return prepared


@dataclass
class _Task:
    """A batch under way.

    again
        It is one case, and is tried once more with nothing beside it.
    reply
        What becomes of it where it is not sent.
    """

    batch: Batch
    future: Any = None
    again: bool = False
    reply: Reply | None = None

    @property
    def size(self) -> int:
        return len(self.batch.probes) + len(self.batch.jobs)

    def halves(self) -> tuple[Batch, Batch]:
        """The batch in two."""
        probes, jobs = self.batch.probes, self.batch.jobs
        middle = self.size // 2
        if probes:
            return replace(self.batch, probes=probes[:middle]), replace(self.batch, probes=probes[middle:])
        return replace(self.batch, jobs=jobs[:middle]), replace(self.batch, jobs=jobs[middle:])


class ClusterProcess(TargetProcess):
    """A target on the machines of a cluster, in place of one process here."""

    at_once = 32 * BATCH_JOBS  # whatever the machines are: what a search draws must not depend on them

    def __init__(
        self, scheduler: Scheduler, target: Target, hangs: HangBudget | None = None, measure: bool = False
    ) -> None:
        super().__init__(target, hangs=hangs, measure=measure)
        self._scheduler = scheduler
        self._session = uuid.uuid4().hex
        self._description: dict[str, Any] | None = None
        self._used = False

    @cached_property
    def _blank(self) -> Batch:
        """A batch of nothing."""
        adapter = self._target.adapter
        source = adapter_source(adapter) if adapter.endswith(".py") else ""
        release = version_of("onnxspec") or "unknown"
        return Batch(self._session, release, self._target, source, self._measure, self.hangs.hangs)

    def start(self) -> dict[str, Any]:
        """Start the target on some machine and return its description; raises TargetUnavailable."""
        reply = self._reply(self._submit(self._blank))
        self._accept(reply)
        return reply.description

    def close(self) -> None:
        """End what the machines still have of it."""
        if self._used:
            self._used = False
            self._scheduler.end(self._session)

    def judged_in_order(self, probes: Iterable[Probe], accuracy: str) -> Iterator[Tried]:
        """Every probe with what became of it, in order. `accuracy` is the target's."""
        assert accuracy == self._target.accuracy
        chosen = tuple(probes)
        if not all(isinstance(probe, (SpecProbe, WrapProbe)) for probe in chosen):
            # Directories lie on this machine: their probes are made ready and judged here.
            yield from in_order(_JobsOnly(self), chosen, accuracy)
            return

        def left_out(batch: Batch, why: str) -> Reply:
            return Reply(judged=tuple(((), Judgement(Verdict.NOT_RUN, message=why)) for _ in batch.probes))

        for batch, reply in self._each(chosen, lambda some: replace(self._blank, probes=some), left_out):
            for probe, (outcomes, judgement) in zip(batch.probes, reply.judged, strict=True):
                self._note(probe.traits, outcomes)
                yield _TriedThere(probe, outcomes, judgement)

    def run(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Run like :meth:`TargetProcess.run`, on the machines of the cluster."""

        def left_out(batch: Batch, why: str) -> Reply:
            return Reply(outcomes=tuple(Outcome(job.key, "not-run", message=why) for job in batch.jobs))

        for batch, reply in self._each(jobs, lambda some: replace(self._blank, jobs=some), left_out):
            for job, outcome in zip(batch.jobs, reply.outcomes, strict=True):
                self._note(job.traits, (outcome,))
                yield outcome

    def _each(
        self,
        items: Iterable[Item],
        batch_of: Callable[[tuple[Item, ...]], Batch],
        left_out: Callable[[Batch, str], Reply],
    ) -> Iterator[tuple[Batch, Reply]]:
        """Probes or jobs in batches, each with its reply, in order; what the budget for hangs does not allow is not
        sent."""
        source = iter(items)

        def tasks() -> Iterator[_Task]:
            while some := tuple(islice(source, BATCH_JOBS)):
                for refused, group in groupby(some, lambda item: self.hangs.refuses(item.traits)):
                    batch = batch_of(tuple(group))
                    if refused:
                        yield _Task(batch, reply=left_out(batch, refused))
                    else:
                        yield _Task(replace(batch, hangs=max(1, self.hangs.hangs - self.hangs.count)))

        return self._in_order(tasks())

    def _note(self, traits: frozenset[str], outcomes: Sequence[Outcome]) -> None:
        """Count in the run's budget what hung, and what did not."""
        for outcome in outcomes:
            if outcome.status != "not-run":
                (self.hangs.hung if outcome.status == "timed-out" else self.hangs.worked)(traits)

    def _in_order(self, tasks: Iterator[_Task]) -> Iterator[tuple[Batch, Reply]]:
        """Every batch with its reply, in order; as many under way as the cluster has threads for."""
        under_way: deque[_Task] = deque()
        try:
            while True:
                while len(under_way) < self._scheduler.ahead and (task := next(tasks, None)) is not None:
                    if task.reply is None:
                        task.future = self._submit(task.batch)
                    under_way.append(task)
                if not under_way:
                    return
                task = under_way[0]
                if task.reply is not None:
                    under_way.popleft()
                    yield task.batch, task.reply
                    continue
                try:
                    reply = self._reply(task.future)
                    self._accept(reply)
                except WorkersDied as died:
                    under_way.popleft()
                    if task.size > 1:
                        under_way.extendleft(_Task(half, self._submit(half)) for half in task.halves()[::-1])
                        continue
                    if not task.again:
                        # What was on the same machine may have ended it: once more, with nothing beside it.
                        self._scheduler.wait_for([other.future for other in under_way if other.reply is None])
                        alone = _Task(task.batch, self._submit(task.batch), again=True)
                        under_way.appendleft(alone)
                        self._scheduler.wait_for([alone.future])
                        continue
                    reply = _guilty(task.batch, str(died))
                else:
                    under_way.popleft()
                yield task.batch, reply
        finally:
            self._scheduler.cancel([task.future for task in under_way if task.reply is None])

    def _accept(self, reply: Reply) -> None:
        """Take note of the runtime that a reply is from. Raises ClusterError where it is another one."""
        if reply.unavailable:
            raise TargetUnavailable(reply.unavailable, reply.captured)
        first = self._description = self._description or reply.description
        for key in SAME_RUNTIME:
            if first.get(key) != reply.description.get(key):
                contrast = f"{key} {first.get(key)!r} and {reply.description.get(key)!r}"
                raise ClusterError(
                    f"the machines of the cluster have different runtimes for {self._target.name}: {contrast}"
                )

    def _submit(self, batch: Batch) -> Any:
        self._used = True
        return self._scheduler.submit(carry_out, batch, self._target.name)

    def _reply(self, future: Any) -> Reply:
        reply = self._scheduler.result(future)
        assert isinstance(reply, Reply)
        return reply


class _JobsOnly:
    """A cluster's process for probes that are made ready and judged here."""

    def __init__(self, process: ClusterProcess) -> None:
        self.run = process.run
        self.hangs = process.hangs


def _guilty(batch: Batch, why: str) -> Reply:
    """The reply of a case that ends the workers of the cluster that it comes to, alone as well."""
    message = f"ended every worker of the cluster that it came to, the last times alone: {why}"
    if not batch.probes:
        return Reply(outcomes=tuple(Outcome(job.key, "crashed", message=message) for job in batch.jobs))
    (probe,) = batch.probes
    prepared = probe.prepare()
    outcomes = tuple(Outcome(job.key, "crashed", message=message) for job in prepared.jobs)
    return Reply(judged=((outcomes, prepared.judge(outcomes, batch.target.accuracy)),))

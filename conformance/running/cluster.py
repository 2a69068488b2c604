"""More than one machine: batches of cases as tasks of Dask's ``distributed``, results in the order of a run on one.

A task rebuilds its cases from their specs, runs them on the target that its machine has, judges them there, and sends
back what the target did with the verdicts. The run itself stays where it was started and knows no difference: what it
is given for a process is a :class:`ClusterProcess`.

Tasks are Python objects, which Dask pickles: whoever reaches a scheduler can have anything executed. So beyond this
machine only TLS is spoken, with the certificates that Dask's own configuration names.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import ipaddress
import logging
import os
import re
import socket
import tempfile
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TypeVar

from ..judging.judgement import Judgement, Verdict
from ..probes.probe import Probe, SpecProbe
from ..probes.stream import Tried, in_order
from ..probes.wrapped import WrapProbe
from ..results.environment import version_of
from ..results.journal import SAME_RUNTIME
from ..targets.adapters import adapter_source
from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.job import ClusterError
from ..workers.process import BATCH_JOBS, Job, Outcome, TargetProcess, TargetUnavailable

__all__ = ["LOCAL", "Cluster", "ClusterError", "ClusterProcess", "cluster_at"]

LOCAL = "local"
"""The name by which ``--scheduler`` calls a cluster of this machine's processors; ``local:N`` has N workers."""

_ADDRESS = re.compile(r"(?:(tcp|tls)://)?(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):(\d{1,5})")
_CONNECT_SECONDS = 10.0
_WORKERS_SECONDS = 60.0  # a farm's machines may be starting
_IDLE_SECONDS = 60.0  # after which a machine ends a target that no batch has asked for
_AHEAD = 3  # batches under way for each thread of the cluster: one at work, and some on their way
_FEWEST_AHEAD = 8  # workers may be added at any time
_LOOK_SECONDS = 1.0  # between looks at how many threads there are

Item = TypeVar("Item", Probe, Job)
Done = TypeVar("Done")


# What is sent


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


# On the machines of the cluster


@dataclass
class _Idle:
    process: TargetProcess
    description: dict[str, Any]
    since: float


class _Processes:
    """The targets that are at work on a machine of the cluster; they outlive a batch, since to start one costs as much
    as the batch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, list[_Idle]] = {}
        self._watched = False

    def take(self, batch: Batch) -> _Idle:
        """A process that no other batch has; raises TargetUnavailable."""
        with self._lock:
            waiting = self._idle.get(batch.session, [])
            if waiting:
                return waiting.pop()
        target = batch.target
        if batch.source:
            place = Path(tempfile.mkdtemp(prefix="onnxspec-adapter-")) / Path(target.adapter).name
            place.write_text(batch.source, encoding="utf-8")
            target = replace(target, adapter=str(place))
        process = TargetProcess(target, measure=batch.measure)
        try:
            return _Idle(process, process.start(), time.monotonic())
        except BaseException:
            process.close()
            raise

    def give(self, batch: Batch, used: _Idle) -> None:
        """Keep a process for the next batch."""
        used.since = time.monotonic()
        with self._lock:
            self._idle.setdefault(batch.session, []).append(used)
            if not self._watched:
                self._watched = True
                threading.Thread(target=self._watch, name="onnxspec idle targets", daemon=True).start()

    def end(self, session: str | None = None) -> None:
        """End what is idle, of one run or of all."""
        with self._lock:
            sessions = [session] if session is not None else list(self._idle)
            ended = [idle for name in sessions for idle in self._idle.pop(name, [])]
        for idle in ended:
            idle.process.close()

    def _watch(self) -> None:
        """End what nobody has asked for in a while: a run that was killed says no goodbye."""
        while True:
            time.sleep(_IDLE_SECONDS / 4)
            old = time.monotonic() - _IDLE_SECONDS
            with self._lock:
                ended = [idle for waiting in self._idle.values() for idle in waiting if idle.since < old]
                self._idle = {
                    name: kept
                    for name, waiting in self._idle.items()
                    if (kept := [idle for idle in waiting if idle.since >= old])
                }
            for idle in ended:
                idle.process.close()


_PROCESSES = _Processes()


def carry_out(batch: Batch) -> Reply:
    """Carry out a task, in a worker of the cluster."""
    own = version_of("onnxspec") or "unknown"
    if own != batch.release:
        raise ClusterError(f"a worker has onnxspec {own}, and the run was started with {batch.release}")
    try:
        used = _PROCESSES.take(batch)
    except TargetUnavailable as error:
        return Reply(unavailable=str(error), captured=error.captured)
    used.process.hangs = HangBudget(batch.hangs)
    try:
        judged = [(one.outcomes, one.judgement) for one in in_order(used.process, batch.probes, batch.target.accuracy)]
        outcomes = tuple(used.process.run(batch.jobs))
    except BaseException:
        used.process.close()
        raise
    _PROCESSES.give(batch, used)
    return Reply(used.description, tuple(judged), outcomes)


def end_session(session: str) -> None:
    """End the processes of a run that is over, on a machine of the cluster."""
    _PROCESSES.end(session)


# Where the run is


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
    """A batch under way. ``again``: it is one case, and is tried once more with nothing beside it."""

    batch: Batch
    future: Any
    again: bool = False

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
        self, cluster: Cluster, target: Target, hangs: HangBudget | None = None, measure: bool = False
    ) -> None:
        super().__init__(target, hangs=hangs, measure=measure)
        self._cluster = cluster
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
            self._cluster.end(self._session)

    def judged_in_order(self, probes: Iterable[Probe], accuracy: str) -> Iterator[Tried]:
        """Every probe with what became of it, in order. `accuracy` is the target's."""
        assert accuracy == self._target.accuracy
        chosen = tuple(probes)
        if not all(isinstance(probe, (SpecProbe, WrapProbe)) for probe in chosen):
            # Directories lie on this machine: their probes are made ready and judged here.
            yield from in_order(_JobsOnly(self), chosen, accuracy)
            return

        def taken(batch: Batch, reply: Reply) -> Iterator[Tried]:
            for probe, (outcomes, judgement) in zip(batch.probes, reply.judged, strict=True):
                self._note(probe.traits, outcomes)
                yield _TriedThere(probe, outcomes, judgement)

        def left_out(probe: Probe, why: str) -> Tried:
            return _TriedThere(probe, (), Judgement(Verdict.NOT_RUN, message=why))

        yield from self._each(chosen, lambda some: replace(self._blank, probes=some), taken, left_out)

    def run(self, jobs: Iterable[Job]) -> Generator[Outcome, None, None]:
        """Run like :meth:`TargetProcess.run`, on the machines of the cluster."""

        def taken(batch: Batch, reply: Reply) -> Iterator[Outcome]:
            for job, outcome in zip(batch.jobs, reply.outcomes, strict=True):
                self._note(job.traits, (outcome,))
                yield outcome

        def left_out(job: Job, why: str) -> Outcome:
            return Outcome(job.key, "not-run", message=why)

        yield from self._each(jobs, lambda some: replace(self._blank, jobs=some), taken, left_out)

    def _each(
        self,
        items: Iterable[Item],
        batch_of: Callable[[tuple[Item, ...]], Batch],
        taken: Callable[[Batch, Reply], Iterator[Done]],
        left_out: Callable[[Item, str], Done],
    ) -> Iterator[Done]:
        """The outcomes of probes or jobs, in order; what the budget for hangs does not allow is not sent."""
        source = iter(items)

        def batches() -> Iterator[Batch | list[Done]]:
            while some := tuple(islice(source, BATCH_JOBS)):
                for refused, group in groupby(some, lambda item: self.hangs.refuses(item.traits)):
                    if refused:
                        yield [left_out(item, refused) for item in group]
                    else:
                        yield replace(batch_of(tuple(group)), hangs=max(1, self.hangs.hangs - self.hangs.count))

        for batch, reply in self._in_order(batches()):
            if isinstance(batch, Batch):
                assert isinstance(reply, Reply)
                yield from taken(batch, reply)
            else:
                yield from batch

    def _note(self, traits: frozenset[str], outcomes: Sequence[Outcome]) -> None:
        """Count in the run's budget what hung, and what did not."""
        for outcome in outcomes:
            if outcome.status != "not-run":
                (self.hangs.hung if outcome.status == "timed-out" else self.hangs.worked)(traits)

    def _in_order(
        self, batches: Iterator[Batch | list[Done]]
    ) -> Iterator[tuple[Batch, Reply] | tuple[list[Done], None]]:
        """Every batch with its reply, in order; as many under way as the cluster has threads for."""
        under_way: deque[_Task | list[Done]] = deque()
        try:
            while True:
                while len(under_way) < self._cluster.ahead and (batch := next(batches, None)) is not None:
                    under_way.append(_Task(batch, self._submit(batch)) if isinstance(batch, Batch) else batch)
                if not under_way:
                    return
                task = under_way[0]
                if not isinstance(task, _Task):
                    under_way.popleft()
                    yield task, None
                    continue
                try:
                    reply = self._reply(task.future)
                    self._accept(reply)
                except _WorkersDied as died:
                    under_way.popleft()
                    if task.size > 1:
                        under_way.extendleft(_Task(half, self._submit(half)) for half in task.halves()[::-1])
                        continue
                    if not task.again:
                        # What was on the same machine may have ended it: once more, with nothing beside it.
                        self._cluster.wait_for([other.future for other in under_way if isinstance(other, _Task)])
                        alone = _Task(task.batch, self._submit(task.batch), again=True)
                        under_way.appendleft(alone)
                        self._cluster.wait_for([alone.future])
                        continue
                    reply = _guilty(task.batch, str(died))
                else:
                    under_way.popleft()
                yield task.batch, reply
        finally:
            self._cluster.cancel([task.future for task in under_way if isinstance(task, _Task)])

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
        return self._cluster.submit(carry_out, batch, self._target.name)

    def _reply(self, future: Any) -> Reply:
        reply = self._cluster.result(future)
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


class _WorkersDied(Exception):
    """A batch has ended more workers than the scheduler allows."""


class Cluster:
    """A connection to a scheduler."""

    def __init__(self, distributed: Any, client: Any) -> None:
        self._distributed = distributed
        self._client = client
        self._looked = -_LOOK_SECONDS
        self._ahead = _FEWEST_AHEAD
        self._resources: frozenset[str] = frozenset()

    def process(self, target: Target, hangs: HangBudget | None = None, measure: bool = False) -> ClusterProcess:
        """A target on the machines of the cluster."""
        return ClusterProcess(self, target, hangs, measure)

    @property
    def ahead(self) -> int:
        """The number of batches that may be under way, now."""
        self._look()
        return self._ahead

    def _look(self) -> None:
        """See which workers there are, which may be others than a second ago."""
        if time.monotonic() - self._looked > _LOOK_SECONDS:
            threads, self._resources = self._on_scheduler(_workers)
            self._ahead = max(_FEWEST_AHEAD, _AHEAD * threads)
            self._looked = time.monotonic()

    def submit(self, function: Callable[[Any], Any], argument: object, target: str) -> Any:
        """A task. Where some workers announce the target as a resource, only they get it."""
        self._look()
        needed = {target: 1} if target in self._resources else None
        return self._client.submit(function, argument, pure=False, resources=needed)

    def result(self, future: Any) -> Any:
        """The result of a task. Raises ClusterError, and _WorkersDied where it ended its workers."""
        try:
            return future.result()
        except self._distributed.scheduler.KilledWorker as error:
            raise _WorkersDied(f"{error.allowed_failures + 1} workers died") from None
        except (ClusterError, TargetUnavailable):
            raise
        except (ImportError, AttributeError) as error:
            text = f"{type(error).__name__}: {error}"
            raise ClusterError(f"a worker cannot load onnxspec; every worker needs the same release ({text})") from None
        except (OSError, self._distributed.CancelledError, self._distributed.TimeoutError) as error:
            raise ClusterError(f"the scheduler does not answer any more ({type(error).__name__})") from None

    def wait_for(self, futures: Sequence[Any]) -> None:
        """Return when all of these have ended, however."""
        if futures:
            self._distributed.wait(futures)

    def cancel(self, futures: Sequence[Any]) -> None:
        """Forget tasks."""
        with contextlib.suppress(Exception):
            self._client.cancel(list(futures), force=True)

    def end(self, session: str) -> None:
        """End what machines have of a run that is over."""
        with contextlib.suppress(Exception):
            self._client.run(end_session, session, on_error="ignore")

    def _on_scheduler(self, function: Callable[..., Any]) -> Any:
        try:
            return self._client.run_on_scheduler(function)
        except (OSError, self._distributed.TimeoutError) as error:
            raise ClusterError(f"the scheduler does not answer any more ({type(error).__name__})") from None


def _workers(dask_scheduler: Any) -> tuple[int, frozenset[str]]:
    """The threads of all workers, and the resources that some announce."""
    workers = list(dask_scheduler.workers.values())
    return sum(worker.nthreads for worker in workers), frozenset(name for w in workers for name in w.resources)


@contextlib.contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """The cluster whose scheduler is at an address (``tls://host:8786``), or one on this machine (``local``). Raises
    ClusterError where it cannot be used."""
    count = _local(address)
    place = None if count else _reached(address)
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ClusterError("clusters need Dask's distributed: pip install 'onnxspec[cluster]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # workers that die are told of by results
    with contextlib.ExitStack() as stack:
        stack.callback(_PROCESSES.end)
        if place is None:
            client = _client_of_local(distributed, count, stack)
        else:
            client = stack.enter_context(_connected(distributed, place))
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except (OSError, distributed.TimeoutError):
            raise ClusterError(f"the scheduler at {address} has no workers") from None
        yield Cluster(distributed, client)


def _local(address: str) -> int:
    """The number of workers that a cluster on this machine is to have; 0 for an address."""
    name, _, count = address.partition(":")
    if name != LOCAL or not (count.isdecimal() or address == LOCAL):
        return 0
    return min(max(1, int(count or os.cpu_count() or 1)), 1024)


def _client_of_local(distributed: Any, count: int, stack: contextlib.ExitStack) -> Any:
    cluster = distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        scheduler_kwargs={"allowed_failures": 1},  # where all workers are one machine's, a third death tells no more
        memory_limit=0,
    )
    stack.enter_context(cluster)
    return stack.enter_context(distributed.Client(cluster))


def _reached(address: str) -> str:
    """The address as Dask has it, where somebody listens there."""
    parts = _ADDRESS.fullmatch(address)
    if parts is None or int(parts[3]) > 65535:
        raise ClusterError(f"{address!r} is no address of a scheduler: tls://host:8786, or {LOCAL}")
    scheme, host, port = parts[1] or "tcp", parts[2].strip("[]"), int(parts[3])
    if scheme != "tls" and not _is_here(host):
        raise ClusterError(
            f"{address} is not this machine, and what is sent is executed there: use tls://, with the certificates "
            "that Dask's configuration names"
        )
    try:
        socket.create_connection((host, port), _CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ClusterError(f"no scheduler answers at {address}: {reason}") from None
    return f"{scheme}://{parts[2]}:{port}"


def _connected(distributed: Any, address: str) -> Any:
    try:
        security = distributed.Security(**{"require_encryption": True} if address.startswith("tls:") else {})
        with ThreadPoolExecutor(1) as elsewhere:  # a notebook has a loop of its own in this thread
            elsewhere.submit(asyncio.run, _greeted(address, security)).result()
        return distributed.Client(address, security=security, timeout=_CONNECT_SECONDS)
    except (asyncio.TimeoutError, distributed.TimeoutError):
        reason = f"what listens there has said nothing for {_CONNECT_SECONDS:.0f} s"
    except MemoryError:
        reason = "what listens there is none"  # the first bytes of its words taken for a length
    except (OSError, ValueError, TypeError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    raise ClusterError(f"no scheduler answers at {address}: {reason}")


async def _greeted(address: str, security: Any) -> None:
    """Wait for the greeting of a scheduler. A client would wait for ever where somebody else listens; and one that
    could not begin ends its thread when it is collected, by which it can keep the next one from beginning."""
    comm = importlib.import_module("distributed.comm")
    connection = comm.connect(address, timeout=_CONNECT_SECONDS, **security.get_connection_args("client"))
    greeted = await asyncio.wait_for(connection, _CONNECT_SECONDS)
    await greeted.close()


def _is_here(host: str) -> bool:
    """Tell whether a name is that of this machine to itself."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

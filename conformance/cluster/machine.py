"""A machine of the cluster: its targets carry out batches, and judge them there."""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..probes.stream import in_order
from ..results.environment import version_of
from ..workers.hangs import HangBudget
from ..workers.job import ClusterError
from ..workers.process import TargetProcess, TargetUnavailable
from .batch import Batch, Reply

_IDLE_SECONDS = 60.0  # after which a machine ends a target that no batch has asked for


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
                everything, self._idle = self._idle, {}
                ended: list[_Idle] = []
                for name, waiting in everything.items():
                    ended += [idle for idle in waiting if idle.since < old]
                    if kept := [idle for idle in waiting if idle.since >= old]:
                        self._idle[name] = kept
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


def end_sessions() -> None:
    """End the processes of all runs, on a machine of the cluster."""
    _PROCESSES.end()

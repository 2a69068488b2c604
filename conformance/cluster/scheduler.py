"""A connection to a scheduler: what is asked of Dask's client, and what its errors mean."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..workers.job import ClusterError
from ..workers.process import TargetUnavailable
from .machine import end_session

_AHEAD = 3  # batches under way for each thread of the cluster: one at work, and some on their way
_FEWEST_AHEAD = 8  # workers may be added at any time
_LOOK_SECONDS = 1.0  # between looks at how many threads there are


class WorkersDied(Exception):
    """A batch has ended more workers than the scheduler allows."""


class Scheduler:
    """A connection to a scheduler, whose tasks belong to targets."""

    def __init__(self, distributed: Any, client: Any) -> None:
        self._distributed = distributed
        self._client = client
        self._looked = -_LOOK_SECONDS
        self._ahead = _FEWEST_AHEAD
        self._resources: frozenset[str] = frozenset()

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
        """The result of a task. Raises ClusterError, and WorkersDied where it ended its workers."""
        try:
            return future.result()
        except self._distributed.scheduler.KilledWorker as error:
            raise WorkersDied(f"{error.allowed_failures + 1} workers died") from None
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

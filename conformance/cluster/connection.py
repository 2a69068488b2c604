"""Connection to the scheduler of a Dask cluster, or to a local cluster of this machine's processors.

Dask pickles tasks, which are Python objects: anyone who reaches a scheduler can execute any code. So connections to
other machines need TLS, with the certificates from Dask's own configuration.
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
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ...reference.errors import UserError

Task = TypeVar("Task")

LOCAL = "local"
"""The value of ``--scheduler`` for a cluster of this machine's processors; ``local:N`` has N workers."""

_ADDRESS = re.compile(r"(?:(tcp|tls)://)?(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):(\d{1,5})")
_CONNECT_SECONDS = 10.0
_WORKERS_SECONDS = 60.0  # a farm's machines may be starting


class ClusterError(UserError):
    """Error for a cluster that is unusable or has been lost."""

    code = 3


class Cluster:
    def __init__(self, distributed: Any, client: Any) -> None:
        self._distributed, self._client = distributed, client

    def results(
        self, function: Callable[[Task], Any], tasks: Iterable[Task], target: str
    ) -> Iterator[tuple[Task, Any]]:
        """Yield each task with its result, in the order of completion. A task whose worker dies goes to another worker.

        target
            If some workers announce it as a resource, only they get the tasks.

        Raise ClusterError where the scheduler is gone, or a task has ended every worker that got it.
        """
        futures: dict[Any, Task] = {}
        try:
            announced = self._client.run_on_scheduler(_resources)
            needed = {target: 1} if target in announced else None
            for task in tasks:
                futures[self._client.submit(function, task, pure=False, resources=needed)] = task
            for future in self._distributed.as_completed(list(futures)):
                yield futures[future], future.result()
        except self._distributed.scheduler.KilledWorker as error:
            raise ClusterError(f"a task has ended {error.allowed_failures + 1} workers of the cluster") from None
        except (ImportError, AttributeError) as error:
            text = f"{type(error).__name__}: {error}"
            raise ClusterError(f"a worker cannot load onnxspec; every worker needs the same release ({text})") from None
        except (
            self._distributed.CancelledError,
            self._distributed.TimeoutError,
            self._distributed.comm.CommClosedError,
        ):
            raise ClusterError("the scheduler does not answer any more") from None
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(list(futures), force=True)


def _resources(dask_scheduler: Any) -> frozenset[str]:
    """Return the resources that workers announce."""
    return frozenset(name for worker in dask_scheduler.workers.values() for name in worker.resources)


@contextlib.contextmanager
def cluster_at(address: str) -> Iterator[Cluster]:
    """Return a context manager for the cluster at a scheduler's address, or a local one.

    The address is like ``tls://host:8786``, or ``local``. Raise ClusterError where the cluster cannot be used.
    """
    count = _local(address)
    scheduler = None if count else _reached(address)
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ClusterError("clusters need Dask's distributed: pip install 'onnxspec[cluster]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # results report workers that died
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            client = _client_of_local(distributed, count, stack)
        else:
            client = stack.enter_context(_connected(distributed, scheduler))
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except (OSError, distributed.TimeoutError):
            raise ClusterError(f"the scheduler at {address} has no workers") from None
        yield Cluster(distributed, client)


def _local(address: str) -> int:
    """Return the number of workers of a local cluster; 0 for an address."""
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
        scheduler_kwargs={"allowed_failures": 1},  # all workers are on one machine: a third death adds no information
        memory_limit=0,
    )
    stack.enter_context(cluster)
    return stack.enter_context(distributed.Client(cluster))


def _reached(address: str) -> str:
    """Return the address in Dask's form, after a connection to it succeeded. Raise ClusterError."""
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
        with ThreadPoolExecutor(1) as elsewhere:  # a notebook runs an event loop in this thread
            elsewhere.submit(asyncio.run, _greeted(address, security)).result()
        return distributed.Client(address, security=security, timeout=_CONNECT_SECONDS)
    except (asyncio.TimeoutError, distributed.TimeoutError):
        reason = f"what listens there has said nothing for {_CONNECT_SECONDS:.0f} s"
    except MemoryError:
        reason = "what listens there is none"  # its first bytes were read as a length
    except (OSError, ValueError, TypeError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    raise ClusterError(f"no scheduler answers at {address}: {reason}")


async def _greeted(address: str, security: Any) -> None:
    """Wait for the greeting of a scheduler.

    Without this check, a client would wait for ever where another program listens. A client that could not start also
    ends its thread when it is collected, which can keep the next client from starting.
    """
    comm = importlib.import_module("distributed.comm")
    connection = comm.connect(address, timeout=_CONNECT_SECONDS, **security.get_connection_args("client"))
    greeted = await asyncio.wait_for(connection, _CONNECT_SECONDS)
    await greeted.close()


def _is_here(host: str) -> bool:
    """Return whether a host name is a loopback name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

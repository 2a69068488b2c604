"""Connection to the scheduler of a Dask cluster, where shards of a run are tasks.

Whoever reaches a scheduler can have it execute code. So connections to other machines need TLS, with the certificates
from Dask's own configuration.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import ipaddress
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ...reference.errors import UserError

Task = TypeVar("Task")

LOCAL = "local"
"""The value of ``--scheduler`` for a cluster of this machine's processors; ``local:N`` has N workers."""

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
        distributed = self._distributed
        futures: dict[Any, Task] = {}
        try:
            announced = self._client.run_on_scheduler(_resources)
            needed = {target: 1} if target in announced else None
            for task in tasks:
                futures[self._client.submit(function, task, pure=False, resources=needed)] = task
            for future in distributed.as_completed(list(futures)):
                yield futures[future], future.result()
        except distributed.scheduler.KilledWorker as error:
            raise ClusterError(f"a task has ended {error.allowed_failures + 1} workers of the cluster") from None
        except (ImportError, AttributeError) as error:
            text = f"{type(error).__name__}: {error}"
            raise ClusterError(f"a worker cannot load onnxspec; every worker needs the same release ({text})") from None
        except (distributed.CancelledError, distributed.TimeoutError, distributed.comm.CommClosedError):
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
    name, _, count = address.partition(":")
    is_local = address == LOCAL or (name == LOCAL and count.isdecimal())
    url = "" if is_local else _url(address)
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ClusterError("clusters need Dask's distributed: pip install 'onnxspec[cluster]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # results report workers that died
    with contextlib.ExitStack() as stack:
        if is_local:
            cluster = stack.enter_context(_local_cluster(distributed, int(count or os.cpu_count() or 1)))
            client = stack.enter_context(distributed.Client(cluster))
        else:
            client = stack.enter_context(_connected(distributed, url))
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except (OSError, distributed.TimeoutError):
            raise ClusterError(f"the scheduler at {address} has no workers") from None
        yield Cluster(distributed, client)


def _local_cluster(distributed: Any, count: int) -> Any:
    return distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        scheduler_kwargs={"allowed_failures": 1},  # all workers are on one machine: a third death adds no information
        memory_limit=0,
    )


def _url(address: str) -> str:
    """Return a scheduler's address with its scheme. Raise ClusterError for one that must not or cannot be used."""
    url = address if "://" in address else f"tcp://{address}"
    try:
        scheme, host, port = (parts := urlsplit(url)).scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in ("tcp", "tls") or not host or not port:
        raise ClusterError(f"{address!r} is no address of a scheduler: tls://host:8786, or {LOCAL}")
    if scheme != "tls" and not _is_here(host):
        raise ClusterError(
            f"{address} is not this machine, and what is sent is executed there: use tls://, with the certificates "
            "that Dask's configuration names"
        )
    return url


def _is_here(host: str) -> bool:
    """Return whether a host name is a loopback name or address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _connected(distributed: Any, url: str) -> Any:
    try:
        security = distributed.Security(**{"require_encryption": True} if url.startswith("tls:") else {})
        with ThreadPoolExecutor(1) as elsewhere:  # a notebook runs an event loop in this thread
            elsewhere.submit(asyncio.run, _greeted(distributed, url, security)).result()
        return distributed.Client(url, security=security, timeout=_CONNECT_SECONDS)
    except MemoryError:
        reason = "another program listens there"  # its first bytes were read as a length
    except (OSError, asyncio.TimeoutError, ValueError, TypeError) as error:
        reason = str(error) or f"no greeting within {_CONNECT_SECONDS:.0f} s"
    raise ClusterError(f"no scheduler answers at {url}: {reason}")


async def _greeted(distributed: Any, url: str, security: Any) -> None:
    """Wait for the greeting of a scheduler.

    Without this check, a client would wait for ever where another program listens. A client that could not start also
    ends its thread when it is collected, which can keep the next client from starting.
    """
    connection = distributed.comm.connect(url, timeout=_CONNECT_SECONDS, **security.get_connection_args("client"))
    await (await asyncio.wait_for(connection, _CONNECT_SECONDS)).close()

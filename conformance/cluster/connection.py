"""Connection to the scheduler of a Dask cluster, where shards of a run are tasks.

Every client of a scheduler can execute code on its workers. So connections to other machines need TLS, with the
certificates from Dask's configuration.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import ipaddress
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ...reference.errors import UserError

Task = TypeVar("Task")

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
    """Connect to the scheduler at an address, and wait for a worker. Raise ClusterError."""
    url = _url(address)
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise ClusterError("clusters need Dask's distributed: pip install 'onnxspec[cluster]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # results report workers that died
    with _connected(distributed, url) as client:
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except (OSError, distributed.TimeoutError):
            raise ClusterError(f"the scheduler at {address} has no workers") from None
        yield Cluster(distributed, client)


def _url(address: str) -> str:
    """Return a scheduler's address with its scheme. Raise ClusterError for one that must not or cannot be used."""
    url = address if "://" in address else f"tcp://{address}"
    try:
        scheme, host, port = (parts := urlsplit(url)).scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if scheme not in ("tcp", "tls") or not host or not port:
        raise ClusterError(f"{address!r} is no address of a scheduler: tls://host:8786")
    if scheme != "tls" and not _is_here(host):
        raise ClusterError(
            f"{address} is another machine, which executes code that it is sent: use tls://, with the certificates of "
            "Dask's configuration"
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

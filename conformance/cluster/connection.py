"""The way to a cluster: the address of its scheduler, who may be behind it, and clusters of this machine alone."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import ipaddress
import logging
import os
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.job import ClusterError
from .machine import end_sessions
from .process import ClusterProcess
from .scheduler import Scheduler

LOCAL = "local"
"""The name by which ``--scheduler`` calls a cluster of this machine's processors; ``local:N`` has N workers."""

_ADDRESS = re.compile(r"(?:(tcp|tls)://)?(\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):(\d{1,5})")
_CONNECT_SECONDS = 10.0
_WORKERS_SECONDS = 60.0  # a farm's machines may be starting


@dataclass(frozen=True)
class Cluster:
    """The machines behind a scheduler."""

    scheduler: Scheduler

    def process(self, target: Target, hangs: HangBudget | None = None, measure: bool = False) -> ClusterProcess:
        """A target on these machines, in place of a process here."""
        return ClusterProcess(self.scheduler, target, hangs, measure)


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
        stack.callback(end_sessions)
        if place is None:
            client = _client_of_local(distributed, count, stack)
        else:
            client = stack.enter_context(_connected(distributed, place))
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except (OSError, distributed.TimeoutError):
            raise ClusterError(f"the scheduler at {address} has no workers") from None
        yield Cluster(Scheduler(distributed, client))


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

"""Process pool: the same results in the same order as in one process.

Work is a function of its piece alone. If another process fails (a piece that cannot be pickled, an exception, a process
that the system kills), this process computes the piece again. So errors are raised in the usual place with their
traceback, and a lost process costs time and no result.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any, TypeVar

from .one_thread import one_thread

Piece = TypeVar("Piece")
Done = TypeVar("Done")

ALONE = 64
"""Pieces that this process computes before a pool starts others: for a few cases, starting processes takes longer."""

_TOGETHER = 8
"""Pieces per message, if they are ready together: sending one alone costs a fifth of judging it."""

_AT_ONCE = 0.02  # seconds

_AHEAD = 4
"""Messages under way for each process: it is never idle, and few results wait for an earlier one."""

_BYTES = 64 << 20
"""Maximum bytes of pieces under way; a single piece may be larger."""

_LOADED = (
    "onnxspec.conformance.probes.stream",
    "onnxspec.conformance.proof.proof",
)
"""Modules that pieces need, loaded once for all processes."""


def processors() -> int:
    """Return the number of processors for this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


def spread(work: Callable[[Piece], Done], pieces: Iterable[Piece], jobs: int) -> Generator[Done, None, None]:
    """Yield the results of each large piece of work, in order, from ``jobs`` processes."""
    with Pool(jobs, alone=0, together=1) as pool:
        yield from pool.map(work, pieces)


class Pool:
    """Process pool that starts its processes when there is enough work; a context manager that leaves none behind.

    The processes also end when this process is killed. With one job, this process computes everything.
    """

    def __init__(self, jobs: int = 1, *, alone: int = ALONE, together: int = _TOGETHER) -> None:
        """Prepare a pool.

        `alone` is the number of pieces that are computed here first, `together` the number of pieces per message.
        """
        self._jobs, self._alone, self._together = jobs, alone, together
        self._executor: ProcessPoolExecutor | None = None
        self._others: Sequence[Any] = ()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        executor, self._executor = self._executor, None
        if executor is None:
            return
        for child in multiprocessing.active_children() if error is not None else ():
            if child not in self._others:
                child.terminate()
        executor.shutdown(cancel_futures=True)

    def expect(self, pieces: int) -> None:
        """Let the fork server load its modules now, if so many pieces are expected."""
        if self._jobs > 1 and pieces > self._alone and _context().get_start_method() == "forkserver":
            from multiprocessing.forkserver import ensure_running  # not every system has it

            with one_thread(), _interrupts_ignored():
                ensure_running()

    def map(
        self,
        work: Callable[[Piece], Done],
        pieces: Iterable[Piece],
        weigh: Callable[[Piece], int] = lambda piece: 1,
    ) -> Generator[Done, None, None]:
        """Yield the results of `work` on each piece, in order. Pieces are read ahead as far as there is room.

        weigh
            The bytes of a piece. Where all pieces of a message have none, they are computed here."""
        source = iter(pieces)
        try:
            for piece in source if self._jobs == 1 or self._alone > 0 else ():
                self._alone -= weigh(piece) > 0
                yield work(piece)
                if self._jobs > 1 and self._alone <= 0:
                    break
            if self._jobs > 1:
                yield from self._shared(work, source, weigh)
        finally:
            if isinstance(source, Generator):
                source.close()

    def _shared(
        self, work: Callable[[Piece], Done], source: Iterator[Piece], weigh: Callable[[Piece], int]
    ) -> Generator[Done, None, None]:
        waiting: deque[tuple[list[Piece], int, Future[list[Done]] | None]] = deque()
        more = True
        while more or waiting:
            full = len(waiting) >= _AHEAD * self._jobs or sum(weight for _, weight, _ in waiting) >= _BYTES
            if waiting and (full or not more or (future := waiting[0][2]) is None or future.done()):
                pieces, _, future = waiting.popleft()
                yield from _results(work, pieces, future)
                continue
            pieces = list(_at_once(source, self._together))
            more = bool(pieces)
            if more:
                weight = sum(map(weigh, pieces))
                waiting.append((pieces, weight, self._sent(work, pieces) if weight else None))

    def _sent(self, work: Callable[[Piece], Done], pieces: Sequence[Piece]) -> Future[list[Done]] | None:
        """Send pieces to a free process; None if they cannot be sent."""
        try:
            payload = pickle.dumps((work, pieces), pickle.HIGHEST_PROTOCOL)
            # Processes that start now inherit this: only this process handles Ctrl-C.
            with one_thread(), _interrupts_ignored():
                return self._started().submit(_done_there, payload)
        except (pickle.PicklingError, AttributeError, TypeError, RuntimeError, OSError):
            return None

    def _started(self) -> ProcessPoolExecutor:
        if self._executor is None:
            self._others = multiprocessing.active_children()
            self._executor = ProcessPoolExecutor(self._jobs, _context(), _end_with_parent)
        return self._executor


def _results(
    work: Callable[[Piece], Done], pieces: Sequence[Piece], future: Future[list[Done]] | None
) -> Iterable[Done]:
    """Return the results of pieces; pieces without an answer are computed here."""
    if future is not None:
        with contextlib.suppress(Exception):  # if a piece raised it, computing the piece here raises it again
            return future.result()
    return map(work, pieces)


def _at_once(source: Iterator[Piece], most: int) -> Iterator[Piece]:
    """Yield the pieces that are ready now, at most ``most``.

    So no piece waits for the next case of a slow target.
    """
    until = None
    for piece in source:
        yield piece
        most -= 1
        until = until or time.monotonic() + _AT_ONCE
        if not most or time.monotonic() > until:
            return


def _done_there(payload: bytes) -> list[Any]:
    work, pieces = pickle.loads(payload)
    return [work(piece) for piece in pieces]


def _context() -> BaseContext:
    """Return the context for starting processes: a fork server with the modules loaded, else spawn.

    This process has threads and pipes, so it is never forked itself.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_LOADED])
    return context


def _end_with_parent() -> None:
    """Make this process end with its parent, even if the parent is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent.sentinel,), daemon=True).start()


def _wait_and_end(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)  # from a thread; no process needs the current work any more


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Return a context in which SIGINT is ignored; without effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

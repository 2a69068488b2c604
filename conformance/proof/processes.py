"""Work that several processes share."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import wait
from typing import TypeVar

__all__ = ["spread"]

Piece = TypeVar("Piece")
Done = TypeVar("Done")


def spread(work: Callable[[Piece], Done], pieces: Sequence[Piece], processes: int) -> Generator[Done, None, None]:
    """The results of each piece of work, in order, by so many processes. They end with whoever waits for them."""
    if processes == 1:
        yield from map(work, pieces)
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _end_with_parent) as pool:
        try:
            with _interrupts_ignored():  # also by the processes that start meanwhile: Ctrl-C is for this one to answer
                futures = [pool.submit(work, piece) for piece in pieces]
            for future in futures:
                yield future.result()
        except BaseException:
            for child in multiprocessing.active_children():
                if child not in others:
                    child.terminate()
            raise


def _end_with_parent() -> None:
    """Have this process end with the one that started it, however that ends: nothing asks a process that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent.sentinel,), daemon=True).start()


def _wait_and_end(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)  # from a thread; the work under way is nobody's any more


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """SIGINT ignored for a moment; only the main thread can have that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

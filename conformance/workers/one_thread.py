"""One thread for NumPy's products, where this project's own processes load NumPy.

OpenBLAS, which NumPy's wheels bring, starts a thread for each processor as soon as it is loaded, and these spin for a
while: 0.13 s of a process that then multiplies small matrices. Processes share cases, so products need no threads. What
a target's runtime finds in its environment is as the caller has it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Variables that OpenBLAS reads while it is loaded, and never again."""


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Have what is loaded, or started, meanwhile start no threads, unless the caller's environment says how many."""
    added = {name: value for name, value in ONE_THREAD.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)

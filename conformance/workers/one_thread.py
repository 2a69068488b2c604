"""One thread for NumPy's matrix products, in onnxspec's own processes.

OpenBLAS in NumPy's wheels starts a thread for each processor when it is loaded, and these spin for a while: 0.13 s of a
process that then multiplies small matrices. Cases are spread over processes, so products need no threads. The
environment of a target's runtime stays unchanged.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Variables that OpenBLAS reads only while it is loaded."""


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Return a context in which NumPy starts no threads, unless the caller's environment sets their number."""
    added = {name: value for name, value in ONE_THREAD.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)

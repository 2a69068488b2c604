"""Entry point of the command ``onnxspec``. It loads nothing, so that Ctrl-C ends it without a traceback."""

from __future__ import annotations

import gc
import os
import signal

TYPE_CHECKING = False
"""A stand-in for ``typing``'s, which takes as long to load as all that is loaded here."""

if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def main() -> None:
    """Load the command line and run it."""
    # Most objects of a command are code and tables that live to its end: rare collections save a tenth of one case.
    gc.set_threshold(50_000)
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # An exception that comes up in the middle of a library of C++ can end it by a crash; and nothing is begun yet.
        signal.signal(signal.SIGINT, _end)
    from .application import main as run

    try:
        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        _end(signal.SIGINT, None)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"onnxspec: interrupted\n")
    os._exit(130)

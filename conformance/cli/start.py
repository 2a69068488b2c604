"""Where the command ``onnxspec`` begins: with nothing loaded yet, so that Ctrl-C ends it without a trace of Python."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

__all__ = ["main"]


def main() -> None:
    """Load the command line and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # An exception that comes up in the middle of a library of C++ can end it by a crash; and nothing is begun yet.
        signal.signal(signal.SIGINT, _end)
    from .application import main as run

    signal.signal(signal.SIGINT, before)
    try:
        run()
    except KeyboardInterrupt:
        _end(signal.SIGINT, None)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"onnxspec: interrupted\n")
    os._exit(130)

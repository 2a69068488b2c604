"""The start of the command ``onnxspec``: with nothing loaded yet, so that Ctrl-C ends it without a trace of Python."""

from __future__ import annotations

import gc
import os
import signal

TYPE_CHECKING = False
"""A stand-in for ``typing``'s, which takes as long to load as all that is loaded here."""

if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


_OBJECTS = 20_000
"""Objects that are made before Python looks for garbage among them: to do so after every 700 costs a long run half a
second."""


def main() -> None:
    """Load the command line and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        # An exception that comes up in the middle of a library of C++ can end it by a crash; and nothing is begun yet.
        signal.signal(signal.SIGINT, _end)
    gc.set_threshold(_OBJECTS)
    gc.disable()  # until the command is loaded: modules make a hundred thousand objects, all of which stay
    from .application import main as run

    try:
        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        _end(signal.SIGINT, None)
    finally:
        # Python looks through all that is there once more before it ends, which costs a run of one case a tenth: of
        # what is frozen nothing is looked for.
        gc.freeze()


def _end(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, b"onnxspec: interrupted\n")
    os._exit(130)

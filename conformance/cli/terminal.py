"""The one place where text reaches a terminal, a file or a pipe in its stead: nothing foreign gets through as it is.

Names, versions and messages come from targets, and from run folders that others have written. Whatever is printed
passes a console that turns unprintable characters (escapes, bells, marks that turn the direction of interpretation)
into visible ones; and what is one line of ours stays one, however many line breaks the foreign text in it has.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ..workers.worker import one_line

__all__ = ["LINE", "LastingStream", "console_on", "drop", "single"]

LINE = 2000
"""Characters of a line beyond which it is cut: texts of targets have 500 at most, several of them make a line."""

_UNWRAPPED = 100_000
_GONE = (errno.EPIPE, errno.EIO, errno.EINVAL)  # a pipe without a reader, a closed terminal, and Windows for both


def drop(stream: TextIO) -> None:
    """Send all that a stream still holds or will be given nowhere, or the interpreter would stumble over it when it
    ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class LastingStream:
    """A stream whose reader may go away (a pipe, a closed terminal): what nobody takes is dropped, work goes on.

    What cannot be written for another reason, such as a full disk, raises OSError; complaints on the standard error are
    dropped then, too.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or drop."""
        try:
            return self._stream.write(text)
        except OSError as error:
            return self._lost(error)

    def flush(self) -> None:
        """Flush, or drop."""
        try:
            self._stream.flush()
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> int:
        if error.errno not in _GONE and self._stream is not sys.stderr:
            raise error
        drop(self._stream)
        return 0


class _GuardedConsole(Console):
    """A console on which nothing but itself controls the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is printed, in which nothing unprintable is left."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.replace("\n", "").isprintable():
                yield segment
            else:
                text = "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in segment.text)
                yield Segment(text, segment.style)


def console_on(stream: TextIO) -> Console:
    """A console that colours and wraps on terminals only: files and pipes get every line whole."""
    lasting = cast(TextIO, LastingStream(stream))
    return _GuardedConsole(file=lasting, highlight=False, width=None if stream.isatty() else _UNWRAPPED)


def single(line: Text) -> Text:
    """The text as one line, printable and no longer than anybody reads; as it is, where it is that already."""
    plain = line.plain
    if len(plain) <= LINE and plain.isprintable():
        return line
    return Text(one_line(plain, LINE), line.style or (line.spans[-1].style if line.spans else ""))

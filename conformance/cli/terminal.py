"""Output to terminals, files and pipes. No foreign text passes unchanged.

Names, versions and messages come from targets, and from run folders of others. A console turns unprintable characters
(escapes, bells, marks that turn the direction of text) into visible ones, and keeps one line one line.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable
from typing import Any, NoReturn, TextIO, cast

import click.exceptions
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ..workers.worker import one_line

LINE = 2000
"""Characters of a line beyond which it is cut: texts of targets have 500 at most, several of them make a line."""

_UNWRAPPED = 100_000
_LONG_NAME = re.compile(r"(\S{200})\S{100,}")
_LONGEST_COMMAND = 8000  # characters of a line that is there to be copied, like how to go on
_GONE = (errno.EPIPE, errno.EIO, errno.EINVAL)  # a pipe without a reader, a closed terminal, and Windows for both


def drop(stream: TextIO) -> None:
    """Discard the buffered and future output of a stream, because the interpreter would fail on it at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class LastingStream:
    """Stream that discards output if its reader is gone (a pipe, a closed terminal).

    Other errors, such as a full disk, raise OSError, except on the standard error.
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
    """Console on which foreign text cannot control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield segments without unprintable characters."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.replace("\n", "").isprintable():
                yield segment
            else:
                text = "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in segment.text)
                yield Segment(text, segment.style)


def console_on(stream: TextIO) -> Console:
    """Return a console that colours and wraps on terminals only."""
    lasting = cast(TextIO, LastingStream(stream))
    return _GuardedConsole(file=lasting, highlight=False, width=None if stream.isatty() else _UNWRAPPED)


def single(line: Text, most: int = LINE) -> Text:
    """Return the text as one printable line, cut to LINE characters if it has more than `most`."""
    plain = line.plain
    if len(plain) <= most and plain.isprintable():
        return line
    margin = " " * min(len(plain) - len(plain.lstrip(" ")), 15)
    return Text(margin + one_line(plain, LINE), line.style or (line.spans[-1].style if line.spans else ""))


def say(*lines: str) -> None:
    """Print lines on the standard output, each as one printable line."""
    for line in lines:
        console_on(sys.stdout).print(single(Text(line)), soft_wrap=True)


def warn(text: str, style: str = "") -> None:
    """Print one line on the standard error, with far too long names cut."""
    text = _LONG_NAME.sub(r"\1...", text)
    console_on(sys.stderr).print(single(Text(text, style), _LONGEST_COMMAND), soft_wrap=True)


def fail(message: str, code: int = 2, lines: Iterable[str] = ()) -> NoReturn:
    """End the command with one line on the standard error, followed by `lines`."""
    warn(f"onnxspec: {message}", "red")
    for line in lines:
        warn(f"  {line}")
    raise click.exceptions.Exit(code)


def put(text: str) -> None:
    """Write output for programs. If the reader has enough, end the command."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
        raise click.exceptions.Exit(0) from None


def why(error: OSError) -> str:
    """Return the reason why a file could not be written or read."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    place = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{place}"

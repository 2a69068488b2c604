"""Start of a worker: its command, and the worker's text for an interpreter that cannot read its file.

A command has a placeholder for the worker file. ``{worker}`` is its path, for interpreters that see this machine's
files. ``{source}`` is its text, for ``python3 -c`` in a container. ``{stdin}`` is for commands behind a shell, such as
ssh, where the remote shell splits the words again: it becomes the plain words ``-m code``. The interpreter then reads a
line of Python from its standard input, and the worker is that line. It needs no quotes in any shell. A command without
a placeholder starts a program that speaks the protocol itself.

The worker file watches all processes that a command starts on this machine, and ends the remaining ones.
"""

from __future__ import annotations

import base64
import os
import re
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ..targets.target import Target
from . import worker
from .job import TargetUnavailable

PLACEHOLDERS = ("{worker}", "{source}", "{stdin}")
_CONSOLE = ("-m", "code")


class Launch(Struct, frozen=True):
    """Command, and the bytes to be written to it before anything else.

    If there are such bytes, nothing may follow them until the worker has answered, because their reader may read ahead.
    """

    command: tuple[str, ...]
    opening: bytes = b""


def variables_of(target: Target) -> dict[str, str]:
    """Return the variables of a target's process on this machine."""
    variables = {**os.environ, **target.environment}
    if target.adapter.endswith(".py") and not target.is_command:
        variables[worker.FOLDER_VARIABLE] = str(Path(target.adapter).absolute().parent)
    return variables


def launch_of(target: Target) -> Launch:
    """Return the command that starts a target's worker. Raise TargetUnavailable for an unknown placeholder."""
    path = Path(worker.__file__)
    source = path.read_text(encoding="utf-8")
    arguments: list[str] = []
    for part in target.command or (sys.executable, "{worker}"):
        if part == "{stdin}":
            arguments += _CONSOLE
            continue
        if re.fullmatch(r"\{[a-z]+\}", part) and part not in PLACEHOLDERS:
            placeholders = ", ".join(PLACEHOLDERS)
            raise TargetUnavailable(f"the command has {part}, which stands for nothing: there are {placeholders}")
        part = part.replace("{stdin}", " ".join(_CONSOLE))
        arguments.append({"{worker}": str(path), "{source}": source}.get(part, part))
    if _wants_watcher(target):
        arguments = [sys.executable, "-I", "-S", str(path), "--watch", *arguments]
    return Launch(tuple(arguments), _line(source) if reads_its_source(target.command) else b"")


def _wants_watcher(target: Target) -> bool:
    """Return whether a watcher must stand between this process and the command, which may leave processes behind.

    A worker that an interpreter runs from its file has its own watcher.
    """
    return target.is_command and os.name == "posix" and bool(sys.executable)


def reads_its_source(command: Sequence[str]) -> bool:
    """Return whether the worker travels over the standard input of a command."""
    return any("{stdin}" in part for part in command)


def _line(source: str) -> bytes:
    """Return one line of Python that runs `source` as a program."""
    packed = base64.b64encode(zlib.compress(source.encode("utf-8"), 9)).decode("ascii")
    unpacked = f"__import__('zlib').decompress(__import__('base64').b64decode('{packed}'))"
    return f"exec(compile({unpacked},'<worker>','exec'),{{'__name__':'__main__'}})\n".encode("ascii")

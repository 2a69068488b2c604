"""Options that several commands share, and their values."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from ..probes.wrapped import named_target
from ..targets.target import Target, table_names
from ..workers.pool import processors
from .terminal import fail

PATH = click.Path(path_type=Path)
CORES = processors()

profile_option = click.option(
    "--profile",
    "-p",
    metavar="NAME",
    default="core",
    help="smoke, core, full or quantized [default: core].",
)
op_option = click.option(
    "--op", metavar="OP[-VERSION]", multiple=True, help="Only this operator, e.g. GRU or GRU-22; repeatable."
)
type_option = click.option(
    "--type",
    metavar="TYPE",
    multiple=True,
    help="Only float16, bfloat16, float32 or float64; repeatable.",
)
case_option = click.option(
    "--case",
    metavar="CASE",
    multiple=True,
    help="Only this id (* and ?: wildcards), JSON (list --json), test-case folder (./DIR), or @FILE of those; "
    "repeatable.",
)
targets_file_option = click.option(
    "--targets-file", metavar="FILE", type=PATH, help="Named targets [default: ./targets.toml]."
)
runs_argument = click.argument("runs", metavar="RUN...", type=PATH, nargs=-1, required=True)


def require_writable(path: Path) -> None:
    """End the command if a file cannot be written there."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        fail(f"cannot write {path}: {'it is a folder' if path.is_dir() else 'there is no such folder'}")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        fail(f"cannot write {path}: no permission")


def folder_named(text: str) -> Path:
    """Parse the name of a folder. An empty one comes from an unset variable of a script."""
    if not text:
        raise click.BadParameter("the name of a folder is empty")
    return Path(text)


def command_given() -> tuple[str, ...]:
    """Return the words of the command, in UTF-8 in any locale."""
    return "onnxspec", *(os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:])


def target_called(name: str, file: Path | None) -> Target:
    """Return the target of a name, with the tables of ``file`` or ``./targets.toml``. Raise TargetError."""
    return named_target(name, file or _own_file())


def targets_of(names: Iterable[str], file: Path | None) -> list[Target]:
    """Return the targets of these names, each once; ``*`` and ``?`` match names of the tables. Raise TargetError."""
    file = file or _own_file()
    by_name = {}
    for name in names:
        tables = table_names(file) if file is not None and not {"*", "?"}.isdisjoint(name) else []
        for match in fnmatch.filter(tables, name) or [name]:
            target = named_target(match, file)
            by_name[target.name] = target
    return list(by_name.values())


def _own_file() -> Path | None:
    path = Path("targets.toml")
    return path if path.is_file() else None

"""What the commands have in common: the application, the options that several take, and how they speak."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, NoReturn, Optional

import typer

from .display import console_on, drop
from .selection import Selection, version_numbers
from .target import Target
from .worker import one_line
from .wrap_probe import named_target

__all__ = ["CaseIds", "Ops", "ProfileName", "Targets", "TargetsFile", "Types", "Versions", "app", "command_given"]
__all__ += ["fail", "put", "say", "selection_of", "targets_of", "warn", "why"]

app = typer.Typer(
    name="onnxspec",
    help="Does this runtime compute what the operator's document says, on every legal configuration?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_LONGEST_LINE = 2000

Targets = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates it on Python 3.10
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="onnxruntime (the default), onnxruntime:NAMEExecutionProvider, openvino, tract, quark, onnx-reference, "
        "backend:package.module, or a name from targets.toml. May be repeated, like all options that narrow the cases.",
    ),
]
ProfileName = Annotated[
    str, typer.Option("--profile", "-p", metavar="smoke|core|full", help="Which pinned list of cases.")
]
Ops = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--op", metavar="OP", help="Only this operator, e.g. LSTM."),
]
Versions = Annotated[
    Optional[list[str]],  # noqa: UP045 - texts, so that one that is no number is answered like one that is unknown
    typer.Option("--since-version", metavar="N", help="Only this operator version, e.g. 14."),
]
Types = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--type", metavar="TYPE", help="Only this type: float16, bfloat16, float32, float64."),
]
CaseIds = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--case", metavar="ID", help="Only this case, of any profile; * and ? are wildcards."),
]
TargetsFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--targets-file", metavar="FILE", help="Named targets; ./targets.toml where there is one."),
]


def say(text: str = "") -> None:
    """A line for the person, on the standard output."""
    console_on(sys.stdout).print(text, markup=False, emoji=False, soft_wrap=True)


def warn(text: str, style: str = "") -> None:
    """One line on the standard error."""
    line = text if text.isprintable() else one_line(text, _LONGEST_LINE)
    console_on(sys.stderr).print(line, style=style, markup=False, emoji=False, soft_wrap=True)


def fail(message: str, code: int = 2) -> NoReturn:
    """End the command with one line on the standard error."""
    warn(f"onnxspec: {message}", "red")
    raise typer.Exit(code)


def put(text: str) -> None:
    """Write what a program may read. A reader that has enough ends the command, without a word."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
        raise typer.Exit from None


def why(error: OSError) -> str:
    """What could not be written, in words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    place = f" ({error.filename})" if error.filename else ""
    return f"cannot write: {error.strerror or error}{place}"


def command_given() -> tuple[str, ...]:
    """The command as it was given, in UTF-8 whatever the locale took its bytes for."""
    return "onnxspec", *(os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:])


def selection_of(
    profile: str,
    op: Sequence[str] | None,
    since_version: Sequence[str] | None,
    type: Sequence[str] | None,
    case: Sequence[str] | None,
) -> Selection:
    """What the options that narrow cases leave. Raises UnknownName for a version that is no number."""
    return Selection(
        profile, tuple(op or ()), version_numbers(since_version or ()), tuple(type or ()), tuple(case or ())
    )


def targets_of(names: Iterable[str], file: Path | None, optimize: bool = False, wrap: str = "") -> list[Target]:
    """The targets of these names, each once. A name may ask for a lane itself, as results name it."""
    if file is None and Path("targets.toml").is_file():
        file = Path("targets.toml")
    found = {}
    for name in names:
        target = named_target(name, file, optimize, wrap)
        found[target.name] = target
    return list(found.values())

"""Things that commands have in common: the options that several take, and what these ask for."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ..probes.wrapped import named_target
from ..targets.target import Target
from ..workers.job import ClusterError
from ..workers.pool import processors
from ..workers.process import TargetProcess
from . import completion
from .terminal import fail

Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="onnxruntime (the default), onnxruntime:NAMEExecutionProvider, openvino, tract, quark, onnx-reference, "
        "backend:package.module, or a name from targets.toml.",
        autocompletion=completion.targets,
    ),
]
ProfileName = Annotated[
    str,
    typer.Option(
        "--profile",
        "-p",
        metavar="smoke|core|full|quantized",
        help="Which pinned list of cases.",
        autocompletion=completion.profiles,
    ),
]
Ops = Annotated[
    list[str] | None,
    typer.Option("--op", metavar="OP", help="Only this operator, e.g. LSTM.", autocompletion=completion.operators),
]
Versions = Annotated[
    list[str] | None,  # texts, so that one that is no number is answered like one that is unknown
    typer.Option(
        "--since-version",
        metavar="N",
        help="Only this operator version: the opset that brought it, e.g. 14.",
        autocompletion=completion.versions,
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Only this type: float16, bfloat16, float32, float64.",
        autocompletion=completion.types,
    ),
]
CaseIds = Annotated[
    list[str] | None,
    typer.Option(
        "--case",
        metavar="CASE",
        help="Only this case, of any profile: its id, in which * and ? are wildcards; its JSON (see list --json); a "
        "test-case directory (./DIR); or @FILE, a file of such lines.",
        autocompletion=completion.cases,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the machines of a Dask cluster, tls://HOST:PORT; or on all processors of this one: local.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs", "-j", metavar="N", min=1, max=1024, help="How many processes share the work; all cores without."
    ),
]
CORES = processors()
Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders that 'onnxspec run' has written.")]
TargetsFile = Annotated[
    Path | None,
    typer.Option("--targets-file", metavar="FILE", help="Named targets; ./targets.toml where there is one."),
]


def by_noun(command: Callable[..., None]) -> Callable[..., None]:
    """The command with options in place of parameters that are dataclasses: one for each of their fields, in a section
    of the help that the dataclass names (``panel``)."""
    kinds = get_type_hints(command, include_extras=True)
    kinds.pop("return", None)
    nouns: dict[str, Any] = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}
    keyword = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    options = [keyword(name, annotation=kind) for name, kind in kinds.items() if name not in nouns]
    for kind in nouns.values():
        hints = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            option = _in_panel(hints[field.name], kind.panel)
            options.append(keyword(field.name, default=field.default, annotation=option))

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        for name, kind in nouns.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    with_options.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    with_options.__annotations__ = {option.name: option.annotation for option in options}
    return with_options


def _in_panel(hint: Any, panel: str) -> Any:
    """The type of an option, with the section of the help that it stands in."""
    option = copy(hint.__metadata__[0])
    option.rich_help_panel = panel
    return Annotated[hint.__origin__, option]


def place_given(out: Path | None, what: str) -> Path:
    """The file or folder that ``--out`` names. Ends the command where none is: not every version of typer does."""
    if out is None:
        fail(f"--out is missing: which {what} to go to?")
    return out


def folder_named(text: str) -> Path:
    """A folder as an option names it: an empty name is what a variable of a script leaves that is not set."""
    if not text:
        raise typer.BadParameter("the name of a folder is empty")
    return Path(text)


def command_given() -> tuple[str, ...]:
    """The command as it was given, in UTF-8 whatever the locale took its bytes for."""
    return "onnxspec", *(os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:])


def targets_of(names: Iterable[str], file: Path | None, optimize: bool = False, wrap: str = "") -> list[Target]:
    """The targets of these names, each once. A name may ask for a lane itself, as results name it."""
    if file is None and Path("targets.toml").is_file():
        file = Path("targets.toml")
    by_name = {}
    for name in names:
        target = named_target(name, file, optimize, wrap)
        by_name[target.name] = target
    return list(by_name.values())


@contextlib.contextmanager
def process_at(scheduler: str | None) -> Iterator[Callable[..., TargetProcess]]:
    """The maker of a target's process: a process of its own here, or the machines of a cluster. Ends the command with
    a line where there is no such cluster."""
    if scheduler is None:
        yield TargetProcess
        return
    from ..cluster.connection import cluster_at  # which only clusters need

    with contextlib.ExitStack() as stack:
        try:
            cluster = stack.enter_context(cluster_at(scheduler))
        except ClusterError as error:
            fail(str(error), 3)
        yield cluster.process

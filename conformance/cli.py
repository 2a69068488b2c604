"""The command line: ``onnxspec run``, ``list`` and ``explain``.

Exit codes: 0, every failing result was expected; 1, at least one was not (or what is required was refused); 2, the
command cannot be carried out as given; 3, a target could not start; 130, interrupted.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer
from rich.console import Console

from ..cases import build_case, features_of
from ..reference import ACCURACY_CLASSES
from .display import RunDisplay, summarize
from .engine import Plan, execute, lane
from .expected_failures import ExpectedFailureError
from .journal import Journal, OccupiedFolder, RunMismatch, fresh_folder
from .process import Job, Outcome, TargetProcess, TargetUnavailable
from .selection import Selection, UnknownName, select
from .target import Target, TargetError, parse_target
from .verdict import judge

__all__ = ["app", "main"]

app = typer.Typer(
    name="onnxspec",
    help="Does this runtime compute what the operator's document says, on every legal configuration?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

_console = Console(highlight=False)
_errors = Console(stderr=True, highlight=False)

Targets = Annotated[
    Optional[list[str]],  # noqa: UP007, UP045 - typer evaluates it on Python 3.10
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="onnxruntime, onnxruntime:NAMEExecutionProvider, onnx-reference, backend:package.module, or a name from "
        "targets.toml. May be repeated.",
    ),
]
ProfileName = Annotated[str, typer.Option("--profile", "-p", metavar="smoke|core|full", help="Which pinned list of cases.")]
Ops = Annotated[Optional[list[str]], typer.Option("--op", metavar="OP", help="Only this operator, e.g. LSTM.")]  # noqa: UP007, UP045
Versions = Annotated[
    Optional[list[int]],  # noqa: UP007, UP045
    typer.Option("--since-version", metavar="N", help="Only this operator version."),
]
Types = Annotated[
    Optional[list[str]],  # noqa: UP007, UP045
    typer.Option("--type", metavar="TYPE", help="Only this type: float16, bfloat16, float32, float64."),
]
CaseIds = Annotated[
    Optional[list[str]],  # noqa: UP007, UP045
    typer.Option("--case", metavar="ID", help="Only this case; * and ? are wildcards."),
]
TargetsFile = Annotated[
    Optional[Path],  # noqa: UP007, UP045
    typer.Option("--targets-file", metavar="FILE", help="Named targets; ./targets.toml where there is one."),
]


def _fail(message: str, code: int = 2) -> NoReturn:
    _errors.print(f"onnxspec: {message}", style="red", markup=False, soft_wrap=True)
    raise typer.Exit(code)


def _selection(
    profile: str,
    op: Sequence[str] | None,
    since_version: Sequence[int] | None,
    type: Sequence[str] | None,
    case: Sequence[str] | None,
) -> Selection:
    return Selection(profile, tuple(op or ()), tuple(since_version or ()), tuple(type or ()), tuple(case or ()))


def _targets(names: Sequence[str], file: Path | None) -> list[Target]:
    if file is None and Path("targets.toml").is_file():
        file = Path("targets.toml")
    return [parse_target(name, file, tuple(ACCURACY_CLASSES)) for name in dict.fromkeys(names)]


@app.command()
def run(
    target: Targets = None,
    profile: ProfileName = "core",
    op: Ops = None,
    since_version: Versions = None,
    type: Types = None,
    case: CaseIds = None,
    out: Annotated[
        Optional[Path],  # noqa: UP007, UP045
        typer.Option("--out", "-o", metavar="DIR", help="Folder for results; a fresh dated one under runs/ without it."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that the folder holds.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again in a folder that holds a run.")] = False,
    expected: Annotated[
        bool, typer.Option("--expected/--no-expected", help="Whether to use the shipped lists of known failures.")
    ] = True,
    require: Annotated[
        Optional[list[str]],  # noqa: UP007, UP045
        typer.Option("--require", metavar="OP-VERSION:TYPE", help="A refusal of this fails, e.g. LSTM-14:float32."),
    ] = None,
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Run onnxruntime with its graph optimizations on, a second lane.")
    ] = False,
    targets_file: TargetsFile = None,
) -> None:
    """Run the cases on targets, compare, and say what is wrong. Results go to a folder, with a report to read.

    Exit code 0: every failing result was expected; 1: one was not; 2: usage; 3: a target could not start.
    """
    if resume and out is None:
        _fail("--resume needs --out: which run is to go on?")
    try:
        chosen = _selection(profile, op, since_version, type, case)
        specs = select(chosen)
        targets = [lane(t, optimize) for t in _targets(target or ["onnxruntime"], targets_file)]
        required = _required(require or ())
    except (UnknownName, TargetError) as error:
        _fail(str(error))
    folder = out or fresh_folder(Path("runs"), datetime.now())
    plan = Plan(chosen, tuple(specs), tuple(targets), tuple(["onnxspec", *sys.argv[1:]]), required, expected)
    again = f"onnxspec run {' '.join(sys.argv[2:])}".strip()
    again += "" if resume else " --resume" if out else f" --out {folder} --resume"
    signal.signal(signal.SIGTERM, _interrupted)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, _interrupted)
    try:
        with Journal(folder, resume=resume, overwrite=overwrite) as journal, RunDisplay(_console, len(specs)) as display:
            finished = execute(plan, journal, display.observe)
    except (OccupiedFolder, RunMismatch, ExpectedFailureError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _silence_broken_output()
        _fail(f"interrupted; what was obtained is in {folder}; go on with: {again}", 130)
    except OSError as error:
        what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"cannot write: {error.strerror}"
        _fail(f"{what}; what was obtained is in {folder}; make room and go on with: {again}")
    summarize(finished, _console)
    _console.print()
    from ..reports import write_report  # the report needs its templates only now

    try:
        page = write_report([folder], folder / "report", warn=lambda line: _errors.print(f"warning: {line}", markup=False))
        _console.print(f"results: {folder / 'results.jsonl'}\nreport:  {page}", soft_wrap=True, markup=False)
    except OSError as error:
        _fail(f"the results are in {folder}, but the report cannot be written: {error.strerror}")
    raise typer.Exit(finished.exit_code)


def _interrupted(number: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _silence_broken_output() -> None:
    """A terminal that was closed takes no more text: send it nowhere instead of dying of it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _required(texts: Sequence[str]) -> frozenset[tuple[str, str]]:
    found = set()
    for text in texts:
        operator, colon, kind = text.partition(":")
        if not colon or "-" not in operator:
            raise UnknownName("requirement", text, ["LSTM-14:float32"])
        op, _, version = operator.rpartition("-")
        select(Selection("smoke", (op,), (int(version) if version.isdigit() else -1,), (kind,)))
        found.add((operator, kind))
    return frozenset(found)


@app.command(name="list")
def list_cases(
    profile: ProfileName = "core",
    op: Ops = None,
    since_version: Versions = None,
    type: Types = None,
    case: CaseIds = None,
    features: Annotated[bool, typer.Option("--features", help="Show what each case contains.")] = False,
) -> None:
    """List the cases of a profile, one a line."""
    try:
        specs = select(_selection(profile, op, since_version, type, case))
    except UnknownName as error:
        _fail(str(error))
    for spec in specs:
        typer.echo(f"{spec.id}  {' '.join(sorted(features_of(spec)))}" if features else spec.id)
    _errors.print(f"{len(specs)} cases", style="dim")


@app.command()
def explain(
    case: Annotated[str, typer.Argument(metavar="CASE", help="Case id; a unique beginning of one is enough.")],
    target: Annotated[
        Optional[str],  # noqa: UP007, UP045
        typer.Option("--target", "-t", metavar="TARGET", help="Show what this target returns beside what is expected."),
    ] = None,
    emit: Annotated[
        Optional[str],  # noqa: UP007, UP045
        typer.Option("--emit", metavar="script", help="Write a script that needs only onnx, NumPy and the runtime."),
    ] = None,
    targets_file: TargetsFile = None,
) -> None:
    """Show one case: its node, its clauses, and the expected gates step by step beside what a target returned."""
    try:
        specs = select(Selection(cases=(case,)))
    except UnknownName as unknown:
        try:
            specs = select(Selection(cases=(f"{case}*",)))
        except UnknownName:
            _fail(str(unknown))
    try:
        chosen = _targets([target], targets_file)[0] if target else None
    except TargetError as error:
        _fail(str(error))
    if len(specs) > 1:
        _fail(f"{len(specs)} cases begin like {case!r}: {', '.join(s.id for s in specs[:3])}, ...")
    built = build_case(specs[0])
    if emit is not None:
        if emit != "script":
            _fail(f"unknown form {emit!r} of --emit; there is: script")
        from .script import script_of

        typer.echo(script_of(built, chosen), nl=False)
        return
    outcomes: list[Outcome | None] = [None, None]
    if chosen is not None:
        jobs = [Job(t.key, t.model, tuple(f.fed for f in t.feeds)) for t in (built.trial, built.twin) if t]
        try:
            with TargetProcess(chosen) as process:
                process.start()
                outcomes[: len(jobs)] = list(process.run(jobs))
        except TargetUnavailable as error:
            _fail(f"{chosen.name} could not start: {error}", 3)
    from .explanation import explain as explain_case

    first, twin = outcomes
    judgement = judge(built, first, twin, chosen.accuracy) if first is not None and chosen is not None else None
    explain_case(built, first, twin, judgement, _console)


def main() -> None:
    """Entry point of the command ``onnxspec``."""
    app()

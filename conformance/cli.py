"""The command line: ``onnxspec run``, ``list`` and ``explain``.

Exit codes: 0, every failing result was expected; 1, at least one was not (or what is required was refused); 2, the
command cannot be carried out as given; 3, a target could not start; 130, interrupted.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer

from ..cases.directory import DirectoryError
from ..reference import OPERATORS
from .command import (
    CaseIds,
    Ops,
    ProfileName,
    Targets,
    TargetsFile,
    Types,
    Versions,
    app,
    command_given,
    fail,
    put,
    say,
    selection_of,
    targets_of,
    warn,
    why,
)
from .directory_probe import digest_of_directories, probe_directories
from .display import RunDisplay, cases_counted, console_on, drop, summarize
from .engine import execute
from .environment import version_of
from .expected_failures import ExpectedFailureError
from .expected_update import require_lists, update_lists
from .journal import Journal, OccupiedFolder, RunMismatch, fresh_folder
from .probe import Probe
from .run import Plan, Run
from .selection import UnknownName, narrow, operator_types, select_probes
from .shard import ShardError, parse_shard
from .target import TargetError
from .wrap_probe import WRAPS

__all__ = ["app", "main"]

# Typer has the class of all usage errors, but under no name of its own.
_USAGE: Any = typer.BadParameter.__base__


def _print_version(asked: bool) -> None:
    if asked:
        say(f"onnxspec {version_of('onnxspec') or 'unknown'}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    context: typer.Context,
    target: Targets = None,
    profile: ProfileName = "core",
    op: Ops = None,
    since_version: Versions = None,
    type: Types = None,
    case: CaseIds = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", metavar="DIR", help="Folder for results; without it a fresh one under runs/."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that the folder holds.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again in a folder that holds a run.")] = False,
    expected: Annotated[
        bool, typer.Option("--expected/--no-expected", help="Whether to use lists of known failures.")
    ] = True,
    expected_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--expected-file", metavar="FILE", help="Known failures, in place of the shipped list."),
    ] = None,
    update_expected: Annotated[
        bool,
        typer.Option("--update-expected", help="Write what fails now into the target's own list of known failures."),
    ] = False,
    shard: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--shard", metavar="K/N", help="Only part K of N; 'onnxspec merge' puts the parts together."),
    ] = None,
    require: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--require", metavar="OP-VERSION:TYPE", help="A refusal of this fails, e.g. LSTM-14:float32."),
    ] = None,
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Run onnxruntime with its graph optimizations on, a second lane.")
    ] = False,
    wrap: Annotated[
        str,
        typer.Option("--wrap", metavar="|".join(WRAPS), help="Run the node in surroundings: some claim no lone node."),
    ] = "",
    targets_file: TargetsFile = None,
    cases: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option("--cases", metavar="DIR", help="Run the ONNX test-case directories there, not a profile."),
    ] = None,
) -> None:
    """Run the cases on targets, compare, and say what is wrong. Results go to a folder, with a report to read.

    Exit code 0: every failing result was expected; 1: one was not; 2: usage; 3: a target could not start.
    """
    if resume and overwrite:
        fail("--resume goes on with a run, --overwrite starts again: which is it?")
    if resume and out is None:
        fail("--resume needs --out: which run is to go on?")
    if not expected and (expected_file or update_expected):
        fail("--no-expected uses no list of known failures: leave it out, or leave out what names one")
    if wrap and wrap not in WRAPS:
        fail(f"there is no wrap {wrap!r}; one of {', '.join(WRAPS)}")
    try:
        chosen = selection_of(profile, op, since_version, type, case)
        targets = targets_of(target or ["onnxruntime"], targets_file, optimize, wrap)
        if expected_file is not None:
            targets = [replace(each, expected=str(expected_file)) for each in targets]
        if update_expected:
            require_lists(targets)
        plan = Plan(chosen, (), tuple(targets), command_given(), frozenset(), expected, targets_file)
        if cases:
            source = getattr(context.get_parameter_source("profile"), "name", "")
            if source == "COMMANDLINE":
                fail("--cases runs directories in place of a profile: leave --profile out")
            plan = _with_directories(plan, cases)
        else:
            about = dict.fromkeys(op for each in targets for op in each.operators)
            plan = replace(plan, everything=tuple(select_probes(chosen, tuple(about))))
        _require_cases(plan)
        plan = replace(plan, shard=parse_shard(shard) if shard is not None else None)
        if not plan.probes:
            fail(f"shard {plan.shard} is empty: there are fewer cases than shards")
        plan = replace(plan, require=_required(require or (), plan.probes))
    except (UnknownName, TargetError, DirectoryError, ShardError, ExpectedFailureError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"--update-expected: {why(error)}")
    try:
        folder = out or fresh_folder(Path("runs"), datetime.now())
        journal = Journal(folder, resume=resume, overwrite=overwrite)
    except OccupiedFolder as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot keep results in {out or 'runs'}: {why(error)}")
    if resume and not journal.done and journal.described() is None:
        warn(f"nothing to go on with in {folder}: a new run starts", "dim")
    _carry_out(plan, journal, update_expected)


def _require_cases(plan: Plan) -> None:
    """Make sure that every target gets something to run: a run of nothing would pass in silence."""
    for target in plan.targets:
        if plan.probes_of(target):
            continue
        if target.wrap:
            fail(f"none of the chosen cases can be put in the wrap {target.wrap!r}: choose others, or leave it out")
        of = " or ".join(target.operators)
        fail(f"none of the chosen cases is about {of}, which {target.name} is for: choose some, or leave it out")


def _with_directories(plan: Plan, roots: Sequence[Path]) -> Plan:
    """The plan with what is at or below folders. What cannot be run is said in a line each."""
    skipped: list[str] = []
    found = probe_directories(roots, skipped.append)
    for line in skipped:
        warn(f"skipped: {line}", "yellow")
    if not found:
        fail(f"no test case that can be run in {', '.join(map(str, roots))}")
    chosen = replace(plan.selection, profile="directories", directories=tuple(map(str, roots)))
    probes = tuple(narrow(chosen, found))
    digest = digest_of_directories(found)
    return replace(plan, selection=chosen, everything=probes, digest=digest, skipped=tuple(skipped))


def _carry_out(plan: Plan, journal: Journal, update: bool = False) -> NoReturn:
    """Run, report and say what was found; whatever ends it early, say how to go on."""
    folder = journal.folder
    finished: Run | None = None
    console = console_on(sys.stdout)
    try:
        with journal, _interrupted_by_signals():
            with RunDisplay(console, plan) as display:
                finished = execute(plan, journal, display.observe)
            from ..reports import write_report  # the report needs its templates only now

            page = write_report([folder], folder / "report", warn=lambda line: warn(f"warning: {line}"))
    except (RunMismatch, ExpectedFailureError, DirectoryError) as error:
        fail(str(error))
    except KeyboardInterrupt:
        fail(f"interrupted; what was obtained is in {folder}; go on with: {_again(plan, folder)}", 130)
    except OSError as error:
        if finished is not None:
            summarize(finished, console)
        fail(f"{why(error)}; what was obtained is in {folder}; go on with: {_again(plan, folder)}")
    summarize(finished, console)
    if update:
        try:
            for line in update_lists(finished):
                say(line)
        except (ExpectedFailureError, OSError) as error:
            fail(str(error) if isinstance(error, ExpectedFailureError) else why(error))
    say(f"\nresults: {folder / 'results.jsonl'}\nreport:  {page}")
    raise typer.Exit(finished.exit_code)


def _again(plan: Plan, folder: Path) -> str:
    """The command that goes on with a run."""
    given = [word for word in plan.command[2:] if word not in ("--resume", "--overwrite")]
    named = any(word in ("--out", "-o") or word.startswith(("--out=", "-o")) for word in given)
    return shlex.join(["onnxspec", "run", *given, *([] if named else ["--out", str(folder)]), "--resume"])


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Have SIGTERM and a closed terminal end a run as Ctrl-C does, unless who started it had them ignored (nohup)."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _interrupted)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupted(number: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


def _required(texts: Sequence[str], probes: Iterable[Probe]) -> frozenset[tuple[str, str]]:
    """Operator versions with types. Raises UnknownName for one that does not exist or that no case is about: what is
    required and never tried would pass in silence."""
    there = {f"{probe.op}-{probe.version}:{probe.type}" for probe in probes}
    found = set()
    for text in texts:
        if text not in operator_types():
            raise UnknownName("requirement", text, operator_types())
        if text not in there:
            raise UnknownName("requirement", text, sorted(there), " among the selected cases")
        operator, _, kind = text.partition(":")
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
        probes = select_probes(selection_of(profile, op, since_version, type, case), OPERATORS)
    except UnknownName as error:
        fail(str(error))
    put("".join(f"{p.id}  {' '.join(sorted(p.features))}\n" if features else f"{p.id}\n" for p in probes))
    warn(cases_counted(len(probes)), "dim")


def main() -> None:
    """Entry point of the command ``onnxspec``."""
    # What is closed (">&-") is nowhere; it stays open as long as the process.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except _USAGE as error:
        place = error.ctx.command_path if error.ctx is not None else "onnxspec"
        warn(f"{place}: {error.format_message()} See {place} --help.", "red")
        code = error.exit_code
    except typer.Abort:
        code = 130
    except OSError as error:
        if error.filename is not None:
            raise
        drop(sys.stdout)  # nothing but the standard output has no name
        warn(f"onnxspec: {why(error)}", "red")
        code = 2
    sys.exit(code if sys.argv[1:] else 2)


from . import clauses_cli as _clauses_cli  # noqa: E402, F401 - its command belongs to the same app
from . import directories_cli as _directories_cli  # noqa: E402, F401
from . import explain_cli as _explain_cli  # noqa: E402, F401
from . import merge_cli as _merge_cli  # noqa: E402, F401
from . import prove_cli as _prove_cli  # noqa: E402, F401
from . import quantize_cli as _quantize_cli  # noqa: E402, F401
from . import report_cli as _report_cli  # noqa: E402, F401
from . import targets_cli as _targets_cli  # noqa: E402, F401

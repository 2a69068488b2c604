"""``onnxspec merge``: shards of a run, or runs of several targets, as one run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn, Optional

import typer

from .command import app, command_given, fail, say, warn, why
from .directories_cli import options_of
from .display import console_on, summarize
from .journal import OccupiedFolder
from .merge import MergeError
from .merge import merge as merge_runs
from .run import Run

__all__ = ["merge"]


@app.command()
def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders that 'onnxspec run' has written.")],
    to: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--to", metavar="DIR", help="Folder for the merged run; required."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again in a folder that holds a run.")] = False,
) -> NoReturn:
    """Put the shards of a run together, or several runs.

    Several runs are of other targets with the same cases. Findings are worked out anew, and there is a report.
    Runs that do not belong together are refused. Cases that no run has can be had with 'onnxspec run --resume' in
    the merged folder.

    Exit code as that of 'onnxspec run': 0: every failing result was expected; 1: one was not; 2: the runs cannot be
    merged; 3: a target could not start.
    """
    if to is None:  # not every version of typer sees to it
        fail("--to is missing: which folder is the merged run to go to?")
    try:
        run = merge_runs(runs, to, overwrite=overwrite, command=command_given())
        from ..reports import write_report  # the report needs its templates only now

        page = write_report([to], to / "report", warn=lambda line: warn(f"warning: {line}"))
    except (MergeError, OccupiedFolder) as error:
        fail(str(error))
    except OSError as error:
        fail(why(error))
    for line in _missing(run):
        warn(line)
    summarize(run, console_on(sys.stdout))
    say(f"\nresults: {to / 'results.jsonl'}\nreport:  {page}")
    raise typer.Exit(run.exit_code)


def _missing(run: Run) -> Iterator[str]:
    """What targets lack, and how to have it."""
    for of in run.targets:
        due = len(run.plan.probes_of(of.target))
        if len(of.results) < due:
            yield f"{of.target.name} lacks {due - len(of.results)} of {due} cases"
    if not run.complete:
        plan = run.plan
        words = [word for target in plan.targets for word in ("--target", target.name)]
        words += [*options_of(plan.selection), *([] if plan.expected else ["--no-expected"])]
        yield f"to have them: {shlex.join(['onnxspec', 'run', *words, '--resume', '--out', str(run.folder)])}"

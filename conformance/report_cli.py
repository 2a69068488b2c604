"""``onnxspec report``: one report on several runs, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from .command import app, fail, say, warn, why

__all__ = ["report"]


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders that 'onnxspec run' has written.")],
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", metavar="DIR", help="Folder for the report; required."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the report that the folder holds; other files stay.")
    ] = False,
) -> None:
    """Put several runs side by side in one report.

    They may be of other targets or other versions, of yesterday and today. The report holds all that it needs
    and can be moved or sent. What is amiss with a run is said in one line; the rest is reported.

    Exit code 0: every run is in the report; 1: at least one had to be left out; 2: usage, or none can be read.
    """
    from ..reports import read_runs, report_on  # the report needs its templates only now

    if out is None:  # not every version of typer sees to it
        fail("--out is missing: which folder is the report to go to?")
    try:
        occupied = out.exists() and (not out.is_dir() or any(out.iterdir()))
    except OSError as error:
        fail(why(error))
    if occupied and not out.is_dir():
        fail(f"{out} is no folder")
    if occupied and not overwrite:
        what = "already holds a report" if (out / "index.html").is_file() else "holds other things"
        fail(f"{out} {what}: give a new folder, or replace the report in it with --overwrite")
    readable, problems = read_runs(runs)
    for problem in problems:
        warn(f"warning: {problem}")
    if not readable:
        fail("no run could be read, so there is nothing to report")
    try:
        page = report_on(readable, problems, out)
    except OSError as error:
        fail(why(error))
    results = sum(len(run.results) for run in readable)
    say(f"{len(readable)} run{'' if len(readable) == 1 else 's'}, {results:,} results")
    say(f"report: {page}")
    raise typer.Exit(int(len(readable) < len(runs)))

"""``onnxspec merge``: shards of a run as one run."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click

from ..running.merge import merge as merge_runs
from ..running.run import Run
from .command import PATH, command_given, runs_argument
from .directories import options_of
from .display import summarize
from .terminal import console_on, fail, say, warn, why


@click.command()
@runs_argument
@click.option("--out", "-o", metavar="DIR", type=PATH, required=True, help="Folder for the merged run.")
def merge(runs: Sequence[Path], out: Path) -> NoReturn:
    """Merge the shards of a run.

    Findings are computed from all results, and there is a report. Runs of other cases or targets are refused. Missing
    cases can be run with 'onnxspec run --resume' in the merged folder.

    Exit code as that of 'onnxspec run': 0: every failing result was expected; 1: one was not, or the runs together lack
    some of what they were to run; 2: the runs cannot be merged; 3: a target could not start.
    """
    try:
        run = merge_runs(runs, out, command=command_given())
        from ...reports.page import write_report  # the report needs its templates only now

        page = write_report([out], out / "report", warn=lambda line: warn(f"warning: {line}"))
    except OSError as error:
        fail(why(error))
    for line in (*run.problems, *_missing(run)):
        warn(line)
    summarize(run, console_on(sys.stdout))
    say("", f"results: {out / 'results.jsonl'}", f"report:  {page}")
    raise click.exceptions.Exit(run.exit_code)


def _missing(run: Run) -> Iterator[str]:
    """Yield lines about missing cases, and the command that runs them."""
    if not run.targets:
        yield "no run has a target, so there is no result at all"
    for of in run.targets:
        planned = len(run.plan.probes_of(of.target))
        if len(of.results) < planned:
            yield f"{of.target.name} lacks {planned - len(of.results)} of {planned} cases"
    if run.targets and not run.complete:
        plan = run.plan
        words = [word for target in plan.targets for word in ("--target", target.name)]
        words += [*options_of(plan.selection), *([] if plan.expected else ["--expected", "none"])]
        yield f"to have them: {shlex.join(['onnxspec', 'run', *words, '--resume', '--out', str(run.folder)])}"

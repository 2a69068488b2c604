"""``onnxspec report`` puts runs side by side, ``diff`` compares two, ``site`` shows runtimes and releases."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..text import plural
from .command import PATH, command_given, runs_argument
from .terminal import fail, put, say, warn, why

if TYPE_CHECKING:
    from ...reports.run import Run


@click.command()
@runs_argument
@click.option("--out", "-o", metavar="DIR", type=PATH, help="Folder for the report; an earlier one is replaced.")
@click.option(
    "--issue",
    metavar="FINDING",
    help="Write one finding as an issue for the runtime's maintainers instead, to --out or standard output. "
    "FINDING: its number on the page, the beginning of its title, or its smallest case.",
)
def report(runs: Sequence[Path], out: Path | None, issue: str | None) -> None:
    """Write one report of several runs.

    Runs may be of different targets, versions or days. The report can be moved or sent. Runs that cannot be read are
    left out, with a line each.

    Exit code 0: every run is in the report; 1: at least one had to be left out; 2: bad arguments, or none can be read.
    """
    from ...reports.page import report_on  # the report needs its templates only now
    from ...reports.run import read_runs

    if issue is None and out is None:
        fail("--out is missing: give the folder for the report")
    readable, problems = read_runs(runs)
    for problem in problems:
        warn(f"warning: {problem}")
    if issue is not None:
        _write_issue(readable, issue, out)
        return
    assert out is not None  # asked for above
    if out.exists() and not out.is_dir():
        fail(f"{out} is no folder")
    if not readable:
        fail("no run could be read, so there is nothing to report")
    try:
        index = out / "index.html"
        if out.is_dir() and any(out.iterdir()) and not (index.is_file() and b"onnxspec" in index.read_bytes()):
            fail(f"{out} contains something other than a report: give a new folder")
        page = report_on(readable, problems, out)
    except OSError as error:
        fail(why(error))
    results = sum(len(run.results) for run in readable)
    say(f"{plural(len(readable), 'run')}, {plural(results, 'result')}", f"report: {page}")
    raise click.exceptions.Exit(int(len(readable) < len(runs)))


def _write_issue(runs: Sequence[Run], named: str, out: Path | None) -> None:
    """Write an issue on a finding. Raise UserError if there is none."""
    from ...reports.upstream.issue import issue_markdown

    try:
        text = issue_markdown(runs, named)
        if out is None:
            put(text)
            return
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        fail(why(error))
    say(f"issue: {out}")


@click.command()
@runs_argument
@click.option(
    "--out", "-o", metavar="DIR", type=PATH, required=True, help="Folder for the site; an earlier one is replaced."
)
def site(runs: Sequence[Path], out: Path) -> None:
    """Write a static site: what each runtime computes correctly, and since which release.

    Give it runs of several runtimes, and of several releases of each. The site needs no server, and has badges.

    Exit code 0: every run is on the site; 1: something was left out; 2: bad arguments, or none can be
    read.
    """
    from ...reports.run import read_runs
    from ...reports.site.writing import write_site

    readable, problems = read_runs(runs)
    if not readable:
        fail(" ".join(problems) or "no run could be read, so there is nothing to show")
    try:
        # The command for the first page, without folders of this machine.
        command = shlex.join(Path(word).name if Path(word).is_absolute() else word for word in command_given())
        page, remarks = write_site(readable, out, command)
    except OSError as error:
        fail(why(error))
    for problem in (*problems, *remarks):
        warn(f"warning: {problem}")
    say(f"site: {page}")
    raise click.exceptions.Exit(int(bool(remarks) or len(readable) < len(runs)))


@click.command()
@click.argument("old", metavar="OLD", type=PATH, required=True)
@click.argument("new", metavar="NEW", type=PATH, required=True)
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(("text", "markdown")),
    default="text",
    show_default=True,
    help="Output format.",
)
def diff(old: Path, new: Path, form: str) -> None:
    """Compare two runs: what got worse, better or otherwise different.

    Targets of the same name are compared, or the only target of each run. Cases that only one run has are listed
    apart and decide nothing.

    Exit code 0: nothing got worse; 1: a case broke, one is no longer supported, or accuracy has a wider grade;
    2: bad arguments, or a run cannot be read.
    """
    from ...reports.comparison import compare
    from ...reports.run import read_run

    comparison = compare(read_run(old), read_run(new))
    if not comparison.targets:
        fail(
            f"the runs have no target in common: {', '.join(comparison.only_old) or 'none'} in {old}, "
            f"{', '.join(comparison.only_new) or 'none'} in {new}"
        )
    if form == "markdown":
        from ...reports.templates import markdown_of

        text = markdown_of("difference.md", comparison=comparison)
    else:
        from ...reports.templates import text_of

        text = text_of("difference.md", comparison=comparison)
    put(text)
    raise click.exceptions.Exit(int(comparison.worse))

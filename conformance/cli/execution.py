"""A run of a command: progress, files, summary, and how to resume it."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click.exceptions

from ..probes.drawn import fresh_profile
from ..results.sections import sections_of, summary_text
from ..results.writer import RunWriter, fresh_folder
from ..running.conclusion import summary_on
from ..running.engine import execute
from ..running.run import Plan, Run, TargetRun
from ..text import listed, plural
from ..workers.worker import one_line
from .display import STALE, RunDisplay, could_not_start, problems_of, summarize
from .terminal import LINE, console_on, drop, fail, progress_lines, say, warn, why

if TYPE_CHECKING:
    from ...reports.run import Run as ReadRun
    from ..cluster.connection import Cluster
    from ..extraction.cases import NodeCase


_NUMBERED = 10  # findings


def fresh_run() -> Path:
    """Make a new folder for a run. End the command if that fails."""
    try:
        return fresh_folder(Path("runs"), datetime.now())
    except OSError as error:
        fail(f"cannot keep results in runs: {why(error)}")


def execute_plan(
    plan: Plan,
    folder: Path,
    nodes: Sequence[NodeCase] = (),
    cluster: Cluster | None = None,
    *,
    junit: Path | None = None,
    quiet: bool = False,
    resume: bool = False,
    named: bool = True,
    update: bool = False,
) -> NoReturn:
    """Run a plan here or on a cluster, and report. If it is interrupted, print how to resume it. Raise click's Exit.

    nodes
        The recurrent nodes, for a model.
    named
        Whether the user named the folder: then it stays for --resume, though no target is installed.
    update
        Whether the targets' lists of known failures are updated.
    """
    # A terminal has a bar; and a case of a profile takes no time to speak of, while one node of a model may.
    with progress_lines(silent=quiet or not nodes or sys.stdout.isatty()) as progress:
        progress(f"running and judging {plural(len(plan.probes))} on {listed([t.name for t in plan.targets])}")
        finished, page, issues = _finished(plan, folder, cluster, junit, quiet=quiet, resume=resume, named=named)
    summarize(finished, console_on(sys.stdout), only_new=quiet)
    if nodes and not quiet:
        from .nodes import say_nodes

        say_nodes(nodes, finished, console_on(sys.stdout))
    if update:
        from ..running.expected_update import update_lists

        try:
            for line in update_lists(finished):
                (warn if quiet else say)(line)
        except OSError as error:
            fail(why(error))
    if on_github():
        for line in github_marks(finished):
            say(line)
    if not quiet:
        say("", f"results: {folder / 'results.jsonl'}", f"report:  {page}", *issues)
    raise click.exceptions.Exit(finished.exit_code or int(any(node.why and not node.members for node in nodes)))


def _finished(
    plan: Plan, folder: Path, cluster: Cluster | None, junit: Path | None, *, quiet: bool, resume: bool, named: bool
) -> tuple[Run, Path, list[str]]:
    """Return the finished run, its page, and lines on how to write issues.

    End the command if it is interrupted or the disk is full.
    """
    obtained = f"what was obtained is in {folder}"
    if plan.draws is None:
        obtained += f"; go on with: {_again(plan, folder)}"
    finished: Run | None = None
    try:
        with _interrupted_by_signals():
            finished = _executed(plan, folder, cluster, quiet=quiet, resume=resume)
            _require_a_target(finished, named)
            from ...reports.page import report_on
            from ...reports.run import read_runs

            runs, problems = read_runs([folder])
            for problem in problems:
                warn(f"warning: {problem}")
            page = report_on(runs, problems, folder / "report")
            write_files(finished, junit)
            return finished, page, list(_issues(runs, folder)) if any(t.unexpected for t in finished.targets) else []
    except KeyboardInterrupt:
        fail(f"interrupted; {obtained}", 130)
    except OSError as error:
        if finished is not None:
            summarize(finished, console_on(sys.stdout))
        try:
            sys.stdout.flush()
        except OSError:
            drop(sys.stdout)
        fail(f"{why(error)}; {obtained}")


def _executed(plan: Plan, folder: Path, cluster: Cluster | None, *, quiet: bool, resume: bool) -> Run:
    """Run a plan into a folder, with progress. End the command if the folder cannot be opened."""
    if cluster is not None:
        from ..cluster.connection import ClusterError
        from ..cluster.shards import run_shards

        try:
            return run_shards(
                plan, folder, cluster, resume=resume, report=lambda line: None if quiet else warn(line, "dim")
            )
        except ClusterError as error:
            fail(f"{error}; what was obtained is in {folder}; go on with: {_again(plan, folder)}", 3)
    try:
        writer = RunWriter(folder, resume=resume)
    except OSError as error:
        fail(f"cannot keep results in {folder}: {why(error)}")
    if resume and not writer.loaded.headers and not writer.loaded.size:
        warn(f"nothing to go on with in {folder}: a new run starts", "dim")
    aside = console_on(sys.stderr)
    with writer:
        with RunDisplay(console_on(sys.stdout), plan, silent=quiet, aside=aside) as display:
            finished = execute(plan, writer, display.observe)
        for problem in writer.problems:
            warn(problem, "yellow")
    return finished


def _require_a_target(finished: Run, named: bool) -> None:
    """End the command with a line for each target, and no report, if none of them is installed."""
    missing = [t for t in finished.targets if not t.description and "No module named" in t.unavailable]
    if len(missing) < len(finished.targets):
        return
    if not named:
        shutil.rmtree(finished.folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # other runs are there
            finished.folder.parent.rmdir()
    first, *others = (f"{t.target.name} {could_not_start(t.target, t.unavailable)}" for t in missing)
    fail(first, 3, others)


def _issues(runs: Sequence[ReadRun], folder: Path) -> Iterator[str]:
    """Yield the command that writes an issue for maintainers, and the numbers and titles of new findings."""
    from ...reports.findings import NEW, VALIDATION, findings_of
    from ...reports.subject import subjects_of

    new = [f for f in findings_of(subjects_of(runs)) if f.section in (NEW, VALIDATION) and not f.known]
    if new:
        yield f"issue:   onnxspec report {shlex.quote(str(folder))} --issue {new[0].number}"
        yield from (f"         {finding.number}: {finding.title}" for finding in new[:_NUMBERED])
    if len(new) > _NUMBERED:
        yield f"         and {len(new) - _NUMBERED} more on the page"


def _again(plan: Plan, folder: Path) -> str:
    """Return the command that resumes a run."""
    words = [word for word in plan.command if word != "--resume"]
    drawn = fresh_profile(plan.selection.profile)
    seed = ["--random", f"{drawn[0]}:{drawn[1]}"] if drawn is not None else []  # one that was not given was made up
    for option in (seed, ["--out", str(folder)]):
        if not {*option} <= {*words}:
            words += option  # of two values the last one counts
    return shlex.join([*words, "--resume"])


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end a run as Ctrl-C does, unless they were ignored before (nohup)."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


SUMMARY = "summary.md"
"""The summary in Markdown, in the folder of a run."""


def write_files(run: Run, junit: Path | None) -> None:
    """Write the summary (on GitHub also to the job's page) and the JUnit file. Raise OSError."""
    if junit is not None:
        from ...reports.junit import junit_xml

        plan = run.plan
        required = [r for t in run.targets for r in (*t.missing(plan.require), *t.special(plan.require_special))]
        junit.write_bytes(junit_xml({t.target.name: t.results for t in run.targets}, required))
    lines = ["# Conformance"]
    for target in run.targets:
        heading = f"{target.target.name} {target.description.get('version', '')}".rstrip()
        summary = summary_on(target, run)
        sections = sections_of(summary, target.findings, target.results)
        problems = [f"  {one_line(f'{label}: {text}', LINE)}" for label, text, _ in problems_of(target, run.plan)]
        # In an indented block no text of a runtime can format.
        lines += ["", textwrap.indent("\n".join([summary_text(heading, summary, sections), *problems]), "    ")]
    text = "\n".join([*lines, ""]).encode("utf-8", errors="backslashreplace")
    (run.folder / SUMMARY).write_bytes(text)
    if job := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(job).open("ab") as file:  # one file for all steps of a job
            file.write(text)


def on_github() -> bool:
    """Return whether a GitHub workflow runs this."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def github_marks(run: Run) -> Iterator[str]:
    """Yield lines that GitHub shows as marks on a job: new findings, and other reasons of the exit code."""
    from ..checking.formatters import github_command

    for target in run.targets:
        error = partial(github_command, "error", title=_title(target))
        for group in summary_on(target, run).groups:
            if not group.known:
                repeat = target.findings[group.problems[0]]["repeat"]
                yield error(f"{group.text} ({group.count}; {group.where}). To repeat it: {repeat}")
        for label, text, _ in problems_of(target, run.plan):
            yield github_command("warning" if label == STALE else "error", text, title=_title(target))


def _title(target: TargetRun) -> str:
    return f"onnxspec: {target.target.name} {target.description.get('version', '')}".strip()

"""A run of a command: progress, files, summary, and how to resume it."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click.exceptions

from ..probes.drawn import fresh_profile
from ..results.writer import RunWriter, fresh_folder
from ..running.engine import execute
from ..running.run import Plan, Run
from .display import RunDisplay, summarize
from .terminal import console_on, drop, fail, say, warn, why

if TYPE_CHECKING:
    from ..cluster.connection import Cluster
    from ..extraction.cases import NodeCase


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
    update: bool = False,
) -> NoReturn:
    """Run a plan here or on a cluster, and report. If it is interrupted, print how to resume it. Raise click's Exit.

    nodes
        The recurrent nodes, for a model.
    update
        Whether the targets' lists of known failures are updated.
    """
    finished, page = _finished(plan, folder, cluster, junit, quiet=quiet, resume=resume)
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
    if not quiet:
        say("", f"results: {folder / 'results.jsonl'}", f"report:  {page}")
        if any(target.unexpected for target in finished.targets):
            say(f"issue:   onnxspec report {shlex.quote(str(folder))} --issue 1")
    raise click.exceptions.Exit(finished.exit_code or int(any(node.why and not node.members for node in nodes)))


def _finished(
    plan: Plan, folder: Path, cluster: Cluster | None, junit: Path | None, *, quiet: bool, resume: bool
) -> tuple[Run, Path]:
    """Return the finished run and its page. End the command if it is interrupted or the disk is full."""
    obtained = f"what was obtained is in {folder}"
    if plan.draws is None:
        obtained += f"; go on with: {_again(plan, folder)}"
    finished: Run | None = None
    try:
        with _interrupted_by_signals():
            finished = _executed(plan, folder, cluster, quiet=quiet, resume=resume)
            from ...reports.page import write_report

            page = write_report([folder], folder / "report", warn=lambda problem: warn(f"warning: {problem}"))
            if junit is not None:
                _write_junit(finished, junit)
            return finished, page
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
    with writer:
        with RunDisplay(console_on(sys.stdout), plan, silent=quiet) as display:
            finished = execute(plan, writer, display.observe)
        for problem in writer.problems:
            warn(problem, "yellow")
    return finished


def _write_junit(run: Run, path: Path) -> None:
    from ...reports.junit import junit_xml

    plan = run.plan
    required = [r for t in run.targets for r in (*t.missing(plan.require), *t.special(plan.require_special))]
    path.write_bytes(junit_xml({t.target.name: t.results for t in run.targets}, required))


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

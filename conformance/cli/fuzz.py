"""``onnxspec fuzz``: search for failures beyond the profiles."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, TextColumn, TimeElapsedColumn

from ...cases import operator_versions
from ...reference import FORMATS, operator_version, versions_of
from ..fuzzing.database import read_database, write_database
from ..fuzzing.hunt import Hunt, Limits
from ..fuzzing.writing import REGRESSIONS, write_failures
from ..probes.selection import UnknownName, operator_version_called
from ..results.evidence import slug
from ..results.expected.entries import applying, expectations_of
from ..text import plural
from ..workers.hangs import HangBudget
from ..workers.pool import Pool
from ..workers.process import BATCH_JOBS, TargetProcess, TargetUnavailable
from .application import app
from .command import CORES, Ops, TargetsFile, Types, folder_named, targets_of
from .display import could_not_start
from .terminal import console_on, fail, say, why

_MINUTES = 1.0


@app.command()
def fuzz(
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="TARGET", help="Runtime to test [default: onnxruntime].", show_default=False
        ),
    ] = "onnxruntime",
    op: Ops = None,
    type: Types = None,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", metavar="M", min=0.0, help="Time to search [default: 1]."),
    ] = None,
    examples: Annotated[
        int | None, typer.Option("--examples", metavar="N", min=1, help="Number of cases, instead of a time.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="S", min=0, help="Seed of the search [default: a new one, printed]."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", parser=folder_named, help="Folder for failures and the database."),
    ] = Path("fuzz"),
    targets_file: TargetsFile = None,
) -> None:
    """Search for failures beyond the profiles, and make each as small as it can be.

    Every legal configuration may be drawn, near those more often whose numbers were nearly too far off. What was found
    before is tried first. Exit code 0: nothing new but what the list of known failures has; 1: something new, or our
    own code or the operator's broke off; 2: bad arguments; 3: the target could not start.
    """
    (chosen,) = targets_of([target], targets_file)
    versions, types = _space(op or [], type or [], chosen.operators)
    listed = expectations_of(chosen)
    place = out / f"{slug(chosen.name)}.json"
    known = read_database(place, chosen.name)
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    limits = Limits(float("inf") if examples and minutes is None else 60 * (minutes or _MINUTES), examples)
    say(f"{chosen.name}: seed {seed}, {len(known.found)} known failures in {place}")
    interrupted, description, broken = False, dict[str, Any](), None
    with TargetProcess(chosen, hangs=HangBudget()) as process, Pool(CORES) as pool:
        hunt = Hunt(chosen, process, versions, types, seed, known, BATCH_JOBS, pool)
        try:
            description = process.start()
            hunt.expect(applying(listed, description))
            _run(hunt, limits)
        except TargetUnavailable as error:
            if not hunt.done:
                fail(f"{chosen.name} {could_not_start(chosen, str(error))}", 3)
            say(f"{chosen.name} does not start any more: {error}")
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:  # a fault of ours: what was found until then must not go with it
            interrupted, broken = True, error
    try:
        reports = write_failures(out, hunt, description)
        write_database(place, hunt.knowledge() if not interrupted else _joined(hunt))
    except OSError as error:
        fail(why(error))
    _tell(hunt, out, reports)
    if broken is not None:
        raise broken
    unknown = [failure for failure in hunt.new if not hunt.reason(failure)]
    raise typer.Exit(130 if interrupted else int(bool(unknown or hunt.internal_errors)))


def _joined(hunt: Hunt) -> Any:
    """Return failures that were known or found until an interruption, when not all known ones had been tried."""
    from msgspec.structs import replace

    now = hunt.knowledge()
    cases = {known.case for known in now.found}
    return replace(now, found=(*now.found, *(k for k in hunt.database.found if k.case not in cases)))


def _space(texts: list[str], types: list[str], about: Sequence[str]) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the operator versions and types to draw from; without names, those that a target is about. Raise
    UnknownName."""
    known = tuple(dict.fromkeys(op for op, _ in operator_versions(None)))
    asked = [operator_version_called(text) for text in texts]
    for name, number in asked:
        if name not in known:
            raise UnknownName("operator", name, known, " among those that are drawn")
        if number and int(number) not in versions_of(name):
            raise UnknownName("operator version", number, versions_of(name), f" of {name}")
    for name in types:
        if name not in FORMATS:
            raise UnknownName("type", name, tuple(FORMATS))
    wanted = types or list(FORMATS)
    chosen = [
        (name, version)
        for name, number in asked or [(op, "") for op in about]
        for version in versions_of(name)
        if number in ("", str(version))
    ]
    versions = [(name, v) for name, v in dict.fromkeys(chosen) if set(wanted) & set(operator_version(name, v).types)]
    if not versions:
        there = {kind for name, v in chosen for kind in operator_version(name, v).types}
        raise UnknownName("type", types[0], sorted(there & set(FORMATS)), " of what is drawn")
    return versions, wanted


def _run(hunt: Hunt, limits: Limits) -> None:
    console = console_on(sys.stderr)
    columns = (TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("0 cases", total=None)

        def observe(now: Hunt) -> None:
            if now.done % 16 == 0:
                counts = f"{now.done} cases, {len(now.new)} new failures"
                progress.update(task, description=counts)

        hunt.run(limits, observe)


def _tell(hunt: Hunt, out: Path, reports: list[str]) -> None:
    counts = "  ".join(f"{count} {verdict}" for verdict, count in hunt.verdicts.most_common())
    say(f"{hunt.done} cases: {counts or 'none'}")
    told = [(failure, report, hunt.reason(failure)) for failure, report in zip(hunt.failures, reports, strict=True)]
    told.sort(key=lambda row: (row[0].known, bool(row[2])))  # what nobody knows first
    for failure, report, reason in told:
        say(f"{'known' if failure.known or reason else 'NEW':<6} {failure.title}")
        say(f"       {failure.one.judgement.message}")
        if reason:
            say(f"       Listed as known: {reason}")
        say(f"       {out / report}")
    for internal_error, times in hunt.internal_errors.items():
        say(f"broke off {times} times, by the suite's fault or the operator's: {internal_error}")
    if hunt.new:
        listed = sum(bool(reason) for failure, _, reason in told if not failure.known)
        new = plural(len(hunt.new), "new failure")
        say(f"{new}, {listed} of them on the list of known failures of {hunt.target.name}")
    for known in hunt.gone:
        say(f"gone   {known.title}: {known.case}")
    if hunt.failures:
        say(f"regressions: onnxspec run --target {hunt.target.name} --case @{out / REGRESSIONS}")

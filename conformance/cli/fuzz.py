"""``onnxspec fuzz``: run of random cases beyond the profiles."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...reference import FORMATS, operator_version
from ..fuzzing.search import Search
from ..probes.selection import UnknownName, chosen_versions, operator_types, selection_of
from ..running.run import Plan
from .ci import Output
from .command import CORES, Ops, TargetsFile, Types, command_given, folder_named, target_called
from .execution import execute_plan, fresh_run
from .terminal import warn

_MINUTES = 1.0


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
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", parser=folder_named, help="Results [default: new, in runs/]."),
    ] = None,
    targets_file: TargetsFile = None,
) -> None:
    """Run random cases beyond the profiles, and report failures as run does.

    Any legal configuration may be drawn. Half of the cases are near passing ones with large errors. Exit code 0: every
    failing result was expected; 1: one was not; 2: bad arguments; 3: the target could not start.
    """
    chosen = target_called(target, targets_file)
    selection = selection_of("core", op, None, type)
    types = list(selection.types or FORMATS)
    existing = chosen_versions(selection, chosen.operators)
    versions = [(name, v) for name, v in existing if {*types} & {*operator_version(name, v).types}]
    if not versions:
        of_types = [name for name in operator_types() if name.partition(":")[2] in types]
        raise UnknownName("combination", selection.narrowed, of_types)
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    warn(f"random cases of seed {seed}", "dim")
    seconds = float("inf") if examples and minutes is None else 60 * (minutes or _MINUTES)
    search = Search(versions, types, seed, seconds, examples or float("inf"), chosen.wrap)
    ops = tuple(dict.fromkeys(name for name, _ in versions))
    selection = replace(selection, profile=f"fuzz-seed-{seed}", ops=ops, types=tuple(types))
    plan = Plan(
        selection,
        (),
        (chosen,),
        command=command_given(),
        targets_file=targets_file,
        draws=search.next_cases,
        jobs=CORES,
    )
    execute_plan(plan, out or fresh_run(), Output(), named=out is not None)

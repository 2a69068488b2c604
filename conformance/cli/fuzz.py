"""``onnxspec fuzz``: run of random cases beyond the profiles."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ...cases import operator_versions
from ...reference import FORMATS, operator_version, versions_of
from ..fuzzing.search import Search
from ..probes.selection import Selection, UnknownName, operator_version_called
from ..running.run import Plan
from .ci import Output
from .command import CORES, Ops, TargetsFile, Types, command_given, folder_named, targets_of
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
    (chosen,) = targets_of([target], targets_file)
    versions, types = _space(op or [], type or [], chosen.operators)
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    warn(f"random cases of seed {seed}", "dim")
    seconds = float("inf") if examples and minutes is None else 60 * (minutes or _MINUTES)
    search = Search(versions, types, seed, seconds, examples or float("inf"), chosen.wrap)
    selection = Selection(f"fuzz-seed-{seed}", tuple(dict.fromkeys(name for name, _ in versions)), types=tuple(types))
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

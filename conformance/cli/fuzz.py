"""``onnxspec fuzz``: run of random cases beyond the profiles."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from ...reference import FORMATS, operator_version
from ..probes.drawn import random_batches
from ..probes.selection import UnknownName, chosen_versions, operator_types, selection_of
from ..running.run import Plan
from .command import CORES, command_given, folder_named, op_option, target_called, targets_file_option, type_option
from .execution import execute_plan, fresh_run
from .terminal import fail, warn

_MINUTES = 1.0


@click.command()
@click.option("--target", "-t", metavar="TARGET", default="onnxruntime", help="Runtime to test [default: onnxruntime].")
@op_option
@type_option
@click.option("--minutes", metavar="M", type=click.FloatRange(min=0.0), help="Time to search [default: 1].")
@click.option("--examples", metavar="N[:SEED]", help="Number of cases, instead of a time.")
@click.option("--out", "-o", metavar="DIR", type=folder_named, help="Results [default: new, in runs/].")
@targets_file_option
def fuzz(
    target: str,
    op: Sequence[str],
    type: Sequence[str],
    minutes: float | None,
    examples: str | None,
    out: Path | None,
    targets_file: Path | None,
) -> None:
    """Run random cases beyond the profiles, and report failures as run does.

    Exit code 0: every failing result was expected; 1: one was not; 2: bad arguments; 3: the target could not start.
    """
    chosen = target_called(target, targets_file)
    selection = selection_of("core", op, type)
    types = list(selection.types or FORMATS)
    existing = chosen_versions(selection, chosen.operators)
    versions = [(name, v) for name, v in existing if {*types} & {*operator_version(name, v).types}]
    if not versions:
        of_types = [name for name in operator_types() if name.partition(":")[2] in types]
        raise UnknownName("combination", selection.narrowed, of_types)
    count, seed = _count_and_seed(examples) if examples is not None else (float("inf"), None)
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    warn(f"random cases of seed {seed}", "dim")
    seconds = float("inf") if examples is not None and minutes is None else 60 * (minutes or _MINUTES)
    ops = tuple(dict.fromkeys(name for name, _ in versions))
    selection = replace(selection, profile=f"fuzz-seed-{seed}", ops=ops, types=tuple(types))
    plan = Plan(
        selection,
        (),
        (chosen,),
        command=command_given(),
        targets_file=targets_file,
        draws=random_batches(versions, types, seed, seconds, count, chosen.wrap),
        jobs=CORES,
    )
    execute_plan(plan, out or fresh_run())


def _count_and_seed(text: str) -> tuple[int, int | None]:
    match = re.fullmatch(r"([1-9][0-9]{0,8})(?::([0-9]{1,9}))?", text)
    if match is None:
        fail(f"--examples takes a number of cases, or one with a seed, N:SEED; not {text[:60]!r}")
    return int(match[1]), None if match[2] is None else int(match[2])

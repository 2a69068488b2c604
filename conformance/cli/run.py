"""``onnxspec run``: its options, and the plan that they make."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..probes.drawn import MOST, fresh_profile_name, nonce_profile_name
from ..probes.selection import Selection, selection_of
from ..results.expected.entries import UNWRITTEN, expectations_of
from ..results.folder import NODE_CASES
from ..running.planning import planned
from ..running.run import Plan
from .command import (
    CORES,
    PATH,
    case_option,
    command_given,
    folder_named,
    op_option,
    profile_option,
    require_writable,
    targets_file_option,
    targets_of,
    type_option,
)
from .execution import execute_plan, fresh_run
from .terminal import fail, warn, why

if TYPE_CHECKING:
    from ..extraction.cases import NodeCase

_RANDOM = re.compile(r"([0-9]{1,9})(?::(.*))?", re.DOTALL)


@click.command()
@click.pass_context
@click.argument("model", metavar="[MODEL]", type=PATH, required=False)
@click.option(
    "--target",
    "-t",
    metavar="TARGET",
    multiple=True,
    help="onnxruntime (default), onnxruntime:NAMEExecutionProvider, backend:package.module, or a name of "
    "'onnxspec targets' or targets.toml (there * and ? are wildcards); repeatable.",
)
@profile_option
@op_option
@type_option
@case_option
@click.option("--random", metavar="N[:SEED]", help="Run N random cases instead of a profile.")
@click.option("--nonce", metavar="NONCE", help="Add the cases of an auditor's nonce; implies --record.")
@click.option("--inputs", metavar="FILE", type=PATH, help="Input data of the model, as .npz.")
@click.option("--keep", metavar="DIR", type=PATH, help="Write its nodes as test-case directories.")
@click.option("--expected", metavar="FILE|none", help="List of known failures [default: the target's].")
@click.option("--update-expected", is_flag=True, help="Bring the target's own list of known failures up to date.")
@click.option(
    "--require",
    metavar="NEED",
    multiple=True,
    help="Fail if OP-VERSION:TYPE is unsupported, or special-values are lost; repeatable.",
)
@click.option("--no-extra", is_flag=True, help="Add no random cases, and search no smaller failing ones.")
@click.option("--shard", metavar="K/N", help="Run part K of N; merge joins them.")
@click.option("--out", "-o", metavar="DIR", type=folder_named, help="Results [default: new, in runs/].")
@click.option("--resume", is_flag=True, help="Continue the run in --out.")
@click.option("--record", is_flag=True, help="Keep all outputs, for certify.")
@click.option(
    "--jobs",
    "-j",
    metavar="N",
    type=click.IntRange(1, 1024),
    default=CORES,
    help="Number of processes [default: all cores].",
)
@click.option("--scheduler", metavar="ADDRESS", help="Use the Dask cluster at tls://HOST:PORT.")
@targets_file_option
@click.option("--junit", metavar="FILE", type=PATH, help="Write JUnit XML, too.")
@click.option("--quiet", "-q", is_flag=True, help="Print new failures only.")
def run(
    context: click.Context,
    model: Path | None,
    target: Sequence[str],
    profile: str,
    op: Sequence[str],
    type: Sequence[str],
    case: Sequence[str],
    random: str | None,
    nonce: str | None,
    inputs: Path | None,
    keep: Path | None,
    expected: str | None,
    update_expected: bool,
    require: Sequence[str],
    no_extra: bool,
    shard: str | None,
    out: Path | None,
    resume: bool,
    record: bool,
    jobs: int,
    scheduler: str | None,
    targets_file: Path | None,
    junit: Path | None,
    quiet: bool,
) -> None:
    """Run test cases on targets and report what is wrong. Results go to a folder, with a report to read.

    With MODEL, the recurrent nodes of that ONNX model run in place of the cases of a profile.

    Exit code 0: every failing result was expected; 1: one was not; 2: bad arguments; 3: a target could not start.
    """
    if junit is not None:
        require_writable(junit)
    if resume and out is None:
        fail("--resume needs --out: which run is to go on?")
    if model is not None and model.is_dir():
        fail(f"{model} is a folder: --case {model}/ runs the test-case directories in it")
    if model is None and (inputs or keep):
        fail("--inputs and --keep belong to a model: leave them out, or name the model")
    given = getattr(context.get_parameter_source("profile"), "name", "") == "COMMANDLINE"
    chosen = selection_of(profile, op, type, case)
    if model is not None and chosen.chosen:
        fail("MODEL and --case name cases in place of a profile: leave one out")
    if given and (model is not None or chosen.directories):
        fail(f"{'MODEL' if model else '--case DIR'} runs in place of a profile: leave --profile out")
    if random is not None or nonce is not None:
        chosen = _with_fresh_cases(chosen, random, nonce, resume, clash=given or model is not None)
    targets = targets_of(target or ["onnxruntime"], targets_file)
    if expected not in (None, "none"):
        targets = [replace(each, expected=str(expected)) for each in targets]
    if update_expected:
        if expected == "none":
            fail("--expected none uses no list of known failures: leave --update-expected out, or name a list")
        from ..running.expected_update import require_lists

        try:
            require_lists(targets)
        except OSError as error:
            fail(f"--update-expected: {why(error)}")
    root = out
    nodes: Sequence[NodeCase] = ()
    if model is not None:
        root = root or fresh_run()
        folder = keep or root / NODE_CASES
        from .nodes import nodes_of_model  # with all that models are read by

        nodes = nodes_of_model(model, inputs, folder, again=resume, outputs=keep is not None)
        chosen = replace(chosen, profile="directories", directories=(str(folder),))
    plan = planned(
        chosen,
        targets,
        shard=shard,
        require=require or (),
    )
    plan = replace(
        plan,
        command=command_given(),
        expected=expected != "none",
        targets_file=targets_file,
        record=record or nonce is not None,
        shrinks=not no_extra,
        fills=not no_extra,
        jobs=jobs,
        excuses=not nodes,
    )
    for line in plan.skipped:
        warn(f"skipped: {line}", "yellow")
    _read_lists(plan)
    with contextlib.ExitStack() as stack:
        cluster = None
        if scheduler is not None:
            from ..cluster.connection import cluster_at

            cluster = stack.enter_context(cluster_at(scheduler))
        execute_plan(
            plan,
            root or fresh_run(),
            nodes,
            cluster,
            junit=junit,
            quiet=quiet,
            resume=resume,
            update=update_expected,
        )


def _with_fresh_cases(
    chosen: Selection, random: str | None, nonce: str | None, resume: bool, *, clash: bool
) -> Selection:
    """Return the selection with random cases in place of its profile, or with a nonce's cases beside it. Raise
    UnknownName for a malformed seed or nonce.

    clash
        Whether a profile or a model is named.
    """
    if nonce is not None:
        if random is not None or chosen.chosen:
            fail("--nonce adds cases to a profile: leave out --random, --case and MODEL")
        return replace(chosen, profile=nonce_profile_name(chosen.profile, nonce))
    if clash or chosen.chosen:
        fail("--random runs random cases in place of a profile: leave out --profile, --case and MODEL")
    found = _RANDOM.fullmatch(random or "")
    count, seed = (int(found[1]), found[2]) if found is not None else (0, None)
    if not 1 <= count <= MOST:
        fail(
            f"--random takes a number of cases up to {MOST:,}, or one with a seed, N:SEED; not {(random or '')[:60]!r}"
        )
    if seed is None:
        if resume:
            fail("--random with --resume needs the seed: --random N:SEED")
        seed = secrets.token_hex(4)
        warn(f"random cases of seed {seed}; the same ones again: --random {count}:{seed}", "dim")
    return replace(chosen, profile=fresh_profile_name(count, seed))


def _read_lists(plan: Plan) -> None:
    """Read the lists of known failures before the run begins. Raise UserError."""
    for target in plan.targets if plan.expected else ():
        count = sum(entry.reason == UNWRITTEN for entry in expectations_of(target))
        if count:
            has = "entry of {} has" if count == 1 else "entries of {} have"
            warn(f"{count} {has.format(target.expected)} no reason yet: say why the failure is accepted", "yellow")

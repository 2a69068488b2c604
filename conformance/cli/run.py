"""``onnxspec run``: its options, and what they ask for.

Exit codes: 0, every failing result was expected; 1, at least one was not (or what is required is not supported); 2, the
command cannot be carried out as given; 3, a target could not start; 130, interrupted.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from ...cases.directories.directory import DirectoryError
from ...cases.directories.room import CASE_BYTES
from ..probes.drawn import MOST, fresh_profile_name, nonce_profile_name, some_seed
from ..probes.selection import UnknownName, selection_of
from ..probes.shard import ShardError
from ..probes.wrapped import WRAPS
from ..results.expected.entries import UNWRITTEN, ExpectedFailureError, expectations_of
from ..results.folder import NODE_CASES, NoRun
from ..running.expected_update import require_lists
from ..running.planning import planned
from ..running.run import Plan
from ..targets.target import Target, TargetError
from ..workers.hangs import HANGS
from .application import app
from .ci import OutputOptions
from .command import (
    CORES,
    CaseIds,
    Jobs,
    Ops,
    ProfileName,
    Scheduler,
    Targets,
    TargetsFile,
    Types,
    Versions,
    by_noun,
    command_given,
    folder_named,
    process_at,
    targets_of,
)
from .execution import carry_out, fresh_run, journal_in
from .terminal import fail, warn, why

if TYPE_CHECKING:
    from ..extraction.cases import NodeCase


@dataclass(frozen=True)
class MostUsed:
    """Options that most people need first."""

    panel: ClassVar[str] = "Options"

    target: Targets = None
    profile: ProfileName = "core"
    op: Ops = None
    type: Types = None
    case: CaseIds = None
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            parser=folder_named,
            help="Folder for results; without it a fresh one under runs/.",
        ),
    ] = None


@dataclass(frozen=True)
class CaseOptions:
    """Choices of cases beyond those in `MostUsed`."""

    panel: ClassVar[str] = "Which cases"

    since_version: Versions = None
    illegal: Annotated[
        bool, typer.Option("--illegal/--no-illegal", help="Whether to run models that the document forbids, too.")
    ] = True
    cases: Annotated[
        list[Path] | None,
        typer.Option("--cases", metavar="DIR", help="Run the ONNX test-case directories there, not a profile."),
    ] = None
    case_size: Annotated[
        int,
        typer.Option(
            "--case-size", metavar="MIB", min=1, max=1 << 20, help="With --cases: MiB that one of them may have."
        ),
    ] = CASE_BYTES >> 20
    random: Annotated[
        int | None,
        typer.Option(
            "--random", metavar="N", min=1, max=MOST, help="Run N fresh cases, which no profile holds, not a profile."
        ),
    ] = None
    seed: Annotated[
        str | None,
        typer.Option("--seed", metavar="SEED", help="Which fresh cases: the same for everyone. A new one without."),
    ] = None
    nonce: Annotated[
        str | None,
        typer.Option("--nonce", metavar="NONCE", help="Run the fresh cases of an auditor's nonce too, and --record."),
    ] = None
    within: Annotated[
        Path | None,
        typer.Option("--within", metavar="RUN", help="With --random: only what the targets of that run support."),
    ] = None


@dataclass(frozen=True)
class ModelOptions:
    """A model whose nodes are run in place of a profile."""

    panel: ClassVar[str] = "The nodes of a model"

    model_file: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="The same as --model.", show_default=False)
    ] = None
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="MODEL.onnx", help="Run the recurrent nodes of a model, not a profile."),
    ] = None
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="DATA.npz", help="Inputs of the model: run its nodes on this data."),
    ] = None
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Leave the nodes there as test-case directories, with outputs."),
    ] = None


@dataclass(frozen=True)
class LaneOptions:
    """Places where cases run: lanes of targets, and machines."""

    panel: ClassVar[str] = "Where they run"

    targets_file: TargetsFile = None
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Run onnxruntime a second time, with its graph optimizations on.")
    ] = False
    wrap: Annotated[
        str,
        typer.Option(
            "--wrap",
            metavar="WRAP",
            help=f"Run the node in surroundings, since some claim no lone node: {', '.join(WRAPS)}.",
        ),
    ] = ""
    hang_budget: Annotated[
        int,
        typer.Option("--hang-budget", metavar="N", min=1, max=1_000_000, help="Hangs that are waited for on a target."),
    ] = HANGS
    scheduler: Scheduler = None


@dataclass(frozen=True)
class FailureOptions:
    """Failures that are known, and support that is required."""

    panel: ClassVar[str] = "What fails the run"

    expected: Annotated[
        bool, typer.Option("--expected/--no-expected", help="Whether to use lists of known failures.")
    ] = True
    expected_file: Annotated[
        Path | None,
        typer.Option("--expected-file", metavar="FILE", help="Known failures, in place of the shipped list."),
    ] = None
    update_expected: Annotated[
        bool,
        typer.Option("--update-expected", help="Write what fails now into the target's own list of known failures."),
    ] = False
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="OP-VERSION:TYPE",
            help="Fails where this is not supported, e.g. LSTM-14:float32; special-values: where NaN is lost.",
        ),
    ] = None
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End with the first failing result that no list names.")
    ] = False


@dataclass(frozen=True)
class ConductOptions:
    """The conduct of a run."""

    panel: ClassVar[str] = "How the run goes"

    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that the folder holds.")] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again in a folder that holds a run.")] = False
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="K/N", help="Only part K of N; 'onnxspec merge' puts the parts together."),
    ] = None
    record: Annotated[
        bool, typer.Option("--record", help="Keep all that the targets did, bit for bit: 'onnxspec certify' packs it.")
    ] = False
    shrink: Annotated[
        bool, typer.Option("--shrink/--no-shrink", help="Ask the target for the smallest case of every failure.")
    ] = True
    jobs: Jobs = CORES
    fill: Annotated[
        bool,
        typer.Option("--fill/--no-fill", help="Add random cases that use only what the target supports."),
    ] = True


@app.command()
@by_noun
def run(
    context: typer.Context,
    first: MostUsed,
    which: CaseOptions,
    of_model: ModelOptions,
    lanes: LaneOptions,
    known: FailureOptions,
    conduct: ConductOptions,
    told: OutputOptions,
) -> None:
    """Run the cases on targets, compare, and say what is wrong. Results go to a folder, with a report to read.

    Exit code 0: every failing result was expected; 1: one was not; 2: bad arguments; 3: a target could not start.
    """
    of_model = _with_model(of_model)
    _require_sense(first, which, of_model, known, conduct)
    if told.unwritable:
        fail(told.unwritable)
    if lanes.wrap and lanes.wrap not in WRAPS:
        fail(f"there is no wrap {lanes.wrap!r}; one of {', '.join(WRAPS)}")
    source = getattr(context.get_parameter_source("profile"), "name", "")
    try:
        profile = _profile(first, which, of_model, conduct.resume, named=source == "COMMANDLINE")
        chosen = selection_of(profile, first.op, which.since_version, first.type, first.case)
        chosen = replace(chosen, legal=not which.illegal)
        targets = _targets(first, lanes, known)
        if (which.cases or of_model.model) and source == "COMMANDLINE":
            given = "--cases" if which.cases else "--model"
            fail(f"{given} runs in place of a profile: leave --profile out")
        out, roots = first.out, which.cases or ()
        nodes: Sequence[NodeCase] = ()
        if of_model.model is not None:
            out = out or fresh_run()
            roots = [of_model.keep or out / NODE_CASES]
            from .nodes import nodes_of_model  # with all that models are read by

            nodes = nodes_of_model(
                of_model.model,
                of_model.inputs,
                roots[0],
                again=conduct.resume,
                outputs=of_model.keep is not None,
                silent=told.silent,
            )
        if roots:
            chosen = replace(chosen, profile="directories", directories=tuple(map(str, roots)))
        plan = planned(
            chosen,
            targets,
            within=which.within,
            most=which.case_size << 20,
            skipped=lambda line: warn(f"skipped: {line}", "yellow"),
            shard=conduct.shard,
            require=known.require or (),
        )
        plan = replace(
            plan,
            command=command_given(),
            expected=known.expected,
            targets_file=lanes.targets_file,
            record=conduct.record or which.nonce is not None,
            hang_budget=lanes.hang_budget,
            shrinks=conduct.shrink,
            fail_fast=known.fail_fast,
            fills=conduct.fill,
            jobs=conduct.jobs,
        )
        _read_lists(plan)
    except (UnknownName, TargetError, DirectoryError, ShardError, ExpectedFailureError) as error:
        fail(str(error))
    except NoRun as error:
        fail(f"--within {error}")
    except OSError as error:
        fail(f"--update-expected: {why(error)}")
    with process_at(lanes.scheduler) as process:
        journal = journal_in(out or fresh_run(), conduct.resume, conduct.overwrite)
        carry_out(
            replace(plan, process=process, excuses=not nodes),
            journal,
            known.update_expected,
            told,
            nodes,
            named=first.out is not None,
        )


def _with_model(given: ModelOptions) -> ModelOptions:
    """The options, with a model that is an argument in place of that of the option. Ends the command where both are."""
    if given.model_file is None:
        return given
    if given.model is not None:
        fail(f"--model {given.model} and {given.model_file}: run one model at a time")
    if given.model_file.is_dir():
        fail(f"{given.model_file} is a folder: --cases runs the test-case directories in it")
    return replace(given, model=given.model_file)


def _require_sense(
    first: MostUsed, which: CaseOptions, of_model: ModelOptions, known: FailureOptions, conduct: ConductOptions
) -> None:
    """End the command where options contradict each other."""
    if conduct.resume and conduct.overwrite:
        fail("--resume goes on with a run, --overwrite starts again: which is it?")
    if conduct.resume and first.out is None:
        fail("--resume needs --out: which run is to go on?")
    if not known.expected and (known.expected_file or known.update_expected):
        fail("--no-expected uses no list of known failures: leave it out, or leave out what names one")
    if of_model.model is None and (of_model.inputs or of_model.keep):
        fail("--inputs and --keep belong to --model: leave them out, or name the model")
    if of_model.model is not None and which.cases:
        fail("--model and --cases name what to run in place of a profile: which is it?")


def _profile(first: MostUsed, which: CaseOptions, of_model: ModelOptions, resume: bool, *, named: bool) -> str:
    """The profile, or the name of fresh cases that stand in its place or beside it. Raises UnknownName for what is no
    seed or nonce.

    named
        Whether a profile was given.
    """
    profile = first.profile
    others = bool(which.cases or of_model.model or first.case)
    if which.random is not None:
        profile = _drawn(which.random, which.seed, resume, which.within, clash=others or named)
    elif which.seed is not None:
        fail("--seed says which fresh cases: give --random too, or leave it out")
    if which.nonce is not None:
        if which.random is not None or others:
            fail("--nonce adds fresh cases to a profile: leave out --random, --case, --cases and --model")
        profile = nonce_profile_name(profile, which.nonce)
    if which.within is not None and which.random is None:
        fail("--within says what fresh cases are drawn from: give --random too, or leave it out")
    return profile


def _targets(first: MostUsed, lanes: LaneOptions, known: FailureOptions) -> list[Target]:
    """The targets, with the lists of known failures that are used. Raises TargetError and ExpectedFailureError."""
    targets = targets_of(first.target or ["onnxruntime"], lanes.targets_file, lanes.optimize, lanes.wrap)
    if known.expected_file is not None:
        targets = [replace(each, expected=str(known.expected_file)) for each in targets]
    if known.update_expected:
        require_lists(targets)
    return targets


def _read_lists(plan: Plan) -> None:
    """Read the lists of known failures before the run begins. Raises ExpectedFailureError."""
    for target in plan.targets if plan.expected else ():
        count = sum(entry.reason == UNWRITTEN for entry in expectations_of(target))
        if count:
            has = "entry of {} has" if count == 1 else "entries of {} have"
            warn(f"{count} {has.format(target.expected)} no reason yet: say why the failure is accepted", "yellow")


def _drawn(count: int, seed: str | None, resume: bool, within: Path | None, *, clash: bool) -> str:
    """The name that stands for the profile in a run of fresh cases. Raises UnknownName for what is no seed."""
    if clash:
        fail("--random runs fresh cases in place of a profile: leave out --profile, --case, --cases and --model")
    if seed is None:
        if resume:
            fail("--random --resume needs --seed: which run is to go on?")
        seed = some_seed()
        words = ["--random", str(count), "--seed", seed, *(["--within", str(within)] if within is not None else [])]
        warn(f"fresh cases of seed {seed}; the same ones again: {shlex.join(words)}", "dim")
    return fresh_profile_name(count, seed)

"""``onnxspec run``, of which the plan is made here, and ``list``.

Exit codes: 0, every failing result was expected; 1, at least one was not (or what is required is not supported); 2, the
command cannot be carried out as given; 3, a target could not start; 130, interrupted.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ...cases.directories.directory import DirectoryError
from ...cases.directories.room import CASE_BYTES
from ...reference import operator_names
from ..probes.directory import DirectoryProbe, digest_of_directories, probe_directories
from ..probes.drawn import MOST, fresh_profile_name, nonce_profile_name, some_seed
from ..probes.probe import Probe
from ..probes.selection import UnknownName, narrow, operator_types, select_probes
from ..probes.shard import ShardError, parse_shard
from ..probes.wrapped import WRAPS
from ..results.expected.entries import ExpectedFailureError, expectations_of
from ..results.expected.former import FormerWords
from ..results.folder import NODE_CASES, NoRun
from ..results.journal import Journal, OccupiedFolder, RunMismatch, fresh_folder
from ..running.expected_update import require_lists
from ..running.filling import lacks_of
from ..running.run import Plan
from ..running.screen import cases_counted
from ..targets.target import TargetError
from ..workers.hangs import HANGS
from .application import app, main
from .ci import Wanted
from .command import (
    CaseIds,
    Ops,
    ProfileName,
    Scheduler,
    Targets,
    TargetsFile,
    Types,
    Versions,
    command_given,
    folder_named,
    process_at,
    selection_of,
    targets_of,
)
from .execution import carry_out
from .terminal import fail, put, warn, why

if TYPE_CHECKING:
    from ..extraction.cases import NodeCase

__all__ = ["app", "main"]

SPECIAL_VALUES = "special-values"
"""What ``--require`` calls it that NaN, and values beyond a formula's range, come out as the equations give them."""


@app.command()
def run(
    context: typer.Context,
    target: Targets = None,
    profile: ProfileName = "core",
    op: Ops = None,
    since_version: Versions = None,
    type: Types = None,
    case: CaseIds = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            parser=folder_named,
            help="Folder for results; without it a fresh one under runs/.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run that the folder holds.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again in a folder that holds a run.")] = False,
    expected: Annotated[
        bool, typer.Option("--expected/--no-expected", help="Whether to use lists of known failures.")
    ] = True,
    expected_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--expected-file", metavar="FILE", help="Known failures, in place of the shipped list."),
    ] = None,
    update_expected: Annotated[
        bool,
        typer.Option("--update-expected", help="Write what fails now into the target's own list of known failures."),
    ] = False,
    shard: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--shard", metavar="K/N", help="Only part K of N; 'onnxspec merge' puts the parts together."),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Keep all that the targets did, bit for bit: 'onnxspec certify' packs it.")
    ] = False,
    require: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--require",
            metavar="OP-VERSION:TYPE",
            help="Fails where this is not supported, e.g. LSTM-14:float32; special-values: where NaN is lost.",
        ),
    ] = None,
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Run onnxruntime with its graph optimizations on, a second lane.")
    ] = False,
    wrap: Annotated[
        str,
        typer.Option(
            "--wrap",
            metavar="WRAP",
            help=f"Run the node in surroundings, since some claim no lone node: {', '.join(WRAPS)}.",
        ),
    ] = "",
    case_size: Annotated[
        int,
        typer.Option(
            "--case-size", metavar="MIB", min=1, max=1 << 20, help="With --cases: MiB that one of them may have."
        ),
    ] = CASE_BYTES >> 20,
    hang_budget: Annotated[
        int,
        typer.Option("--hang-budget", metavar="N", min=1, max=1_000_000, help="Hangs that are waited for on a target."),
    ] = HANGS,
    random: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--random", metavar="N", min=1, max=MOST, help="Run N fresh cases, which no profile holds, not a profile."
        ),
    ] = None,
    seed: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--seed", metavar="SEED", help="Which fresh cases: the same for everyone. A new one without."),
    ] = None,
    nonce: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--nonce", metavar="NONCE", help="Run the fresh cases of an auditor's nonce too, and --record."),
    ] = None,
    within: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--within", metavar="RUN", help="With --random: only what the targets of that run support."),
    ] = None,
    illegal: Annotated[
        bool, typer.Option("--illegal/--no-illegal", help="Whether to run models that the document forbids, too.")
    ] = True,
    shrink: Annotated[
        bool, typer.Option("--shrink/--no-shrink", help="Ask the target for the smallest case of every failure.")
    ] = True,
    fill: Annotated[
        bool,
        typer.Option(
            "--fill/--no-fill", help="Add cases within what a target supports until enough of that is tried together."
        ),
    ] = True,
    targets_file: TargetsFile = None,
    cases: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option("--cases", metavar="DIR", help="Run the ONNX test-case directories there, not a profile."),
    ] = None,
    model: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--model", metavar="MODEL.onnx", help="Run the recurrent nodes of a model, not a profile."),
    ] = None,
    inputs: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--inputs", metavar="DATA.npz", help="Inputs of the model: run its nodes on what flows there."),
    ] = None,
    keep: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--keep", metavar="DIR", help="Leave the model's nodes there as test-case directories."),
    ] = None,
    junit: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--junit", metavar="FILE", help="Write the results as JUnit XML, too."),
    ] = None,
    summary: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--summary", metavar="FILE", help="Write the answer as Markdown, e.g. for a job's page."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON, in place of text.")] = False,
    scheduler: Scheduler = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End with the first failing result that no list names.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print what is new, and nothing else.")] = False,
) -> None:
    """Run the cases on targets, compare, and say what is wrong. Results go to a folder, with a report to read.

    Exit code 0: every failing result was expected; 1: one was not; 2: usage; 3: a target could not start.
    """
    if resume and overwrite:
        fail("--resume goes on with a run, --overwrite starts again: which is it?")
    if resume and out is None:
        fail("--resume needs --out: which run is to go on?")
    if not expected and (expected_file or update_expected):
        fail("--no-expected uses no list of known failures: leave it out, or leave out what names one")
    if model is None and (inputs or keep):
        fail("--inputs and --keep belong to --model: leave them out, or name the model")
    if model is not None and cases:
        fail("--model and --cases name what to run in place of a profile: which is it?")
    wanted = Wanted(junit, summary, json, quiet)
    for path in wanted.files:  # found out now, and not when all the work is done
        if path.is_dir() or not path.absolute().parent.is_dir():
            fail(f"cannot write {path}: {'it is a folder' if path.is_dir() else 'there is no such folder'}")
    if wrap and wrap not in WRAPS:
        fail(f"there is no wrap {wrap!r}; one of {', '.join(WRAPS)}")
    try:
        source = getattr(context.get_parameter_source("profile"), "name", "")
        if random is not None:
            profile = _drawn(
                random, seed, resume, within, clash=bool(cases or model or case or source == "COMMANDLINE")
            )
        elif seed is not None:
            fail("--seed says which fresh cases: give --random too, or leave it out")
        if nonce is not None:
            if random is not None or cases or model or case:
                fail("--nonce adds fresh cases to a profile: leave out --random, --case, --cases and --model")
            profile, record = nonce_profile_name(profile, nonce), True
        chosen = selection_of(profile, op, since_version, type, case)
        chosen = replace(chosen, legal=not illegal)
        targets = targets_of(target or ["onnxruntime"], targets_file, optimize, wrap)
        if random is not None:
            chosen = replace(chosen, lacks=lacks_of(targets, within))
        elif within is not None:
            fail("--within says what fresh cases are drawn from: give --random too, or leave it out")
        if expected_file is not None:
            targets = [replace(each, expected=str(expected_file)) for each in targets]
        if update_expected:
            require_lists(targets)
        plan = Plan(chosen, (), tuple(targets), command_given(), frozenset(), expected, targets_file)
        plan = replace(plan, hang_budget=hang_budget, shrinks=shrink, fail_fast=fail_fast, fills=fill)
        if (cases or model) and source == "COMMANDLINE":
            fail(f"{'--cases' if cases else '--model'} runs in place of a profile: leave --profile out")
        nodes: Sequence[NodeCase] = ()
        if model is not None:
            out = out or _fresh()
            place = keep or out / NODE_CASES
            from .nodes import nodes_of_model  # with all that models are read by

            nodes = nodes_of_model(model, inputs, place, again=resume)
            cases = [place]
        if cases:
            plan = _with_directories(plan, cases, case_size << 20)
        else:
            operators = dict.fromkeys(op for each in targets for op in each.operators)
            plan = replace(plan, everything=tuple(select_probes(chosen, tuple(operators))))
            if any(isinstance(probe, DirectoryProbe) for probe in plan.everything):
                plan = replace(plan, digest=digest_of_directories(plan.everything))
        _require_cases(plan)
        plan = replace(plan, shard=parse_shard(shard) if shard is not None else None)
        if not plan.probes:
            fail(f"shard {plan.shard} is empty: there are fewer cases than shards")
        versions = [text for text in require or () if text != SPECIAL_VALUES]
        plan = replace(plan, require=_required(versions, plan.probes), record=record)
        plan = replace(plan, require_special=SPECIAL_VALUES in (require or ()))
        with warnings.catch_warnings(record=True) as former:
            warnings.simplefilter("always", FormerWords)
            for each in targets if expected else ():
                expectations_of(each)  # what is wrong with a list is said before anything is begun
        for remark in former:
            warn(str(remark.message), "yellow")
        warnings.simplefilter("ignore", FormerWords)  # it has been told, and the run reads the lists again
    except (UnknownName, TargetError, DirectoryError, ShardError, ExpectedFailureError) as error:
        fail(str(error))
    except NoRun as error:
        fail(f"--within {error}")
    except OSError as error:
        fail(f"--update-expected: {why(error)}")
    with process_at(scheduler) as process:
        folder = out or _fresh()
        try:
            journal = Journal(folder, resume=resume, overwrite=overwrite)
        except (OccupiedFolder, RunMismatch) as error:
            fail(str(error))
        except OSError as error:
            fail(f"cannot keep results in {folder}: {why(error)}")
        if resume and not journal.held.begun and not journal.held.size:
            warn(f"nothing to go on with in {folder}: a new run starts", "dim")
        carry_out(replace(plan, process=process), journal, update_expected, wanted, nodes)


def _fresh() -> Path:
    """A fresh folder for the results."""
    try:
        return fresh_folder(Path("runs"), datetime.now())
    except OccupiedFolder as error:
        fail(str(error))
    except OSError as error:
        fail(f"cannot keep results in runs: {why(error)}")


def _drawn(count: int, seed: str | None, resume: bool, within: Path | None, *, clash: bool) -> str:
    """What stands for the profile in a run of fresh cases. Raises UnknownName for what is no seed."""
    if clash:
        fail("--random runs fresh cases in place of a profile: leave out --profile, --case, --cases and --model")
    if seed is None:
        if resume:
            fail("--random --resume needs --seed: which run is to go on?")
        seed = some_seed()
        words = ["--random", str(count), "--seed", seed, *(["--within", str(within)] if within is not None else [])]
        warn(f"fresh cases of seed {seed}; the same ones again: {shlex.join(words)}", "dim")
    return fresh_profile_name(count, seed)


def _require_cases(plan: Plan) -> None:
    """Make sure that every target gets something to run: a run of nothing would pass in silence."""
    for target in plan.targets:
        if plan.probes_of(target):
            continue
        if target.wrap:
            fail(f"none of the chosen cases can be put in the wrap {target.wrap!r}: choose others, or leave it out")
        of = " or ".join(target.operators)
        fail(f"none of the chosen cases is about {of}, which {target.name} is for: choose some, or leave it out")


def _with_directories(plan: Plan, roots: Sequence[Path], most: int) -> Plan:
    """The plan with what is at or below folders. What cannot be run is said in a line each."""
    skipped: list[str] = []
    directories = probe_directories(roots, skipped.append, most)
    for line in skipped:
        warn(f"skipped: {line}", "yellow")
    if not directories:
        fail(f"no test case that can be run in {', '.join(map(str, roots))}")
    chosen = replace(plan.selection, profile="directories", directories=tuple(map(str, roots)))
    probes = tuple(narrow(chosen, directories))
    digest = digest_of_directories(directories)
    return replace(plan, selection=chosen, everything=probes, digest=digest, skipped=tuple(skipped))


def _required(texts: Sequence[str], probes: Iterable[Probe]) -> frozenset[tuple[str, str]]:
    """Operator versions with types. Raises UnknownName for one that does not exist or that no case is about: what is
    required and never tried would pass in silence."""
    there = {f"{probe.op}-{probe.version}:{probe.type}" for probe in probes}
    required = set()
    for text in texts:
        if text not in operator_types():
            raise UnknownName("requirement", text, operator_types())
        if text not in there:
            raise UnknownName("requirement", text, sorted(there), " among the selected cases")
        operator, _, kind = text.partition(":")
        required.add((operator, kind))
    return frozenset(required)


@app.command(name="list")
def list_cases(
    profile: ProfileName = "core",
    op: Ops = None,
    since_version: Versions = None,
    type: Types = None,
    case: CaseIds = None,
    features: Annotated[bool, typer.Option("--features", help="Show what each case contains.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Each case as the JSON of its spec, which --case takes anywhere.")
    ] = False,
) -> None:
    """List the cases of a profile, one a line."""
    if features and as_json:
        fail("--features or --json: which is it?")
    try:
        probes = select_probes(selection_of(profile, op, since_version, type, case), operator_names(""))
    except UnknownName as error:
        fail(str(error))
    if as_json:
        put("".join(f"{p.text}\n" for p in probes))
    else:
        put("".join(f"{p.id}  {' '.join(sorted(p.features))}\n" if features else f"{p.id}\n" for p in probes))
    warn(cases_counted(len(probes)), "dim")

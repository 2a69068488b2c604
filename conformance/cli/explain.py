"""``onnxspec explain``: one case, step by step."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ...cases.directories.directory import DataSet, write_directory
from ...cases.directories.manifest import data_sets_of
from ...reference import document_of, operator_names
from ...reference.errors import UserError
from ..diagnosis.diagnose import findings_of_case
from ..judging.judgement import Judgement
from ..probes.directory import DirectoryProbe
from ..probes.naming import expanded, is_portable
from ..probes.probe import Probe, SpecProbe
from ..probes.selection import Selection, UnknownName, select_probes
from ..probes.stream import tried
from ..probes.wrapped import wrapped_probes
from ..results.evidence import slug
from ..results.expected.entries import applying, expectations_of
from ..results.records import Finding
from ..targets.target import ACCURACY, Target
from ..workers.job import Outcome
from ..workers.process import TargetProcess, TargetUnavailable
from .command import target_called, targets_file_option
from .display import could_not_start
from .terminal import console_on, fail, put, why

_NAMED = 10


@click.command()
@click.argument("case", metavar="CASE", required=True)
@click.option("--target", "-t", metavar="TARGET", help="Also show what this target returns.")
@click.option(
    "--emit",
    type=click.Choice(("script", "node-test")),
    help="Print a script that needs only onnx, NumPy and the runtime; or a node test in onnx's form.",
)
@targets_file_option
def explain(case: str, target: str | None, emit: str | None, targets_file: Path | None) -> None:
    """Show one case, step by step.

    CASE is an id, of which a unique beginning is enough; the JSON of a case; or a test-case directory, ./DIR.

    Prints its node, its clauses, and the expected gates at every step beside what a target returned.
    """
    probe = _probe_of(case)
    chosen = target_called(target, targets_file) if target else None
    if chosen is not None and chosen.wrap:
        lane = wrapped_probes([probe], chosen.wrap)
        if not lane:
            fail(f"the wrap {chosen.wrap!r} cannot be put around {probe.id}")
        (probe,) = lane
    if emit is not None:
        return _emit_script(probe, chosen) if emit == "script" else _emit_node_test(probe)
    outcomes: Sequence[Outcome] = ()
    judgement: Judgement | None = None
    findings: Sequence[Finding] = ()
    accuracy = ACCURACY
    if chosen is not None:
        try:
            with TargetProcess(chosen) as process:
                description = process.start()
                (one,) = tried(process, [probe], chosen.accuracy)
                outcomes, judgement, accuracy = one.outcomes, one.judgement, chosen.accuracy
                listed = applying(expectations_of(chosen), description)
                findings = findings_of_case(one, chosen, process, lambda p: shlex.join(p.repeat(chosen.name)), listed)
        except TargetUnavailable as error:
            fail(f"{chosen.name} {could_not_start(chosen, str(error))}", 3)
    from .explanation import print_explanation

    print_explanation(probe, outcomes, judgement, console_on(sys.stdout), accuracy, findings)


def _emit_node_test(probe: Probe) -> None:
    """Print a case as a node test of onnx."""
    from ...reports.upstream.node_test import node_test

    if not isinstance(probe, SpecProbe) or probe.wrap:
        fail(f"there is no node test of {probe.id}: only cases of profiles and their like have one")
    try:
        put(node_test(probe.spec))
    except UserError as error:
        fail(f"{probe.id}: {error}")


def _emit_script(probe: Probe, target: Target | None) -> None:
    """Print a script of a case. If the target can have none, write a test-case directory and end with 2."""
    prepared = probe.prepare()
    script = prepared.script(target)
    if script is not None:
        put(script)
        return
    if not prepared.trials or isinstance(probe, DirectoryProbe):
        fail(f"there is no script of {probe.id}: its model and its inputs are files already")
    trial = prepared.trials[0]
    if trial.course is not None:
        fail(f"there is no script of {probe.id}: it has sessions of its own, which only onnxspec runs")
    folder, name = Path(slug(probe.id)), target.name if target is not None else "TARGET"
    try:
        data = data_sets_of(trial) if trial.violation is None else [DataSet(feed.fed, {}) for feed in trial.feeds]
        write_directory(folder, prepared.jobs[0].model, data)
    except FileExistsError:
        fail(f"{folder} already exists: remove it, or run the command in another folder")
    except OSError as error:
        fail(f"{folder} cannot be written: {why(error)}")
    fail(
        f"there is no script of {probe.id} for {name}: scripts run one node on onnxruntime, onnx.reference or an"
        f" adapter. The case is now in {folder}, in the form of ONNX's own test cases: model.onnx, inputs, expected"
        " outputs.",
        lines=[f"Run the model and compare its outputs, or: onnxspec run --case ./{folder} --target {name}"],
    )


def _probe_of(case: str) -> Probe:
    """Return the case of that id, or the only one whose id begins so.

    Cases of all profiles take seconds to build, so they are searched after those of core.
    """
    names, origins = expanded([case])
    if not names:
        fail(f"{case[1:]} names no case")
    given, *more = names
    everything = operator_names()
    operators = [op for op in everything if _begin_alike(given, f"{document_of(op).prefix}-")]
    probes: Sequence[Probe] = ()
    if operators and not is_portable(given):
        with contextlib.suppress(UnknownName):
            probes = select_probes(Selection(cases=(f"{given}*", *more), origins=origins), operators)
    if not probes:  # an error names the case as it was given
        probes = select_probes(Selection(cases=(given, *more), origins=origins), operators or everything)
    if len(probes) > 1:
        ids = [probe.id for probe in probes]
        rest = [f"... and {len(ids) - _NAMED} more"] if len(ids) > _NAMED else []
        fail(f"{len(ids)} cases begin like {case!r}:", lines=[*ids[:_NAMED], *rest])
    return probes[0]


def _begin_alike(text: str, prefix: str) -> bool:
    return text.startswith(prefix) or prefix.startswith(text)

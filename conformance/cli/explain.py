"""``onnxspec explain``: one case, step by step."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ...reference import operator_names
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
from .terminal import console_on, fail, put

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
    """Print a script of a case. End the command if there can be none."""
    prepared = probe.prepare()
    script = prepared.script(target)
    if script is not None:
        put(script)
        return
    if not prepared.trials or isinstance(probe, DirectoryProbe):
        fail(f"there is no script of {probe.id}: its model and its inputs are files already")
    if prepared.trials[0].course is not None:
        fail(f"there is no script of {probe.id}: it has sessions of its own, which only onnxspec runs")
    written = shlex.join(["onnxspec", "generate", "--all", "--case", probe.text, "--out", slug(probe.id)])
    fail(
        f"{target.name if target is not None else probe.id} has no script: they are for single nodes on onnxruntime, "
        f"onnx.reference and adapters. Write the case as one of ONNX's own test cases: {written}"
    )


def _probe_of(case: str) -> Probe:
    """Return the case of that id, or the only one whose id begins so."""
    names = expanded([case])
    if not names:
        fail(f"{case[1:]} names no case")
    probes: Sequence[Probe] = ()
    if len(names) == 1 and not is_portable(names[0]):
        with contextlib.suppress(UnknownName):
            probes = select_probes(Selection(cases=(f"{names[0]}*",)), operator_names())
    if not probes:  # an error names the case as it was given
        probes = select_probes(Selection(cases=names), operator_names())
    if len(probes) > 1:
        ids = [probe.id for probe in probes]
        rest = [f"... and {len(ids) - _NAMED} more"] if len(ids) > _NAMED else []
        fail(f"{len(ids)} cases begin like {case!r}:", lines=[*ids[:_NAMED], *rest])
    return probes[0]

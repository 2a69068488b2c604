"""``onnxspec explain``: one case, step by step."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from ..reference import EXTENDED, OPERATORS
from .cli import TargetsFile, _fail, _put, _targets, app
from .display import console_on
from .explainer import Explainer
from .probe import Probe
from .process import TargetProcess, TargetUnavailable
from .selection import Selection, UnknownName, select_probes
from .stream import Tried, tried
from .target import ACCURACY, TargetError
from .wrap_probe import wrapped_probes

__all__ = ["explain"]

_EFFORT = 2000  # hypotheses that are tried on the case


@app.command()
def explain(
    case: Annotated[str, typer.Argument(metavar="CASE", help="Case id; a unique beginning of one is enough.")],
    target: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--target", "-t", metavar="TARGET", help="Show what this target returns, too."),
    ] = None,
    emit: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--emit", metavar="script", help="Write a script that needs only onnx, NumPy and the runtime."),
    ] = None,
    targets_file: TargetsFile = None,
) -> None:
    """Show one case, step by step.

    Prints its node, its clauses, and the expected gates at every step beside what a target returned.
    """
    probe = _probe_of(case)
    try:
        chosen = _targets([target], targets_file)[0] if target else None
    except TargetError as error:
        _fail(str(error))
    if chosen is not None and chosen.wrap:
        lane = wrapped_probes([probe], chosen.wrap)
        if not lane or emit is not None:
            _fail(f"the wrap {chosen.wrap!r} cannot be put around {'a script' if emit else probe.id}")
        (probe,) = lane
    if emit is not None:
        if emit != "script":
            _fail(f"unknown form {emit!r} of --emit; there is: script")
        script = probe.prepare().script
        assert script is not None
        _put(script(chosen))
        return
    one: Tried | None = None
    if chosen is not None:
        try:
            with TargetProcess(chosen) as process:
                process.start()
                (one,) = tried(process, [probe], chosen.accuracy)
        except TargetUnavailable as error:
            _fail(f"{chosen.name} could not start: {error}", 3)
    from .explanation import explain as explain_case

    accuracy = chosen.accuracy if chosen is not None else ACCURACY
    diagnosis = Explainer(accuracy, _EFFORT).explain(one) if one is not None else ()
    judgement, outcomes = (one.judgement, one.outcomes) if one is not None else (None, ())
    explain_case(probe, outcomes, judgement, console_on(sys.stdout), accuracy, diagnosis)


def _probe_of(case: str) -> Probe:
    """The case of that id, or of the only one that begins so."""
    everything = (*OPERATORS, *EXTENDED)
    try:
        found = select_probes(Selection(cases=(case,)), everything)
    except UnknownName as unknown:
        try:
            found = select_probes(Selection(cases=(f"{case}*",)), everything)
        except UnknownName:
            _fail(str(unknown))
    if len(found) > 1:
        _fail(f"{len(found)} cases begin like {case!r}: {', '.join(p.id for p in found[:3])}, ...")
    return found[0]

"""``onnxspec explain``: one case, step by step."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Optional

import typer

from ..reference import EXTENDED, OPERATORS
from .command import TargetsFile, app, fail, put, targets_of
from .display import console_on, could_not_start
from .explainer import Explainer
from .probe import Probe
from .process import TargetProcess, TargetUnavailable
from .selection import Selection, UnknownName, select_probes
from .stream import Tried, tried
from .target import ACCURACY, TargetError
from .wrap_probe import wrapped_probes

__all__ = ["ambiguous", "explain"]

_EFFORT = 2000  # hypotheses that are tried on the case
_NAMED = 3


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
        chosen = targets_of([target], targets_file)[0] if target else None
    except TargetError as error:
        fail(str(error))
    if chosen is not None and chosen.wrap:
        lane = wrapped_probes([probe], chosen.wrap)
        if not lane or emit is not None:
            fail(f"the wrap {chosen.wrap!r} cannot be put around {'a script' if emit else probe.id}")
        (probe,) = lane
    if emit is not None:
        if emit != "script":
            fail(f"unknown form {emit!r} of --emit; there is: script")
        script = probe.prepare().script
        assert script is not None
        put(script(chosen))
        return
    one: Tried | None = None
    if chosen is not None:
        try:
            with TargetProcess(chosen) as process:
                process.start()
                (one,) = tried(process, [probe], chosen.accuracy)
        except TargetUnavailable as error:
            fail(f"{chosen.name} {could_not_start(chosen, str(error))}", 3)
    from .explanation import explain as explain_case

    accuracy = chosen.accuracy if chosen is not None else ACCURACY
    diagnosis = Explainer(accuracy, _EFFORT).explain(one) if one is not None else ()
    judgement, outcomes = (one.judgement, one.outcomes) if one is not None else (None, ())
    explain_case(probe, outcomes, judgement, console_on(sys.stdout), accuracy, diagnosis)


def _probe_of(case: str) -> Probe:
    """The case of that id, or of the only one that begins so.

    Only where no case of core begins so those of all profiles are built, which takes seconds; and where the operator is
    known, those of the others are left alone.
    """
    everything = (*OPERATORS, *EXTENDED)
    about = [op for op in everything if case.startswith(f"{op.lower()}-")] or everything
    try:
        found = select_probes(Selection(cases=(f"{case}*",)), about)
    except UnknownName:
        try:
            found = select_probes(Selection(cases=(case,)), about)
        except UnknownName as unknown:  # which names the case as it was given
            fail(str(unknown))
    if len(found) > 1:
        fail(ambiguous(case, [probe.id for probe in found]))
    return found[0]


def ambiguous(case: str, ids: Sequence[str]) -> str:
    """That several cases begin so."""
    more = ", ..." if len(ids) > _NAMED else ""
    return f"{len(ids)} cases begin like {case!r}: {', '.join(ids[:_NAMED])}{more}"

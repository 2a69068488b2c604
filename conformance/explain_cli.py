"""``onnxspec explain``: one case, step by step."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from ..cases import build_case
from ..cases.wrapping import can_wrap, wrap
from .cli import TargetsFile, _fail, _put, _targets, app
from .diagnosis import DIAGNOSED, Search, witness_of
from .display import console_on
from .extended_probe import extended_probes
from .probe import SpecProbe
from .process import Job, Outcome, TargetProcess, TargetUnavailable
from .selection import Selection, UnknownName, select
from .target import ACCURACY, TargetError
from .verdict import judge

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
    try:
        specs = select(Selection(cases=(case,)))
    except UnknownName as unknown:
        try:
            specs = select(Selection(cases=(f"{case}*",)))
        except UnknownName:
            if any(probe.id.startswith(case) for probe in extended_probes("core")):
                _fail(f"{case} is a case of ExtendedLSTM: onnxspec run --case '{case}*' --target quark shows it")
            _fail(str(unknown))
    try:
        chosen = _targets([target], targets_file)[0] if target else None
    except TargetError as error:
        _fail(str(error))
    if len(specs) > 1:
        _fail(f"{len(specs)} cases begin like {case!r}: {', '.join(s.id for s in specs[:3])}, ...")
    built = build_case(specs[0])
    if chosen is not None and chosen.wrap:
        if not can_wrap(specs[0], chosen.wrap) or emit is not None:
            _fail(f"the wrap {chosen.wrap!r} cannot be put around {'a script' if emit else specs[0].id}")
        built = wrap(built, chosen.wrap)
    if emit is not None:
        if emit != "script":
            _fail(f"unknown form {emit!r} of --emit; there is: script")
        from .script import script_of

        _put(script_of(built, chosen))
        return
    outcomes: list[Outcome | None] = [None, None]
    if chosen is not None:
        jobs = [Job(t.key, t.model, tuple(f.fed for f in t.feeds)) for t in (built.trial, built.twin) if t]
        try:
            with TargetProcess(chosen) as process:
                process.start()
                outcomes[: len(jobs)] = list(process.run(jobs))
        except TargetUnavailable as error:
            _fail(f"{chosen.name} could not start: {error}", 3)
    from .explanation import explain as explain_case

    first, twin = outcomes
    accuracy = chosen.accuracy if chosen is not None else ACCURACY
    judgement = judge(built, first, twin, accuracy) if first is not None else None
    diagnosis: tuple[str, ...] = ()
    if first is not None and judgement is not None and judgement.verdict in DIAGNOSED:
        probe = SpecProbe(specs[0])
        witness = witness_of(probe.id, built.trial, first, probe.clauses, probe.size)
        found = Search(accuracy, _EFFORT).explain(witness) if witness is not None else None
        diagnosis = tuple(mistake.id for mistake in found or ())
    explain_case(built, first, twin, judgement, console_on(sys.stdout), accuracy, diagnosis)

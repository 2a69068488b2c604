"""``onnxspec quantize``: what the deployment of an LSTM as AMD Quark's ExtendedLSTM loses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer
from numpy.typing import NDArray
from rich.box import SIMPLE
from rich.table import Table

from ..probes.naming import is_portable
from ..probes.probe import SpecProbe
from ..probes.selection import Selection, UnknownName, select_probes
from ..running.quantized import (
    Form,
    NotQuantizable,
    Quantized,
    as_extended,
    as_qdq,
    documented,
    kernel_rows,
    measure,
    quantize,
    run_rows,
)
from ..targets.target import Target, TargetError
from ..workers.process import Outcome, TargetUnavailable
from .command import TargetsFile, app, targets_of
from .display import could_not_start
from .explain import ambiguous
from .terminal import console_on, fail, say, warn

__all__ = ["quantize_command"]


@app.command("quantize")
def quantize_command(
    case: Annotated[str, typer.Argument(metavar="CASE", help="Id of an LSTM case; a unique beginning is enough.")],
    target: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates it on Python 3.10
        typer.Option("--target", "-t", metavar="TARGET", help="Runs the ExtendedLSTM; quark where it starts."),
    ] = None,
    qdq: Annotated[str, typer.Option("--qdq", metavar="TARGET", help="Runs the QDQ model.")] = "onnxruntime",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", metavar="DIR", help="Write both models there."),
    ] = None,
    targets_file: TargetsFile = None,
) -> None:
    """Say what an LSTM case loses as an ExtendedLSTM.

    It is quantized as AMD Quark's producer does, and run. Ranges are calibrated on the case's own data; each
    row of a batch is run alone, since the shipped kernel takes one. Errors are against the float LSTM in exact
    arithmetic: as numbers, in units of y_scale, and in radii of accuracy classes of float32, by which the float
    LSTM itself would be judged.
    """
    try:
        name = case if "*" in case or is_portable(case) else f"{case}*"
        specs = [p.spec for p in select_probes(Selection(ops=("LSTM",), cases=(name,)), ()) if isinstance(p, SpecProbe)]
        if len(specs) > 1:
            ambiguous(case, [spec.id for spec in specs])
        if not specs:
            fail(f"{case} is a directory: give the id or the JSON of an LSTM case")
        chosen = targets_of([target or "quark"], targets_file)[0]
        by_qdq = targets_of([qdq], targets_file)[0]
        q = quantize(specs[0])
    except (UnknownName, TargetError, NotQuantizable) as error:
        fail(str(error))
    extended, ordinary = as_extended(q), as_qdq(q)
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
            (out / "extended_lstm.onnx").write_bytes(extended)
            (out / "qdq.onnx").write_bytes(ordinary)
        except OSError as error:
            fail(f"{out}: {error.strerror or error}")
    say(q.case)
    T, N, I = q.inputs["X"].shape
    say(f"  X [{T},{N},{I}], hidden_size {q.attributes['hidden_size']}, bidirectional")
    for name in "xwrby":
        scale, zero_point = q.attributes[f"{name}_scale"], q.attributes[f"{name}_zero_point"]
        say(f"  {name.upper()}: scale {scale:.8g}, zero point {zero_point}")
    for words in q.dropped:
        warn(f"  the producer leaves out: {words}", "yellow")
    if q.changed > 1e-9:
        warn(f"  which alone changes Y by up to {q.changed:.3g}; errors below leave that out too", "yellow")
    forms = [measure(q, "as documented", documented(q))]
    theirs = _run(q, extended, chosen, required=target is not None)
    forms.append(measure(q, chosen.name, theirs) if theirs is not None else measure(q, "as shipped", kernel_rows(q)))
    try:
        through = run_rows(q, ordinary, by_qdq)
    except TargetUnavailable as error:
        through = Outcome(q.case, "unavailable", message=str(error))
    if isinstance(through, Outcome):
        warn(f"{by_qdq.name} does not run the QDQ model: {through.status}: {through.message}", "yellow")
    else:
        forms.append(measure(q, f"QDQ on {by_qdq.name}", through))
    console_on(sys.stdout).print(_table(forms, q.unit), crop=False)
    say(_verdict(forms, q.unit, float(np.abs(q.exact).max())))


def _run(q: Quantized, model: bytes, target: Target, required: bool) -> NDArray[Any] | None:
    """Y of the target; None where it is not there and was not asked for by name."""
    try:
        result = run_rows(q, model, target)
    except TargetUnavailable as error:
        if required:
            fail(f"{target.name} {could_not_start(target, str(error))}", 3)
        warn(f"no target quark ({error}): the model of the shipped kernel is used instead", "yellow")
        return None
    if isinstance(result, Outcome):
        fail(f"{target.name} does not run the ExtendedLSTM: {result.status}: {result.message}", 1)
    return result


def _table(forms: Sequence[Form], unit: float) -> Table:
    """A column for each form: terminals are wide enough for three, not for all the figures. Numbers are never cut."""
    table = Table(box=SIMPLE)
    rows = [_figures(form, unit) for form in forms]
    table.add_column("", min_width=max(len(word) for name in rows[0] for word in name.split()))
    for form, figures in zip(forms, rows, strict=True):
        width = max(map(len, figures.values()))
        table.add_column(form.name, justify="right", overflow="fold", min_width=width)
    for name in rows[0]:
        table.add_row(name, *(figures[name] for figures in rows))
    return table


def _figures(form: Form, unit: float) -> dict[str, str]:
    """The facts about a form, by name."""
    numbers = {
        "largest error": form.largest,
        "in units": form.largest / unit,
        "mean, units": form.mean / unit,
        "rms, units": form.rms / unit,
        **{f"radii of {accuracy}": ratio for accuracy, ratio in form.radii.items()},
    }
    return {name: f"{number:.3g}" for name, number in numbers.items()}


def _verdict(forms: list[Form], unit: float, largest: float) -> str:
    """In a sentence what the deployed form loses."""
    ideal, deployed = forms[0], forms[1]
    held = next((name for name, ratio in deployed.radii.items() if ratio <= 1), None)
    within = (
        f"as accurate as class {held} allows a float LSTM to be" if held else "less accurate than any float32 class"
    )
    more = deployed.largest / ideal.largest if ideal.largest else float("inf")
    return (
        f"{deployed.name} is off by {deployed.largest:.3g} at most ({deployed.largest / unit:.3g} units of y_scale, "
        f"{deployed.largest / largest if largest else 0.0:.2g} of the largest output), "
        f"{more:.3g} times what quantization alone costs; {within}."
    )

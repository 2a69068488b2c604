"""``onnxspec quantize``: what each road to a quantized node costs in accuracy."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from numpy.typing import NDArray
from rich.box import SIMPLE
from rich.table import Table

from ...cases import build_case
from ...cases.operators.extended_lstm.producer import NotQuantizable, as_extended, quantized
from ...cases.operators.roads import Road, costs, plans
from ...cases.specs.quantizing import quantized_model
from ...reference import Node
from ..checking.check import recurrent_nodes
from ..extraction.capture import CaptureError, capture
from ..extraction.drawing import drawn
from ..extraction.portable import NotPortable, PortableNode, portable
from ..models.content import ModelError, read_content
from ..models.inference import main_scope
from ..probes.naming import is_portable
from ..probes.probe import SpecProbe
from ..probes.selection import Selection, UnknownName, select_probes
from .application import app
from .explain import ambiguous
from .nodes import arrays_of
from .terminal import console_on, fail, put, say, warn, why

_FORMS = ("text", "json")


@dataclass(frozen=True)
class _Float:
    """A float node with its inputs, or why there is none."""

    name: str
    operator: str
    node: Node | None = None
    inputs: Mapping[str, NDArray[Any]] | None = None
    model: bytes = b""
    data: str = ""
    why: str = ""


@app.command("quantize")
def quantize_command(
    what: Annotated[
        str, typer.Argument(metavar="CASE", help="A case, by its id or the beginning of it; or MODEL.onnx, a model.")
    ],
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="DATA.npz", help="Inputs of the model: ranges come from this data."),
    ] = None,
    form: Annotated[str, typer.Option("--format", metavar="|".join(_FORMS), help="In which form to say it.")] = "text",
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE.svg", help="Draw the errors over the steps.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write the quantized models there.")
    ] = None,
) -> None:
    """Say what quantizing a node costs, scheme by scheme.

    A float32 LSTM, GRU or RNN between DequantizeLinear and QuantizeLinear in 8 and 16 bits, an LSTM as
    DynamicQuantizeLSTM and as AMD Quark's ExtendedLSTM. Ranges are calibrated from the least to the largest number
    of the data, and Y is compared with that of the float node. All of it is computed by the references: no runtime is
    needed, and none is judged.
    """
    if form not in _FORMS:
        fail(f"--format is {' or '.join(_FORMS)}, not {form!r}")
    nodes = _of_model(Path(what), inputs) if what.endswith(".onnx") else _of_case(what, inputs)
    measured: list[tuple[_Float, list[Road]]] = []
    for each in nodes:
        try:
            if each.node is None or each.inputs is None:
                raise NotQuantizable(each.why)
            measured.append((each, costs(each.node, each.inputs)))
        except NotQuantizable as error:
            warn(f"{each.name}  {each.operator}: {error}", "yellow")
    if not measured:
        fail(f"{what} has no node that can be quantized")
    try:
        if out is not None:
            _write_models([each for each, _ in measured], out)
        if picture is not None:
            from ...reports.roads import picture_of_roads

            steps = {each.name: {road.name: road.steps for road in taken} for each, taken in measured}
            picture.write_text(picture_of_roads(steps), encoding="utf-8")
    except OSError as error:
        fail(why(error))
    if form == "json":
        plain = [_plain(each, taken) for each, taken in measured]
        put(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        return
    for each, taken in measured:
        say(f"{each.name}  {each.operator}  ({each.data})")
        console_on(sys.stdout).print(_table(taken), crop=False)
        for note in dict.fromkeys(road.note for road in taken if road.note):
            names = ", ".join(road.name for road in taken if road.note == note)
            say(f"  {names}: {note}")


def _of_case(text: str, inputs: Path | None) -> list[_Float]:
    if inputs is not None:
        fail("--inputs goes with a model; a case brings its own")
    try:
        name = text if "*" in text or is_portable(text) else f"{text}*"
        specs = [p.spec for p in select_probes(Selection(cases=(name,)), ()) if isinstance(p, SpecProbe)]
    except UnknownName as error:
        fail(str(error))
    if len(specs) > 1:
        ambiguous(text, [spec.id for spec in specs])
    if not specs or specs[0].illegal:
        fail(f"{text} is no legal case of a recurrent operator")
    trial = build_case(specs[0]).trial
    operator = f"{specs[0].op}-{specs[0].version}"
    return [_Float(specs[0].id, operator, trial.node, trial.feeds[-1].inputs, trial.model, "the case's own numbers")]


def _of_model(file: Path, inputs: Path | None) -> list[_Float]:
    """The recurrent nodes of a model, each with what flows into it, or with numbers that are drawn."""
    try:
        content = read_content(file)
        located = list(recurrent_nodes(main_scope(content)))
        nodes = [_portable(each) for each in located]
        there = [node for node in nodes if isinstance(node, PortableNode)]
        captured = capture(content, there, arrays_of(inputs)) if inputs is not None and there else None
    except ModelError as error:
        fail(f"{file} {error}")
    except CaptureError as error:
        fail(f"{file}: {error}")
    if not nodes:
        fail(f"{file} has no recurrent node")
    runs = iter(captured or ())
    return [
        each if isinstance(each, _Float) else _flowing(each, None if captured is None else next(runs)) for each in nodes
    ]


def _portable(located: Any) -> PortableNode | _Float:
    try:
        return portable(located)
    except NotPortable as error:
        return _Float(located.path, located.node.op_type, why=str(error))


def _flowing(node: PortableNode, captured: Any) -> _Float:
    name = node.operator.name
    if captured is not None and not captured.runs:
        return _Float(node.path, name, why=captured.why)
    try:
        run = drawn(node)[0] if captured is None else captured.runs[0]
    except NotPortable as error:
        return _Float(node.path, name, why=str(error))
    data = "random data" if captured is None else "your data"
    return _Float(node.path, name, node.read.node, node.read.bind(run), node.model, data)


def _write_models(nodes: Sequence[_Float], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(nodes, 1):
        for name, model in _models(each):
            (folder / f"{f'node{number}.' if len(nodes) > 1 else ''}{name}.onnx").write_bytes(model)


def _models(each: _Float) -> Iterator[tuple[str, bytes]]:
    assert each.node is not None
    assert each.inputs is not None
    for plan in plans(each.node, each.inputs):
        if plan.node is not None and plan.node.codecs:
            yield plan.name.lower().replace(" ", "-"), quantized_model(each.model, plan.node, plan.inputs)
    with contextlib.suppress(NotQuantizable):
        yield "extended-lstm", as_extended(quantized(each.node, each.inputs))


def _table(taken: Sequence[Road]) -> Table:
    """A row for each road. Numbers are never cut."""
    table = Table(box=SIMPLE)
    table.add_column("scheme", overflow="fold")
    for title in ("largest error", "mean", "rms", "signal to noise"):
        table.add_column(title, justify="right", min_width=8)
    for road in taken:
        figures = [f"{number:.3g}" for number in (road.largest, road.mean, road.rms)]
        cells = [*figures, "exact" if math.isinf(road.decibels) else f"{road.decibels:.1f} dB"]
        table.add_row(road.name, *(cells if road.steps else ["-"] * len(cells)))
    return table


def _plain(each: _Float, taken: Sequence[Road]) -> dict[str, Any]:
    """Plain values for JSON: what there is no number for is null."""
    return {
        "node": each.name,
        "operator": each.operator,
        "data": each.data,
        "roads": [{name: _finite(value) for name, value in asdict(road).items()} for road in taken],
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value

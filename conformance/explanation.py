"""One case explained to a person: its verdict, its node, what it exercises, and its numbers step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx
import onnx.printer
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ..cases import Case, clauses_exercised
from ..reference import Readings, clause_named, mistake_named, readings_touched
from ..reference.readings import OPTIONS
from .process import Outcome
from .stepwise import numbers_of, ratio_text
from .verdict import FAILING, Judgement, Verdict
from .worker import one_line

__all__ = ["explain", "explanation"]

_LINES_SHOWN = 10  # of what the runtime printed, the last ones
_LENGTHS_SHOWN = 16
_WIDEST = 250


def explain(
    case: Case,
    outcome: Outcome | None,
    twin: Outcome | None,
    judgement: Judgement | None,
    console: Console,
    accuracy: str = "standard",
    diagnosis: Sequence[str] = (),
) -> None:
    """Print what :func:`explanation` makes. Tables of numbers keep their width: a number cut short is a wrong one."""
    for part in explanation(case, outcome, twin, judgement, accuracy, diagnosis):
        if isinstance(part, Table) and part.title is not None:
            part.width = Measurement.get(console, console.options.update(max_width=_WIDEST), part).maximum
        console.print(part, crop=False)


def explanation(
    case: Case,
    outcome: Outcome | None = None,
    twin: Outcome | None = None,
    judgement: Judgement | None = None,
    accuracy: str = "standard",
    diagnosis: Sequence[str] = (),
) -> Iterator[RenderableType]:
    """What there is to say about a case, from the verdict down to single numbers.

    outcome, twin
        What a target did with the case's trial and with its twin; None: no target, so only what is expected is shown.
    judgement
        The verdict on them. It also says which readings the target follows; without it the reference's own are used.
    accuracy
        Name of the accuracy class by which the target is judged: whose radii are shown. Raises ValueError for an
        unknown one.
    diagnosis
        Ids of the deviations that together explain what the target returned.
    """
    yield Text(case.spec.id, style="bold")
    yield from _verdict(outcome, judgement)
    for id in diagnosis:
        mistake = mistake_named(id)
        said = mistake.summary if mistake is not None else ""
        yield Text.assemble(("explained by  ", "dim"), (id, "bold"), f": {said}" if said else "")
    yield from _node(case)
    yield from _clauses(case, judgement)
    if case.trial.violation is not None:
        yield _heading("What is forbidden")
        yield Text(f"  {case.trial.violation.summary}; it must be refused, due at {case.trial.violation.due}")
        return
    chosen = Readings(**dict(judgement.readings or {})) if judgement is not None else Readings()
    yield from _readings(case, chosen)
    yield _heading("Numbers")
    yield from numbers_of(case, outcome, twin, accuracy, chosen)


def _verdict(outcome: Outcome | None, judgement: Judgement | None) -> Iterator[Text]:
    if outcome is None:
        yield Text("No target: what is expected is shown alone.")
        return
    if judgement is not None:
        good, bad = judgement.verdict is Verdict.PASS, judgement.verdict in FAILING
        line = Text(judgement.verdict.value, style="bold green" if good else "bold red" if bad else "bold yellow")
        line.append(f" ({judgement.reason})" if judgement.reason else "", style="not bold")
        line.append(f": {one_line(judgement.message)}" if judgement.message else "", style="not bold default")
        yield line
        if judgement.elements:
            counted = f"{judgement.judged} of {judgement.elements} elements judged"
            yield Text(f"{counted}; worst |error| / radius {ratio_text(judgement.worst)}")
        if judgement.flags:
            yield Text("flags: " + ", ".join(judgement.flags))
    else:
        yield Text(f"{outcome.status}: {one_line(outcome.message)}" if outcome.message else outcome.status)
    if outcome.signal:
        yield Text(f"the worker ended by {outcome.signal}")
    printed = [one_line(line, 200) for line in outcome.captured.splitlines() if line.strip()]
    if printed:
        yield Text("the runtime printed:")
        yield from (Text(f"  {line}", style="dim") for line in printed[-_LINES_SHOWN:])


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _node(case: Case) -> Iterator[RenderableType]:
    model = onnx.load_model_from_string(case.trial.model)
    node, (opset,) = case.trial.node, model.opset_import
    yield _heading("Node")
    # onnx before 1.19 prints no node by itself, only a graph that holds it.
    text = onnx.printer.to_text(onnx.helper.make_graph([model.graph.node[0]], "node", [], []))
    yield Text(text[text.index("{") + 1 : text.rindex("}")].strip())
    yield Text(f"{node.operator.name} in a model of opset {opset.version}, IR version {model.ir_version}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("input", "type", "shape", ""):
        table.add_column(title)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = case.trial.feeds[-1].inputs
    for name in dict.fromkeys([*node.operator.inputs, *inputs]):
        array = case.trial.feeds[-1].inputs.get(name)
        if array is None:
            table.add_row(name, "", "", "absent", style="dim")
            continue
        note = "initializer" if name in constants else "graph input"
        if name == "sequence_lens":
            few = ", ".join(map(str, array[:_LENGTHS_SHOWN].tolist()))
            note += f": {few}{', ...' if array.size > _LENGTHS_SHOWN else ''}"
        table.add_row(name, array.dtype.name, _shape(array.shape), note)
    yield table
    others = [name for name in node.operator.outputs if name not in node.outputs]
    not_asked = f"; not asked for: {', '.join(others)}" if others else ""
    yield Text(f"outputs asked for: {', '.join(node.outputs)}{not_asked}")
    if len(case.trial.feeds) > 1:
        before = "; ".join(_shape(feed.inputs["X"].shape) for feed in case.trial.feeds[:-1])
        yield Text(f"the same session runs other data first: X of shape {before}")


def _clauses(case: Case, judgement: Judgement | None) -> Iterator[RenderableType]:
    broken = judgement.clause if judgement is not None else None
    clauses = clauses_exercised(case.spec)
    if broken is not None and broken not in {clause.id for clause in clauses}:
        clauses.insert(0, clause_named(broken))
    yield _heading("Clauses that it exercises")
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for clause in clauses:
        mark, style = ("> ", "bold red") if clause.id == broken else ("  ", None)
        table.add_row(mark + clause.id, clause.status, Text(clause.text), style=style)
    yield table
    if broken is not None:
        yield Text("> marks the clause that is not met")


def _touched(case: Case) -> list[str]:
    return sorted(frozenset().union(*(readings_touched(case.trial.node, feed.inputs) for feed in case.trial.feeds)))


def _readings(case: Case, chosen: Readings) -> Iterator[RenderableType]:
    touched = _touched(case)
    if not touched:
        return
    yield _heading("Open questions that it touches")
    for name in touched:
        options = " or ".join(OPTIONS[name])
        about = ", ".join(clause.id for clause in clauses_exercised(case.spec) if clause.reading == name)
        yield Text(f"  {name}: {options}; here: {getattr(chosen, name)}" + (f" ({about})" if about else ""))


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"

"""One case explained to a person: its node, what it exercises, and what stands in the cell at every step, beside what a
target returned.

Everything here is computed as the verdict is computed, from the same expectations; it only shows single elements of
them. Inside this module tensors have one form whatever the node's layout: Y is (T, D, N, H), states are (D, N, H).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import onnx.printer
from numpy.typing import NDArray
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ..cases import Case, Feed, clauses_exercised
from ..reference import Agreement, Configuration, Expectation, Node, Readings, clause_named, compare, configure, expect
from ..reference.gates import Steps, steps_of
from ..reference.readings import OPTIONS
from .process import Outcome
from .verdict import FAILING, Judgement, Verdict
from .worker import one_line

__all__ = ["explain", "explanation"]

_STEPS_SHOWN = 16  # of a longer sequence its beginning, its end, and what is around the steps of interest
_AROUND = 3
_LINES_SHOWN = 10
_LENGTHS_SHOWN = 16
_WIDEST = 250


def explain(
    case: Case,
    outcome: Outcome | None,
    twin: Outcome | None,
    judgement: Judgement | None,
    console: Console,
    accuracy: str = "standard",
) -> None:
    """Print what :func:`explanation` makes. Tables of numbers keep their width: a number cut short is a wrong one."""
    for part in explanation(case, outcome, twin, judgement, accuracy):
        if isinstance(part, Table) and part.title is not None:
            part.width = Measurement.get(console, console.options.update(max_width=_WIDEST), part).maximum
        console.print(part, crop=False)


def explanation(
    case: Case,
    outcome: Outcome | None = None,
    twin: Outcome | None = None,
    judgement: Judgement | None = None,
    accuracy: str = "standard",
) -> Iterator[RenderableType]:
    """What there is to say about a case, from the verdict down to single numbers.

    outcome, twin
        What a target did with the case's trial and with its twin; None: no target, so only what is expected is shown.
    judgement
        The verdict on them. It also says which readings the target follows; without it the reference's own are used.
    accuracy
        Name of the accuracy class by which the target is judged: whose radii are shown. Raises ValueError for an
        unknown one.
    """
    yield Text(case.spec.id, style="bold")
    yield from _verdict(outcome, judgement)
    yield from _node(case)
    yield from _clauses(case, judgement)
    chosen = Readings(**dict(judgement.readings or {})) if judgement is not None else Readings()
    yield from _readings(case, chosen)
    yield from _numbers(case, outcome, twin, accuracy, chosen)


# The parts in words.


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
            yield Text(f"{counted}; worst |error| / radius {_ratio_text(judgement.worst)}")
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
    yield Text(onnx.printer.to_text(model.graph.node[0]).strip())
    yield Text(f"{node.operator.name} in a model of opset {opset.version}, IR version {model.ir_version}")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("input", "type", "shape", ""):
        table.add_column(title)
    constants = {tensor.name for tensor in model.graph.initializer}
    for name in node.operator.inputs:
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
    yield Text(f"outputs asked for: {', '.join(node.outputs)}" + (f"; not asked for: {', '.join(others)}" if others else ""))
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
        mark = "> " if clause.id == broken else "  "
        table.add_row(mark + clause.id, clause.status, Text(clause.text), style="bold red" if clause.id == broken else None)
    yield table
    if broken is not None:
        yield Text("> marks the clause that is not met")


def _touched(case: Case) -> list[str]:
    return sorted(frozenset().union(*(configure(case.trial.node, feed.inputs).touched for feed in case.trial.feeds)))


def _readings(case: Case, chosen: Readings) -> Iterator[RenderableType]:
    touched = _touched(case)
    if not touched:
        return
    yield _heading("Open questions that it touches")
    for name in touched:
        options = " or ".join(OPTIONS[name])
        about = ", ".join(clause.id for clause in clauses_exercised(case.spec) if clause.reading == name)
        yield Text(f"  {name}: {options}; here: {getattr(chosen, name)}" + (f" ({about})" if about else ""))


# The numbers.


@dataclass(frozen=True)
class _Run:
    """One run of a session, with all outputs expected, and those that came back in the right form."""

    title: str
    node: Node
    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class _Comparison:
    """A run beside what it must be; tensors in this module's form."""

    run: _Run
    configuration: Configuration
    steps: tuple[Steps, ...]
    expectations: tuple[Expectation, ...]
    outputs: Mapping[str, NDArray[Any]]

    def agreements(self, conventions: bool) -> list[Agreement]:
        """How the outputs agree with what is demanded, or with what is only convention."""
        return [
            compare(e, self.outputs[e.output])
            for e in self.expectations
            if e.output in self.outputs and _conventional(e) == conventions
        ]

    @property
    def worst(self) -> float:
        return max((a.worst for a in self.agreements(False)), default=0.0)


def _conventional(expectation: Expectation) -> bool:
    return clause_named(expectation.clause).status == "convention"


def _runs(case: Case, outcome: Outcome | None, twin: Outcome | None) -> list[_Run]:
    """The runs that are judged: where the twin's outputs are the same bit for bit, it stands for the case's last run,
    as it has the Y from which every step can be judged."""
    feeds = case.trial.feeds
    if outcome is None or outcome.status != "ran" or not outcome.outputs:
        return [_run("", case.trial.node, feeds[-1], ())]
    runs = []
    for number, (feed, lists) in enumerate(zip(feeds, outcome.outputs, strict=False), 1):
        for repeat, arrays in enumerate(lists, 1):
            title = f"Run {number} of {len(feeds)} of the session" if len(feeds) > 1 else ""
            if len(lists) > 1:
                title = f"{title or 'The same run'}: result {repeat} of {len(lists)} that differ"
            runs.append(_run(title, case.trial.node, feed, arrays))
    if case.twin is not None and twin is not None and twin.status == "ran" and twin.outputs and twin.outputs[-1]:
        other = _run("", case.twin.node, case.twin.feeds[-1], twin.outputs[-1][0])
        same = all(
            name in other.outputs and array.tobytes() == other.outputs[name].tobytes()
            for name, array in runs[-1].outputs.items()
        )
        if same and "Y" in other.outputs and len(runs[-1].outputs) == len(case.trial.node.outputs):
            title = "Y is that of the same node with all outputs asked for: what both return is equal bit for bit"
            runs[-1] = replace(other, title=title)
    return runs


def _run(title: str, node: Node, feed: Feed, arrays: Sequence[NDArray[Any] | None]) -> _Run:
    c = configure(node, feed.inputs)
    outputs = {
        name: array
        for name, array in zip(node.outputs, arrays, strict=False)
        if array is not None and array.dtype == c.format.dtype and array.shape == _layout_shape(c, name)
    }
    return _Run(title, replace(node, outputs=node.operator.outputs), feed.inputs, outputs)


def _layout_shape(c: Configuration, name: str) -> tuple[int, ...]:
    D = len(c.directions)
    if name == "Y":
        return (c.T, D, c.N, c.H) if c.layout == 0 else (c.N, c.T, D, c.H)
    return (D, c.N, c.H) if c.layout == 0 else (c.N, D, c.H)


def _plain_form(c: Configuration, name: str, tensor: Any) -> Any:
    """A tensor, or a number, of the node's layout in this module's form."""
    if c.layout == 0 or tensor is None:
        return tensor
    return tensor.transpose(*((1, 2, 0, 3) if name == "Y" else (1, 0, 2)))


def _place(c: Configuration, name: str, index: tuple[int, ...]) -> str:
    """An element of this module's form as it is called in the node's layout."""
    if c.layout == 1:
        index = (index[2], index[0], index[1], index[3]) if name == "Y" else (index[1], index[0], index[2])
    return f"{name}[{', '.join(map(str, index))}]"


def _compared(run: _Run, accuracy: str, readings: Readings) -> _Comparison:
    c = configure(run.node, run.inputs, readings)
    expectations = tuple(
        replace(
            e,
            number=_plain_form(c, e.output, e.number),
            about=_plain_form(c, e.output, e.about),
            weak=_plain_form(c, e.output, e.weak),
        )
        for e in expect(run.node, run.inputs, run.outputs, accuracy, readings)
    )
    steps = steps_of(run.node, run.inputs, run.outputs.get("Y"), readings)
    return _Comparison(run, c, steps, expectations, {n: _plain_form(c, n, a) for n, a in run.outputs.items()})


def _numbers(
    case: Case, outcome: Outcome | None, twin: Outcome | None, accuracy: str, readings: Readings
) -> Iterator[RenderableType]:
    comparisons = [_compared(run, accuracy, readings) for run in _runs(case, outcome, twin)]
    # Of several runs the one that is worst, as in the verdict.
    shown = max(comparisons, key=lambda comparison: comparison.worst)
    c = shown.configuration
    yield _heading("Numbers")
    if shown.run.title:
        yield Text(shown.run.title)
    if not c.N:
        yield Text("The batch has no rows: every output is empty.")
        return
    parting = _parting(shown)
    if outcome is not None and outcome.status == "ran":
        yield _parting_line(shown, parting)
    if not c.T:
        yield Text("The sequence has no steps: there are no gates.")
    elif "Y" in shown.outputs:
        yield Text("Each step is computed from the Y that the target reported for the step before.")
    else:
        yield Text("Each step is computed from the one before it.")
    focus = _focus(shown)
    places = [focus] if parting is None or parting[1][-3:] == focus else [focus, parting[1][-3:]]
    for place in places:
        yield Text()
        if c.T:
            yield _steps_table(shown, place, parting)
        yield _states_table(shown, place)


def _focus(comparison: _Comparison) -> tuple[int, int, int]:
    """Direction, row and unit of the worst element: of what fails, then of what breaks a convention, then of what is
    right but not exactly."""
    demanded, conventional = comparison.agreements(False), comparison.agreements(True)
    failing = [[a for a in group if a.worst > 1] for group in (demanded, conventional)]
    for group in (*failing, demanded):
        worst = max(group, key=lambda a: a.worst, default=None)
        if worst is not None and worst.index is not None:
            direction, row, unit = worst.index[-3:]
            return direction, row, unit
    return 0, 0, 0


def _part(e: Expectation, index: Any) -> Expectation:
    """An expectation of some elements only."""
    number = replace(
        e.number,
        value=e.number.value[index],
        radius=np.broadcast_to(e.number.radius, e.number.value.shape)[index],
        doubt=None if e.number.doubt is None else np.broadcast_to(e.number.doubt, e.number.value.shape)[index],
    )
    about, weak = (None if mask is None else mask[index] for mask in (e.about, e.weak))
    return replace(e, number=number, about=about, weak=weak)


def _first_outside(e: Expectation, got: NDArray[Any]) -> tuple[int, ...] | None:
    """Index of the first element outside its radius, axis by axis."""
    if compare(e, got).worst <= 1:
        return None
    found: tuple[int, ...] = ()
    for axis in range(got.ndim):
        for k in range(got.shape[axis]):
            one = (slice(None),) * axis + (slice(k, k + 1),)
            if compare(_part(e, one), got[one]).worst > 1:
                e, got, found = _part(e, one), got[one], (*found, k)
                break
    return found


def _parting(comparison: _Comparison) -> tuple[Expectation, tuple[int, ...]] | None:
    """Where target and expectation part first, in processing order: what is expected there, and the element.

    What is demanded comes before convention, Y before the states that are left after it.
    """
    for e in sorted(comparison.expectations, key=_conventional):
        got = comparison.outputs.get(e.output)
        if got is None or compare(e, got).worst <= 1:
            continue
        if e.output != "Y":
            found = _first_outside(e, got)
            return (e, found) if found is not None else None
        rows = np.arange(comparison.configuration.N)
        for step in range(comparison.configuration.T):
            for direction, steps in enumerate(comparison.steps):
                at = (steps.positions[step], direction, rows)
                found = _first_outside(_part(e, at), got[at])
                if found is not None:
                    row, unit = found
                    return e, (int(steps.positions[step, row]), direction, row, unit)
    return None


def _parting_line(comparison: _Comparison, parting: tuple[Expectation, tuple[int, ...]] | None) -> Text:
    c = comparison.configuration
    if not comparison.outputs:
        return Text("No output of the right form came back to be compared.")
    if parting is None:
        judged = sum(a.judged for a in comparison.agreements(False))
        return Text("They part nowhere." if judged else "Nothing could be judged.", style="green" if judged else "yellow")
    e, index = parting
    direction, row, unit = index[-3:]
    step = _step_of(comparison, index) if e.output == "Y" else None
    when = f"step {step} ({c.directions[direction]}" if step is not None else f"the end ({c.directions[direction]}"
    only = "; only a convention says so" if _conventional(e) else ""
    return Text(
        f"They part first at {when}, row {row}, unit {unit}): {_place(c, e.output, index)} is "
        f"{_text(comparison.outputs[e.output][index])}, must be {_text(e.number.value[index])} ({e.clause}{only})",
        style="yellow" if only else "red",
    )


def _step_of(comparison: _Comparison, index: tuple[int, ...]) -> int:
    """The step, in processing order, at which an element of Y is made."""
    position, direction, row, _ = index
    return int(np.flatnonzero(comparison.steps[direction].positions[:, row] == position)[0])


def _shown_steps(T: int, length: int, interesting: set[int]) -> list[int]:
    """The steps to show; all of few, else the ends and what is around the interesting ones."""
    if T <= _STEPS_SHOWN:
        return list(range(T))
    near = {s + k for s in interesting for k in range(-_AROUND, _AROUND + 1)}
    return sorted(s for s in near | {0, 1, 2, length - 1, T - 1} if 0 <= s < T)


def _steps_table(
    comparison: _Comparison, place: tuple[int, int, int], parting: tuple[Expectation, tuple[int, ...]] | None
) -> Table:
    direction, row, unit = place
    c, steps = comparison.configuration, comparison.steps[direction]
    length = int(steps.lengths[row])
    checked = [_checked(comparison, "Y", (int(steps.positions[s, row]), *place)) for s in range(c.T)]
    first = _step_of(comparison, parting[1]) if parting and parting[0].output == "Y" and parting[1][1:] == place else None
    outside = [s for s, found in enumerate(checked) if found.outside]
    # The worst step, and where this element leaves its radius, which others may have done before.
    worst = max(range(c.T), key=lambda s: checked[s].ratio or 0.0, default=0)
    interesting = {worst, *outside[:1], *([first] if first is not None else [])}

    title = f"Step by step, {c.directions[direction]}, row {row}, unit {unit}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    has_target = "Y" in comparison.outputs
    for name in ("", "step", "x", *steps.numbers, "Y must be", "within", *(("got", "error/radius") if has_target else ())):
        table.add_column(name, justify="right", no_wrap=True)
    before = -1
    for s in _shown_steps(c.T, length, interesting):
        if s != before + 1:
            table.add_row("", "...")
        before = s
        found = checked[s]
        gates = [f"{float(numbers[s, row, unit]):.4g}" if s < length else "" for numbers in steps.numbers.values()]
        cells = [">" if s == first else "", str(s) if s < length else "padding", str(steps.positions[s, row]), *gates]
        cells += found.cells if has_target else found.cells[:2]
        style = "bold red reverse" if s == first else "red" if found.outside else "dim" if s >= length else None
        table.add_row(*cells, style=style)
    return table


def _states_table(comparison: _Comparison, place: tuple[int, int, int]) -> Table:
    """What is left after the last step, at one place."""
    c = comparison.configuration
    title = f"After the last step, {c.directions[place[0]]}, row {place[1]}, unit {place[2]}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for name in ("", "must be", "within", "got", "error/radius"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in comparison.run.node.outputs:
        if name == "Y":
            continue
        found = _checked(comparison, name, place)
        cells = found.cells if name in comparison.outputs else found.cells[:2]
        table.add_row(Text(_place(c, name, place)), *cells, style="red" if found.outside else None)
    return table


@dataclass(frozen=True)
class _Checked:
    """One element beside what it must be. `ratio` is None where it is not judged or was not reported."""

    value: float
    radius: float
    got: float | None
    ratio: float | None
    doubtful: bool

    @property
    def outside(self) -> bool:
        return self.ratio is not None and self.ratio > 1

    @property
    def cells(self) -> list[str]:
        """must be, within, got, error/radius."""
        must = ["unjudged", ""] if self.doubtful else [_text(self.value), f"{self.radius:.2g}"]
        got = "" if self.got is None else _text(self.got)
        return [*must, got, "" if self.ratio is None else _ratio_text(self.ratio)]


def _checked(comparison: _Comparison, output: str, index: tuple[int, ...]) -> _Checked:
    one = tuple(slice(k, k + 1) for k in index)
    of_output = [_part(e, one) for e in comparison.expectations if e.output == output]
    e = next((e for e in of_output if e.about is None or e.about.all()), of_output[0])
    got = comparison.outputs.get(output)
    agreement = compare(e, got[one]) if got is not None else None
    return _Checked(
        e.number.value.item(),
        e.number.radius.item(),
        None if got is None else float(got[index]),
        agreement.worst if agreement is not None and agreement.judged else None,
        e.number.doubt is not None and bool(e.number.doubt.all()),
    )


def _text(value: Any) -> str:
    return f"{float(value):.9g}"


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.3g}"


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"

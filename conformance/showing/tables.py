"""Tables of a run for a terminal: gates and states step by step, and the first difference from the expectation."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...reference import Interpretations
from ...reference.operators.operator import dtype_of
from ..judging.divergence import apart, ratio_text
from ..judging.places import format_index
from ..judging.runs import NodeView
from .comparison import Comparison, Unit, comparison_of
from .records import Element

_STEPS_SHOWN = 16  # of a longer sequence only its beginning, its end, and the surroundings of interesting steps
_AROUND = 3


def tables_of(view: NodeView, accuracy: str, interpretations: Interpretations) -> Iterator[RenderableType]:
    """Yield tables of the gates, the states and the outputs around the worst element and the first divergence.

    view
        A node of a case, with the target's outcomes; without outcomes only expectations are shown.
    accuracy, interpretations
        Name of the accuracy class by which the target is judged, and the interpretations that it follows.
    """
    comparison = comparison_of(view, accuracy, interpretations)
    c = comparison.configuration
    if comparison.title:
        yield Text(comparison.title)
    ran = bool(view.outcomes) and view.outcomes[0].status == "ran"
    if not comparison.steps:
        if ran:
            yield _first_line(comparison)
        yield _elements_table(comparison)
        return
    if not c.N:
        yield Text("The batch has no rows: every output is empty.")
        return
    if ran:
        yield _first_line(comparison)
    if not c.T:
        yield Text("The sequence has no steps: there are no gates.")
    else:
        if comparison.main in comparison.run.outputs:
            yield Text(
                f"Each step is computed from the {comparison.main} that the target reported for the step before."
            )
        else:
            yield Text("Each step is computed from the one before it.")
        yield Text("x: which step of X is taken; then gates and states, as the equations name them.")
    for unit in comparison.units():
        yield Text()
        if c.T:
            yield _steps_table(comparison, unit)
        if comparison.states:
            yield _states_table(comparison, unit)


def _cells(element: Element) -> list[str]:
    """Return four cells: expected, bound, actual, error/bound.

    Levels have no bound; their last cell is the distance in levels.
    """
    assert element.must is not None
    got_text, value = apart(element.must if element.got is None else element.got, element.must)
    got = "" if element.got is None else got_text
    if element.convention:
        return [value, "convention", got, "differs (allowed)" if element.outside else ""]
    if element.bounds is not None:
        return [element.right, "", got, "" if element.got is None else f"{element.off}"]
    must = ["inconclusive", ""] if element.undefined else [value, f"{element.within:.2g}"]
    return [*must, got, "" if element.ratio is None else ratio_text(element.ratio)]


def _first_line(comparison: Comparison) -> Text:
    c, first = comparison.configuration, comparison.first
    if not comparison.run.outputs:
        return Text("No output of the right form came back to be compared.")
    if first is None:
        judged = sum(a.judged for a in comparison.agreements(False))
        return Text("They part nowhere.", style="green") if judged else Text("Nothing could be judged.", style="yellow")
    place, e = first.place, first.expectation
    at = place.words
    if comparison.steps:
        direction, row, unit = comparison.axes[place.output].unit(place.index)
        when = f"step {place.step}" if place.step is not None else "the end"
        at = f"{when} ({c.directions[direction]}, row {row}, unit {unit})"
    note = "; only a convention says so" if e.conventional else ""
    element = comparison.check(place.output, place.index)
    must, _, got, _ = _cells(element)
    prefix = "level " if element.levels else ""
    return Text(
        f"First difference at {at or place}: {place} is {prefix}{got}, must be {prefix}{must} ({e.clause}{note})",
        style="yellow" if note else "red",
    )


def _shown_steps(T: int, length: int, interesting: set[int]) -> list[int]:
    """Return the steps to show: all if they are few, else the ends and those around interesting steps."""
    if T <= _STEPS_SHOWN:
        return list(range(T))
    near = {s + k for s in interesting for k in range(-_AROUND, _AROUND + 1)}
    return sorted(s for s in near | {0, 1, 2, length - 1, T - 1} if 0 <= s < T)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _steps_table(comparison: Comparison, unit: Unit) -> Table:
    direction, row, k = unit
    c, steps, main = comparison.configuration, comparison.steps[direction], comparison.main
    length = int(steps.lengths[row])
    lines = list(comparison.lines(unit, range(c.T)))
    first = None
    if comparison.first is not None and comparison.first.place.output == main:
        place = comparison.first.place
        first = place.step if comparison.axes[main].unit(place.index) == unit else None
    outside = [line.step for line in lines if line.outside]
    # The worst step, and the step where this element leaves its radius, possibly later than another element.
    worst = max(range(c.T), key=lambda s: lines[s].ratio or 0.0, default=0)
    interesting = {worst, *outside[:1], *([first] if first is not None else [])}

    has_target = main in comparison.run.outputs
    target_columns = ("got", _error_of(comparison, main)) if has_target else ()
    title = f"Step by step, {c.directions[direction]}, row {row}, unit {k}"
    table = _table(title, "", "step", "x", *steps.numbers, f"{main} must be", "error bound", *target_columns)
    before = -1
    for s in _shown_steps(c.T, length, interesting):
        if s != before + 1:
            table.add_row("", "...")
        before, line = s, lines[s]
        gates = ["" if value is None else f"{value:.4g}" for value in line.values.values()]
        cells = [">" if s == first else "", "padding" if line.padding else str(s), str(line.position), *gates]
        cells += _cells(line) if has_target else _cells(line)[:2]
        style = "dim" if line.padding else None
        if line.outside and not line.convention:
            style = "bold red reverse" if s == first else "red"
        table.add_row(*cells, style=style)
    return table


def _states_table(comparison: Comparison, unit: Unit) -> Table:
    """Return the states of a unit after the last step."""
    direction, row, k = unit
    title = f"After the last step, {comparison.configuration.directions[direction]}, row {row}, unit {k}"
    if comparison.main in comparison.run.outputs:
        title += f", computed from the runtime's own {comparison.main}"
        if comparison.wrong(comparison.main):
            title += ", which is wrong: not the correct final state"
    elements = [(name, comparison.axes[name].element(0, *unit)) for name in comparison.states]
    return _of_elements(comparison, title, elements)


def _elements_table(comparison: Comparison) -> Table:
    """Return the elements of an operator without steps.

    They are the first and the worst wrong element, else the first of each output.
    """
    elements = [comparison.worst_element] if comparison.worst_element is not None else []
    if comparison.first is not None:
        elements.insert(0, (comparison.first.place.output, comparison.first.place.index))
    c = comparison.configuration
    shapes = {name: c.shape_of(name) for name in comparison.run.node.outputs}
    plain = [(name, (0,) * len(shape)) for name, shape in shapes.items() if 0 not in shape]
    return _of_elements(comparison, "Element by element", list(dict.fromkeys(elements or plain)))


def _of_elements(comparison: Comparison, title: str, elements: list[tuple[str, tuple[int, ...]]]) -> Table:
    names = list(dict.fromkeys(name for name, _ in elements))
    table = _table(title, "", "must be", "error bound", "got", _error_of(comparison, *names))
    for name, index in elements:
        element = comparison.check(name, index)
        cells = _cells(element) if name in comparison.run.outputs else _cells(element)[:2]
        table.add_row(Text(format_index(name, index)), *cells, style="red" if element.outside else None)
    return table


def _error_of(comparison: Comparison, *outputs: str) -> str:
    """Return the heading of the error column."""
    levels = {dtype_of(comparison.configuration, output).kind in "iu" for output in outputs}
    return " or ".join(("error/bound", "levels off")[level] for level in sorted(levels))

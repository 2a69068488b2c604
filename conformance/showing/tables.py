"""Tables of a run for a terminal, from its evidence: the first difference, gates step by step, and states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...reference import Interpretations
from ..judging.divergence import apart, ratio_text
from ..judging.runs import NodeView
from .comparison import Comparison, comparison_of
from .evidence import numbers_of, window
from .records import Element, Gates, Numbers, StateElement

_STEPS_SHOWN = 16


def tables_of(view: NodeView, accuracy: str, interpretations: Interpretations) -> Iterator[RenderableType]:
    """Yield tables of the gates, the states and the outputs around the first divergence, else the worst element.

    view
        A node of a case, with the target's outcomes; without outcomes only expectations are shown.
    accuracy, interpretations
        Name of the accuracy class by which the target is judged, and the interpretations that it follows.
    """
    comparison = comparison_of(view, accuracy, interpretations)
    numbers, c, main = numbers_of(comparison), comparison.configuration, comparison.main
    if numbers.title:
        yield Text(numbers.title)
    if comparison.steps and not c.N:
        yield Text("The batch has no rows: every output is empty.")
        return
    if view.outcomes and view.outcomes[0].status == "ran":
        yield _first_line(comparison, numbers)
    if not comparison.steps:
        yield _elements_table("Element by element", comparison.elements())
        return
    if not c.T:
        yield Text("The sequence has no steps: there are no gates.")
    else:
        source = (
            f"the {main} that the target reported for the step before" if numbers.from_reported else "the one before it"
        )
        yield Text(f"Each step is computed from {source}.")
        yield Text("x: which step of X is taken; then gates and states, as the equations name them.")
    yield Text()
    unit = f"{numbers.direction}, row {numbers.row}, unit {numbers.unit}"
    if numbers.gates:
        yield _steps_table(f"Step by step, {unit}", main, numbers.gates, numbers)
    if numbers.states:
        title = f"After the last step, {unit}"
        if numbers.from_reported:
            title += f", computed from the runtime's own {main}"
            if numbers.parting is not None and numbers.parting.output == main and not numbers.parting.convention:
                title += ", which is wrong: not the correct final state"
        yield _elements_table(title, numbers.states)


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


def _first_line(comparison: Comparison, numbers: Numbers) -> Text:
    first = numbers.parting
    if not comparison.run.outputs:
        return Text("No output of the right form came back to be compared.")
    if first is None:
        judged = sum(a.judged for a in comparison.demands)
        return Text("They part nowhere.", style="green") if judged else Text("Nothing could be judged.", style="yellow")
    at = first.where or first.place
    if comparison.steps:
        when = f"step {first.step}" if first.step is not None else "the end"
        at = f"{when} ({numbers.direction}, row {numbers.row}, unit {numbers.unit})"
    note = "; only a convention says so" if first.convention else ""
    must, _, got, _ = _cells(first)
    prefix = "level " if first.levels else ""
    return Text(
        f"First difference at {at}: {first.place} is {prefix}{got}, must be {prefix}{must} ({first.clause}{note})",
        style="yellow" if note else "red",
    )


def _table(title: str, elements: Sequence[Element], *columns: str, got: bool = True) -> Table:
    """Return an empty table with columns for the cells of elements behind its own ones."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    error = " or ".join(("error/bound", "levels off")[level] for level in sorted({e.levels for e in elements}))
    for column in (*columns, "error bound", *(("got", error) if got else ())):
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _steps_table(title: str, main: str, gates: Gates, numbers: Numbers) -> Table:
    first = numbers.parting.step if numbers.parting is not None and numbers.parting.output == main else None
    table = _table(title, gates.lines, "", "step", "x", *gates.names, f"{main} must be", got=numbers.from_reported)
    lines = gates.lines
    worst = max(range(len(lines)), key=lambda k: lines[k].ratio or 0.0)
    centre = worst if first is None else first - lines[0].step
    shown = window(len(lines), _STEPS_SHOWN, centre)
    for k in shown:
        line = lines[k]
        values = ["" if value is None else f"{value:.4g}" for value in line.values.values()]
        cells = [">" if line.step == first else "", "padding" if line.padding else str(line.step), str(line.position)]
        style = "dim" if line.padding else None
        if line.outside and not line.convention:
            style = "bold red reverse" if line.step == first else "red"
        table.add_row(*cells, *values, *_cells(line)[: 4 if numbers.from_reported else 2], style=style)
    if len(shown) < gates.of_steps:
        table.caption = f"{len(shown)} of {gates.of_steps} steps"
    return table


def _elements_table(title: str, elements: Sequence[StateElement]) -> Table:
    table = _table(title, elements, "", "must be")
    for element in elements:
        cells = _cells(element)[: 2 if element.got is None else 4]
        table.add_row(Text(element.place), *cells, style="red" if element.outside else None)
    return table

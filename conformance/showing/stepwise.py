"""The numbers of a case beside what a target returned: gates and states at every step, and where the two part first.

Everything here is computed as the verdict is computed, from the same expectations; it only looks at single elements of
them. Inside this module tensors have one form whatever the node's layout: Y is (T, D, N, H), states are (D, N, H).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...cases import Feed, Trial
from ...reference import Agreement, Expectation, Interpretations, Node, compare, expect, resolve
from ...reference.operators.asking import steps_of
from ...reference.operators.operator import Resolved, dtype_of
from ...reference.recurrent.gates import Steps
from ..judging.divergence import apart, ratio_text, right_levels
from ..workers.process import Outcome

_STEPS_SHOWN = 16  # of a longer sequence its beginning, its end, and what is around the steps of interest
_AROUND = 3


@dataclass(frozen=True)
class _Run:
    """One run of a session, with all outputs expected, and those that came back in the right form."""

    title: str
    node: Node
    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Comparison:
    """A run beside what it must be; tensors in this module's form."""

    run: _Run
    configuration: Resolved
    steps: tuple[Steps, ...]
    expectations: tuple[Expectation, ...]
    outputs: Mapping[str, NDArray[Any]]

    def wrong(self, name: str) -> bool:
        """Tell whether an output is not what is demanded."""
        demanded = [e for e in self.expectations if e.output == name and not e.conventional]
        return any(compare(e, self.outputs[name]).worst > 1 for e in demanded)

    def agreements(self, conventions: bool) -> list[Agreement]:
        """The agreement of outputs with what is demanded, or with what is only convention."""
        return [
            compare(e, self.outputs[e.output])
            for e in self.expectations
            if e.output in self.outputs and e.conventional == conventions
        ]

    @property
    def worst(self) -> float:
        return max((a.worst for a in self.agreements(False)), default=0.0)


def _runs(trials: Sequence[Trial], outcomes: Sequence[Outcome]) -> list[_Run]:
    """The runs that are judged: where the companion's outputs are the same bit for bit, it stands for the case's last
    run, as it has the Y from which every step can be judged."""
    trial = trials[0]
    feeds = trial.feeds
    if not outcomes or outcomes[0].status != "ran" or not outcomes[0].outputs:
        return [_run("", trial.node, feeds[-1], ())]
    runs = []
    for number, (feed, lists) in enumerate(zip(feeds, outcomes[0].outputs, strict=False), 1):
        for repeat, arrays in enumerate(lists, 1):
            title = f"Run {number} of {len(feeds)} of the session" if len(feeds) > 1 else ""
            if len(lists) > 1:
                title = f"{title or 'The same run'}: result {repeat} of {len(lists)} that differ"
            runs.append(_run(title, trial.node, feed, arrays))
    for companion_trial, companion in zip(trials[1:], outcomes[1:], strict=False):
        if companion.status != "ran" or not companion.outputs or not companion.outputs[-1]:
            continue
        other = _run("", companion_trial.node, companion_trial.feeds[-1], companion.outputs[-1][0])
        same = all(
            name in other.outputs and array.tobytes() == other.outputs[name].tobytes()
            for name, array in runs[-1].outputs.items()
        )
        if same and "Y" in other.outputs and len(runs[-1].outputs) == len(trial.node.outputs):
            title = "The case asks for no Y: this is from a run of the same node with all outputs; the others agree"
            runs[-1] = replace(other, title=". ".join(filter(None, (runs[-1].title, title))))
    return runs


def _run(title: str, node: Node, feed: Feed, arrays: Sequence[NDArray[Any] | None]) -> _Run:
    c = resolve(node, feed.inputs)
    named = zip(node.outputs, arrays, strict=True) if len(arrays) == len(node.outputs) else ()
    outputs = {
        name: array
        for name, array in named
        if array is not None and array.dtype == dtype_of(c, name) and array.shape == c.shape_of(name)
    }
    return _Run(title, replace(node, outputs=node.operator.outputs), feed.inputs, outputs)


def _plain_form(c: Resolved, name: str, tensor: Any) -> Any:
    """A tensor, or a number, of the node's layout in this module's form."""
    if c.layout == 0 or tensor is None:
        return tensor
    return tensor.transpose(*((1, 2, 0, 3) if name == "Y" else (1, 0, 2)))


def place_of(c: Resolved, name: str, index: tuple[int, ...]) -> str:
    """An element of this module's form as it is called in the node's layout."""
    if c.layout == 1:
        index = (index[2], index[0], index[1], index[3]) if name == "Y" else (index[1], index[0], index[2])
    return f"{name}[{', '.join(map(str, index))}]"


def _compared(run: _Run, accuracy: str, interpretations: Interpretations) -> Comparison:
    c = resolve(run.node, run.inputs, interpretations)
    expectations = tuple(
        replace(
            e,
            number=_plain_form(c, e.output, e.number),
            about=_plain_form(c, e.output, e.about),
            weak=_plain_form(c, e.output, e.weak),
            open=_plain_form(c, e.output, e.open),
        )
        for e in expect(run.node, run.inputs, run.outputs, accuracy, interpretations)
    )
    steps = steps_of(run.node, run.inputs, run.outputs.get("Y"), interpretations)
    return Comparison(run, c, steps, expectations, {n: _plain_form(c, n, a) for n, a in run.outputs.items()})


def comparison_of(
    trials: Sequence[Trial], outcomes: Sequence[Outcome], accuracy: str, interpretations: Interpretations
) -> Comparison:
    """The worst of the runs of a trial, as in the verdict. Arguments as for :func:`numbers_of`."""
    return max((_compared(run, accuracy, interpretations) for run in _runs(trials, outcomes)), key=lambda c: c.worst)


def numbers_of(
    trials: Sequence[Trial], outcomes: Sequence[Outcome], accuracy: str, interpretations: Interpretations
) -> Iterator[RenderableType]:
    """Tables of the gates, the states and the outputs where a target is worst, and where it departs first.

    trials
        A case's own, and its companion if it has one.
    outcomes
        What the target did with each of them; none: only what is expected is shown.
    accuracy, interpretations
        Name of the accuracy class by which the target is judged, and the meanings that it follows.
    """
    shown = comparison_of(trials, outcomes, accuracy, interpretations)
    c = shown.configuration
    if shown.run.title:
        yield Text(shown.run.title)
    if not c.N:
        yield Text("The batch has no rows: every output is empty.")
        return
    parting = parting_of(shown)
    if outcomes and outcomes[0].status == "ran":
        yield _parting_line(shown, parting)
    if not c.T:
        yield Text("The sequence has no steps: there are no gates.")
    elif "Y" in shown.outputs:
        yield Text("Each step is computed from the Y that the target reported for the step before.")
    else:
        yield Text("Each step is computed from the one before it.")
    if c.T:
        yield Text("x: which step of X is taken; then gates and states, as the equations name them.")
    focus = focus_of(shown)
    places = [focus]
    if parting is not None:
        direction, row, unit = parting[1][-3:]
        places = list(dict.fromkeys([focus, (direction, row, unit)]))
    for place in places:
        yield Text()
        if c.T:
            yield _steps_table(shown, place, parting)
        if len(shown.run.node.outputs) > 1:
            yield _states_table(shown, place)


def focus_of(comparison: Comparison) -> tuple[int, int, int]:
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
    elements, weak, open = (None if each is None else each[index] for each in (e.about, e.weak, e.open))
    return replace(e, number=number, about=elements, weak=weak, open=open)


def _first_outside(e: Expectation, got: NDArray[Any]) -> tuple[int, ...] | None:
    """Index of the first element outside its radius, axis by axis."""
    if compare(e, got).worst <= 1:
        return None
    index: tuple[int, ...] = ()
    for axis in range(got.ndim):
        for k in range(got.shape[axis]):
            one = (slice(None),) * axis + (slice(k, k + 1),)
            if compare(_part(e, one), got[one]).worst > 1:
                e, got, index = _part(e, one), got[one], (*index, k)
                break
    return index


def parting_of(comparison: Comparison) -> tuple[Expectation, tuple[int, ...]] | None:
    """The first place, in processing order, where target and expectation part: what is expected there, and the element.

    What is demanded comes before convention, Y before the states that are left after it.
    """
    for e in sorted(comparison.expectations, key=lambda e: e.conventional):
        got = comparison.outputs.get(e.output)
        if got is None or compare(e, got).worst <= 1:
            continue
        if e.output != "Y":
            index = _first_outside(e, got)
            return (e, index) if index is not None else None
        rows = np.arange(comparison.configuration.N)
        for step in range(comparison.configuration.T):
            for direction, steps in enumerate(comparison.steps):
                at = (steps.positions[step], direction, rows)
                index = _first_outside(_part(e, at), got[at])
                if index is not None:
                    row, unit = index
                    return e, (int(steps.positions[step, row]), direction, row, unit)
    return None


def _parting_line(comparison: Comparison, parting: tuple[Expectation, tuple[int, ...]] | None) -> Text:
    c = comparison.configuration
    if not comparison.outputs:
        return Text("No output of the right form came back to be compared.")
    if parting is None:
        judged = sum(a.judged for a in comparison.agreements(False))
        return Text("They part nowhere.", style="green") if judged else Text("Nothing could be judged.", style="yellow")
    e, index = parting
    direction, row, unit = index[-3:]
    step = step_of(comparison, index) if e.output == "Y" else None
    when = f"step {step} ({c.directions[direction]}" if step is not None else f"the end ({c.directions[direction]}"
    only = "; only a convention says so" if e.conventional else ""
    checked = check(comparison, e.output, index)
    must, _, got, _ = checked.cells
    kind = "level " if checked.levels else ""
    return Text(
        f"First difference at {when}, row {row}, unit {unit}): {place_of(c, e.output, index)} is "
        f"{kind}{got}, must be {kind}{must} ({e.clause}{only})",
        style="yellow" if only else "red",
    )


def step_of(comparison: Comparison, index: tuple[int, ...]) -> int:
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
    comparison: Comparison, place: tuple[int, int, int], parting: tuple[Expectation, tuple[int, ...]] | None
) -> Table:
    direction, row, unit = place
    c, steps = comparison.configuration, comparison.steps[direction]
    length = int(steps.lengths[row])
    checked = [check(comparison, "Y", (int(steps.positions[s, row]), *place)) for s in range(c.T)]
    here = parting is not None and parting[0].output == "Y" and parting[1][1:] == place
    first = step_of(comparison, parting[1]) if parting is not None and here else None
    outside = [s for s, result in enumerate(checked) if result.outside]
    # The worst step, and where this element leaves its radius, which others may have done before.
    worst = max(range(c.T), key=lambda s: checked[s].ratio or 0.0, default=0)
    interesting = {worst, *outside[:1], *([first] if first is not None else [])}

    title = f"Step by step, {c.directions[direction]}, row {row}, unit {unit}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    has_target = "Y" in comparison.outputs
    beside = ("got", _error_of(comparison, "Y")) if has_target else ()
    for name in ("", "step", "x", *steps.numbers, "Y must be", "error bound", *beside):
        table.add_column(name, justify="right", no_wrap=True)
    before = -1
    for s in _shown_steps(c.T, length, interesting):
        if s != before + 1:
            table.add_row("", "...")
        before = s
        result = checked[s]
        gates = [f"{float(numbers[s, row, unit]):.4g}" if s < length else "" for numbers in steps.numbers.values()]
        cells = [">" if s == first else "", str(s) if s < length else "padding", str(steps.positions[s, row]), *gates]
        cells += result.cells if has_target else result.cells[:2]
        style = "dim" if s >= length else None
        if result.outside and not result.convention:
            style = "bold red reverse" if s == first else "red"
        table.add_row(*cells, style=style)
    return table


def _states_table(comparison: Comparison, place: tuple[int, int, int]) -> Table:
    """The states after the last step, at one place."""
    c = comparison.configuration
    title = f"After the last step, {c.directions[place[0]]}, row {place[1]}, unit {place[2]}"
    if "Y" in comparison.outputs:
        title += ", computed from the runtime's own Y"
        if comparison.wrong("Y"):
            title += ", which is wrong: not the correct final state"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    names = [name for name in comparison.run.node.outputs if name != "Y"]
    for title in ("", "must be", "error bound", "got", _error_of(comparison, *names)):
        table.add_column(title, justify="right", no_wrap=True)
    for name in names:
        checked = check(comparison, name, place)
        cells = checked.cells if name in comparison.outputs else checked.cells[:2]
        table.add_row(Text(place_of(c, name, place)), *cells, style="red" if checked.outside else None)
    return table


def _error_of(comparison: Comparison, *outputs: str) -> str:
    """The head of the column of errors."""
    levels = {dtype_of(comparison.configuration, output).kind in "iu" for output in outputs}
    return " or ".join(("error/bound", "levels off")[level] for level in sorted(levels))


@dataclass(frozen=True)
class CheckedElement:
    """One element beside what it must be, or what it is by `convention` alone. `ratio` is None where it is not judged
    or was not reported; `levels` says that it is a level, a whole number."""

    value: float
    radius: float
    got: float | None
    ratio: float | None
    doubtful: bool
    convention: bool = False
    levels: bool = False

    @property
    def outside(self) -> bool:
        return self.ratio is not None and self.ratio > 1

    @property
    def cells(self) -> list[str]:
        """must be, within, got, error/bound; of levels those that are right, nothing, the level, its distance."""
        shown, value = apart(self.value if self.got is None else self.got, self.value)
        must = ["inconclusive", ""] if self.doubtful else [value, f"{self.radius:.2g}"]
        got = "" if self.got is None else shown
        if self.convention:
            return [value, "convention", got, "differs (allowed)" if self.outside else ""]
        if self.levels and not self.doubtful:
            least, most = right_levels(self.value, self.radius)
            off = "" if self.got is None else f"{max(least - self.got, self.got - most, 0):.0f}"
            return [f"{least}" if least == most else f"{least} to {most}", "", got, off]
        return [*must, got, "" if self.ratio is None else ratio_text(self.ratio)]


def check(comparison: Comparison, output: str, index: tuple[int, ...]) -> CheckedElement:
    one = tuple(slice(k, k + 1) for k in index)
    of_output = [_part(e, one) for e in comparison.expectations if e.output == output]
    e = next((e for e in of_output if e.about is None or e.about.all()), of_output[0])
    got = comparison.outputs.get(output)
    agreement = compare(e, got[one]) if got is not None else None
    return CheckedElement(
        e.number.value.item(),
        e.number.radius.item(),
        None if got is None else float(got[index]),
        agreement.worst if agreement is not None and agreement.judged else None,
        e.number.doubt is not None and bool(e.number.doubt.all()),
        e.conventional,
        dtype_of(comparison.configuration, output).kind in "iu",
    )

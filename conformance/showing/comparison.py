"""Comparison of a node's run with the expected outputs: the first and the worst wrong element, and single steps.

All values use the same expectations as the verdict; this module only picks single elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import Feed, Trial
from ...reference import Agreement, Expectation, Interpretations, Node, compare, expect, operator_for, resolve
from ...reference.operators.operator import Resolved, dtype_of
from ...reference.recurrent.agreement import ratios
from ...reference.recurrent.node import Steps
from ..judging.divergence import Divergence, OutputAxes, first_divergence, format_index
from ..judging.runs import NodeRun, NodeView
from .records import FirstDivergence, StateElement, StepLine

Unit = tuple[int, int, int]
"""A direction, a row and a unit."""


@dataclass(frozen=True)
class Comparison:
    """A run with all outputs expected, and with the target's outputs that have the right type and shape."""

    title: str
    run: NodeRun
    configuration: Resolved
    steps: tuple[Steps, ...]
    expectations: tuple[Expectation, ...]

    @property
    def main(self) -> str:
        """The operator's first output, from which each step is judged."""
        return self.run.node.operator.outputs[0]

    @cached_property
    def axes(self) -> dict[str, OutputAxes]:
        return {name: OutputAxes(self.run.node, self.configuration, name) for name in self.run.node.outputs}

    @cached_property
    def ratios(self) -> list[NDArray[np.float64] | None]:
        """|error| / radius by expectation, NaN where it is not judged; None for an output that did not come back."""
        outputs = self.run.outputs
        return [ratios(e, outputs[e.output]) if e.output in outputs else None for e in self.expectations]

    @cached_property
    def demands(self) -> list[Agreement]:
        """The agreement of outputs with demands, not with conventions."""
        outputs = self.run.outputs
        return [compare(e, outputs[e.output]) for e in self.expectations if e.output in outputs and not e.conventional]

    @property
    def worst(self) -> float:
        return max((a.worst for a in self.demands), default=0.0)

    @cached_property
    def first(self) -> Divergence | None:
        """The first divergence: from a demand, else from a convention."""
        for conventional in (False, True):
            expectations = [e for e in self.expectations if e.conventional == conventional]
            divergence = first_divergence(self.run.node, self.configuration, expectations, self.run.outputs)
            if divergence is not None:
                return divergence
        return None

    @property
    def unit(self) -> Unit:
        """The unit to show: of the first divergence, else of the element with the largest error."""
        if self.first is not None:
            output, index = self.first.place.output, self.first.place.index
        else:
            worst = max(self.demands, key=lambda a: a.worst, default=None)
            output, index = self.main, (0,) * len(self.configuration.shape_of(self.main))
            if worst is not None and worst.index is not None:
                output, index = worst.expectation.output, worst.index
        return self.axes[output].unit(index)

    def elements(self) -> list[StateElement]:
        """Return the first divergence, else the first element of each output."""
        if self.first is not None:
            return [self._element(self.first.place.output, self.first.place.index)]
        shapes = {name: self.configuration.shape_of(name) for name in self.run.node.outputs}
        return [self._element(name, (0,) * len(shape)) for name, shape in shapes.items() if 0 not in shape]

    def states(self, unit: Unit) -> list[StateElement]:
        """Return the elements of a unit in all outputs but the first."""
        names = [name for name in self.run.node.outputs if name != self.main]
        return [self._element(name, self.axes[name].element(0, *unit)) for name in names]

    def _element(self, output: str, index: tuple[int, ...]) -> StateElement:
        return StateElement(name=output, place=format_index(output, index), **self._checked(output, index))

    def _checked(self, output: str, index: tuple[int, ...]) -> dict[str, Any]:
        c, got = self.configuration, self.run.outputs.get(output)
        of_output = [k for k, e in enumerate(self.expectations) if e.output == output]
        masks = (self.expectations[k].about for k in of_output)
        number = next(
            (k for k, mask in zip(of_output, masks, strict=True) if mask is None or mask[index]), of_output[0]
        )
        e, ratio = self.expectations[number], self.ratios[number]
        shape, undefined = c.shape_of(output), e.number.doubt
        return {
            "must": float(np.broadcast_to(e.number.value, shape)[index]),
            "within": float(np.broadcast_to(e.number.radius, shape)[index]),
            "got": None if got is None else float(got[index]),
            "ratio": None if ratio is None or np.isnan(ratio[index]) else float(ratio[index]),
            "convention": e.conventional,
            "levels": dtype_of(self.run.node, c, output).kind in "iu",
            "undefined": undefined is not None and bool(np.broadcast_to(undefined, shape)[index]),
        }

    def first_record(self) -> FirstDivergence | None:
        """Return the first divergence as a record of the evidence."""
        if self.first is None:
            return None
        element = self.first.place
        return FirstDivergence(
            output=element.output,
            place=str(element),
            where=element.words,
            clause=self.first.expectation.clause,
            step=element.step,
            **self._checked(element.output, element.index),
        )

    def lines(self, unit: Unit, steps: Iterable[int]) -> Iterator[StepLine]:
        """Yield some steps of a unit, in the order of computation."""
        direction, row, k = unit
        inside = self.steps[direction]
        for s in steps:
            padding, position = s >= int(inside.lengths[row]), int(inside.positions[s, row])
            values = {n: None if padding else float(numbers[s, row, k]) for n, numbers in inside.numbers.items()}
            output = self._checked(self.main, self.axes[self.main].element(position, *unit))
            yield StepLine(step=s, position=position, padding=padding, values=values, **output)


def comparison_of(view: NodeView, accuracy: str, interpretations: Interpretations) -> Comparison:
    """Return the run that the verdict's message is about: the first outside its bounds, or that breaks a convention.

    Of right runs, return the one with the largest error; without outcomes, the last run with its expectations.
    """
    compared = [_compared(*run, accuracy, interpretations) for run in _runs(view)]
    wrong = (c for outside in (True, False) for c in compared if (c.worst > 1 if outside else c.first is not None))
    return next(wrong, None) or max(compared, key=lambda c: c.worst)


def _compared(title: str, run: NodeRun, accuracy: str, interpretations: Interpretations) -> Comparison:
    node, inputs, outputs = run.node, run.inputs, run.outputs
    c = resolve(node, inputs, interpretations)
    expectations = tuple(expect(node, inputs, outputs, accuracy, interpretations))
    steps = operator_for(node).steps(node, inputs, outputs.get(node.operator.outputs[0]), interpretations)
    return Comparison(title, run, c, steps, expectations)


def _runs(view: NodeView) -> list[tuple[str, NodeRun]]:
    """Return the judged runs with their titles.

    As in the verdict, a run with all outputs replaces the case's own if their common outputs are equal bit for bit: it
    has the output from which every step can be judged.
    """
    trial = view.trials[0]
    feeds = trial.feeds
    if not view.outcomes or view.outcomes[0].status != "ran" or not view.outcomes[0].outputs:
        return [("", _run(trial, trial.node, feeds[-1], ()))]
    runs = []
    for number, (feed, lists) in enumerate(zip(feeds, view.outcomes[0].outputs, strict=False)):
        for repeat, arrays in enumerate(lists, 1):
            title = f"Run {number + 1} of {len(feeds)} of the session" if len(feeds) > 1 else ""
            if len(lists) > 1:
                title = f"{title or 'The same run'}: result {repeat} of {len(lists)} that differ"
            run = _run(trial, trial.node, feed, arrays)
            if (complete := _complete(view, number, run)) is not None:
                main = trial.node.operator.outputs[0]
                note = f"The case asks for no {main}: this is from a run of the same node with all outputs"
                title, run = ". ".join(filter(None, (title, f"{note}; the others agree"))), complete
            runs.append((title, run))
    return runs


def _complete(view: NodeView, number: int, own: NodeRun) -> NodeRun | None:
    """Return the run with all outputs for a run without the operator's first, if their common outputs are equal."""
    trial, outcome = view.all_outputs or (own.trial, None)
    main = own.node.operator.outputs[0]
    if outcome is None or outcome.status != "ran" or len(outcome.outputs) <= number:
        return None
    if main in own.trial.node.outputs or len(own.outputs) < len(own.trial.node.outputs):
        return None
    for arrays in outcome.outputs[number]:
        run = _run(trial, trial.node, trial.feeds[number], arrays)
        found = {name: array.tobytes() for name, array in run.outputs.items()}
        if main in found and all(array.tobytes() == found.get(name) for name, array in own.outputs.items()):
            return run
    return None


def _run(trial: Trial, node: Node, feed: Feed, arrays: Sequence[NDArray[Any] | None]) -> NodeRun:
    """Return a run with all outputs expected, and with the target's outputs that have the right type and shape."""
    c = resolve(node, feed.inputs)
    named = zip(node.outputs, arrays, strict=True) if len(arrays) == len(node.outputs) else ()
    outputs = {
        name: array
        for name, array in named
        if array is not None and array.dtype == dtype_of(node, c, name) and array.shape == c.shape_of(name)
    }
    return NodeRun(replace(node, outputs=node.operator.outputs), feed.inputs, outputs, trial)

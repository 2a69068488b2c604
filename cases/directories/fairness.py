"""Fairness of a fixed tolerance: whether a runner without error bounds accepts every conforming result of a case.

Such a runner compares each output with one expected number within ATOL + RTOL |expected|. It does not know
interpretations, conventions or undefined elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Expectation, expect
from ...reference.numbers.bounded import RADIUS_SLACK
from ...reference.operators.asking import returned_in_order
from ..specs.case import Case, Feed, Trial
from ..specs.family import clauses_exercised
from .directory import ATOL, RTOL, DataSet


class Fairness(Struct, frozen=True):
    """Objections to judging a case with a fixed tolerance.

    interpretations
        Names of the interpretations on which its outputs depend.
    open
        Ids of its clauses that are conventions or ambiguous in the document.
    largest
        The maximum, over all elements of all data sets, of (radius + distance between the rounded expected number and
        the true one) / (ATOL + RTOL |expected|). If it is at most 1, no conforming implementation of the class fails.
    output
        Name of the output with the maximum.
    unknown
        Number of elements without an expected number: undefined or not finite.
    """

    interpretations: tuple[str, ...]
    open: tuple[str, ...]
    largest: float
    output: str | None
    unknown: int

    @property
    def reason(self) -> str:
        """The reason why the case is left out; empty for a fair one."""
        reasons = []
        if self.interpretations:
            reasons.append(f"more than one interpretation is right: {', '.join(self.interpretations)}")
        if self.open:
            reasons.append(f"rests on what the document does not settle: {', '.join(self.open)}")
        if self.unknown:
            reasons.append(f"{self.unknown} elements have no number that can be expected")
        if not self.largest <= 1:
            reasons.append(f"a correct {self.output} may differ by {self.largest:.3g} times the runner's tolerance")
        return "; ".join(reasons)


def data_sets_of(trial: Trial, *, outputs: bool = True) -> list[DataSet]:
    """Return the inputs of each run with the reference's outputs, each number rounded once to its type.

    outputs
        Whether to compute outputs.
    """
    subject = trial.subject
    data_sets = []
    for feed in trial.feeds:
        if not outputs:
            data_sets.append(DataSet(_in_order(trial, feed), {}))
            continue
        tensors = subject.answered(feed.inputs, lambda bound, inputs: returned_in_order(bound.node, inputs))
        data_sets.append(DataSet(_in_order(trial, feed), {name: tensors[name] for name in subject.shown}))
    return data_sets


def _in_order(trial: Trial, feed: Feed) -> Mapping[str, NDArray[Any]]:
    """Return the fed inputs in the graph's order. A runner matches inputs by position, so if one default is fed, all
    are."""
    if len(feed.fed) == len(feed.inputs):
        return feed.fed
    graph = onnx.load_model_from_string(trial.model).graph
    defaults = {tensor.name for tensor in graph.initializer}
    if not defaults & feed.fed.keys():
        return feed.fed
    everything = {**feed.inputs, **feed.fed}
    return {value.name: everything[value.name] for value in graph.input}


def fairness_of(case: Case, data_sets: Sequence[DataSet], accuracy: str = "standard") -> Fairness:
    """Return the objections to judging a case by the tolerance of onnx.backend.test, for an accuracy class.

    data_sets
        The case's data sets, one for each run.

    The radius is that of a free run, from the inputs only, because such a runner compares only outputs.
    """
    largest, output, unknown = 0.0, None, 0
    for feed, data in zip(case.trial.feeds, data_sets, strict=True):
        for expectation in expect(case.trial.node, feed.inputs, {}, accuracy):
            share, undefined = _share(expectation, data.outputs[expectation.output])
            unknown += undefined
            if share > largest or output is None:
                largest, output = share, expectation.output
    clauses = (c for c in clauses_exercised(case.spec) if not c.may_fail)
    named = tuple(c.id for c in clauses if c.interpretation is None)
    return Fairness(tuple(sorted(case.trial.open_questions)), named, largest, output, unknown)


def _share(expectation: Expectation, given: NDArray[Any]) -> tuple[float, int]:
    """Return the largest share of the tolerance that an expectation uses, and the number of its undefined elements."""
    number, expected = expectation.number, given.astype(np.float64)
    defined = np.isfinite(expected) & (np.abs(number.value) + number.radius < number.budget.tensor.largest)
    if number.doubt is not None:
        defined &= ~number.doubt
    mask = np.ones(expected.shape, bool) if expectation.about is None else expectation.about
    with np.errstate(invalid="ignore", over="ignore"):
        share = number.radius * RADIUS_SLACK + np.abs(expected - number.value)
        share /= ATOL + RTOL * np.abs(expected)
    return float(share[mask & defined].max(initial=0.0)), int((mask & ~defined).sum())

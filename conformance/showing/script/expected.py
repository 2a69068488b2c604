"""Expected outputs of a case, as a statement of its script."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....cases import Case, Feed, Trial
from ....cases.specs.case import Bound
from ....reference import (
    Expectation,
    Interpretations,
    Node,
    budget,
    expect,
    open_questions_of,
    operator_for,
)
from ....reference.numbers.bounded import RADIUS_SLACK, Bounded
from ....reference.operators.asking import returned_in_order
from .statements import WIDTH, pair, wrapped


def expected_of(case: Case, accuracy: str) -> Iterator[str]:
    """Yield the lines of EXPECTED: (value, radius) by output name, for each run and each distinct interpretation.

    The radius is infinite for undefined values and for conventions.
    """
    trial = case.trial
    open_questions, type_name = touched_by(trial), case.spec.type
    right = operator_for(trial.node).classes(accuracy, type_name).right
    yield "# What each output must be, and its error bound (infinite: nothing is demanded), run by run."
    yield "EXPECTED = {"
    seen: set[bytes] = set()
    for name, interpretations in itertools.product(right, Interpretations().alternatives(open_questions)):
        runs = [_numbers_of(trial, feed, name, interpretations) for feed in trial.feeds]
        content = b"".join(number.tobytes() for run in runs for number in run.values())
        if content in seen:
            continue
        seen.add(content)
        parts = [name] if len(right) > 1 else []
        label = (
            ", ".join(
                parts + [f"{question} {getattr(interpretations, question)}" for question in sorted(open_questions)]
            )
            or "expected"
        )
        start = f'    "{label}": ['
        yield start if len(start) <= WIDTH else f"{start}  # noqa: E501"
        for run in runs:
            yield "        {"
            for name, number in run.items():
                yield from wrapped(f'            "{name}": {pair(number)},')
            yield "        },"
        yield "    ],"
    yield "}"


def _given(trial: Trial, feed: Feed) -> Iterator[tuple[Bound, dict[str, NDArray[Any]]]]:
    """Yield each node with its inputs; inputs from an earlier node are the reference's outputs."""
    tensors = dict(feed.inputs)
    for bound in trial.subject.nodes:
        inputs = bound.inputs_from(tensors)
        yield bound, inputs
        if not trial.subject.is_lone:
            tensors |= {bound.called(n): array for n, array in returned_in_order(bound.node, inputs).items()}


def touched_by(trial: Trial) -> frozenset[str]:
    """Return the interpretations on which some run of some node depends."""
    nodes = itertools.chain.from_iterable(_given(trial, feed) for feed in trial.feeds)
    return frozenset().union(*(open_questions_of(bound.node, inputs) for bound, inputs in nodes))


def _expectations(
    bound: Bound,
    node: Node,
    inputs: Mapping[str, NDArray[Any]],
    known: Mapping[str, NDArray[np.float64]],
    accuracy: str,
    interpretations: Interpretations,
) -> Sequence[Expectation]:
    """Return the expected outputs of a node.

    known
        Value and radius of the outputs of earlier nodes.
    """
    from_nodes = [formal for formal, source in (bound.inputs or {}).items() if source.tensor in known]
    if not from_nodes:
        return expect(node, inputs, {}, accuracy, interpretations)
    type_name = operator_for(node).resolve(node, inputs, interpretations).format.name
    bounded_inputs = {}
    for formal in from_nodes:
        source = (bound.inputs or {})[formal]
        value, radius = (source.of({source.tensor: part}) for part in known[source.tensor])
        undefined = ~np.isfinite(radius)
        bounded_inputs[formal] = Bounded(
            value, np.where(undefined, 0.0, radius), budget(accuracy, type_name), undefined
        )
    return operator_for(node).expect_behind(node, inputs, bounded_inputs, accuracy, interpretations)


def _numbers_of(
    trial: Trial, feed: Feed, accuracy: str, interpretations: Interpretations
) -> dict[str, NDArray[np.float64]]:
    """Return value and radius of each output of the graph, stacked."""
    numbers: dict[str, NDArray[np.float64]] = {}
    for bound, inputs in _given(trial, feed):
        node = trial.subject.showing(bound)
        by_output = _by_output(_expectations(bound, node, inputs, numbers, accuracy, interpretations))
        numbers |= {bound.called(name): number for name, number in by_output.items()}
    return numbers


def _by_output(expectations: Iterable[Expectation]) -> dict[str, NDArray[np.float64]]:
    """Return value and radius of each output of a node, stacked."""
    by_output: dict[str, NDArray[np.float64]] = {}
    for e in expectations:
        value, radius = e.number.value, np.broadcast_to(e.number.radius, e.number.value.shape) * RADIUS_SLACK
        if e.number.doubt is not None:
            radius = np.where(e.number.doubt, np.inf, radius)
        if e.conventional:
            radius = np.full_like(radius, np.inf)
        number = np.stack([value, radius])
        # A later expectation of the same output replaces the earlier one.
        by_output[e.output] = (
            number
            if e.output not in by_output
            else np.where(e.about if e.about is not None else True, number, by_output[e.output])
        )
    return by_output

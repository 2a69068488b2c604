"""Expected outputs of a case, as a statement of its script."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ....cases import Case, Feed, Trial
from ....reference import Interpretations, expect, operator_for
from ....reference.numbers.bounded import RADIUS_SLACK
from .statements import WIDTH, pair, wrapped


def expected_of(case: Case, accuracy: str) -> Iterator[str]:
    """Yield the lines of EXPECTED: (value, radius) by output name, for each run and each distinct interpretation.

    The radius is infinite for undefined values and for conventions.
    """
    trial = case.trial
    open_questions = trial.open_questions
    right = operator_for(trial.node).classes(accuracy, case.spec.type).right
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
        parts += [f"{question} {getattr(interpretations, question)}" for question in sorted(open_questions)]
        start = f'    "{", ".join(parts) or "expected"}": ['
        yield start if len(start) <= WIDTH else f"{start}  # noqa: E501"
        for run in runs:
            yield "        {"
            for output, number in run.items():
                yield from wrapped(f'            "{output}": {pair(number)},')
            yield "        },"
        yield "    ],"
    yield "}"


def _numbers_of(
    trial: Trial, feed: Feed, accuracy: str, interpretations: Interpretations
) -> dict[str, NDArray[np.float64]]:
    """Return value and radius of each output, stacked."""
    numbers: dict[str, NDArray[np.float64]] = {}
    for e in expect(trial.node, feed.inputs, {}, accuracy, interpretations):
        value, radius = e.number.value, np.broadcast_to(e.number.radius, e.number.value.shape) * RADIUS_SLACK
        if e.number.doubt is not None:
            radius = np.where(e.number.doubt, np.inf, radius)
        if e.conventional:
            radius = np.full_like(radius, np.inf)
        number = np.stack([value, radius])
        # A later expectation of the same output replaces the earlier one.
        about = True if e.about is None else e.about
        numbers[e.output] = np.where(about, number, numbers[e.output]) if e.output in numbers else number
    return numbers

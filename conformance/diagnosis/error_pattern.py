"""Error pattern of an unexplained failure: the parts of the smallest case's outputs that are wrong.

Each step is judged from the state reported before it, so an error is seen where it originates, not where it has spread.
The pattern describes one case and claims nothing of other sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import resolve
from ..text import listed
from .observed_case import ObservedCase

Mask = NDArray[np.bool_]


def error_pattern(observed: ObservedCase, outputs: Sequence[str]) -> str:
    """Return, in words, which outputs, directions, rows, steps and units of a case are wrong while others are right;
    empty if all are, or if errors of single elements are unknown.

    `outputs` are those that the case asks for; the observed run may be the one with all outputs. The arithmetic and the
    interpretation with the fewest errors are used, but at least one error.
    """
    case = observed.case
    observation: Any = observed.observation
    if case.misshapen or not hasattr(observation, "misses"):
        return ""
    choices = itertools.product(observed.interpretations, observed.accuracies)
    alternatives = [observation.misses(choice, accuracy) for choice, accuracy in choices]
    counts = [sum(int(mask.sum()) for masks in runs for mask in masks.values()) for runs in alternatives]
    fewest = min(((count, number) for number, count in enumerate(counts) if count), default=None)
    if fewest is None:
        return ""
    where = "the smallest case" if {*case.trial.node.outputs} <= {*outputs} else "the smallest case with all outputs"
    return pattern_text(alternatives[fewest[1]], resolve(case.trial.node, case.runs[0].inputs).directions, where)


def pattern_text(
    runs: Sequence[Mapping[str, Mask]], directions: Sequence[str], where: str = "the smallest case"
) -> str:
    """Return the words for the error masks of each run and output: Y as (T, D, N, H), states as (D, N, H)."""
    parts = list(_parts(runs, directions))
    return f"in {where} only in {', '.join(parts)}" if parts else ""


def _parts(runs: Sequence[Mapping[str, Mask]], directions: Sequence[str]) -> Iterator[str]:
    by_run = [any(mask.any() for mask in masks.values()) for masks in runs]
    if not all(by_run):
        yield _numbered("run", by_run, f"of {len(runs)}", 1)
    wrong_runs = list(itertools.compress(runs, by_run))
    masks = [mask for masks in wrong_runs for mask in masks.values()]
    wrong_outputs = dict.fromkeys(name for masks in wrong_runs for name, mask in masks.items() if mask.any())
    if len(wrong_outputs) < len({name for masks in wrong_runs for name in masks}):
        yield listed(list(wrong_outputs))
    by_direction = _along(-3, masks)
    if not all(by_direction):
        yield f"the {listed([name for name, wrong in zip(directions, by_direction, strict=True) if wrong])} direction"
    for axis, word, size in ((-2, "row", "N"), (-4, "step", "T"), (-1, "unit", "H")):
        of_steps = [mask for mask in masks if mask.ndim == 4]
        if axis == -1 and not of_steps:
            continue  # without Y, a wrong unit of an earlier step has spread to all units of the states
        along = _along(axis, of_steps if axis == -4 else masks)
        if not all(along):
            yield _numbered(word, along, f"{size} = {len(along)}")


def _along(axis: int, masks: Sequence[Mask]) -> list[bool]:
    """Return which positions of an axis are wrong in any of the masks that have errors and the usual size there."""
    with_errors: list[Mask] = [np.moveaxis(mask, axis, 0) for mask in masks if mask.any()]
    wrong = [[bool(part.any()) for part in mask] for mask in with_errors]
    sizes = {len(along) for along in wrong}
    return [any(position) for position in zip(*wrong, strict=True)] if len(sizes) == 1 else []


def _numbered(word: str, wrong: Sequence[bool], size: str, first: int = 0) -> str:
    """Return the words for positions along an axis: ``units 4 to 6 (H = 7)``."""
    numbers = [number for number, is_wrong in enumerate(wrong, first) if is_wrong]
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{word}s {numbers[0]} to {numbers[-1]} ({size})"
    plural = "s" if len(numbers) > 1 else ""
    return f"{word}{plural} {listed([str(number) for number in numbers])} ({size})"

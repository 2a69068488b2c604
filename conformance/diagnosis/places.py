"""Places: the regions of the outputs that are wrong in unexplained failures.

A failure that no known fault explains is described by its region: the units, rows, steps, directions, outputs and runs
that are wrong, while all others are right. Each step is judged from the state reported before it, so a region is where
an error originates, not where it has spread. A stated region holds in all cases of a finding, in fresh cases, and in
further cases of other sizes, which separate regions that coincide in one case.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import Interpretations, resolve
from ...reference.faults.stretches import Stretch, at, beyond, first, in_whole, last, left_over
from .failing_case import FailingCase
from .target_evidence import TargetEvidence

__all__ = ["Look", "Region", "looks_of", "places_in_words", "places_of", "telling_places"]

Mask = NDArray[np.bool_]

_INTERPRETATIONS = 4

_BITS = 6.0
"""Required evidence for a region, in bits, beyond the bits by which one of the regions tried on an axis fits by
chance."""

_OF_A_CASE, _VALUES = 6.0, 3
"""Maximum evidence from one case, in bits, and the maximum number of wrong positions on an axis that count in it.
Errors in neighbouring units often have one cause."""

_CASES = 3
"""Minimum number of cases that have elements outside of a region."""


@dataclass(frozen=True)
class Look:
    """Error masks of one run of a case.

    number
        Index of the run, from 0.
    wrong
        Mask of wrong elements for each output: Y as (T, D, N, H), states as (D, N, H).
    """

    number: int
    T: int
    N: int
    H: int
    lengths: NDArray[np.int64]
    directions: tuple[str, ...]
    outputs: tuple[str, ...]
    wrong: Mapping[str, Mask]


@dataclass(frozen=True)
class Region:
    """Region of the outputs of a run along one axis.

    allowed
        Returns the mask of the region on the axis.
    among
        Returns the number of positions from which the region is chosen; None for the whole axis.
    """

    axis: str
    words: str
    allowed: Callable[[Look], Mask]
    among: Callable[[Look], int] | None = None

    def holds(self, case: Iterable[Look]) -> bool:
        """Return whether all errors of a case lie in the region."""
        return not any((wrong & ~self.allowed(look)).any() for look, wrong in _along(self.axis, case))

    def evidence(self, case: Iterable[Look]) -> float:
        """Return the evidence of a case for the region, in bits."""
        pairs = list(_along(self.axis, case))
        allowed = sum(int(self.allowed(look).sum()) for look, wrong in pairs)
        values = sum(int(wrong.sum()) for _, wrong in pairs)
        if not allowed or not values:
            return 0.0
        share = allowed / sum(wrong.size if self.among is None else self.among(look) for look, wrong in pairs)
        return min(_OF_A_CASE, -math.log2(share) * min(values, _VALUES))


def looks_of(failing_case: FailingCase, evidence: TargetEvidence) -> list[Look]:
    """Return the error masks of a case's runs, by the arithmetic and the interpretation with the fewest errors, but at
    least one. Return an empty list if errors of single elements are unknown."""
    accuracies = evidence.accuracy, *evidence.arithmetics.get(failing_case.type, ())
    observation: Any = failing_case.observation(evidence.accuracy)
    if failing_case.misshapen or not hasattr(observation, "misses"):
        return []
    choices = itertools.islice(Interpretations().alternatives(failing_case.open_questions), _INTERPRETATIONS)
    alternatives = [observation.misses(choice, accuracy) for choice in choices for accuracy in accuracies]
    counts = [sum(int(mask.sum()) for masks in runs for mask in masks.values()) for runs in alternatives]
    nonzero = [(count, number) for number, count in enumerate(counts) if count]
    if not nonzero:
        return []
    return list(_looks(failing_case, alternatives[min(nonzero)[1]]))


def _looks(failing_case: FailingCase, masks: Iterable[Mapping[str, Mask]]) -> Iterator[Look]:
    for number, (run, wrong) in enumerate(zip(failing_case.runs, masks, strict=True)):
        c: Any = resolve(failing_case.trial.node, run.inputs)
        yield Look(number, c.T, c.N, c.H, c.lengths, c.directions, failing_case.trial.node.outputs, wrong)


def _along(axis: str, case: Iterable[Look]) -> Iterator[tuple[Look, Mask]]:
    """Yield runs with their error mask along an axis, if it is known there."""
    runs = list(case)
    if axis == "run":
        if len(runs) > 1:
            for look in runs:
                yield look, np.array([any(mask.any() for mask in look.wrong.values())])
        return
    for look in runs:
        wrong = _AXES[axis](look)
        if wrong is not None and wrong.size > 1:
            yield look, wrong


def _units(look: Look) -> Mask | None:
    Y = look.wrong.get("Y")
    if Y is None and look.T > 1:
        return None  # through R one wrong unit has spread to all
    return _some(look, lambda mask: mask.reshape(-1, look.H).any(axis=0)) if look.H else None


def _rows(look: Look) -> Mask | None:
    return _some(look, lambda mask: mask.any(axis=(*range(mask.ndim - 2), mask.ndim - 1)))


def _directions(look: Look) -> Mask | None:
    return _some(look, lambda mask: mask.any(axis=(*range(mask.ndim - 3), mask.ndim - 2, mask.ndim - 1)))


def _some(look: Look, change: Callable[[Mask], Any]) -> Mask | None:
    masks = [np.asarray(change(mask), bool) for mask in look.wrong.values()]
    return np.logical_or.reduce(masks) if masks else None


def _steps(look: Look) -> Mask | None:
    """Return the error mask (T, N): the steps of each row in the order of computation, then its padding."""
    Y = look.wrong.get("Y")
    if Y is None:
        return None
    wrong = np.zeros((look.T, look.N), bool)
    step = np.arange(look.T)[:, np.newaxis]
    for d, direction in enumerate(look.directions):
        order = np.where(step < look.lengths, look.lengths - 1 - step, step) if direction == "reverse" else step
        order = np.broadcast_to(order, wrong.shape)
        wrong |= np.take_along_axis(Y[:, d].any(axis=-1), order, axis=0)
    return wrong


def _outputs(look: Look) -> Mask | None:
    names = [name for name in look.outputs if name]
    return np.array([bool(name in look.wrong and look.wrong[name].any()) for name in names])


_AXES: Mapping[str, Callable[[Look], Mask | None]] = {
    "direction": _directions, "output": _outputs, "row": _rows, "step": _steps, "unit": _units,
}  # fmt: skip


def _counted(axis: str, size: Callable[[Look], int], word: str, whole: str) -> Iterator[Region]:
    """Yield regions that result from processing several units or rows at a time."""

    def place(words: str, chosen: Stretch) -> Region:
        def allowed(look: Look) -> Mask:
            return np.asarray(chosen(np.arange(size(look)), size(look)), bool)

        return Region(axis, words, allowed)

    yield place(f"the first {word}", first)
    yield place(f"the last {word}", last(1))
    for most in (2, 4, 8, 16, 32, 64, 128):
        yield place(f"{word}s beyond the first {most}", beyond(most))
    yield place(f"{word}s after the first", beyond(1))
    for most in (2, 4, 8, 16, 32):
        yield place(f"the last {most} {word}s", last(most))
    for block in (2, 4, 8, 16, 32, 64):
        yield place(f"{word}s left over of {whole} after whole blocks of {block}", left_over(block))
    for block in (2, 4, 8, 16, 32, 64):
        yield place(f"{word}s in whole blocks of {block}", in_whole(block))
    yield place(f"the second half of the {word}s", lambda n, size: n >= size // 2)
    yield place(f"the first {word} of every two", at(0, 2))
    yield place(f"the second {word} of every two", at(1, 2))


def _by_length() -> Iterator[Region]:
    def place(words: str, chosen: Callable[[Look], Any]) -> Region:
        return Region("row", words, lambda look: np.asarray(chosen(look), bool))

    yield place("rows of length 0", lambda look: look.lengths == 0)
    yield place("rows shorter than the sequence", lambda look: look.lengths < look.T)
    yield place("rows shorter than the longest", lambda look: look.lengths < look.lengths.max(initial=0))
    yield place("rows as long as the sequence", lambda look: look.lengths == look.T)
    yield place("rows of an odd length", lambda look: look.lengths % 2 == 1)
    yield place("rows of an even length", lambda look: look.lengths % 2 == 0)


def _of_steps() -> Iterator[Region]:
    def place(words: str, chosen: Stretch) -> Region:
        def allowed(look: Look) -> Mask:
            step = np.broadcast_to(np.arange(look.T)[:, np.newaxis], (look.T, look.N))
            return np.asarray(chosen(step, look.lengths) & (step < look.lengths), bool)

        return Region("step", words, allowed, lambda look: int(look.lengths.sum()))

    yield place("the first step of a row", first)
    yield place("the last step of a row", last(1))
    for most in (2, 4, 8, 16, 32, 64, 128, 256):
        yield place(f"steps beyond the first {most}", beyond(most))
    yield place("steps after the first", beyond(1))
    for block in (2, 4, 8, 16, 32):
        yield place(f"steps left over of a row after whole blocks of {block}", left_over(block))
        yield place(f"the last step of every {block}", at(block - 1, block))
    yield Region("step", "steps past a row's length", lambda look: np.arange(look.T)[:, np.newaxis] >= look.lengths)


def _named(axis: str, words: str, names: Callable[[Look], Sequence[str]], chosen: Sequence[str]) -> Region:
    return Region(axis, words, lambda look: np.array([name in chosen for name in names(look)], bool))


def _every() -> Iterator[Region]:
    for direction in ("forward", "reverse"):
        yield _named("direction", f"the {direction} direction", lambda look: look.directions, (direction,))
    outputs: list[tuple[str, ...]] = [("Y",), ("Y_h",), ("Y_c",), ("Y_h", "Y_c")]
    for names in outputs:
        yield _named("output", " and ".join(names), lambda look: [name for name in look.outputs if name], names)
    yield from _counted("row", lambda look: look.N, "row", "batch_size")
    yield from _by_length()
    yield from _of_steps()
    yield from _counted("unit", lambda look: look.H, "unit", "hidden_size")
    yield Region("run", "the first run of a session", lambda look: np.array([look.number == 0]))
    yield Region("run", "later runs of a session", lambda look: np.array([look.number > 0]))


_PLACES = tuple(_every())
_TRIED = Counter(place.axis for place in _PLACES)


def places_of(cases: Sequence[Sequence[Look]]) -> list[Region]:
    """Return the regions that contain all errors of all cases."""
    return [place for place in _PLACES if all(map(place.holds, cases))]


def telling_places(places: Iterable[Region], cases: Sequence[Sequence[Look]]) -> list[Region]:
    """Return the region with the most evidence on each axis, if chance does not explain it."""
    best: dict[str, tuple[float, Region]] = {}
    for place in places:
        bits, least = [place.evidence(case) for case in cases], _BITS + math.log2(_TRIED[place.axis])
        if sum(bit > 0 for bit in bits) >= _CASES and sum(bits) > best.get(place.axis, (least, place))[0]:
            best[place.axis] = sum(bits), place
    return [place for _, place in best.values()]


def places_in_words(places: Iterable[Region]) -> str:
    """Return the words for regions; empty if there are none."""
    listed = ", ".join(dict.fromkeys(place.words for place in places))
    return f"only in {listed}" if listed else ""

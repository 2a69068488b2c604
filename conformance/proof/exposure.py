"""Which parts of an operator a case would show to be wrong: one by one, beyond doubt.

A part shows where the verdict would be a failure under the *kindest* interpretation: whichever of the meanings that the
case's open clauses allow is taken, some judged number is more than two radii away, so that no rounding on either side
brings it back. In a case that runs both directions each half is looked at by itself too: a fault that is there in one
direction only leaves the other half right.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import CaseSpec, Feed, Trial, build_case
from ...cases.specs.space import settle
from ...reference import Interpretations, Node, configure, evaluate, expect, run_recurrent_fault
from ...reference.faults.parts import Part, parts_of
from ...reference.recurrent.expectation import ratios
from .proof import spread

__all__ = ["Run", "Shown", "measure", "parts_shown", "runs_shown"]

Arrays = Mapping[str, NDArray[Any]]

BEYOND = 2.0
"""Radii between what a faulty kernel returns and what is right, from which on its own roundings do not hide the fault:
two correct numbers are two radii apart at most."""


@dataclass(frozen=True)
class Shown:
    """Where a part shows in a case: in the whole, and by direction (index 0 and 1 as W holds them) when that direction
    alone goes wrong."""

    whole: bool
    halves: tuple[bool, ...]


Run = tuple[CaseSpec, Mapping[str, Shown]]
"""One run of a case's session: the case that has the run's sizes and nothing else before it than the run has, and the
parts that the run shows."""


def runs_shown(spec: CaseSpec) -> list[Run]:
    """What the runs of a legal case show, its own one first.

    An earlier run is judged like a case's own, by the same interpretations, so a kernel that goes wrong in it is found.
    Its data are of the same kind, but not those of the case that stands for it here: that one names sizes and
    conditions.
    """
    runs: list[Run] = [(spec, parts_shown(spec))]
    earlier = earlier_run(spec)
    if earlier is not None:
        trial = build_case(spec).trial
        runs.append((earlier, _parts_shown(spec.op, replace(trial, feeds=trial.feeds[:1]))))
    return runs


def earlier_run(spec: CaseSpec) -> CaseSpec | None:
    """What a session's first run is a case of; None where there is one run, or where sizes are so small that the word
    for its lengths means something else."""
    if spec.reruns == "none":
        return None
    X = build_case(spec).trial.feeds[0].inputs["X"]
    T, N = X.shape[:2] if spec.layout == 0 else X.shape[1::-1]
    earlier = replace(spec, T=int(T), N=int(N), reruns="none")
    row = {name: getattr(earlier, name) for name in ("T", "N", "lengths", "reruns", "dimensions", "initial")}
    return earlier if settle(row) == row else None


def parts_shown(spec: CaseSpec) -> dict[str, Shown]:
    """The parts that the own run of a legal case shows, by id. What runs before it is right."""
    return _parts_shown(spec.op, build_case(spec).trial)


def _parts_shown(op: str, trial: Trial) -> dict[str, Shown]:
    node, feed = trial.node, trial.feeds[-1]
    with np.errstate(all="ignore"):
        right = {n: a.astype(feed.inputs["X"].dtype) for n, a in evaluate(node, feed.inputs).items()}
        interpretations = list(Interpretations().alternatives(trial.touched))
        of_right = [_failing(node, feed, right, r) for r in interpretations] if len(interpretations) > 1 else None
        found = {}
        for part in parts_of(op):
            got = _outputs(part, trial)
            if all(got[name].tobytes() == right[name].tobytes() for name in right):
                continue
            shown = _shown(node, feed, got, interpretations, of_right)
            if shown.whole or any(shown.halves):
                found[part.id] = shown
    return found


def _outputs(part: Part, trial: Trial) -> Arrays:
    """What the case's own run returns; what runs before it is there for what a session may keep."""
    memory: dict[str, Any] = {}
    for feed in trial.feeds:
        outputs = run_recurrent_fault(part.fault, trial.node, feed.inputs, memory=memory)
        if not memory and feed is not trial.feeds[-1]:
            outputs = run_recurrent_fault(part.fault, trial.node, trial.feeds[-1].inputs)
            break
    return outputs


def _shown(
    node: Node,
    feed: Feed,
    got: Arrays,
    interpretations: Sequence[Interpretations],
    of_right: list[NDArray[np.bool_]] | None,
) -> Shown:
    whole, halves = True, None
    for number, interpretation in enumerate(interpretations):
        failing = _failing(node, feed, got, interpretation)
        own = failing.copy()
        if of_right is not None:
            # A half that is right is excused by an interpretation only where it is right by that interpretation too.
            own |= np.array([of_right[number][np.arange(len(own)) != d].any() for d in range(len(own))])
        halves = own if halves is None else halves & own
        whole = whole and bool(failing.any())
        if not whole and not halves.any():
            break
    assert halves is not None
    return Shown(whole, tuple(map(bool, halves)))


def _failing(node: Node, feed: Feed, got: Arrays, interpretations: Interpretations) -> NDArray[np.bool_]:
    """For each direction whether some judged number of it is wrong by this interpretation, (D,)."""
    c = configure(node, feed.inputs, interpretations)
    failing = np.zeros(len(c.directions), bool)
    for expectation in expect(node, feed.inputs, got, interpretations=interpretations):
        if expectation.conventional:
            continue
        wrong = ratios(expectation, got[expectation.output]) > BEYOND
        axis = (1 if c.layout == 0 else 2) if expectation.output == "Y" else c.layout
        failing |= np.moveaxis(wrong, axis, 0).reshape(len(c.directions), -1).any(axis=1)
    return failing


def measure(specs: Sequence[CaseSpec], processes: int = 1) -> Generator[Sequence[Run], None, None]:
    """What the runs of each case show, in order, by so many processes."""
    with contextlib.closing(spread(runs_shown, specs, processes)) as results:
        yield from results

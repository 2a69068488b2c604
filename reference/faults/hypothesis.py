"""Hypotheses: does a target that makes these faults return these numbers?

A hypothesis is some faults at once. What it predicts is compared with what a target returned, step-local where the
target reported Y, and by the numbers' own radii: the faults compute with bounded numbers, as the conforming reference
does. So "it explains the result" means what "the result is right" means, for another document.

Nobody is accused by it: that a result is wrong is settled before. But many hypotheses are tried on few numbers, and
some fit by chance, so each says how much speaks for it: the :attr:`Fit.evidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.accuracy import Budget, budget
from ..numbers.bounded import RADIUS_SLACK, Bounded
from ..numbers.bounding import Bounding
from ..recurrent.evaluation import computation_of
from ..recurrent.node import Node
from ..recurrent.recurrence import Computation, collect, trace
from .fault import UNINITIALIZED, Compute, Fault, Outputs, Wrong, reported

__all__ = ["MOST", "Fit", "Observation", "Run", "layered"]

Arrays = Mapping[str, NDArray[Any]]

# Equations of a fault that is not `bounded` have no radii of their own. They get those of the conforming numbers, this
# many times over: a rough measure, but what a structural fault changes is far larger.
ROUGH = 16.0

# Not all faults go together: one may leave out an output, or an axis, that another looks at, or ask of an arithmetic
# what that of another cannot do. Such a pair predicts nothing, and this is what it raises.
_TOGETHER = (TypeError, AttributeError, LookupError, ValueError)

# What is further off than this many of the largest conforming radius is not computed with radii at all.
_GROSS = 256.0

# How much of a radius is used: radii are for the worst of all kernels, and real ones are off by a quarter of them at
# most. Slips of precision are other kernels still, whose own roundings are not foreseen.
_USED = 0.5

# The most that one element speaks for a hypothesis, in bits; and what one does that is wrong just where the fault
# leaves memory as it was, or is not finite just where by the fault anything may be.
MOST, _UNPREDICTED = 20.0, 4.0

# What of each element's bits is not counted where they may all be wrong alike.
_COMMON = 2.0


@dataclass(frozen=True)
class Run:
    """One run of a session: all inputs of the node by formal name, those of them that were fed, and what the target
    returned."""

    inputs: Arrays
    outputs: Arrays
    fed: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class Fit:
    """That a hypothesis explains what was returned.

    evidence
        How much speaks for it, in bits: over all elements that are not what a conforming target returns, log2 of how
        much nearer the prediction is than the conforming number. A wide radius, or an element of which nothing is
        predicted, is no evidence.
    least
        The same with less for each element: one wide radius may hold all of them, which then are wrong alike.
    """

    evidence: float
    least: float


@dataclass
class _Layer(Compute):
    """A computation with one more fault: what its fault makes of the computation below."""

    below: Compute = field(default_factory=Compute)
    fault: Fault | None = None

    def __call__(self, computation: Computation) -> Outputs:
        assert self.fault is not None
        wrong: Wrong = self.fault.wrong
        return wrong(self.below, computation)


@dataclass
class _Pass(Compute):
    """Bounded numbers, shown to faults as plain ones: once the values, then again values plus radii.

    Faults move numbers, replace some and leave others out; the difference between the two passes is then each
    one's radius, wherever it went.
    """

    budget: Budget | None = None
    numbers: list[dict[str, Bounded]] = field(default_factory=list)
    edge: bool = False
    _next: int = 0

    def __call__(self, computation: Computation) -> Outputs:
        if not self.edge:
            assert self.budget is not None
            self.numbers.append(_bounded(computation, self.budget, self.observed))
            return {name: number.value for name, number in self.numbers[-1].items()}
        # The same computations in the same order: faults are deterministic.
        found = self.numbers[self._next]
        self._next += 1
        return {name: number.value + _reach(number) for name, number in found.items()}


def _bounded(computation: Computation, allowed: Budget, observed: NDArray[Any] | None) -> dict[str, Bounded]:
    arithmetic = Bounding(allowed)
    numbers: dict[str, Bounded] = collect(
        computation.configuration, trace(computation, arithmetic, reported(computation, observed)), arithmetic
    )
    return numbers


def _reach(number: Bounded) -> NDArray[np.float64]:
    radius = number.radius * RADIUS_SLACK
    return radius if number.doubt is None else np.where(number.doubt, np.inf, radius)


@dataclass(frozen=True)
class _Scene:
    """One run, resolved by some interpretations.

    observed
        The reported Y, where each step starts from it.
    """

    computation: Computation
    observed: NDArray[np.float64] | None
    budget: Budget

    @cached_property
    def conforming(self) -> tuple[Outputs, Outputs]:
        """What a conforming target returns, with radii."""
        numbers = _bounded(self.computation, self.budget, self.observed)
        return {n: b.value for n, b in numbers.items()}, {n: _reach(b) for n, b in numbers.items()}

    @cached_property
    def plain(self) -> Outputs:
        """What a conforming target returns, by plain numbers."""
        return Compute(self.observed)(self.computation)


class Observation:
    """What a target returned in one case, to try hypotheses on.

    Raises IllegalNode where the document does not allow the node.
    """

    def __init__(self, node: Node, runs: tuple[Run, ...], accuracy: str = "standard") -> None:
        self.node, self.runs, self.accuracy = node, runs, accuracy
        self._scenes: dict[tuple[int, Interpretations | None, bool], _Scene | None] = {}

    @cached_property
    def size(self) -> int:
        """Multiplications of all runs, more or less."""
        found = 0
        for run in self.runs:
            (_, rows, H), X = run.inputs["R"].shape, run.inputs["X"]
            found += int(X.shape[0] * X.shape[1] * rows * (H + X.shape[2]) * len(run.inputs["R"]))
        return found

    def fit(self, faults: Sequence[Fault], interpretations: Interpretations | None = None) -> Fit | None:
        """How what was returned fits a target with these faults; None where it does not."""
        with np.errstate(all="ignore"):
            for steps in (True, False):
                scenes = [self._scene(number, interpretations, steps) for number in range(len(self.runs))]
                try:
                    if scenes and None not in scenes and self._likely(faults, scenes):
                        fit = self._compared(faults, scenes)
                        if fit is not None:
                            return fit
                except _TOGETHER:
                    # Each is tried alone before, where nothing is caught: a bug in one of them surfaces there.
                    if len(faults) == 1:
                        raise
                    return None
        return None

    def _scene(self, number: int, interpretations: Interpretations | None, steps: bool) -> _Scene | None:
        """A run by these interpretations; None where steps are asked for that the target did not report."""
        key = number, interpretations, steps
        if key not in self._scenes:
            run = self.runs[number]
            other = self._scenes.get((number, interpretations, True))
            computation = (
                other.computation if other is not None else computation_of(self.node, run.inputs, interpretations)
            )
            observed = _reported(computation, run) if steps else None
            allowed = budget(self.accuracy, computation.configuration.format.name)
            self._scenes[key] = None if steps and observed is None else _Scene(computation, observed, allowed)
        return self._scenes[key]

    def _likely(self, faults: Sequence[Fault], scenes: Sequence[_Scene | None]) -> bool:
        """Whether plain numbers, which cost little, are anywhere near, and these faults change any."""
        memory: dict[str, dict[str, Any]] = {}
        changed = False
        for scene, run in zip(scenes, self.runs, strict=True):
            assert scene is not None
            compute = layered(Compute(**self._given(scene, run)), faults, memory)
            predicted, reach = compute(scene.computation), scene.conforming[1]
            for name in self.node.outputs:
                got, want = run.outputs.get(name), predicted.get(name)
                if got is None and want is None:
                    changed = True
                    continue
                if got is None or want is None or got.shape != want.shape:
                    return False
                changed = changed or want.dtype != np.float64
                changed = changed or not np.array_equal(want, scene.plain[name], equal_nan=True)
                w = scene.budget
                near = _GROSS * (float(reach[name].max(initial=0.0)) + w.unit * np.abs(want) + w.floor)
                sure = np.isfinite(near) & (np.abs(want) < w.tensor.largest / 2) & (want != UNINITIALIZED)
                if not (np.abs(got.astype(np.float64) - want) <= near)[sure].all():
                    return False
        return changed

    def _given(self, scene: _Scene, run: Run) -> dict[str, Any]:
        return {"observed": scene.observed, "fed": run.fed, "attributes": self.node.attributes}

    def _compared(self, faults: Sequence[Fault], scenes: Sequence[_Scene | None]) -> Fit | None:
        """How all numbers fit these faults; None where one contradicts them."""
        memories: tuple[dict[str, dict[str, Any]], ...] = ({}, {})
        total = Fit(0.0, 0.0)
        for scene, run in zip(scenes, self.runs, strict=True):
            assert scene is not None
            given = self._given(scene, run)
            if all(fault.bounded for fault in faults):
                values = _Pass(**given, budget=scene.budget)
                predicted = layered(values, faults, memories[0])(scene.computation)
                edge = _Pass(**given, numbers=values.numbers, edge=True)
                edges = layered(edge, faults, memories[1])(scene.computation)
            else:
                predicted, edges = self._roughly(faults, scene, given, memories[0])
            used = _USED if any(d.structural for d in faults) else 1.0
            found: dict[str, Fit] = {}
            for name in self.node.outputs:
                said = _fit_of(name, predicted, edges, run.outputs, scene, used)
                if said is None:
                    return None
                found[name] = said
            # The last state is the last of Y once more.
            again = min((found.get(name, Fit(0.0, 0.0)) for name in ("Y", "Y_h")), key=lambda fit: fit.evidence)
            total = Fit(
                total.evidence + sum(fit.evidence for fit in found.values()) - again.evidence,
                total.least + sum(fit.least for fit in found.values()) - again.least,
            )
        return total

    def _roughly(
        self, faults: Sequence[Fault], scene: _Scene, given: dict[str, Any], memory: dict[str, dict[str, Any]]
    ) -> tuple[Outputs, Outputs]:
        """Predictions by plain numbers, with radii like those of the conforming ones."""
        predicted = layered(Compute(**given), faults, memory)(scene.computation)
        largest = {name: ROUGH * float(reach.max(initial=0.0)) for name, reach in scene.conforming[1].items()}
        unit = ROUGH * scene.budget.unit
        return predicted, {n: v + largest.get(n, 0.0) + unit * np.abs(v) for n, v in predicted.items()}


def _reported(computation: Computation, run: Run) -> NDArray[np.float64] | None:
    """The Y that the target reported, (T, D, N, H), where it has the right shape."""
    c, Y = computation.configuration, run.outputs.get("Y")
    if Y is None or Y.ndim != 4:
        return None
    Y = Y.astype(np.float64)
    Y = Y.transpose(1, 2, 0, 3) if c.layout == 1 else Y
    return Y if Y.shape == (c.T, len(c.directions), c.N, c.H) else None


def layered(compute: Compute, faults: Iterable[Fault], memory: dict[str, dict[str, Any]]) -> Compute:
    """A computation with all of these faults, each with a memory of its own, the first one nearest to `compute`."""
    for fault in faults:
        kept = memory.setdefault(fault.id, {})
        compute.memory = kept
        given: dict[str, Any] = {"attributes": compute.attributes, "below": compute, "fault": fault}
        compute = _Layer(compute.observed, compute.fed, kept, **given)
    return compute


def _fit_of(name: str, predicted: Outputs, edges: Outputs, outputs: Arrays, scene: _Scene, used: float) -> Fit | None:
    """What an output says for the prediction; None where it is not within the used part of its radii and the
    rounding of what is shown."""
    got, want = outputs.get(name), predicted.get(name)
    if got is None or want is None:
        return Fit(MOST, MOST) if got is want else None
    if got.shape != want.shape:
        return None
    right, reach = scene.conforming[0][name], scene.conforming[1][name]
    w = scene.budget
    if want.dtype not in (np.float64, w.tensor.dtype):  # the fault says in which type it answers
        same = got.dtype == want.dtype and np.allclose(got, want, rtol=1e-2, equal_nan=True)
        return Fit(MOST, MOST) if same else None
    if got.dtype != w.tensor.dtype:
        return None
    shown, want = got.astype(np.float64), want.astype(np.float64)
    # Of memory that nobody has written to nothing is predicted.
    unknown = (want == UNINITIALIZED) & (edges[name] == UNINITIALIZED)
    radius = np.abs(edges[name] - want)
    radius = np.where(np.isnan(radius), np.where(np.isfinite(want), np.inf, 0.0), radius)
    radius = radius + 2 * (w.unit * np.abs(want) + w.floor)
    off = np.abs(shown - want)
    same = (shown == want) | (np.isnan(shown) & np.isnan(want))
    large = (np.abs(want) + radius >= w.tensor.largest) & (np.abs(shown) >= w.tensor.largest)
    open_ = unknown | np.isinf(radius)
    if not ((off <= used * radius) | same | large | open_).all():
        return None
    if right.shape != got.shape:
        return Fit(MOST, MOST)
    away = np.abs(shown - right)
    wrong = np.isfinite(reach) & ~(away <= reach + 2 * (w.unit * np.abs(right) + w.floor)) & (shown != right)
    told = wrong & ~open_
    nearer = np.log2(np.where(np.isfinite(away), away, w.tensor.largest)[told] / radius[told])
    expected = wrong & (unknown | (open_ & ~np.isfinite(shown)))
    alike = _UNPREDICTED * float(expected.sum())
    bits, fewer = (float(np.clip(nearer - common, 0.0, MOST).sum()) for common in (0.0, _COMMON))
    return Fit(bits + alike, fewer + alike)

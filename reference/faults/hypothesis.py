"""Hypotheses: whether a target with given faults returns the observed numbers.

A hypothesis is one or more faults together. Its prediction is compared with the target's outputs, step-local where the
target reported Y, and by the numbers' own radii: faults are computed with bounded numbers, like the conforming
reference. So "the hypothesis explains the result" has the same meaning as "the result is right", for a changed
document.

A hypothesis does not decide that a result is wrong; that is decided before. But many hypotheses are tried on few
numbers, and some fit by chance. So each fit has an amount of evidence: :attr:`Fit.evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.formats import FORMATS
from ..recurrent.computation import Computation, computation_of
from ..recurrent.node import Node
from .fault import LAYERS, UNINITIALIZED, Changing, Compute, Fault, Outputs, made_together
from .memory import Memory, Sessions
from .predicting import BoundedPass, Remembering, Scene, layered

__all__ = ["MOST", "Fit", "RecurrentObservation", "Run", "layered"]

Arrays = Mapping[str, NDArray[Any]]

# Equations of some faults have no radii of their own. Their radii are those of the conforming numbers times this
# factor: a rough measure, but a structural fault changes numbers by far more.
ROUGH = 16.0

# A fault with the same rough radii as equations of kind "bias".
_PLAIN = "gru.reset-gate.on-bias"

# Numbers that differ by more than this multiple of the largest conforming radius are not computed with radii.
_GROSS = 256.0

_ATTRIBUTE = FORMATS["float32"]

# The part of a radius that is used. Radii are for the worst of all kernels; errors of real ones are at most a quarter
# of them. For faults of precision this does not hold, because their own roundings are not predicted.
_USED = 0.5

# Greatest evidence of one element, in bits; and the evidence of an element that is wrong exactly where the fault leaves
# memory unwritten, or not finite exactly where the fault makes the value arbitrary.
MOST, _UNPREDICTED = 20.0, 4.0

# Costs in small cases: multiplications that cost as much as one small case, the fixed cost of a trial, and the cost of
# a comparison with radii. Cached results cost almost nothing.
_PRODUCTS, _TRIAL, _EXACT = 50_000, 0.05, 4.0

# Bits of each element that are not counted in Fit.least, because all elements may be wrong for one reason.
_COMMON = 2.0

# Bits that are not counted for an element whose bounds contain 0: there are many reasons for small numbers.
_SMALL = 8.0


@dataclass(frozen=True)
class Run:
    """One run of a session: the node's inputs by formal name, the fed ones among them, and the target's outputs.

    session
        Number of the session, if several are alive.
    refused
        Whether the session has refused inputs before.
    overridden
        The model's own values of constants that were fed.
    """

    inputs: Arrays
    outputs: Arrays
    fed: Arrays = field(default_factory=dict)
    session: int = 0
    refused: bool = False
    overridden: Arrays = field(default_factory=dict)

    def memory(self, sessions: Sessions) -> Memory:
        """Return the memory that its session has kept until this run."""
        memory = sessions[self.session]
        memory.refused, memory.overridden = self.refused, self.overridden
        return memory


class Fit(Struct, frozen=True):
    """Result that a hypothesis explains the outputs.

    evidence
        Evidence in bits: the sum, over all elements that no conforming target returns, of log2 of how much nearer the
        prediction is than the conforming number. A wide radius, or an element without prediction, is no evidence.
    least
        The same with less for each element, because one wide radius may contain all of them if they are wrong for one
        reason.
    vague
        The part of the evidence from elements for which the prediction allows any number.
    """

    evidence: float
    least: float
    vague: float = 0.0

    def __add__(self, other: Fit) -> Fit:
        return Fit(self.evidence + other.evidence, self.least + other.least, self.vague + other.vague)


class RecurrentObservation:
    """Outputs of a target in one case, on which hypotheses are tried.

    work
        Cost of the hypotheses tried so far, in units of small cases.

    Raise IllegalNode where the document does not allow the node.
    """

    def __init__(self, node: Node, runs: tuple[Run, ...], accuracy: str = "standard") -> None:
        self.node, self.runs, self.accuracy = node, runs, accuracy
        self.work = 0.0
        self._scenes: dict[tuple[int, Interpretations | None, bool, str], Scene | None] = {}
        self._plain: dict[tuple[int, bool], Remembering] = {}
        # Cached, because each fault is asked about several times: changes, fit, alone and with others.
        self._fits: dict[tuple[tuple[Fault, ...], Interpretations | None, str], Fit | None] = {}
        self._nearness: dict[tuple[str, Interpretations | None], float] = {}
        self._partly: set[tuple[str, Interpretations | None]] = set()
        self._right_far: dict[tuple[int, int], NDArray[np.bool_]] = {}
        self._alters: dict[tuple[str, Interpretations | None], bool] = {}

    @cached_property
    def size(self) -> int:
        """Approximate number of multiplications of all runs."""
        total = 0
        for run in self.runs:
            (_, rows, H), X = run.inputs["R"].shape, run.inputs["X"]
            total += int(X.shape[0] * X.shape[1] * rows * (H + X.shape[2]) * len(run.inputs["R"]))
        return total

    def fit(
        self, faults: Sequence[Fault], interpretations: Interpretations | None = None, accuracy: str | None = None
    ) -> Fit | None:
        """Return the fit of the outputs to a target with these faults; None where they do not fit.

        accuracy
            The accuracy class of the target's arithmetic, where it differs from the declared one.
        """
        together = made_together(faults)
        if together is None:
            return None
        accuracy = self.accuracy if accuracy is None else accuracy
        if len(together) > 1:
            # Changes of outputs are innermost: they use the kernel's lengths and sizes, including wrong ones.
            inner = [self._alters_outputs(fault, interpretations) for fault in together]
            ordered = sorted(
                zip(together, inner, strict=True), key=lambda each: (LAYERS.index(each[0].layer), not each[1])
            )
            together = tuple(fault for fault, _ in ordered)
        self.work += _TRIAL
        key = together, interpretations, accuracy
        if key not in self._fits:
            with np.errstate(all="ignore"):
                self._fits[key] = self._fit(together, interpretations, accuracy)
        return self._fits[key]

    def _alters_outputs(self, fault: Fault, interpretations: Interpretations | None) -> bool:
        """Return whether a fault alters computed outputs, not only the operands."""
        self.changes(fault, interpretations)
        return self._alters.get((fault.id, interpretations), False)

    def changes(self, fault: Fault, interpretations: Interpretations | None = None) -> bool:
        """Return whether a target with that fault would return any other number than a conforming one, in any run."""
        if (fault.id, interpretations) not in self._nearness:
            self.fit((fault,), interpretations)
        return self._nearness[fault.id, interpretations] >= 0

    def left_open(self, fault: Fault, interpretations: Interpretations | None = None) -> list[NDArray[Any]]:
        """Return the outputs where the fault leaves memory unwritten, so that any number is possible."""
        values: list[NDArray[Any]] = []
        sessions = Sessions()
        with np.errstate(all="ignore"):
            for number, run in enumerate(self.runs):
                scene = self._scene(number, interpretations, False, self.accuracy)
                predicted = {} if scene is None else self._predicted((fault,), scene, run, sessions)
                for name, want in predicted.items():
                    got = run.outputs.get(name)
                    if got is not None and got.shape == want.shape:
                        values.append(got[want == UNINITIALIZED])
        return values

    def misses(self, interpretations: Interpretations | None = None, accuracy: str | None = None) -> list[Arrays]:
        """Return, by run and output, masks of the numbers that no conforming target returns.

        Each step is judged from the state reported before, where Y was reported. Y is (T, D, N, H), states are (D, N,
        H).
        """
        accuracy = self.accuracy if accuracy is None else accuracy
        with np.errstate(all="ignore"):
            return [self._misses(number, interpretations, accuracy) for number in range(len(self.runs))]

    def _misses(self, number: int, interpretations: Interpretations | None, accuracy: str) -> Arrays:
        scene = self._scene(number, interpretations, True, accuracy)
        scene = scene or self._scene(number, interpretations, False, accuracy)
        assert scene is not None
        batch_first, w = scene.computation.configuration.layout == 1, scene.budget
        masks: dict[str, NDArray[np.bool_]] = {}
        for name, got in self.runs[number].outputs.items():
            right, reach = scene.conforming[0][name], scene.conforming[1][name]
            if got.shape == right.shape:
                returned = got.astype(np.float64)
                near = np.abs(returned - right) <= reach + 2 * (w.unit * np.abs(right) + w.floor)
                off = np.isfinite(reach) & ~near & (returned != right) & ~(np.isnan(returned) & np.isnan(right))
                turned = off.transpose(1, 2, 0, 3) if name == "Y" else off.swapaxes(0, 1)
                masks[name] = turned if batch_first else off
        return masks

    def nearness(self, fault: Fault, interpretations: Interpretations | None = None) -> float:
        """Return the share of outputs that are near those of a target with that fault; below 0 if the fault changes
        nothing."""
        return self._nearness[fault.id, interpretations] if self.changes(fault, interpretations) else -1.0

    def partly(self, fault: Fault, interpretations: Interpretations | None = None) -> bool:
        """Return whether each output number is near the correct one or near that of a target with that fault."""
        return self.changes(fault, interpretations) and (fault.id, interpretations) in self._partly

    def _fit(self, faults: Sequence[Fault], interpretations: Interpretations | None, accuracy: str) -> Fit | None:
        for steps in (True, False):
            scenes = [self._scene(number, interpretations, steps, accuracy) for number in range(len(self.runs))]
            if not scenes or None in scenes:
                continue
            if not faults:
                # The correct equations, in another arithmetic.
                return self._compared(faults, scenes, [scene.plain for scene in scenes if scene is not None])
            share, altered, partly, plain = self._likely(faults, scenes)
            if len(faults) == 1:
                key = faults[0].id, interpretations
                if partly:
                    self._partly.add(key)
                self._nearness[key] = max(share, self._nearness.get(key, -1.0))
                self._alters[key] = altered
            fit = self._compared(faults, scenes, plain) if share == 1.0 else None
            if fit is not None:
                return fit
            # The target continued from the reported state, unless it changed the state afterwards.
            if steps and not altered:
                return None
        return None

    def _scene(self, number: int, interpretations: Interpretations | None, steps: bool, accuracy: str) -> Scene | None:
        """Return a run by these interpretations; None for `steps` without a reported Y."""
        # A run that was repeated with the same results is the same run.
        number = next(n for n in range(number + 1) if _repeats(self.runs[number], self.runs[n]))
        key = number, interpretations, steps, accuracy
        if key not in self._scenes:
            run = self.runs[number]
            scenes = (scene for (n, i, *_), scene in self._scenes.items() if (n, i) == key[:2] and scene is not None)
            similar = next(scenes, None)
            computation = (
                similar.computation if similar is not None else computation_of(self.node, run.inputs, interpretations)
            )
            observed = _reported(computation, run) if steps else None
            plain = self._plain.setdefault((number, steps), Remembering(observed))
            scene = Scene(computation, observed, accuracy, plain)
            self._scenes[key] = None if steps and observed is None else scene
        return self._scenes[key]

    def expected(
        self, faults: Sequence[Fault], interpretations: Interpretations | None = None
    ) -> list[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
        """Return (output, value, radius) of an implementation with these faults in the first run.

        Each step starts from the reported state; without Y it is a free run.
        """
        stepwise = self._scene(0, interpretations, True, self.accuracy)
        scene = stepwise or self._scene(0, interpretations, False, self.accuracy)
        assert scene is not None
        predicted, edges = self._with_radii(faults, scene, self.runs[0], (Sessions(), Sessions()))
        return [(n, predicted[n], np.abs(edges[n] - predicted[n])) for n in self.node.outputs if n in predicted]

    def _cost(self) -> float:
        return 1 + self.size // _PRODUCTS

    def _predicted(self, faults: Sequence[Fault], scene: Scene, run: Run, sessions: Sessions) -> Outputs:
        """Return the outputs of a target with these faults, by plain numbers."""
        compute = scene.plain_numbers
        before = compute.worked
        compute.fed, compute.attributes = run.fed, self.node.attributes
        predicted = layered(compute, faults, run.memory(sessions))(scene.computation)
        self.work += (compute.worked - before) * self._cost() / len(self.runs)
        return predicted

    def _likely(
        self, faults: Sequence[Fault], scenes: Sequence[Scene | None]
    ) -> tuple[float, bool, bool, Sequence[Outputs]]:
        """Return a quick comparison of the outputs with plain numbers, which cost little.

        The result is: the share of outputs near the prediction, below 0 where the faults change none; whether the
        faults change computed outputs, not only operands; whether all outputs are near the prediction or near the
        correct numbers; and the predicted numbers, run by run.
        """
        sessions = Sessions()
        changed = altered = False
        shares: list[float] = []
        plain: list[Outputs] = []
        compared: list[tuple[str, NDArray[Any], NDArray[Any], Scene]] = []
        for scene, run in zip(scenes, self.runs, strict=True):
            assert scene is not None
            predicted = self._predicted(faults, scene, run, sessions)
            plain.append(predicted)
            tensor, last = scene.budget.tensor.dtype, scene.plain_numbers.last
            altered = altered or not all(_shown(array, last.get(n), tensor) for n, array in predicted.items())
            for name in self.node.outputs:
                got, want = run.outputs.get(name), predicted.get(name)
                if got is None or want is None or got.shape != want.shape:
                    changed = True
                    shares.append(float(got is want))
                    continue
                changed = changed or not (
                    _shown(want, scene.plain[name], tensor)
                    or (want.dtype == np.float64 and np.array_equal(want, scene.plain[name], equal_nan=True))
                )
                compared.append((name, got, want, scene))
        if not changed:
            return -1.0, altered, False, plain
        partly = not shares
        for name, got, want, scene in compared:
            off = self._far(name, got, want, scene)
            shares.append(1.0 - float(off.mean()) if off.size else 1.0)
            partly = partly and not (off & self._far_from_right(name, got, scene)).any()
        return sum(shares) / max(1, len(shares)), altered, partly, plain

    def _far_from_right(self, name: str, got: NDArray[Any], scene: Scene) -> NDArray[np.bool_]:
        key = id(scene), id(got)
        if key not in self._right_far:
            right = scene.plain[name]
            same = right.shape == got.shape
            self._right_far[key] = self._far(name, got, right, scene) if same else np.ones(got.shape, bool)
        return self._right_far[key]

    def _far(self, name: str, got: NDArray[Any], want: NDArray[Any], scene: Scene) -> NDArray[np.bool_]:
        """Return a mask of the numbers of an output that are far from the prediction."""
        reach, w = scene.conforming[1][name], scene.budget
        near = _GROSS * (float(reach.max(initial=0.0)) + w.unit * np.abs(want) + w.floor)
        if w.tensor.precision > _ATTRIBUTE.precision:  # a fault's defaults may be held in float32 or not
            near = near + _GROSS * _ATTRIBUTE.unit * np.abs(want[np.isfinite(want)]).max(initial=0.0)
        comparable = np.isfinite(near) & (np.abs(want) < w.tensor.largest / 2) & (want != UNINITIALIZED)
        off: NDArray[np.bool_] = comparable & ~(np.abs(got.astype(np.float64) - want) <= near)
        return off

    def _given(self, scene: Scene, run: Run) -> dict[str, Any]:
        return {"observed": scene.observed, "fed": run.fed, "attributes": self.node.attributes}

    def _compared(
        self, faults: Sequence[Fault], scenes: Sequence[Scene | None], plain: Sequence[Outputs]
    ) -> Fit | None:
        """Return the fit of all numbers to these faults, given their plain numbers; None if a number contradicts
        them."""
        sessions = Sessions(), Sessions()
        total = Fit(0.0, 0.0)
        self.work += _EXACT * self._cost()
        for scene, run, plainly in zip(scenes, self.runs, plain, strict=True):
            assert scene is not None
            predicted = self._with_radii(faults, scene, run, sessions)
            # In float64 nothing fits by chance, and defaults of coefficients have two correct values.
            coarse = scene.budget.tensor.precision < FORMATS["float64"].precision
            used = _USED if coarse and any(d.structural for d in faults) else 1.0
            fits: dict[str, Fit] = {}
            for name in self.node.outputs:
                output_fit = _fit_of(name, predicted, plainly, run.outputs, scene, used)
                if output_fit is None:
                    return None
                fits[name] = output_fit
            # The last state repeats the last step of Y, so it counts once.
            again = min((fits.get(name, Fit(0.0, 0.0)) for name in ("Y", "Y_h")), key=lambda fit: fit.evidence)
            for fit in fits.values():
                total += fit if fit is not again else Fit(0.0, 0.0)
        return total

    def _with_radii(
        self, faults: Sequence[Fault], scene: Scene, run: Run, sessions: tuple[Sessions, Sessions]
    ) -> tuple[Outputs, Outputs]:
        """Return outputs of a target with these faults, and the same outputs plus their radii."""
        arguments = self._given(scene, run)
        if any(map(_has_rough_bounds, faults)):
            return self._roughly(faults, scene, arguments, run.memory(sessions[0]))
        values = BoundedPass(**arguments, bounded=scene.bounded)
        predicted = layered(values, faults, run.memory(sessions[0]))(scene.computation)
        edge = BoundedPass(**arguments, numbers=values.numbers, edge=True)
        return predicted, layered(edge, faults, run.memory(sessions[1]))(scene.computation)

    def _roughly(
        self, faults: Sequence[Fault], scene: Scene, given: dict[str, Any], memory: Memory
    ) -> tuple[Outputs, Outputs]:
        """Return predictions by plain numbers, with radii derived from those of the conforming outputs."""
        predicted = layered(Compute(**given), faults, memory)(scene.computation)
        largest = {name: ROUGH * float(reach.max(initial=0.0)) for name, reach in scene.conforming[1].items()}
        unit = ROUGH * scene.budget.unit
        return predicted, {n: v + largest.get(n, 0.0) + unit * np.abs(v) for n, v in predicted.items()}


def _has_rough_bounds(fault: Fault) -> bool:
    """Return whether the equations of a fault compute with plain numbers only."""
    return (fault.kind == "bias" and isinstance(fault.wrong, Changing)) or fault.id == _PLAIN


def _shown(array: NDArray[Any], computed: NDArray[Any] | None, dtype: np.dtype[Any]) -> bool:
    """Return whether an output is the computed array, or its copy in the type of the tensors."""
    if array is computed or computed is None:
        return array is computed
    return array.dtype == dtype != computed.dtype and np.array_equal(array, computed.astype(dtype), equal_nan=True)


def _repeats(run: Run, other: Run) -> bool:
    """Return whether a run repeats another one with the same results."""
    if run is other:
        return True
    same = run.inputs is other.inputs and run.fed is other.fed and run.outputs.keys() == other.outputs.keys()
    return same and all(array is other.outputs[name] for name, array in run.outputs.items())


def _reported(computation: Computation, run: Run) -> NDArray[np.float64] | None:
    """Return the Y that the target reported, as (T, D, N, H), if its shape is right."""
    c, Y = computation.configuration, run.outputs.get("Y")
    if Y is None or Y.ndim != 4:
        return None
    Y = Y.astype(np.float64)
    Y = Y.transpose(1, 2, 0, 3) if c.layout == 1 else Y
    return Y if Y.shape == (c.T, len(c.directions), c.N, c.H) else None


Prediction = tuple[Outputs, Outputs]
"""Values, and values plus radii."""


def _fit_of(
    name: str,
    prediction: Prediction,
    plain: Outputs,
    outputs: Arrays,
    scene: Scene,
    used: float,
) -> Fit | None:
    """Return the evidence of an output for the prediction; None if the output is outside the used part of its radii.

    The rounding of the returned number is allowed too.

    plain
        The prediction by plain numbers, which distinguishes NaN from infinity where there is no bound.
    """
    predicted, edges = prediction
    got, want = outputs.get(name), predicted.get(name)
    if got is None or want is None:
        return Fit(MOST, MOST) if got is want else None
    if got.shape != want.shape:
        return None
    right, reach = scene.conforming[0][name], scene.conforming[1][name]
    w = scene.budget
    if want.dtype not in (np.float64, w.tensor.dtype):  # the fault determines the type of the output
        same = got.dtype == want.dtype and np.allclose(got, want, rtol=1e-2, equal_nan=True)
        return Fit(MOST, MOST) if same else None
    if got.dtype != w.tensor.dtype:
        return None
    returned, want = got.astype(np.float64), want.astype(np.float64)
    # There is no prediction for unwritten memory.
    unknown = (want == UNINITIALIZED) & (edges[name] == UNINITIALIZED)
    radius = np.abs(edges[name] - want)
    radius = np.where(np.isnan(radius), np.where(np.isfinite(want), np.inf, 0.0), radius)
    radius = radius + 2 * (w.unit * np.abs(want) + w.floor)
    off = np.abs(returned - want)
    same = (returned == want) | (np.isnan(returned) & np.isnan(want))
    large = (np.abs(want) + radius >= w.tensor.largest) & (np.abs(returned) >= w.tensor.largest)
    unpredicted = unknown | np.isinf(radius)
    explained = (off <= used * radius) | same | large | unpredicted
    if not explained.all():
        return None
    if right.shape != got.shape:
        return Fit(MOST, MOST)
    away = np.abs(returned - right)
    wrong = np.isfinite(reach) & ~(away <= reach + 2 * (w.unit * np.abs(right) + w.floor)) & (returned != right)
    decided = wrong & ~unpredicted
    nearer = np.log2(np.where(np.isfinite(away), away, w.tensor.largest)[decided] / radius[decided])
    # If the interval contains 0, the numbers are only known to be small, which many faults cause.
    nearer = nearer - _SMALL * (~same & (radius >= np.maximum(np.abs(returned), np.abs(want))))[decided]
    otherwise = ~np.isfinite(plain[name]) & (np.isnan(plain[name]) != np.isnan(returned))
    expected = wrong & (unknown | (unpredicted & ~np.isfinite(returned) & ~otherwise))
    # If all of an output is unpredicted, the positions of elements are no evidence.
    vague = 0.0 if unknown.all() else _UNPREDICTED * float(expected.sum())
    bits, fewer = (float(np.clip(nearer - common, 0.0, MOST).sum()) for common in (0.0, _COMMON))
    return Fit(bits + vague, fewer + vague, vague)

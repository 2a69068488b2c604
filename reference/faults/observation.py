"""Observations: outputs of a target in one case, as evidence for faults.

A hypothesis is one or more faults together. It explains the outputs if all of them lie within the bounds that are
expected with the faults, step-local where the target reported Y. So "the hypothesis explains the result" has the same
meaning as "the result is right", for a changed document.

A hypothesis does not decide that a result is wrong; that is decided before. But many hypotheses are tried on few
numbers, and some fit by chance. So each fit has an amount of evidence: :attr:`Fit.evidence`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.accuracy import FORMATS
from ..recurrent.computation import computation_of
from ..recurrent.configuration import steps_first
from ..recurrent.node import Node
from .computing import Prediction, Remembering
from .contexts import Context, Expecting, Run, Scan, reported_steps
from .fault import LAYERS, UNINITIALIZED, Fault, Outputs, Sessions, made_together

Array = NDArray[Any]
Arrays = Mapping[str, Array]

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


class _Effect(Struct, frozen=True):
    """Effect of faults by plain numbers.

    nearness
        Share of outputs that are near those of a target with the faults; below 0 where they change none.
    alters_outputs
        Whether they alter computed outputs, not only the operands.
    partly
        Whether all outputs are near the prediction or near the correct numbers.
    """

    nearness: float = -1.0
    alters_outputs: bool = False
    partly: bool = False


class Observation:
    """Outputs of a target in one case, on which hypotheses are tried.

    work
        Cost of the hypotheses tried so far, in units of small cases.

    Raise IllegalNode where the document does not allow the node.
    """

    def __init__(self, operator: Any, node: Node, runs: tuple[Run, ...], accuracy: str = "standard") -> None:
        """Observe the runs of a node of an :class:`..operators.operator.Operator`."""
        self.node, self.runs, self.accuracy = node, runs, accuracy
        self.work = 0.0
        self._operator = operator
        self._contexts: dict[tuple[int, Interpretations | None, bool, str], Context | None] = {}
        self._plain: dict[tuple[int, bool], Remembering] = {}
        # Cached, because each fault is asked about several times: changes, fit, alone and with others.
        self._fits: dict[tuple[tuple[Fault, ...], Interpretations | None, str], Fit | None] = {}
        self._effects: dict[tuple[str, Interpretations | None], _Effect] = {}
        self._right_far: dict[tuple[int, int], NDArray[np.bool_]] = {}

    @cached_property
    def cost(self) -> float:
        """Approximate cost of computing all runs, in small cases: a multiplication for each weight, step and row."""
        products = 0
        for run in self.runs:
            X, *weights = (array for array in run.inputs.values() if array is not None and array.ndim)
            products += int(np.prod(X.shape[:-1])) * sum(w.size for w in weights)
        return 1 + products // _PRODUCTS

    def fit(
        self, faults: Sequence[Fault], interpretations: Interpretations | None = None, accuracy: str | None = None
    ) -> Fit | None:
        """Return the fit of the outputs to a target with these faults; None where they do not fit.

        accuracy
            The accuracy class of the target's arithmetic, where it differs from the declared one.
        """
        together = made_together(faults)
        if together is None or any(fault.accepts for fault in faults):
            return None
        accuracy = self.accuracy if accuracy is None else accuracy
        if len(together) > 1:
            # Changes of outputs are innermost: they use the kernel's lengths and sizes, including wrong ones.
            inner = {fault: self._effect(fault, interpretations).alters_outputs for fault in together}
            together = tuple(sorted(together, key=lambda fault: (LAYERS.index(fault.layer), not inner[fault])))
        self.work += _TRIAL
        key = together, interpretations, accuracy
        if key not in self._fits:
            with np.errstate(all="ignore"):
                self._fits[key] = self._fit(together, interpretations, accuracy)
        return self._fits[key]

    def _effect(self, fault: Fault, interpretations: Interpretations | None) -> _Effect:
        if (fault.id, interpretations) not in self._effects:
            self.fit((fault,), interpretations)
        return self._effects.get((fault.id, interpretations), _Effect())

    def changes(self, fault: Fault, interpretations: Interpretations | None = None) -> bool:
        """Return whether a target with that fault would return any other number than a conforming one, in any run."""
        return self._effect(fault, interpretations).nearness >= 0

    def nearness(self, fault: Fault, interpretations: Interpretations | None = None) -> float:
        """Return the share of outputs that are near those of a target with that fault; below 0 if the fault changes
        nothing."""
        return self._effect(fault, interpretations).nearness

    def partly(self, fault: Fault, interpretations: Interpretations | None = None) -> bool:
        """Return whether the fault changes something, and each output number is near the correct one or near that of a
        target with that fault."""
        return self._effect(fault, interpretations).partly

    def left_open(self, fault: Fault, interpretations: Interpretations | None = None) -> list[Array]:
        """Return the outputs where the fault leaves memory unwritten, so that any number is possible."""
        values: list[Array] = []
        sessions = Sessions()
        with np.errstate(all="ignore"):
            for context in self._all(interpretations, False, self.accuracy):
                predicted, _ = self._numbers(context, (fault,), sessions)
                for name, want in predicted.items():
                    got = context.run.outputs.get(name)
                    if got is not None and got.shape == want.shape:
                        values.append(got[want == UNINITIALIZED])
        return values

    def misses(self, interpretations: Interpretations | None = None, accuracy: str | None = None) -> list[Arrays]:
        """Return, by run and output, masks of the numbers that no conforming target returns; nothing for operators
        without cell.

        Each step is judged from the state reported before, where Y was reported. Y is (T, D, N, H), states are (D, N,
        H).
        """
        accuracy = self.accuracy if accuracy is None else accuracy
        with np.errstate(all="ignore"):
            contexts = (
                self._context(number, interpretations, True, accuracy)
                or self._context(number, interpretations, False, accuracy)
                for number in range(len(self.runs))
            )
            return [_misses(context) for context in contexts if isinstance(context, Scan)]

    def _fit(self, faults: Sequence[Fault], interpretations: Interpretations | None, accuracy: str) -> Fit | None:
        for steps in (True, False):
            contexts = self._all(interpretations, steps, accuracy)
            if not contexts:
                continue
            if not faults:
                # The correct equations, in another arithmetic.
                if any(
                    self._far_from_right(name, got, c).any() for c in contexts for name, got in c.run.outputs.items()
                ):
                    return None
                return self._compared(faults, contexts, [context.right for context in contexts])
            effect, plain = self._likely(faults, contexts)
            if len(faults) == 1:
                key = faults[0].id, interpretations
                before = self._effects.get(key, effect)
                nearness, partly = max(effect.nearness, before.nearness), effect.partly or before.partly
                self._effects[key] = _Effect(nearness, effect.alters_outputs, partly)
            fit = self._compared(faults, contexts, plain) if effect.nearness == 1.0 else None
            if fit is not None:
                return fit
            # The target continued from the reported state, unless it changed the state afterwards, or a fault read the
            # state of another row, which is not reported past that row's length.
            if steps and not effect.alters_outputs and not any(fault.topic == "rows.independent" for fault in faults):
                return None
        return None

    def _all(self, interpretations: Interpretations | None, steps: bool, accuracy: str) -> list[Any]:
        """Return the contexts of all runs; an empty list where one has no reported Y and `steps` need it."""
        contexts = [self._context(number, interpretations, steps, accuracy) for number in range(len(self.runs))]
        return contexts if None not in contexts else []

    def _context(
        self, number: int, interpretations: Interpretations | None, steps: bool, accuracy: str
    ) -> Context | None:
        """Return a run by these interpretations; None for `steps` without a reported Y."""
        # A run that was repeated with the same results is the same run.
        number = next(n for n in range(number + 1) if _repeats(self.runs[number], self.runs[n]))
        key = number, interpretations, steps, accuracy
        if key not in self._contexts:
            self._contexts[key] = self._made(*key)
        return self._contexts[key]

    def _made(self, number: int, interpretations: Interpretations | None, steps: bool, accuracy: str) -> Context | None:
        run = self.runs[number]
        if not self._operator.scans:
            return Expecting(self._operator, self.node, run, interpretations, accuracy) if steps else None
        computation = computation_of(self.node, run.inputs, interpretations)
        observed = reported_steps(computation, run.outputs) if steps else None
        if steps and observed is None:
            return None
        plain = self._plain.setdefault((number, steps), Remembering(observed))
        return Scan(self.node, run, computation, observed, accuracy, plain)

    def _numbers(self, context: Context, faults: Sequence[Fault], sessions: Sessions) -> tuple[Outputs, bool]:
        """Return the outputs of a target with faults, and whether the faults alter computed outputs."""
        counter = context.plain if isinstance(context, Scan) else context
        before = counter.worked
        numbers = context.numbers(faults, sessions)
        self.work += (counter.worked - before) * self.cost / len(self.runs)
        return numbers

    def _likely(self, faults: Sequence[Fault], contexts: Sequence[Context]) -> tuple[_Effect, Sequence[Outputs]]:
        """Return a quick comparison of the outputs with plain numbers, which cost little, and these numbers, run by
        run. A repeated run is skipped if the faults keep nothing."""
        sessions = Sessions()
        changed = altered = False
        shares: list[float] = []
        plain: list[Outputs] = []
        compared: list[tuple[str, Array, Array, Context]] = []
        for number, context in enumerate(contexts):
            if context in contexts[:number] and sessions.empty:
                plain.append(plain[contexts.index(context)])
                continue
            numbers, alters = self._numbers(context, faults, sessions)
            plain.append(numbers)
            altered = altered or alters
            for name in self.node.outputs:
                got, want = context.run.outputs.get(name), numbers.get(name)
                if got is None or want is None or got.shape != want.shape:
                    changed = True
                    shares.append(float(got is want))
                    continue
                changed = changed or not context.unchanged(name, want)
                compared.append((name, got, want, context))
        if not changed:
            return _Effect(alters_outputs=altered), plain
        partly = not shares
        for name, got, want, context in compared:
            off = _far(name, got, want, context)
            shares.append(1.0 - float(off.mean()) if off.size else 1.0)
            partly = partly and not (off & self._far_from_right(name, got, context)).any()
        return _Effect(sum(shares) / max(1, len(shares)), altered, partly), plain

    def _far_from_right(self, name: str, got: Array, context: Context) -> NDArray[np.bool_]:
        key = id(context), id(got)
        if key not in self._right_far:
            right = context.right[name]
            same_shape = right.shape == got.shape
            self._right_far[key] = _far(name, got, right, context) if same_shape else np.ones(got.shape, bool)
        return self._right_far[key]

    def _compared(self, faults: Sequence[Fault], contexts: Sequence[Context], plain: Sequence[Outputs]) -> Fit | None:
        """Return the fit of all numbers to these faults, given their plain numbers; None if a number contradicts
        them."""
        sessions = Sessions(), Sessions()
        total = Fit(0.0, 0.0)
        of_runs: dict[Context, Fit] = {}
        self.work += _EXACT * self.cost
        for context, plainly in zip(contexts, plain, strict=True):
            if context in of_runs and all(kept.empty for kept in sessions):
                total += of_runs[context]
                continue
            prediction = context.predicted(faults, sessions)
            # In float64 nothing fits by chance, and defaults of coefficients have two correct values.
            coarse = context.tensor.precision < FORMATS["float64"].precision
            used = _USED if coarse and any(d.structural for d in faults) else 1.0
            fits: dict[str, Fit] = {}
            for name in self.node.outputs:
                output_fit = _fit_of(name, prediction, plainly, context, used)
                if output_fit is None:
                    return None
                fits[name] = output_fit
            # The last state repeats the last step of Y, so it counts once.
            again = min((fits.get(name, Fit(0.0, 0.0)) for name in ("Y", "Y_h")), key=lambda fit: fit.evidence)
            of_runs[context] = sum((fit for fit in fits.values() if fit is not again), Fit(0.0, 0.0))
            total += of_runs[context]
        return total


def _repeats(run: Run, other: Run) -> bool:
    """Return whether a run repeats another one with the same results."""
    if run is other:
        return True
    same = run.inputs is other.inputs and run.fed is other.fed and run.outputs.keys() == other.outputs.keys()
    return same and all(array is other.outputs[name] for name, array in run.outputs.items())


def _misses(scan: Scan) -> Arrays:
    layout = scan.computation.configuration.layout
    masks: dict[str, NDArray[np.bool_]] = {}
    for name, got in scan.run.outputs.items():
        if got.shape == scan.conforming.values[name].shape:
            off = _wrong(name, got, scan)
            masks[name] = steps_first(off, layout) if name == "Y" else off.swapaxes(0, layout)
    return masks


def _wrong(name: str, got: Array, context: Context) -> NDArray[np.bool_]:
    """Return a mask of the numbers of an output that no conforming target returns."""
    right, radius = context.conforming.values[name], context.conforming.radii[name]
    returned = got.astype(np.float64)
    near = np.abs(returned - right) <= radius + 2 * (context.unit * np.abs(right) + context.floor)
    wrong: NDArray[np.bool_] = np.isfinite(radius) & ~near & (returned != right) & ~(np.isnan(got) & np.isnan(right))
    return wrong


def _far(name: str, got: Array, want: Array, context: Context) -> NDArray[np.bool_]:
    """Return a mask of the numbers of an output that are far from the prediction."""
    tensor = context.tensor
    largest = float(context.conforming.radii[name].max(initial=0.0))
    near = _GROSS * (largest + context.unit * np.abs(want) + context.floor)
    if tensor.precision > _ATTRIBUTE.precision:  # a fault's defaults may be held in float32 or not
        near = near + _GROSS * _ATTRIBUTE.unit * np.abs(want[np.isfinite(want)]).max(initial=0.0)
    comparable = np.isfinite(near) & (np.abs(want) < tensor.largest / 2) & (want != UNINITIALIZED)
    off: NDArray[np.bool_] = comparable & ~(np.abs(got.astype(np.float64) - want) <= near)
    return off


def _fit_of(name: str, prediction: Prediction, plain: Outputs, context: Context, used: float) -> Fit | None:
    """Return the evidence of an output for the prediction; None if the output is outside the used part of its radii.

    The rounding of the returned number is allowed too.

    plain
        The prediction by plain numbers, which distinguishes NaN from infinity where there is no bound.
    """
    got, want = context.run.outputs.get(name), prediction.values.get(name)
    if got is None or want is None:
        return Fit(MOST, MOST) if got is want else None
    if got.shape != want.shape:
        return None
    if want.dtype not in (np.float64, context.tensor.dtype):  # the fault determines the type of the output
        equal = got.dtype == want.dtype and np.allclose(got, want, rtol=1e-2, equal_nan=True)
        return Fit(MOST, MOST) if equal else None
    if got.dtype != context.dtype(name):
        return None
    returned, want, bound = got.astype(np.float64), want.astype(np.float64), prediction.radii[name]
    # There is no prediction for unwritten memory.
    unknown = (want == UNINITIALIZED) & (bound == 0)
    radius = np.where(np.isnan(bound), np.where(np.isfinite(want), np.inf, 0.0), bound)
    radius = radius + 2 * (context.unit * np.abs(want) + context.floor)
    off, largest = np.abs(returned - want), context.tensor.largest
    equal = (returned == want) | (np.isnan(returned) & np.isnan(want))
    large = (np.abs(want) + radius >= largest) & (np.abs(returned) >= largest)
    unpredicted = unknown | np.isinf(radius)
    if not ((off <= used * radius) | equal | large | unpredicted).all():
        return None
    right = context.conforming.values.get(name)
    if right is None or right.shape != got.shape:
        return Fit(MOST, MOST)
    away, wrong = np.abs(returned - right), _wrong(name, got, context)
    decided = wrong & ~unpredicted
    nearer = np.log2(np.where(np.isfinite(away), away, largest)[decided] / radius[decided])
    # If the interval contains 0, the numbers are only known to be small, which many faults cause.
    nearer = nearer - context.small * (~equal & (radius >= np.maximum(np.abs(returned), np.abs(want))))[decided]
    otherwise = ~np.isfinite(plain[name]) & (np.isnan(plain[name]) != np.isnan(returned))
    expected = wrong & (unknown | (unpredicted & ~np.isfinite(returned) & ~otherwise))
    # If all of an output is unpredicted, the positions of elements are no evidence.
    vague = 0.0 if unknown.all() else _UNPREDICTED * float(expected.sum())
    bits, fewer = (float(np.clip(nearer - common, 0.0, MOST).sum()) for common in (0.0, context.common))
    return Fit(bits + vague, fewer + vague, vague)

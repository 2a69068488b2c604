"""Outputs of a target in one case, as evidence for faults, judged by the operator's own expectations.

A fault explains the outputs if all of them lie within the bounds that are expected with the fault. This proves nothing
by itself: among many faults, some fit few numbers by chance. So each fit has an amount of evidence.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..faults.fault import Fault
from ..faults.hypothesis import MOST, Fit, Run
from ..faults.memory import Sessions
from ..numbers.bounded import RADIUS_SLACK, Bounded
from ..recurrent.expectation import Expectation
from ..recurrent.node import Node

Array = NDArray[Any]

# Number of multiplications that cost as much as the fixed costs of a hypothesis.
_PRODUCTS = 50_000

# Least bound that measures how near a number is: levels and float32 are coarser.
_FINEST = 2.0**-40

# Share of a radius. Smaller differences come from other operations in float64, in runs where the fault has no effect.
_NOISE = 2.0**-20


class Observation(Protocol):
    """Outputs of a target in one case.

    size
        Approximate number of multiplications of all runs: the cost of trying a fault.
    work
        Cost of the faults tried so far, in units of a small case.
    """

    work: float

    @property
    def size(self) -> int: ...

    def left_open(self, fault: Fault, interpretations: Interpretations | None = None) -> list[NDArray[Any]]:
        """Return masks of the outputs that the fault leaves undefined: uninitialized memory, any number."""

    def fit(
        self, faults: Sequence[Fault], interpretations: Interpretations | None = None, accuracy: str | None = None
    ) -> Fit | None:
        """Return the fit of the outputs to a target with these faults; None where they do not fit.

        accuracy
            The accuracy class of the target's arithmetic, where it differs from the declared one.
        """

    def changes(self, fault: Fault, interpretations: Interpretations | None = None) -> bool:
        """Return whether a target with that fault would return other numbers than a conforming one."""

    def nearness(self, fault: Fault, interpretations: Interpretations | None = None) -> float:
        """Return the share of outputs that are near those of a target with that fault; below 0 if the fault changes
        nothing."""

    def partly(self, fault: Fault, interpretations: Interpretations | None = None) -> bool:
        """Return whether each number may be either the correct one or that of a target with that fault."""


class Predicted:
    """Observation based on an operator's own expectations.

    expect, answer
        The methods of :class:`.operator.Operator`.
    form
        Function from the inputs of a run and the name of an output to its shape and type.
    """

    def __init__(
        self,
        expect: Callable[..., list[Expectation]],
        answer: Callable[..., Mapping[str, Array]],
        form: Callable[[Mapping[str, Array], str], tuple[tuple[int, ...], np.dtype[Any]]],
        node: Node,
        runs: tuple[Run, ...],
        accuracy: str,
    ) -> None:
        self._expect, self._answer, self._form = expect, answer, form
        self._node, self._runs, self._accuracy = node, runs, accuracy
        self.work = 0.0
        self._changing: dict[str, bool] = {}

    def left_open(self, fault: Fault, interpretations: Interpretations | None = None) -> list[Array]:
        """Return an empty list: each number is predicted."""
        return []

    @cached_property
    def size(self) -> int:
        """Number of weight elements times steps and rows."""
        total = 0
        for run in self._runs:
            X, *weights = (array for array in run.inputs.values() if array.ndim)
            total += int(np.prod(X.shape[:-1])) * sum(w.size for w in weights)
        return total

    @cached_property
    def _formed(self) -> bool:
        """Whether all outputs have the expected shapes and types."""
        for run in self._runs:
            for name in self._node.outputs:
                array = run.outputs.get(name)
                if array is None or (array.shape, array.dtype) != self._form(run.inputs, name):
                    return False
        return True

    @cached_property
    def _right(self) -> list[list[Expectation]]:
        """Expected values of the outputs, run by run."""
        with np.errstate(all="ignore"):
            return [self._expect(self._node, r.inputs, r.outputs, self._accuracy) for r in self._runs]

    def changes(self, fault: Fault, interpretations: Interpretations | None = None) -> bool:
        """Return whether the fault changes outputs, from the same states, by more than the noise of float64."""
        if fault.accepts or not self._formed:
            return not fault.accepts
        if fault.id not in self._changing:
            self.work += 1 + self.size // _PRODUCTS
            self._changing[fault.id] = any(map(self._departs, self._runs, self._right, itertools.repeat(fault)))
        return self._changing[fault.id]

    def _departs(self, run: Run, right: Sequence[Expectation], fault: Fault) -> bool:
        with np.errstate(all="ignore"):
            wrong = self._expect(self._node, run.inputs, run.outputs, self._accuracy, None, (fault,))
            return any(_differs(r.number, w.number) for r, w in zip(right, wrong, strict=True))

    def nearness(self, fault: Fault, interpretations: Interpretations | None = None) -> float:
        """Return 0 for every fault that changes something: all are equally near."""
        return 0.0 if self.changes(fault, interpretations) else -1.0

    def partly(self, fault: Fault, interpretations: Interpretations | None = None) -> bool:
        """Return whether the fault changes anything."""
        return self.changes(fault, interpretations)

    def fit(
        self, faults: Sequence[Fault], interpretations: Interpretations | None = None, accuracy: str | None = None
    ) -> Fit | None:
        """Return the fit of the outputs to a target with these faults; None where they do not fit."""
        if any(fault.accepts for fault in faults):
            return None
        self.work += 1 + self.size // _PRODUCTS
        if not self._formed:
            return self._by_form(faults, interpretations)
        bits = 0.0
        for run, right in zip(self._runs, self._right, strict=True):
            with np.errstate(all="ignore"):
                wrong = self._expect(
                    self._node, run.inputs, run.outputs, accuracy or self._accuracy, interpretations, faults
                )
                for must, predicted in zip(right, wrong, strict=True):
                    if must.conventional:
                        continue  # nothing is judged by it, so it is no evidence
                    evidence = _bits(must, predicted, run.outputs[predicted.output])
                    if evidence is None:
                        return None
                    bits += evidence
        return Fit(bits, bits)

    def _by_form(self, faults: Sequence[Fault], interpretations: Interpretations | None) -> Fit | None:
        """Return the fit of outputs of another shape or type.

        They are compared with the outputs of an implementation with these faults, because no values are expected for
        them.
        """
        sessions = Sessions()
        for run in self._runs:
            answer = self._answer(self._node, run.inputs, faults, interpretations, memory=run.memory(sessions))
            for name in self._node.outputs:
                got, want = run.outputs.get(name), answer.get(name)
                if got is None or want is None:
                    if got is not want:
                        return None
                elif (got.shape, got.dtype) != (want.shape, want.dtype) or not np.allclose(
                    got.astype(np.float64), want.astype(np.float64), rtol=1e-2, equal_nan=True
                ):
                    return None
        return Fit(MOST, MOST)


def _differs(right: Bounded, wrong: Bounded) -> bool:
    if right.value.shape != wrong.value.shape:
        return True
    return bool((np.abs(right.value - wrong.value) > _NOISE * right.radius).any())


def _bits(must: Expectation, predicted: Expectation, got: Array) -> float | None:
    """Return the evidence of an output for the prediction; None where some of it lies outside its bounds."""
    number = predicted.number
    if number.value.shape != got.shape:
        return None
    off = np.abs(got.astype(np.float64) - number.value)
    near = off <= number.radius * RADIUS_SLACK
    ignored = np.zeros(got.shape, bool) if number.doubt is None else number.doubt
    if must.about is not None:
        ignored = ignored | ~must.about  # another expectation covers these
    if not (near | ignored).all():
        return None
    away = np.abs(got.astype(np.float64) - must.number.value)
    bits = np.log2(np.maximum(away / np.maximum(number.radius, _FINEST), 1.0))
    telling = np.isfinite(bits) & ~ignored
    if predicted.weak is not None:
        telling &= ~predicted.weak
    return float(bits[telling].sum())

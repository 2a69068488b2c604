"""ExtendedLSTM as an operator: its document behind the interface of all operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...documents.interpretations import Interpretations
from ...faults.fault import FAULTS, Fault
from ...faults.scope import base_id
from ...numbers.accuracy import AccuracyClass
from ...numbers.affine import Affine
from ...numbers.bounded import RADIUS_SLACK, Bounded
from ...recurrent.expectation import Expectation, Measure
from ...recurrent.node import Diagnostic, Node, StatedSize, Steps, Written
from ..operator import Classes, Conforming, Evidence, Operator, operator_of, register
from .arithmetic import ARITHMETICS
from .computation import ExtendedComputation, computation_of, later_steps
from .document import DOCUMENT, PLAIN, ExtendedLSTM, diagnostics, resolve

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Outputs = dict[str, Array]

# Floats narrower than float32; only the bound of bfloat16 is wide enough for them.
_NARROW = frozenset({"tf32", "f16-math", "bf16-math", "f16-storage", "bf16-storage", "fast"})

_MANY = 6
"""Least number of failing elements in one direction only; with fewer, the other direction may have none by chance
(2^-6)."""

_FAR = 1e20
"""Size from which a finite number is far beyond every case's range: the case tests saturation."""

_ROUNDING = 2.0**-23
"""Rounding of a level's number to float32; twice that is much less than a level."""

_WIDEST = 0.05
"""Greatest radius of meaningful agreement: outputs lie between -1 and 1."""

_LONGEST, _LARGEST = 16, 1200  # steps, and weights of a gate: larger cases show no fault that smaller ones do not


def arithmetic_of(accuracy: str) -> str:
    """Return the kind of arithmetic that a target of an accuracy class is compared with first.

    It is bfloat16 for classes of narrow floats, else fixed point.
    """
    return accuracy if accuracy in ARITHMETICS else "bfloat16" if accuracy in _NARROW else "fixed-point"


class _ExtendedLSTM(Operator):
    """com.amd.quark::ExtendedLSTM."""

    document = DOCUMENT
    # There are about fifty faults, and an output that is off by one unit gives a bit and a half of evidence.
    evidence = Evidence(new=4.0, known=2.0**-10, placed=3.0)
    takes_levels = True

    def __init__(self) -> None:
        """Set the conforming implementations: exact arithmetic, the same with unquantized states, and float32."""
        self.conforming = {
            "exact": Conforming(partial(self._rounded, state="quantized")),
            "state-as-computed": Conforming(partial(self._rounded, state="as-computed")),
            "float32": Conforming(lambda node, inputs: _float32(self.computation(node, inputs)), "float32"),
        }

    def resolve(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> ExtendedLSTM:
        """Return the resolved node. Raise IllegalNode."""
        return resolve(node.attributes, inputs)

    def open_questions(self, node: Node, inputs: Arrays) -> frozenset[str]:
        """Return the ambiguities that affect a node: the fed-back state, where Y is quantized."""
        return frozenset({"state_quantization"} if resolve(node.attributes, inputs).y is not None else ())

    def classes(self, accuracy: str, type: str) -> Classes:
        """Return the accuracy classes for a declared class.

        The document says bfloat16 in its summary and uint16 in its attributes. So without a declaration both float32
        and fixed point are right.
        """
        declared = arithmetic_of(accuracy)
        right = (declared, "float32") if declared == "fixed-point" and accuracy not in ARITHMETICS else (declared,)
        return Classes(right, tuple(name for name in ARITHMETICS if name not in right), telling=True)

    def roundings(self, arithmetic: str) -> AccuracyClass | None:
        """Return the roundings of the arithmetic's floats; None for fixed point, because levels are no rounding to a
        format."""
        return None if arithmetic == "fixed-point" else super().roundings(ARITHMETICS.get(arithmetic, arithmetic))

    def expect(
        self,
        node: Node,
        inputs: Arrays,
        observed: Arrays,
        accuracy: str = "standard",
        interpretations: Interpretations | None = None,
        faults: Sequence[Fault] = (),
    ) -> list[Expectation]:
        """Return the values that Y must have. The clause is that of the first failing step; each step starts from the
        reported Y before it."""
        (expectation,) = super().expect(node, inputs, observed, arithmetic_of(accuracy), interpretations, faults)
        resolved, number, Y = self.resolve(node, inputs), expectation.number, observed.get("Y")
        undefined = _undefined(resolved)
        if number.value.shape == undefined.shape:
            number = replace(number, doubt=undefined if number.doubt is None else number.doubt | undefined)
        weak = number.radius > _WIDEST
        measure = None if resolved.y is None else Measure("y_scale", resolved.y.scale)
        clause = "equations" if Y is None or faults else _clause(resolved, number, Y)
        return [Expectation("Y", number, f"extendedlstm.{clause}", weak=weak, measure=measure)]

    def bounds(
        self,
        node: Node,
        inputs: Arrays,
        arithmetic: Any,
        interpretations: Interpretations | None = None,
        states: Bounded | None = None,
    ) -> dict[str, Bounded]:
        """Return Y with the widest bounds among the right arithmetics.

        Where Y is quantized, its values are numbers of levels. Elements of `states` that do not determine one level are
        not used.
        """
        resolved = self.resolve(node, inputs)
        observed: Outputs = {}
        if states is not None and resolved.y is not None:
            observed["Y"], unknown = _only_levels(states, resolved.y)
            # A state counts in all steps after it, in its direction.
            undetermined = later_steps(unknown)
        else:
            undetermined = np.zeros(resolved.shape_of("Y"), bool)
        computation = self.computation(node, inputs, interpretations)
        right = self.classes(arithmetic.budget.name, "float32").right
        candidates = [computation.bounded(kind, observed)["Y"] for kind in right]
        widest = np.maximum.reduce([number.radius for number in candidates])
        undefined = undetermined | _undefined(resolved)
        for number in candidates:
            undefined = undefined if number.doubt is None else undefined | number.doubt
        known = Bounded(candidates[0].value, widest, candidates[0].budget, undefined)
        return {"Y": known if resolved.y is None else _among_levels(known, resolved.y)}

    def evaluate(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Outputs:
        """Return Y in exact arithmetic, each state computed from the one before."""
        with np.errstate(all="ignore"):
            return {"Y": self.computation(node, inputs, interpretations).evaluate()}

    def computation(
        self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None
    ) -> ExtendedComputation:
        """Return the computation of a node."""
        state = (interpretations or Interpretations()).state_quantization
        return computation_of(self.resolve(node, inputs), state)

    def together(self, faults: Sequence[Fault]) -> Sequence[Fault]:
        """Return the faults in the order in which they change the computation.

        The table has the order of the computation; the outermost fault changes first.
        """
        order = {id: position for position, id in enumerate(FAULTS)}
        return sorted(faults, key=lambda fault: -order[base_id(fault.id)])

    def diagnostics(self, written: Written) -> Iterator[Diagnostic]:
        """Yield the violations in the attributes of a written node."""
        return diagnostics(written.operator, written.attributes, written.given)

    def topic_of_kind(self, attribute: str, kind: str) -> str:
        """Return the topic of the clause for an attribute of a wrong type; a scale that is a list has its own
        clause."""
        return "scales" if attribute.endswith("_scale") and kind == "FLOATS" else "attributes.types"

    def stated_sizes(self, written: Written) -> Mapping[str, StatedSize]:
        """Return the number of directions: always 2, whatever the node says."""
        return {"num_directions": StatedSize(2, "both directions are computed")}

    def steps(
        self, node: Node, inputs: Arrays, reported: Array | None = None, interpretations: Interpretations | None = None
    ) -> tuple[Steps, ...]:
        """Return the levels at every step: reported, expected, and the difference."""
        resolved = self.resolve(node, inputs)
        unit = 1.0 if resolved.y is None else resolved.y.scale
        observed = {} if reported is None else {"Y": reported}
        (expectation,) = self.expect(node, inputs, observed, interpretations=interpretations)
        forward = np.broadcast_to(np.arange(resolved.T)[:, np.newaxis], (resolved.T, resolved.N))
        steps = []
        for d, direction in enumerate(resolved.directions):
            positions = forward[::-1] if d else forward
            expected = expectation.number.value[positions[:, :1], d, np.arange(resolved.N)] / unit
            values = {"must_levels": expected}
            if reported is not None:
                got = reported.astype(np.float64)[positions[:, :1], d, np.arange(resolved.N)] / unit
                values = {"got_levels": got, **values, "off_by": got - expected}
            steps.append(Steps(direction, positions, np.full(resolved.N, resolved.T), values))
        return tuple(steps)

    def remarks(self, interpretations: Mapping[str, str]) -> tuple[str, ...]:
        """Return ``state-as-computed`` if states are fed back before they are quantized."""
        return ("state-as-computed",) if interpretations.get("state_quantization") == "as-computed" else ()

    def in_mutation_test(self, fault: Fault, node: Node, inputs: Arrays) -> bool:
        """Return whether a fault is tried on a case: only on short and small cases, because larger ones show no other
        faults."""
        c = self.resolve(node, inputs)
        return c.T <= _LONGEST and c.I * c.H <= _LARGEST and c.H * c.H <= _LARGEST

    def _rounded(self, node: Node, inputs: Arrays, state: str) -> Outputs:
        return {"Y": computation_of(self.resolve(node, inputs), state).evaluate().astype(np.float32)}


def _only_levels(states: Bounded, y: Affine) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of levels that are the only level in their interval, and a mask of the other elements."""
    low, high = _levels_within(states, y)
    unknown = low != high
    if states.doubt is not None:
        unknown = unknown | states.doubt
    return y.dequantized(np.where(unknown, y.zero_point, low)), unknown


def _among_levels(number: Bounded, y: Affine) -> Bounded:
    """Return the numbers as intervals between the least and the greatest possible level."""
    low, high = (y.dequantized(level) for level in _levels_within(number, y))
    nonempty = low <= high
    value = np.where(nonempty, (low + high) / 2, number.value)
    radius = np.where(nonempty, (high - low) / 2 + _ROUNDING * np.maximum(np.abs(low), np.abs(high)), number.radius)
    return Bounded(value, radius, number.budget, number.doubt)


def _levels_within(number: Bounded, y: Affine) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    reach = number.radius * RADIUS_SLACK
    ends = ((number.value + side * reach) / y.scale for side in (-1, 1))
    low, high = (way(end).astype(np.int64) + y.zero_point for way, end in zip((np.ceil, np.floor), ends, strict=True))
    return np.clip(low, y.lowest, y.highest), np.clip(high, y.lowest, y.highest)


def _undefined(node: ExtendedLSTM) -> NDArray[np.bool_]:
    """Return a mask of the elements that depend on a NaN, for which no level is defined."""
    X = np.asarray(np.isnan(node.given["X"]).any(axis=2))[:, np.newaxis, :, np.newaxis]
    mask = later_steps(np.broadcast_to(X, node.shape_of("Y")))
    for name in ("W", "R", "B"):
        if name in node.given:
            for d in range(2):
                mask[:, d] |= bool(np.isnan(node.given[name][d]).any())
    return mask


def _clause(node: ExtendedLSTM, number: Bounded, Y: Array) -> str:
    """Return the topic of the clause that the worst element of the first wrong step violates."""
    assert number.doubt is not None
    got = Y.astype(np.float64)
    error = np.where(number.doubt, 0.0, np.where(np.isfinite(got), got - number.value, np.inf))
    failing = ~(np.abs(error) <= number.radius * RADIUS_SLACK) & ~number.doubt
    if not failing.any():
        return "equations"
    if node.N > 1:
        return "batch"
    # The worst element of the first step that fails, each direction in its processing order.
    size = np.where(failing, np.abs(error) / number.radius, 0.0)
    in_order = np.concatenate([size[:, :1], size[::-1, 1:]], axis=1)
    step = int(np.argwhere(in_order)[0, 0])
    d, n, h = (int(k) for k in np.unravel_index(int(in_order[step].argmax()), in_order[step].shape))
    first, y = (step if d == 0 else node.T - 1 - step, d, n, h), node.y
    if y is not None and not y.least < number.value[first] < y.greatest:
        return "output-quantization.saturation"
    if (np.abs(node.given["X"]) > _FAR).any():
        return "quantization.saturation"
    if not failing[:, 0].any() and failing[:, 1].sum() >= _MANY:
        return "directions"
    if y is not None and np.abs(error).max() <= 2 * y.scale:
        return "output-quantization.nearest"
    return "equations"


def _float32(computation: ExtendedComputation) -> Arrays:
    """Return Y computed from dequantized numbers in float32, as by QDQ nodes around an LSTM."""
    lstm, y = operator_of(PLAIN.op_type), computation.configuration.y
    inputs = {name: operand.value.astype(np.float32) for name, operand in computation.operands.items()}
    kernel = lstm.conforming["library"].run if y is None else lstm.requantizing(y, "library")
    assert kernel is not None
    Y = kernel(PLAIN, inputs)["Y"]
    return {"Y": Y if y is None else y.rounded(Y).astype(np.float32)}


register(_ExtendedLSTM())

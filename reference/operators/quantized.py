"""A node between DequantizeLinear and QuantizeLinear, judged as one: the composition of their documents.

Inputs are quantized levels, each of which stands for one number. Outputs are the levels of numbers that are known
within an interval: mostly one level is right, and two if the interval contains a tie.

How the state passes from step to step is an open question with two right answers: ``float``, as the documents of
the three nodes define it, and ``quantized``, as in kernels that store levels only. A target must use one throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import QUANTIZED_STATE as STATE
from ..documents.interpretations import USUAL, Interpretations
from ..faults.alterations import STATE_CODEC, AtLevels
from ..faults.fault import Fault
from ..numbers.accuracy import ACCURACY_CLASSES, QDQ_STEPS, accuracy_class, budget
from ..numbers.affine import Affine, Codec
from ..numbers.bounded import RADIUS_SLACK, Bounded
from ..numbers.bounding import Bounding
from ..recurrent.configuration import steps_first
from ..recurrent.expectation import WIDEST_SHARE, Expectation, Measure, valid_elements
from ..recurrent.node import Node, Steps
from .operator import Arrays, Classes, Conforming, Operator, Outputs

Array = NDArray[Any]

_STYLES = ("library", "lanes", "fused", "stored-sums-edge", "wide")
"""Conforming variants that are tried with quantized inputs and outputs; the last one adds like integer kernels."""

_NEAR = 0.45
"""Part of a level: a value farther than this from every right level is wrong."""

_OPERANDS = 3.0
"""Factor of radii. A kernel may multiply the sum of products of levels by a scale, or dequantize and round each
operand: two more roundings for each product, beside the n roundings or more of a sum of n products."""

_CEILINGS = {8: 2, 16: 64}
"""The number of levels that a class may allow, by bits. With more than 2 of 256 levels, small faults would pass for
roundings. Of 65,536 levels it is 64, still a quarter of one 8-bit level."""


def ceiling(bits: int) -> int:
    """Return the number of levels by which outputs of so many bits may be off in any class."""
    return _CEILINGS[bits]


class _Known(Bounding):
    """An arithmetic that takes reported states as numbers with bounds."""

    def reported_state(self, value: Any) -> Bounded:
        return value if isinstance(value, Bounded) else super().reported_state(value)


class _Requantizing(_Known):
    """An arithmetic whose state passes from step to step as levels."""

    def __init__(self, budget: Any, codec: Affine) -> None:
        super().__init__(budget)
        self._codec = codec

    def feedback(self, hidden: Bounded) -> Bounded:
        low, high = self._codec.between(*_ends(hidden))
        return _interval(self._codec.dequantized(low), self._codec.dequantized(high), hidden)


class Quantized(Operator):
    """An operator whose nodes have codecs on some tensors."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.document = operator.document
        self.evidence = operator.evidence
        self._operands = 1.0 if operator.takes_levels else _OPERANDS
        styles = [style for style in _STYLES if style in operator.conforming]
        self.conforming = {
            f"{state}-state-{style}": Conforming(partial(self._as_kernel, style=style, state=state))
            for style in styles
            for state in STATE.options
        }

    def _as_kernel(self, node: Node, inputs: Arrays, *, style: str, state: str) -> Arrays:
        """Return the outputs of a conforming kernel of a style. It divides float32 numbers by the scale, or
        multiplies them by its reciprocal if its state is carried as levels."""
        plain, numbers = as_numbers(node, inputs)
        codec, run = _state_codec(node), self.operator.conforming[style].run
        by_levels = None if codec is None or state == "float" else self.operator.requantizing(codec, style)
        returned = (by_levels or run)(plain, numbers)
        outputs = {}
        for name, array in returned.items():
            output_codec = _of_output(node, name)
            outputs[name] = (
                array if output_codec is None else _rounded(array, output_codec, reciprocal=by_levels is not None)
            )
        return outputs

    def resolve(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Any:
        """Return the node resolved with dequantized inputs."""
        return self.operator.resolve(_plain(node), _numbers(node, inputs), interpretations)

    def open_questions(self, node: Node, inputs: Arrays) -> frozenset[str]:
        """Return the open questions of the node alone, and that of its state."""
        open_questions = self.operator.open_questions(_plain(node), _numbers(node, inputs))
        has_steps = self.resolve(node, inputs).T > 1
        return open_questions | {STATE.name} if has_steps and _state_codec(node) is not None else open_questions

    def classes(self, accuracy: str, type: str) -> Classes:
        """Return the declared class, and wider ones that allow more levels."""
        steps = ACCURACY_CLASSES[accuracy].steps
        return Classes((accuracy,), tuple(f"qdq-{n}" for n in QDQ_STEPS if n > steps))

    def expect(
        self,
        node: Node,
        inputs: Arrays,
        observed: Arrays,
        accuracy: str = "standard",
        interpretations: Interpretations | None = None,
        faults: Sequence[Fault] = (),
    ) -> list[Expectation]:
        """Return the levels that the outputs must have: from a free run, or step by step from the reported levels,
        whichever is tighter."""
        choices = interpretations or USUAL
        # An operator's own arithmetics do not define the quantization of its outputs.
        accuracy = accuracy if accuracy in ACCURACY_CLASSES else "standard"
        node, inputs, faults = _at_levels(node, inputs, faults)
        c = self.resolve(node, inputs, choices)
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = self._bounds(node, inputs, observed.get("Y"), accuracy, choices, c)
        answer = self._numbers(node, inputs, faults, choices) if faults else {}
        prefix, steps = self.document.prefix, accuracy_class(accuracy).steps
        expectations = []
        for name in node.outputs:
            number, codec = numbers[name], _of_output(node, name)
            if faults:
                number = _as_computed(number, answer.get(name))
            measure, weak, half = None, _wide(number), None
            if codec is not None:
                number, half = _levels(number, codec, min(steps, ceiling(codec.bits)), self._operands)
                measure, weak = Measure(f"{name}_scale", 1.0), _wide(number, codec.zero_point, 1 + _NEAR)
            valid = valid_elements(c) if name == "Y" and c.ragged else None
            expectations.append(Expectation(name, number, f"{prefix}.equations", valid, weak, measure, half))
            if valid is not None:
                zero = np.full(number.value.shape, 0.0 if codec is None else float(codec.zero_point))
                padding = Bounded(zero, np.zeros(zero.shape), number.budget)
                expectations.append(Expectation(name, padding, f"{prefix}.padding.zero", ~valid))
        return expectations

    def _bounds(
        self, node: Node, inputs: Arrays, Y: Array | None, accuracy: str, choices: Interpretations, c: Any
    ) -> dict[str, Bounded]:
        """Return the outputs with bounds, before they are quantized."""
        codec, by_level = _state_codec(node), STATE_CODEC in node.codecs
        allowed = budget(accuracy, c.format.name)
        requantized = codec is not None and (by_level or getattr(choices, STATE.name) == "quantized")
        arithmetic = _Requantizing(allowed, codec) if requantized and codec is not None else _Known(allowed)
        plain, numbers = _plain(node), _numbers(node, inputs)
        free = self.operator.bounds(plain, numbers, arithmetic, choices)
        # A state that is carried as levels is rounded.
        alone = not requantized or (c.T <= 1 and "initial_h" not in inputs)
        usual = node.exact and self.operator.meaning(plain, numbers, choices) == self.operator.meaning(
            plain, numbers, USUAL
        )
        if usual and alone and allowed.exact_possible:
            for name, value in self.operator.evaluate(plain, numbers, choices).items():
                free[name] = Bounded(value, np.zeros_like(value), allowed)
        own = _of_output(node, "Y")
        if Y is None or Y.shape != c.shape_of("Y") or (own is not None and not own.ordered):
            return free
        reported = steps_first(Y, c.layout)
        if own is None:
            states = arithmetic.reported_state(reported.astype(np.float64))
        elif requantized and not by_level:
            states = arithmetic.reported_state(own.dequantized(reported.astype(np.int64)))
        else:
            start = steps_first(free["Y"], c.layout)
            states = arithmetic.feedback(_behind(reported, own, start, _ends(start, self._operands)))
        stepped = self.operator.bounds(plain, numbers, arithmetic, choices, states)
        return {name: _tighter(stepped[name], free[name]) for name in free}

    def evaluate(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Outputs:
        """Return the composition of the documents: levels, or numbers for an output without codec."""
        return _shown(node, self.operator.evaluate(_plain(node), _numbers(node, inputs), interpretations))

    def evaluate_in_order(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Outputs:
        return _shown(node, self.operator.evaluate_in_order(_plain(node), _numbers(node, inputs), interpretations))

    def _numbers(
        self, node: Node, inputs: Arrays, faults: Sequence[Fault], interpretations: Interpretations
    ) -> Outputs:
        return self.operator.answer(_plain(node), _numbers(node, inputs), faults, interpretations)

    def answer(
        self,
        node: Node,
        inputs: Arrays,
        faults: Sequence[Fault] = (),
        interpretations: Interpretations | None = None,
        *,
        fed: Arrays | None = None,
        memory: dict[str, Any] | None = None,
    ) -> Outputs:
        """Return the outputs of an implementation with these faults that computes node by node."""
        node, inputs, faults = _at_levels(node, inputs, faults)
        numbers = _numbers(node, inputs)
        if STATE_CODEC in node.codecs and not faults:
            c = self.resolve(node, inputs, interpretations)
            known = self._bounds(node, inputs, None, "standard", interpretations or USUAL, c)
            answer = {name: known[name].value.astype(c.format.dtype) for name in node.outputs}
        else:
            answer = self.operator.answer(_plain(node), numbers, faults, interpretations, fed=numbers, memory=memory)
        shown = _shown(node, answer)
        return {name: _typed(array, node.codecs.get(name)) for name, array in shown.items()}

    def answering(self, node: Node, inputs: Arrays) -> Callable[..., Outputs]:
        """Share nothing: faults of quantization change the node."""
        return partial(self.answer, node, inputs)

    def steps(
        self, node: Node, inputs: Arrays, reported: Array | None = None, interpretations: Interpretations | None = None
    ) -> tuple[Steps, ...]:
        """Return gates and states as numbers; reported levels are dequantized first."""
        codec = _of_output(node, "Y")
        if reported is not None and codec is not None:
            reported = codec.dequantized(reported.astype(np.int64)).astype(np.float32)
        return self.operator.steps(_plain(node), _numbers(node, inputs), reported, interpretations)


@cache
def quantized(operator: Operator) -> Quantized:
    """Return the quantized form of an operator."""
    return Quantized(operator)


@lru_cache(maxsize=1024)
def _plain(node: Node) -> Node:
    """Return the node without codecs: the same object for equal nodes."""
    return replace(node, codecs={})


def _numbers(node: Node, inputs: Arrays) -> Outputs:
    """Return the inputs after DequantizeLinear, which rounds once to float32."""
    numbers = {}
    for name, array in inputs.items():
        codec = node.codecs.get(name)
        plain = codec is None or array is None
        numbers[name] = array if plain else codec.dequantized(array.astype(np.int64)).astype(np.float32)  # type: ignore[union-attr]
    return numbers


def as_numbers(node: Node, inputs: Arrays) -> tuple[Node, Arrays]:
    """Return the node without DequantizeLinear and QuantizeLinear, and its dequantized inputs."""
    return (_plain(node), _numbers(node, inputs)) if node.codecs else (node, inputs)


def _at_levels(node: Node, inputs: Arrays, faults: Sequence[Fault]) -> tuple[Node, Arrays, Sequence[Fault]]:
    """Apply the faults of quantization to the node and its inputs; return these and the other faults."""
    for fault in faults:
        if isinstance(fault.wrong, AtLevels):
            node, inputs = fault.wrong.change(node, inputs)
    return node, inputs, [fault for fault in faults if not isinstance(fault.wrong, AtLevels)]


def _state_codec(node: Node) -> Affine | None:
    """Return the codec of a state that may be carried as levels, or None."""
    # If Y is not quantized, the state has no levels.
    last = _of_output(node, "Y_h") if "Y" not in node.outputs else None
    return _of_output(node, STATE_CODEC) or _of_output(node, "Y") or last


def _of_output(node: Node, name: str) -> Affine | None:
    """Return the codec of an output, which is per tensor behind a node, or None."""
    codec = node.codecs.get(name)
    assert codec is None or isinstance(codec, Affine)
    return codec


def _shown(node: Node, numbers: Outputs) -> Outputs:
    """Return the outputs after QuantizeLinear."""
    return {
        name: array if (codec := node.codecs.get(name)) is None else codec.levels(array)
        for name, array in numbers.items()
    }


def _rounded(array: Array, codec: Affine, *, reciprocal: bool) -> Array:
    """Quantize by float32 arithmetic."""
    scale = np.float32(codec.scale)
    quotient = array * (np.float32(1) / scale) if reciprocal else array / scale
    whole: Array = np.clip(np.rint(quotient.astype(np.float64)) + codec.zero_point, codec.lowest, codec.highest)
    return whole.astype(codec.dtype)


def _typed(array: Array, codec: Codec | None) -> Array:
    return array if codec is None else array.astype(codec.dtype)


def _ends(number: Bounded, operands: float = _OPERANDS) -> tuple[Array, Array]:
    """Return the ends of a number's interval."""
    reach = number.radius * RADIUS_SLACK * operands
    return number.value - reach, number.value + reach


def _interval(low: Array, high: Array, like: Bounded) -> Bounded:
    """Return a number with the interval [low, high]."""
    return Bounded((low + high) / 2, (high - low) / 2, like.budget, like.doubt)


def _tighter(one: Bounded, other: Bounded) -> Bounded:
    """Return the intersection of both intervals; for elements where it is empty, or where one number is undefined, the
    narrower or the defined one."""
    low, high = (side(a, b) for side, a, b in zip((np.maximum, np.minimum), _raw(one), _raw(other), strict=True))
    doubts = [_doubts(number, low.shape) for number in (one, other)]
    narrower = np.where(doubts[0], False, np.where(doubts[1], True, one.radius <= other.radius))
    alone = (low > high) | doubts[0] | doubts[1]
    value = np.where(alone, np.where(narrower, one.value, other.value), (low + high) / 2)
    radius = np.where(alone, np.where(narrower, one.radius, other.radius), (high - low) / 2)
    return Bounded(value, radius, one.budget, doubts[0] & doubts[1])


def _doubts(number: Bounded, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return np.zeros(shape, bool) if number.doubt is None else np.broadcast_to(number.doubt, shape)


def _raw(number: Bounded) -> tuple[Array, Array]:
    return number.value - number.radius, number.value + number.radius


def _behind(levels: Array, codec: Affine, free: Bounded, ends: tuple[Array, Array]) -> Bounded:
    """Return the states that reported levels may stand for: half a level around each, intersected with the `ends` of a
    free run. If the intersection is empty, the target is already wrong, and the next step starts from its level."""
    whole = levels.astype(np.int64)
    half = codec.scale * (0.5 + 2.0**-20 * (1 + np.abs(whole - codec.zero_point)))
    shown = codec.dequantized(whole)
    low = np.where(whole <= codec.lowest, -np.inf, shown - half)
    high = np.where(whole >= codec.highest, np.inf, shown + half)
    least, greatest = ends
    doubt = _doubts(free, shown.shape)
    least, greatest = np.where(doubt, -np.inf, least), np.where(doubt, np.inf, greatest)
    within = np.maximum(low, least), np.minimum(high, greatest)
    apart = within[0] > within[1]
    low, high = np.where(apart, low, within[0]), np.where(apart, high, within[1])
    # A saturated level bounds the state on one side only.
    unknown = ~(np.isfinite(low) & np.isfinite(high))
    low, high = np.where(unknown, shown, low), np.where(unknown, shown, high)
    return Bounded((low + high) / 2, (high - low) / 2, free.budget, unknown if unknown.any() else None)


def _levels(number: Bounded, codec: Affine, steps: int, operands: float) -> tuple[Bounded, Array]:
    """Return the levels of a number with bounds, and half the count of levels that its bounds allow, without the
    allowance of the class."""
    low, high = codec.between(*_ends(number, operands))
    if np.frexp(codec.scale)[0] == 0.5:
        # Division by a power of two is exact, so the document decides ties.
        exact = number.radius == 0
        level = codec.levels(number.value)
        low, high = np.where(exact, level, low), np.where(exact, level, high)
    least, greatest = np.maximum(low - steps, codec.lowest), np.minimum(high + steps, codec.highest)
    value = (least + greatest) / 2.0
    levels = Bounded(value, (greatest - least) / 2.0 + _NEAR, number.budget, number.doubt)
    return levels, (high - low) / 2.0 + np.abs((low + high) / 2.0 - value)


def _wide(number: Bounded, zero: float = 0.0, least: float = 0.0) -> NDArray[np.bool_] | None:
    """Return a mask of elements whose bounds are so wide that agreement proves nothing: wider than the allowed share of
    their row's signal, and than one level. None if there are none."""
    signal = np.abs(number.value - zero).max(axis=-1, keepdims=True, initial=0.0)
    wide: NDArray[np.bool_] = (number.radius > WIDEST_SHARE * signal) & (number.radius > least)
    return wide if wide.any() else None


def _as_computed(number: Bounded, answer: Array | None) -> Bounded:
    """Return the outputs of a faulty implementation, with the bounds of a conforming one."""
    if answer is None or answer.shape != number.value.shape:
        return number
    value = answer.astype(np.float64)
    finite = np.isfinite(value)
    doubt = ~finite if number.doubt is None else number.doubt | ~finite
    return Bounded(np.where(finite, value, 0.0), number.radius, number.budget, doubt if doubt.any() else None)

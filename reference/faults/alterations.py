"""Alterations of a computation, of which faults are made.

Functions that change a tensor get it in one form, whatever the node's layout: X as (T, N, I), initial and last states
as (D, N, H), Y as (T, D, N, H). Equations use the computation's arithmetic, so that a fault can also be computed with
bounded numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..numbers.activations import Activation, ActivationKind
from ..numbers.affine import Affine, Channels, Codec
from ..numbers.bounded import Bounded, Sum
from ..recurrent.cell import Gates, Number, Parameters, States
from ..recurrent.computation import Computation
from ..recurrent.configuration import in_layout, steps_first
from ..recurrent.node import Node
from .fault import Change, Changing, Compute, Outputs, fault, fault_of_run

Array = NDArray[Any]
Equations = Callable[..., States]
"""Equations of a cell, see :class:`..recurrent.rnn.Cell`."""


def with_inputs(c: Computation, **changed: Array | None) -> Computation:
    """Return the computation with some inputs replaced; None removes an input."""
    inputs = {**c.inputs, **changed}
    return replace(c, inputs={n: a for n, a in inputs.items() if a is not None})


def with_fitting(c: Computation, others: Mapping[str, Array]) -> Computation:
    """Return the computation with other values of its inputs, where shapes are equal."""
    fitting = {n: a for n, a in others.items() if n in c.inputs and c.inputs[n].shape == a.shape}
    lengths = fitting.pop("sequence_lens", None)
    changed = with_inputs(c, **fitting)
    return changed if lengths is None else with_lengths(changed, lengths)


def with_tensors(c: Computation, names: str, change: Callable[[Array], Array]) -> Computation:
    """Return the computation with the named tensors of W, R, B and P (one letter each) changed, if present.

    Axis 0 of each tensor is the direction.
    """
    return with_inputs(c, **{n: change(c.inputs[n]) for n in names if n in c.inputs})


def with_states(c: Computation, change: Callable[[Array], Array]) -> Computation:
    """Return the computation with its initial states changed, if present."""
    chosen = [f"initial_{name}" for name in ("h", *c.configuration.cell.inner)]
    return with_inputs(c, **{n: turned(c, change(turned(c, c.inputs[n]))) for n in chosen if n in c.inputs})


def with_steps(c: Computation, change: Callable[[Array], Array]) -> Computation:
    """Return the computation with X changed."""
    return with_inputs(c, X=turned(c, change(turned(c, c.inputs["X"]))))


def turned(c: Computation, tensor: Array) -> Array:
    """Return a tensor converted between the node's layout and layout 0.

    Its batch is the first axis with layout 1 and the second axis with layout 0.
    """
    return tensor.swapaxes(0, 1) if c.configuration.layout == 1 else tensor


def configured(c: Computation, **changed: Any) -> Computation:
    """Return the computation with fields of its configuration replaced."""
    return replace(c, configuration=replace(c.configuration, **changed))


def with_lengths(c: Computation, lengths: Any) -> Computation:
    """Return the computation with other lengths of its rows."""
    return configured(c, lengths=np.broadcast_to(np.asarray(lengths, np.int64), (c.configuration.N,)))


def unclipped(c: Computation) -> Computation:
    """Return the computation without clip."""
    return configured(c, clips=(None,) * len(c.configuration.clips))


def threshold_of(c: Computation) -> float | None:
    """Return the bound of the first function whose argument is clipped; None without clip."""
    return next((clip for clip in c.configuration.clips if clip is not None), None)


def with_clip(change: Callable[[Computation, float], Computation]) -> Change:
    """Return a change of computations that have a clip, whose bound it gets; others stay as they are."""

    def changed(c: Computation) -> Computation:
        threshold = threshold_of(c)
        return c if threshold is None else change(c, threshold)

    return changed


def for_units(c: Computation, p: Parameters, number: float) -> Number:
    """Return a number, without error, for every unit."""
    return p.arithmetic.exact(np.full(c.configuration.H, number))


def with_equations(c: Computation, equations: Equations) -> Computation:
    """Return the computation with other equations."""
    return configured(c, cell=replace(c.configuration.cell, equations=equations))


def with_hidden_state(c: Computation, change: Callable[[Parameters, Number], Number]) -> Computation:
    """Return the computation whose steps give change(parameters, Ht) for Ht."""
    cell = c.configuration.cell

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        hidden, *rest = cell.equations(p, XW, HR, H, *inner)
        return (change(p, hidden), *rest)

    return with_equations(c, equations)


def with_recurrent_state(c: Computation, change: Callable[[Number], Number]) -> Computation:
    """Return the computation in which Ht-1 is changed only as a factor of R."""
    cell = c.configuration.cell

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        return cell.equations(p, XW, sums_over(p, change(H), HR), H, *inner)

    return with_equations(c, equations)


def sums_over(p: Parameters, state: Number, HR: Gates) -> Gates:
    """Return state*(R^T) + Rb of all gates, for a state that replaces Ht-1 in `HR`."""
    sums = [settled(p.recurrent(state, letter)) for letter in HR.blocks]
    if isinstance(sums[0], np.ndarray):
        return Gates(np.concatenate(sums, axis=-1), HR.blocks)
    return Gates(p.arithmetic.concatenate(sums, sums[0].value.ndim - 1), HR.blocks)


def with_functions(c: Computation, change: Callable[[Activation, int, int], Activation]) -> Computation:
    """Return the computation with its activation functions replaced, by change(function, position in its direction,
    d)."""
    functions = tuple(
        tuple(change(f, position, d) for position, f in enumerate(fs))
        for d, fs in enumerate(c.configuration.activations)
    )
    return configured(c, activations=functions)


def revalued(function: Activation, value: Callable[[Array, float, float], Array]) -> Activation:
    """Return the activation function with another value(x, alpha, beta)."""
    # The bound of its image by its slope no longer holds.
    return replace(function, kind=replace(function.kind, value=value, slope=None))


class WithoutBias:
    """Sum whose bias is added after clip, when it is passed to an activation."""

    __array_ufunc__ = None  # NumPy arrays then leave `+` to this class

    def __init__(self, number: Number, bias: Array) -> None:
        self.number, self.bias = number, bias

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, place: Any) -> WithoutBias:
        units = isinstance(place, tuple) and place and place[0] is Ellipsis
        return WithoutBias(self.number[place], self.bias[place] if units else self.bias)

    def __add__(self, other: Number) -> WithoutBias:
        return WithoutBias(self.number + other, self.bias)

    __radd__ = __add__

    def __mul__(self, other: Number) -> WithoutBias:
        return WithoutBias(self.number * other, self.bias)  # the bias is always added last

    __rmul__ = __mul__


_BOUND = ActivationKind(
    "Bound", False, False, lambda x, a, b: x, lambda low, high, image, a, b, w: np.zeros_like(image)
)


def clipped(p: Parameters, number: Number, threshold: float) -> Number:
    """Return a number clipped to [-threshold, threshold]."""
    if isinstance(number, WithoutBias):
        return WithoutBias(clipped(p, number.number, threshold), number.bias)
    return p.arithmetic.activate(Activation(_BOUND), number, threshold)


def rounded_state(number: Number, rounding: Callable[[Array], Array]) -> Number:
    """Return a state with its value rounded by `rounding`."""
    return replace(number, value=rounding(number.value)) if isinstance(number, Bounded) else rounding(number)


def settled(number: Number) -> Number:
    """Return a number as a single number; a :class:`~..numbers.bounded.Sum` is added up."""
    return number.settled() if isinstance(number, Sum) else number


def reordered(c: Computation, tensor: Array, order: str, letters: str) -> Array:
    """Return a tensor whose axis 1 holds blocks of `letters`, read as if they were in `order`."""
    H = c.configuration.H
    groups = tensor.shape[1] // (len(letters) * H)
    shape = (tensor.shape[0], groups, len(letters), H, *tensor.shape[2:])
    return tensor.reshape(shape)[:, :, [order.index(x) for x in letters]].reshape(tensor.shape)


def with_blocks_transposed(c: Computation) -> Computation:
    """Return the computation with each gate's block of R transposed."""
    H = c.configuration.H
    return with_tensors(c, "R", lambda R: R.reshape(len(R), -1, H, H).swapaxes(2, 3).reshape(R.shape))


def first_of(array: Array, axis: int = 0) -> Array:
    """Return an array whose elements along an axis are all the first one."""
    return np.repeat(array.take([0] if array.shape[axis] else [], axis), array.shape[axis], axis)


def directions_swapped(array: Array) -> Array:
    """Return an array with its directions swapped."""
    return array[::-1]


def backward_zero(array: Array) -> Array:
    """Return an array with zeros for the second direction."""
    return np.concatenate((array[:1], np.zeros_like(array[1:])))


def with_outputs(
    c: Computation,
    outputs: Outputs,
    *,
    Y: Callable[[Array], Array] | None = None,
    states: Callable[[Array], Array] | None = None,
) -> Outputs:
    """Return the outputs with Y changed, and all last states."""
    layout = c.configuration.layout
    result = dict(outputs)
    for name, array in outputs.items():
        if name == "Y" and Y is not None:
            result[name] = in_layout(Y(steps_first(array, layout).copy()), layout)
        if name != "Y" and states is not None:
            result[name] = turned(c, states(turned(c, array).copy()))
    return result


def output_fault(
    id: str,
    clause: str,
    words: str,
    *,
    Y: Callable[[Computation, Array], Array] | None = None,
    states: Callable[[Computation, Array], Array] | None = None,
    **fields: Any,
) -> None:
    """Register a fault that changes outputs as :func:`with_outputs` does, by functions of (computation, Y or last
    state)."""

    def wrong(compute: Compute, c: Computation) -> Outputs:
        of_y, of_states = (None if change is None else partial(change, c) for change in (Y, states))
        return with_outputs(c, compute(c), Y=of_y, states=of_states)

    fault_of_run(id, clause, words, wrong, **fields)


def in_reverse(compute: Compute, c: Computation, other: Computation) -> Outputs:
    """Return the outputs, with those of the reverse direction taken from another computation."""
    chosen = reverse_directions(c)
    right = compute(c)
    return merged(c, right, compute(other), chosen) if chosen else right


def reverse_directions(c: Computation) -> list[int]:
    """Return the indices of the directions that run in reverse."""
    return [d for d, name in enumerate(c.configuration.directions) if name == "reverse"]


def merged(c: Any, outputs: Outputs, others: Outputs, directions: Sequence[int]) -> Outputs:
    """Return the outputs of a computation, with some directions taken from `others` where shapes are equal."""
    joined = dict(outputs)
    for name, array in others.items():
        if name in joined and joined[name].shape == array.shape:
            index = (slice(None),) * c.direction_axis(name) + (list(directions),)
            joined[name] = joined[name].copy()
            joined[name][index] = array[index]
    return joined


def by_equations(put: Callable[[Computation, Any], Computation] = with_equations) -> Callable[[Any], Changing]:
    """Return how :func:`.fault.fault` makes a fault of equations, which `put` puts into a computation."""
    return lambda equations: Changing(lambda c: put(c, equations))


def gate_orders(op_type: str, orders: Mapping[str, str]) -> None:
    """Register faults that read the gate blocks of W, R and B in another order; `orders` has a description for each
    order."""

    def reading(order: str) -> Change:
        return lambda c: with_tensors(c, "WRB", lambda tensor: reordered(c, tensor, order, c.configuration.cell.gates))

    for order, words in orders.items():
        fault(f"{op_type.lower()}.gates.{order}", "gates.order", words, reading(order), operators=(op_type,))


Arrays = Mapping[str, NDArray[Any]]
Codecs = Mapping[str, Codec]
Levels = Callable[[Node, Arrays], tuple[Node, Arrays]]
"""A function from a node and its inputs, levels included, to the node and inputs that a faulty implementation
computes."""

STATE_CODEC = "state"
"""Name, among a node's codecs, of the codec that quantizes the state between steps."""


class AtLevels(Struct, frozen=True):
    """A fault of a quantized node; nodes without codecs are computed correctly."""

    change: Levels

    def __call__(self, compute: Compute, c: Computation) -> Outputs:
        return compute(c)


class Truncating(Affine):
    """Codec that truncates quotients towards zero."""

    def nearest(self, quotient: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.trunc(quotient)


class HalfAway(Affine):
    """Codec that rounds ties away from zero."""

    def nearest(self, quotient: NDArray[np.float64]) -> NDArray[np.float64]:
        rounded: NDArray[np.float64] = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
        return rounded


class Wrapping(Affine):
    """Codec that wraps around at the ends of the type."""

    ordered = False

    def within(self, levels: NDArray[np.int64]) -> NDArray[np.int64]:
        wrapped: NDArray[np.int64] = (levels - self.lowest) % 2**self.bits + self.lowest
        return wrapped


def recoded(node: Node, codecs: Codecs) -> Node:
    """Return a node with other codecs for its quantized tensors; codecs of other tensors are ignored."""
    replaced = {name: codec for name, codec in codecs.items() if name in node.codecs or name == STATE_CODEC}
    return replace(node, codecs={**node.codecs, **replaced})


level_fault = partial(fault, made=AtLevels, types=("float32",), needs="quantized", layer="levels")
"""Decorator that registers a fault of quantized nodes: a function :data:`Levels`."""


def each_channel(codec: Codec, change: Callable[[Affine], Affine]) -> Codec:
    """Return a codec with the codec of every channel changed."""
    if isinstance(codec, Affine):
        return change(codec)
    return Channels(codec.axis, tuple(map(change, codec.each)))

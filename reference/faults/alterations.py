"""Alterations of a computation: what faults are made of.

Whatever the node's layout, functions that are given here to change a tensor see it in one form: X as (T, N, I), initial
and last states as (D, N, H), Y as (T, D, N, H). Equations that are given use the computation's arithmetic, so that a
fault can be computed with numbers that carry radii too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numbers.activations import Activation, ActivationKind
from ..numbers.bounded import Bounded, Sum
from ..recurrent.cell import Gates, Number, Parameters, States
from ..recurrent.computation import Computation
from .fault import Compute, Outputs, fault_of_run

Array = NDArray[Any]
Equations = Callable[..., States]
"""Equations of a cell, see :class:`..recurrent.rnn.Cell`."""


def with_inputs(c: Computation, **changed: Array | None) -> Computation:
    """Return the computation with some inputs replaced; None takes one away."""
    inputs = {**c.inputs, **changed}
    return replace(c, inputs={n: a for n, a in inputs.items() if a is not None})


def with_tensors(c: Computation, names: str, change: Callable[[Array], Array]) -> Computation:
    """Return the computation with those of W, R, B and P that are named (by letter) and there changed; axis 0 of each
    is the direction."""
    return with_inputs(c, **{n: change(c.inputs[n]) for n in names if n in c.inputs})


def with_states(c: Computation, change: Callable[[Array], Array], names: tuple[str, ...] = ()) -> Computation:
    """Return the computation with its initial states changed, those that are there: all, or those named (``h``,
    ``c``)."""
    chosen = [f"initial_{name}" for name in names or ("h", *c.configuration.cell.inner)]
    return with_inputs(c, **{n: _turned(c, change(_turned(c, c.inputs[n]))) for n in chosen if n in c.inputs})


def with_steps(c: Computation, change: Callable[[Array], Array]) -> Computation:
    """Return the computation with X changed."""
    return with_inputs(c, X=_turned(c, change(_turned(c, c.inputs["X"]))))


def _turned(c: Computation, tensor: Array) -> Array:
    """Return a tensor whose batch is the first axis with layout 1 and the second with layout 0, from one form to the
    other."""
    return tensor.swapaxes(0, 1) if c.configuration.layout == 1 else tensor


def configured(c: Computation, **changed: Any) -> Computation:
    """Return the computation with fields of its configuration replaced."""
    return replace(c, configuration=replace(c.configuration, **changed))


def with_lengths(c: Computation, lengths: Any) -> Computation:
    """Return the computation with other lengths of its rows."""
    return configured(c, lengths=np.broadcast_to(np.asarray(lengths, np.int64), (c.configuration.N,)))


def with_equations(c: Computation, equations: Equations) -> Computation:
    """Return the computation with other equations."""
    return configured(c, cell=replace(c.configuration.cell, equations=equations, read=None))


def with_recurrent_state(c: Computation, change: Callable[[Number], Number]) -> Computation:
    """Return the computation in which Ht-1 is changed before it is multiplied by R, and there alone."""
    cell = c.configuration.cell

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        return cell.equations(p, XW, sums_over(p, change(H), HR), H, *inner)

    return with_equations(c, equations)


def sums_over(p: Parameters, state: Number, HR: Gates) -> Gates:
    """Return state*(R^T) + Rb of all gates, for a state that takes the place of Ht-1 in `HR`."""
    sums = [settled(p.recurrent(state, letter)) for letter in HR.blocks]
    if isinstance(sums[0], np.ndarray):
        return Gates(np.concatenate(sums, axis=-1), HR.blocks)
    return Gates(p.arithmetic.concatenate(sums, sums[0].value.ndim - 1), HR.blocks)


def with_functions(c: Computation, change: Callable[[Activation, int, int], Activation]) -> Computation:
    """Return the computation with its activation functions replaced: change(function, position in its direction, d)."""
    functions = tuple(
        tuple(change(f, position, d) for position, f in enumerate(fs))
        for d, fs in enumerate(c.configuration.activations)
    )
    return configured(c, activations=functions)


def revalued(function: Activation, value: Callable[[Array, float, float], Array]) -> Activation:
    """Return the activation function with another value(x, alpha, beta)."""
    # The bound of its image by its slope holds no longer.
    return replace(function, kind=replace(function.kind, value=value, slope=None))


class Unfinished(ABC):
    """The number that a fault passes on in the place of a number of which a part is still to come."""

    __array_ufunc__ = None  # NumPy arrays then leave `+` to this class

    @abstractmethod
    def clipped(self, p: Parameters, threshold: float) -> Number:
        """Return the number as :func:`clipped` makes it."""


_BOUND = ActivationKind(
    "Bound", False, False, lambda x, a, b: x, lambda low, high, image, a, b, w: np.zeros_like(image)
)


def clipped(p: Parameters, number: Number, threshold: float) -> Number:
    """Return a number bounded to [-threshold, threshold]; one that another fault has made knows itself what that is."""
    if isinstance(number, Unfinished):
        return number.clipped(p, threshold)
    return p.arithmetic.activate(Activation(_BOUND), number, threshold)


def rounded_state(number: Number, rounding: Callable[[Array], Array]) -> Number:
    """Return a state with its value rounded somehow."""
    return replace(number, value=rounding(number.value)) if isinstance(number, Bounded) else rounding(number)


def settled(number: Number) -> Number:
    """Return a number that may be a sum whose terms are still apart, added up."""
    return number.settled() if isinstance(number, Sum) else number


def reordered(c: Computation, tensor: Array, order: str, letters: str) -> Array:
    """Return a tensor whose axis 1 holds blocks of `letters`, read as if they stood in `order`."""
    H = c.configuration.H
    groups = tensor.shape[1] // (len(letters) * H)
    shape = (tensor.shape[0], groups, len(letters), H, *tensor.shape[2:])
    return tensor.reshape(shape)[:, :, [order.index(x) for x in letters]].reshape(tensor.shape)


def with_blocks_transposed(c: Computation) -> Computation:
    """Return the computation with each gate's block of R transposed."""
    H = c.configuration.H
    return with_tensors(c, "R", lambda R: R.reshape(len(R), -1, H, H).swapaxes(2, 3).reshape(R.shape))


def first_direction(array: Array) -> Array:
    """Return an array with directions on its first axis: the first one's for all."""
    return np.repeat(array[:1], len(array), axis=0)


def directions_swapped(array: Array) -> Array:
    """Return the same with the directions in each other's place."""
    return array[::-1]


def backward_zero(array: Array) -> Array:
    """Return the same with zeros for the second direction."""
    return np.concatenate((array[:1], np.zeros_like(array[1:])))


def with_outputs(
    c: Computation,
    outputs: Outputs,
    *,
    Y: Callable[[Array], Array] | None = None,
    states: Callable[[Array], Array] | None = None,
    names: tuple[str, ...] = (),
) -> Outputs:
    """Return the outputs with Y changed, and all states or the named ones (``Y_h``, ``Y_c``)."""
    batch_first = c.configuration.layout == 1
    changed = dict(outputs)
    for name, array in outputs.items():
        if name == "Y" and Y is not None:
            plain = array.transpose(1, 2, 0, 3) if batch_first else array
            new = Y(plain.copy())
            changed[name] = new.transpose(2, 0, 1, 3) if batch_first else new
        if name != "Y" and states is not None and (not names or name in names):
            new = states((array.swapaxes(0, 1) if batch_first else array).copy())
            changed[name] = new.swapaxes(0, 1) if batch_first else new
    return changed


def output_fault(
    id: str,
    clause: str,
    words: str,
    *,
    Y: Callable[[Computation, Array], Array] | None = None,
    states: Callable[[Computation, Array], Array] | None = None,
    names: tuple[str, ...] = (),
    **fields: Any,
) -> None:
    """Register a fault that changes outputs, as :func:`with_outputs` does: by functions of a computation and Y, or a
    last state."""

    def wrong(compute: Compute, c: Computation) -> Outputs:
        of_y, of_states = (None if change is None else partial(change, c) for change in (Y, states))
        return with_outputs(c, compute(c), Y=of_y, states=of_states, names=names)

    fault_of_run(id, clause, words, wrong, **fields)


def by_direction(compute: Compute, c: Computation, other: Computation, direction: str | int) -> Outputs:
    """Return the outputs, those of one direction as another computation has them.

    direction
        ``forward``, ``reverse``, or the index of a direction.
    """
    directions = c.configuration.directions
    chosen = [d for d, name in enumerate(directions) if direction in (d, name)]
    right = compute(c)
    return merged(c, right, compute(other), chosen) if chosen else right


def merged(c: Any, outputs: Outputs, others: Outputs, directions: Sequence[int]) -> Outputs:
    """Return the outputs of a computation, those of some directions as the others have them, as far as shapes agree."""
    joined = dict(outputs)
    for name, array in others.items():
        if name in joined and joined[name].shape == array.shape:
            place = (slice(None),) * c.direction_axis(name) + (list(directions),)
            joined[name] = joined[name].copy()
            joined[name][place] = array[place]
    return joined

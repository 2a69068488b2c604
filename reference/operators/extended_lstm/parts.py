"""Parts of ExtendedLSTM that can go wrong: made from its description, not listed.

Every tensor may be dropped or lose its end, every gate be taken for another one, every zero point be forgotten, every
saturation be left out, every output lose its end, the state stay from one run to the next.

What a part needs is in words: ``B`` (B is there), ``second-direction`` (the backward one alone), ``steps`` and
``rows`` (more than one), ``recurrence`` (a state that is not zero enters a step), ``earlier-run``, ``<tensor>-offset``
(its zero point is not in the middle), ``<tensor>-beyond`` (numbers beyond the range of its levels), ``y-given``.
``cases/operators/extended_lstm/contexts.py`` says which cases have it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.part import Part
from ...numbers.affine import Affine
from ...recurrent.node import Node
from .computation import evaluate_extended, evaluate_from
from .document import ExtendedLSTM, resolve
from .stages import Operand

__all__ = ["extended_parts"]

Array = NDArray[np.float64]
Change = Callable[[Array], Array]
Memory = dict[str, Any]
Wrong = Callable[[ExtendedLSTM, Memory], Array]
Made = Iterator[tuple[str, tuple[str, ...], Wrong]]

_GATES = "iofc"
_HALF = 32768
_FAR = 2.0**40  # quotients beyond this are far outside every range


@cache
def extended_parts() -> tuple[Part, ...]:
    """All parts; what a case does not have cannot go wrong there."""
    made = itertools.chain(_tensors(), _gates(), _directions(), _states(), _levels(), _outputs())
    return tuple(Part(id, frozenset(needs), partial(_answer, wrong)) for id, needs, wrong in made)


def _answer(wrong: Wrong, node: Node, inputs: Mapping[str, Any], memory: Memory) -> dict[str, NDArray[Any]]:
    with np.errstate(all="ignore"):
        return {"Y": wrong(resolve(node.attributes, inputs), memory).astype(np.float32)}


def _with(node: ExtendedLSTM, name: str, change: Change) -> ExtendedLSTM:
    """The node with other numbers in one of its tensors, if it has that one."""
    if name not in node.tensors:
        return node
    operand: Operand = node.tensors[name]
    return replace(node, tensors={**node.tensors, name: replace(operand, value=change(operand.value))})


def _altered(names: str, change: Change) -> Wrong:
    """An implementation that takes other numbers for those of some tensors."""

    def wrong(node: ExtendedLSTM, memory: Memory) -> Array:
        for name in names:
            node = _with(node, name, change)
        return evaluate_extended(node)

    return wrong


def _shown(change: Callable[[ExtendedLSTM, Array], Array]) -> Wrong:
    """An implementation that shows another Y than it has computed."""
    return lambda node, memory: change(node, evaluate_extended(node))


def _end(axis: int) -> Change:
    """The last slice along an axis becomes zero."""

    def lose(array: Array) -> Array:
        kept = array.copy()
        kept[(slice(None),) * axis + (slice(-1, None),)] = 0.0
        return kept

    return lose


def _nothing(array: Array) -> Array:
    return np.zeros_like(array)


def _first(array: Array) -> Array:
    return np.repeat(array[:1], len(array), axis=0)


def _half(which: int) -> Change:
    def without(bias: Array) -> Array:
        kept, half = bias.copy(), bias.shape[1] // 2
        kept[:, which * half : (which + 1) * half] = 0.0
        return kept

    return without


_OF = {"X": (), "W": (), "R": ("recurrence",), "B": ("B",)}
"""What must be there for a tensor to matter."""


def _tensors() -> Made:
    yield "B.dropped", ("B",), _altered("B", _nothing)
    yield "B.of-input", ("B",), _altered("B", _half(0))
    yield "B.of-state", ("B",), _altered("B", _half(1))
    for axis, word in enumerate(("step", "row", "input")):
        yield f"X.last-{word}", (), _altered("X", _end(axis))
    yield "W.last-input", (), _altered("W", _end(2))
    yield "R.last-unit", ("recurrence",), _altered("R", _end(2))
    for name in "WRB":
        yield f"{name}.end", _OF[name], _altered(name, _end(1))


def _gates() -> Made:
    def swapped(order: str) -> Change:
        def change(array: Array) -> Array:
            parts = 2 if array.ndim == 2 else 1  # of B those of input and state
            size = array.shape[1] // (len(_GATES) * parts)
            blocks = array.reshape(len(array), parts, len(_GATES), size, *array.shape[2:])
            return blocks[:, :, [_GATES.index(gate) for gate in order]].reshape(array.shape)

        return change

    for a, b in itertools.combinations(_GATES, 2):
        order = _GATES.translate(str.maketrans(a + b, b + a))
        yield f"gates.{a}{b}", (), _altered("WRB", swapped(order))


def _directions() -> Made:
    for name in "WRB":
        yield f"{name}.one-direction", ("second-direction", *_OF[name]), _altered(name, _first)

    def forward(node: ExtendedLSTM, memory: Memory) -> Array:
        """Backwards through steps in the opposite order is forwards, shown in that order."""
        Y = evaluate_extended(node)
        Y[:, 1] = evaluate_extended(_with(node, "X", lambda x: x[::-1]))[::-1, 1]
        return Y

    yield "reverse.forward", ("second-direction", "steps"), forward
    yield "outputs.directions", (), _shown(lambda node, Y: Y[:, ::-1])


def _states() -> Made:
    def forgotten(node: ExtendedLSTM, memory: Memory) -> Array:
        """Every step by itself, as if it were a row."""
        T, N = node.T, node.N
        rows = _with(node, "X", lambda x: x.reshape(1, T * N, -1))
        apart = replace(rows, T=1, N=T * N, lengths=np.ones(T * N, np.int64))
        return evaluate_extended(apart).reshape(2, T, N, node.H).transpose(1, 0, 2, 3)

    def no_cell(node: ExtendedLSTM, memory: Memory) -> Array:
        """The cell state is lost where no forget gate opens."""
        H, bias = node.H, np.zeros((2, 8 * node.H))
        operand = node.tensors.get("B") or Operand(bias, bias, bias, 0, 0.0)
        shut = operand.value.copy()
        shut[:, 2 * H : 3 * H] = -1e6
        return evaluate_extended(replace(node, tensors={**node.tensors, "B": replace(operand, value=shut)}))

    def kept(node: ExtendedLSTM, memory: Memory) -> Array:
        before = {name: ends for name, ends in memory.items() if ends.shape == (2, node.N, node.H)}
        outputs = evaluate_from(node, before)
        memory.update({f"initial_{name}": outputs[f"Y_{name}"] for name in "hc"})
        return outputs["Y"]

    yield "state.forgotten", ("recurrence",), forgotten
    yield "state.hidden-forgotten", ("recurrence",), _altered("R", _nothing)
    yield "state.cell-forgotten", ("recurrence",), no_cell
    yield "state.kept", ("earlier-run",), kept


def _levels() -> Made:
    def offset(name: str) -> Wrong:
        def wrong(node: ExtendedLSTM, memory: Memory) -> Array:
            affine = node.affine.get(name)
            if affine is None:
                return evaluate_extended(node)
            return evaluate_extended(_with(node, name, lambda v: v + (affine.zero_point - _HALF) * affine.scale))

        return wrong

    def beyond(name: str, levels: Callable[[Affine, Array], Array]) -> Wrong:
        def wrong(node: ExtendedLSTM, memory: Memory) -> Array:
            affine = node.affine.get(name)
            if affine is None:
                return evaluate_extended(node)
            quotient = np.clip(node.given[name].astype(np.float64) / affine.scale, -_FAR, _FAR)
            taken = affine.dequantized(levels(affine, np.rint(quotient) + affine.zero_point))
            return evaluate_extended(_with(node, name, lambda v: taken))

        return wrong

    def wrapped(affine: Affine, levels: Array) -> Array:
        return np.mod(levels, affine.highest + 1)

    def unbounded(affine: Affine, levels: Array) -> Array:
        return levels

    for name in "XWRB":
        yield f"{name}.zero-point", (*_OF[name], f"{name.lower()}-offset"), offset(name)
        given = (*_OF[name], f"{name.lower()}-beyond")
        yield f"{name}.wraps", given, beyond(name, wrapped)
        yield f"{name}.unbounded", given, beyond(name, unbounded)
        yield f"{name}.scale", _OF[name], _scale_of_another(name)


def _scale_of_another(name: str) -> Wrong:
    """An implementation that takes the levels of one tensor with the scale of the next."""

    def wrong(node: ExtendedLSTM, memory: Memory) -> Array:
        other = node.affine[{"X": "W", "W": "R", "R": "W", "B": "W"}[name]].scale
        own = node.affine[name].scale if name in node.affine else other
        return evaluate_extended(_with(node, name, lambda v: v / own * other))

    return wrong


def _outputs() -> Made:
    for axis, word in ((0, "step"), (2, "row"), (3, "unit")):
        lose = _end(axis)
        yield f"Y.last-{word}", (), _shown(lambda node, Y, lose=lose: lose(Y))  # type: ignore[misc]

    def offset(node: ExtendedLSTM, Y: Array) -> Array:
        return Y if node.y is None else Y + (node.y.zero_point - _HALF) * node.y.scale

    def wrapped(node: ExtendedLSTM, memory: Memory) -> Array:
        """Y at the other end wherever it is beyond its range; what is fed back saturates."""
        Y, y = evaluate_extended(node), node.y
        if y is None:
            return Y
        hidden = _one_step(node, Y)
        return y.dequantized(np.mod(np.rint(hidden / y.scale) + y.zero_point, y.highest + 1))

    def unbounded(node: ExtendedLSTM, memory: Memory) -> Array:
        Y = evaluate_extended(node)
        return Y if node.y is None else _one_step(node, Y)

    yield "Y.zero-point", ("y-given", "y-offset"), _shown(offset)
    yield "Y.wraps", ("y-given", "y-beyond"), wrapped
    yield "Y.unbounded", ("y-given", "y-beyond"), unbounded


def _one_step(node: ExtendedLSTM, Y: Array) -> Array:
    """Ht of every step, as it is before it is shown: from the states before it that are shown."""
    T, N, H = node.T, node.N, node.H
    hidden = np.zeros((T, 2, N, H))
    start = np.zeros((2, N, H))
    cells = start
    for k in range(T):
        steps = (k, T - 1 - k)
        before = start if k == 0 else np.stack([Y[k - 1, 0], Y[T - k, 1]])
        ends = []
        for d, step in enumerate(steps):
            one = _with(node, "X", lambda x, step=step: x[step : step + 1])  # type: ignore[misc]
            one = replace(one, T=1, y=None, lengths=np.ones(N, np.int64))
            out = evaluate_from(one, {"initial_h": before, "initial_c": cells})
            hidden[step, d] = out["Y"][0, d]
            ends.append(out["Y_c"][d])
        cells = np.stack(ends)
    return hidden

"""Parts of ExtendedLSTM that can go wrong: LSTM's, as far as it has them, and those of its levels.

Of levels every zero point may be forgotten and every saturation be left out, of every tensor and of Y.

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

from ...faults.alterations import configured, with_inputs
from ...faults.fault import Compute
from ...faults.part import Part
from ...faults.parts import wrong_parts
from ...numbers.affine import Affine
from ...recurrent.node import Node
from ...recurrent.rnn import LSTM
from .computation import Requantizing, evaluate_extended
from .document import ExtendedLSTM, resolve
from .stages import Operand

Array = NDArray[np.float64]
Change = Callable[[Array], Array]
Wrong = Callable[[ExtendedLSTM], Array]
Made = Iterator[tuple[str, tuple[str, ...], Wrong]]

_HALF = 32768
_FAR = 2.0**40  # quotients beyond this are far outside every range

_HERE: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("B", "recurrence", "second-direction", "steps")},
    **dict.fromkeys(("initial-absent", "last-row", "last-step", "out-Y", "two-directions"), ()),
    "earlier-state": ("earlier-run",),
    "reverse": ("second-direction",),
}
"""The needs of LSTM's parts, in words of ExtendedLSTM, where it has it: there are two directions, all steps and Y."""

_ORDER = (
    *("B.dropped", "B.of-", ".last-", ".end", "gates.", ".one-direction", "reverse.", "outputs."),
    *("state.forgotten", "state.hidden", "state.cell", "state.kept", ""),
)
"""The order of parts by the beginnings of their ids: that order is pinned with the pool of cases. Y's stand last."""


@cache
def extended_parts() -> tuple[Part, ...]:
    """All parts; what a case does not have cannot go wrong there."""
    made = itertools.chain(_states(), _levels(), _outputs())
    own = [Part(id, frozenset(needs), partial(_answer, wrong)) for id, needs, wrong in made]
    ids = {part.id for part in own}
    shared = [
        Part(id, frozenset(word for need in needs for word in _HERE[need]), partial(_lstm_answer, wrong))
        for id, _, needs, wrong in wrong_parts(LSTM.op_type)
        if id not in ids and all(need in _HERE for need in needs)
    ]
    return tuple(sorted((*shared, *own), key=lambda part: (part.id.startswith("Y."), _place(part.id))))


def _place(id: str) -> int:
    return next(k for k, some in enumerate(_ORDER) if some in id)


def _answer(wrong: Wrong, node: Node, inputs: Mapping[str, Any], memory: dict[str, Any]) -> dict[str, NDArray[Any]]:
    with np.errstate(all="ignore"):
        return {"Y": wrong(resolve(node.attributes, inputs)).astype(np.float32)}


def _lstm_answer(
    wrong: Callable[[Compute, Any], dict[str, NDArray[Any]]],
    node: Node,
    inputs: Mapping[str, Any],
    memory: dict[str, Any],
) -> dict[str, NDArray[Any]]:
    with np.errstate(all="ignore"):
        computation = Requantizing.of(resolve(node.attributes, inputs))
        return {"Y": wrong(Compute(fed=inputs, memory=memory), computation)["Y"].astype(np.float32)}


def _with(node: ExtendedLSTM, name: str, change: Change) -> ExtendedLSTM:
    """The node with other numbers in one of its tensors, if it has that one."""
    if name not in node.tensors:
        return node
    operand: Operand = node.tensors[name]
    return replace(node, tensors={**node.tensors, name: replace(operand, value=change(operand.value))})


def _states() -> Made:
    def forgotten(node: ExtendedLSTM) -> Array:
        """Every step by itself, as if it were a row."""
        T, N = node.T, node.N
        rows = _with(node, "X", lambda x: x.reshape(1, T * N, -1))
        apart = replace(rows, T=1, N=T * N, lengths=np.ones(T * N, np.int64))
        return evaluate_extended(apart).reshape(2, T, N, node.H).transpose(1, 0, 2, 3)

    def no_hidden(node: ExtendedLSTM) -> Array:
        return evaluate_extended(_with(node, "R", np.zeros_like))

    def no_cell(node: ExtendedLSTM) -> Array:
        """The cell state is lost where no forget gate opens."""
        H, bias = node.H, np.zeros((2, 8 * node.H))
        operand = node.tensors.get("B") or Operand(bias, bias, bias, 0, 0.0)
        shut = operand.value.copy()
        shut[:, 2 * H : 3 * H] = -1e6
        return evaluate_extended(replace(node, tensors={**node.tensors, "B": replace(operand, value=shut)}))

    yield "state.forgotten", ("recurrence",), forgotten
    yield "state.hidden-forgotten", ("recurrence",), no_hidden
    yield "state.cell-forgotten", ("recurrence",), no_cell


def _of(name: str) -> tuple[str, ...]:
    """The needs for a tensor to matter."""
    return {"R": ("recurrence",), "B": ("B",)}.get(name, ())


def _levels() -> Made:
    def offset(name: str) -> Wrong:
        def wrong(node: ExtendedLSTM) -> Array:
            affine = node.affine.get(name)
            if affine is None:
                return evaluate_extended(node)
            return evaluate_extended(_with(node, name, lambda v: v + (affine.zero_point - _HALF) * affine.scale))

        return wrong

    def beyond(name: str, levels: Callable[[Affine, Array], Array]) -> Wrong:
        def wrong(node: ExtendedLSTM) -> Array:
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
        yield f"{name}.zero-point", (*_of(name), f"{name.lower()}-offset"), offset(name)
        given = (*_of(name), f"{name.lower()}-beyond")
        yield f"{name}.wraps", given, beyond(name, wrapped)
        yield f"{name}.unbounded", given, beyond(name, unbounded)
        yield f"{name}.scale", _of(name), _scale_of_another(name)


def _scale_of_another(name: str) -> Wrong:
    """An implementation that takes the levels of one tensor with the scale of the next."""

    def wrong(node: ExtendedLSTM) -> Array:
        other = node.affine[{"X": "W", "W": "R", "R": "W", "B": "W"}[name]].scale
        own = node.affine[name].scale if name in node.affine else other
        return evaluate_extended(_with(node, name, lambda v: v / own * other))

    return wrong


def _outputs() -> Made:
    def offset(node: ExtendedLSTM) -> Array:
        Y = evaluate_extended(node)
        return Y if node.y is None else Y + (node.y.zero_point - _HALF) * node.y.scale

    def wrapped(node: ExtendedLSTM) -> Array:
        """Y at the other end wherever it is beyond its range; what is fed back saturates."""
        Y, y = evaluate_extended(node), node.y
        if y is None:
            return Y
        hidden = _one_step(node, Y)
        return y.dequantized(np.mod(np.rint(hidden / y.scale) + y.zero_point, y.highest + 1))

    def unbounded(node: ExtendedLSTM) -> Array:
        Y = evaluate_extended(node)
        return Y if node.y is None else _one_step(node, Y)

    yield "Y.zero-point", ("y-given", "y-offset"), offset
    yield "Y.wraps", ("y-given", "y-beyond"), wrapped
    yield "Y.unbounded", ("y-given", "y-beyond"), unbounded


def _one_step(node: ExtendedLSTM, Y: Array) -> Array:
    """Ht of every step, as it is before it is shown: from the states before it that are shown."""
    T, N, H = node.T, node.N, node.H
    lstm = replace(Requantizing.of(node), y=None)
    hidden = np.zeros((T, 2, N, H))
    start = np.zeros((2, N, H))
    cells = start
    for k in range(T):
        steps = (k, T - 1 - k)
        before = start if k == 0 else np.stack([Y[k - 1, 0], Y[T - k, 1]])
        ends = []
        for d, step in enumerate(steps):
            one = configured(with_inputs(lstm, X=lstm.inputs["X"][step : step + 1]), T=1, lengths=np.ones(N, np.int64))
            out = with_inputs(one, initial_h=before, initial_c=cells).plain()
            hidden[step, d] = out["Y"][0, d]
            ends.append(out["Y_c"][d])
        cells = np.stack(ends)
    return hidden

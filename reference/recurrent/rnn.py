"""LSTM, GRU and RNN of ONNX's default domain, all versions: equations, scan and outputs.

Letters and names of sections are those of ONNX's Operators.md. The text runs in any arithmetic: plain float64
(:mod:`..numbers.plain`), numbers with error bounds (:mod:`..numbers.bounding`), or the roundings of a conforming kernel
(:mod:`..kernels.kernel`).

The equations of a cell take the sums Xt*(W^T) + Wb and Ht-1*(R^T) + Rb of some steps and return the states after each
of these steps. Two callers use them: a *free run* computes one step at a time, each from the state before; *step-local*
evaluation knows Ht-1 of all steps, because a target reported Y, and computes them at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .cell import (
    ZERO,
    Cell,
    Gates,
    Number,
    Parameters,
    States,
    blocks_of,
    held,
    later,
    multiplied,
    register_cell,
    steps_had,
)

if TYPE_CHECKING:
    from .configuration import Configuration

Tensors = Mapping[str, Any]
"""Tensors by formal name: float64 arrays, or numbers of the arithmetic."""

Order = NDArray[np.int64] | slice


# Equations. XW stands for Xt*(W^T) + Wb and HR for Ht-1*(R^T) + Rb, by gate. H is Ht-1 of each step; C is Ct-1 of the
# first step. `(.)` is `*`.


def rnn(p: Parameters, XW: Gates, HR: Gates, H: Number) -> States:
    """Return RNN's Ht.

    Document RNN, section "Equations"::

        Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi)
    """
    i = p.f(XW.i + HR.i)
    p.note(i=i)
    return (i,)


def gru(p: Parameters, XW: Gates, HR: Gates, H: Number) -> States:
    """Return GRU's Ht.

    Document GRU, section "Equations"::

        zt = f(Xt*(Wz^T) + Ht-1*(Rz^T) + Wbz + Rbz)
        rt = f(Xt*(Wr^T) + Ht-1*(Rr^T) + Wbr + Rbr)
        ht = g(Xt*(Wh^T) + (rt (.) Ht-1)*(Rh^T) + Rbh + Wbh)        linear_before_reset = 0
        ht = g(Xt*(Wh^T) + (rt (.) (Ht-1*(Rh^T) + Rbh)) + Wbh)      linear_before_reset != 0
        Ht = (1 - zt) (.) ht + zt (.) Ht-1
    """
    z = p.f(XW.z + HR.z)
    r = p.f(XW.r + HR.r)
    h = hidden_gate(p, XW, HR, H, r)
    p.note(z=z, r=r, h=h)
    return (p.arithmetic.interpolation(z, h, H),)  # (1 - z) * h + z * H, in any of the ways that kernels compute it


def hidden_gate(p: Parameters, XW: Gates, HR: Gates, H: Number, r: Number) -> Number:
    """Return GRU's ht; ``linear_before_reset`` says whether rt multiplies Ht-1 or its product."""
    if p.linear_before_reset:
        return p.g(XW.h + r * HR.h)
    return p.g(XW.h + p.recurrent(r * H, "h"))


def lstm(p: Parameters, XW: Gates, HR: Gates, H: Number, C: Number) -> States:
    """Return LSTM's Ht and Ct.

    Document LSTM, section "Equations"::

        it = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Pi (.) Ct-1 + Wbi + Rbi)
        ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Pf (.) Ct-1 + Wbf + Rbf)
        ct = g(Xt*(Wc^T) + Ht-1*(Rc^T) + Wbc + Rbc)
        Ct = ft (.) Ct-1 + it (.) ct
        ot = f(Xt*(Wo^T) + Ht-1*(Ro^T) + Po (.) Ct + Wbo + Rbo)
        Ht = ot (.) h(Ct)
    """
    S = XW + HR
    c = p.g(S.c)
    if p.P["i"] is ZERO and p.P["f"] is ZERO:  # no gate needs Ct-1: all steps at once
        i, f = input_and_forget(p, S, C)
        Ct = p.arithmetic.recurrence(f, i * c, C)
    else:
        steps = []
        for t in range(len(S.number)):
            i, f = input_and_forget(p, S[t], C)
            C = f * C + i * c[t]
            steps.append(C)
        Ct = p.arithmetic.stack(steps)
    p.note(c=c)
    return output(p, S, Ct), Ct


def input_and_forget(p: Parameters, S: Gates, C: Number) -> tuple[Number, Number]:
    """Return LSTM's it and ft; with ``input_forget`` one of them is 1 minus the other."""
    if p.coupled == "forget":
        f = p.f(S.f + p.P["f"] * C)
        i = 1.0 - f
    else:
        i = p.f(S.i + p.P["i"] * C)
        f = 1.0 - i if p.coupled == "input" else p.f(S.f + p.P["f"] * C)
    p.note(i=i, f=f)
    return i, f


def output(p: Parameters, S: Gates, C: Number) -> Number:
    """Return LSTM's Ht from Ct."""
    o = p.f(S.o + p.P["o"] * C)
    p.note(o=o)
    return o * p.h(C)


LSTM = register_cell(Cell("LSTM", "iofc", ("Sigmoid", "Tanh", "Tanh"), lstm, ("c",), "iof", unmarked=frozenset({1})))
GRU = register_cell(
    Cell("GRU", "zrh", ("Sigmoid", "Tanh"), gru, unmarked=frozenset({1, 3}), without_defaults=frozenset({1}))
)
RNN = register_cell(Cell("RNN", "i", ("Tanh",), rnn, unmarked=frozenset({1})))

CELLS = {cell.op_type: cell for cell in (LSTM, GRU, RNN)}
"""Cells of ONNX's own operators."""


# The scan works in *processing order*: step 0 is the step that a direction computes first. A row of length L processes
# positions 0 ... L-1 forward and L-1 ... 0 in reverse ("sequence_lens", "direction"). Positions past the length come
# last in both; they are computed like the others and then left out.


def processing_order(T: int, lengths: NDArray[np.int64], direction: str) -> Order:
    """Return the position that each row processes at each step: (T, N), or a slice if it is the same for all rows.

    The table is its own inverse.
    """
    if direction == "forward":
        return slice(None)
    if (lengths == T).all():
        return slice(None, None, -1)
    t = np.arange(T)[:, np.newaxis]
    return np.where(t < lengths, lengths - 1 - t, t)


def in_order(tensor: Any, positions: Order) -> Any:
    """Return a (T, N, ...) tensor with its steps in processing order, or back."""
    if isinstance(positions, slice):
        return tensor[positions]
    return tensor[positions, np.arange(positions.shape[1])]


_BLOCK = 1 << 17
"""Numbers of a block of steps that are computed at once. Larger arrays leave a processor's cache."""

_LARGE = 1 << 15
"""Size of a direction's sums, in numbers, above which memory determines the cost of a node."""


def is_large(c: Configuration) -> bool:
    """Return whether the cost of a node is memory."""
    return c.T * c.N * len(c.cell.gates) * c.H > _LARGE


class Direction:
    """Tensors of one direction in some arithmetic, with steps in processing order.

    before
        Ht-1 of every step if Y was reported, otherwise None.
    multiplied
        Numbers that replace `before` in products.
    wait
        Steps that each row waits before its first one (``by_clock`` of the operands); None: no row waits.
    """

    def __init__(self, c: Configuration, tensors: Tensors, arithmetic: Any, d: int, observed: Any) -> None:
        cell, H, rows = c.cell, c.H, len(c.cell.gates) * c.H
        self.arithmetic, self.blocks = arithmetic, blocks_of(cell.gates, H)
        self._of_gates: dict[str, tuple[Any, Number]] = {}
        positions = processing_order(c.T, c.lengths, c.directions[d])
        self.X = self._number(in_order(tensors["X"] if c.layout == 0 else tensors["X"].transpose(1, 0, 2), positions))
        R, B, P = tensors["R"][d], tensors.get("B"), tensors.get("P")
        if not c.transposes:
            R = R.reshape(-1, H, H).swapaxes(1, 2).reshape(R.shape)
        self.W, self.R = arithmetic.weights(tensors["W"][d]), arithmetic.weights(R)
        self.Wb: Number = ZERO if B is None else self._number(B[d, :rows])
        self.Rb: Number = ZERO if B is None else self._number(B[d, rows:])
        self._matrix, self._bias = R, None if B is None else B[d, rows:]
        peepholes = [ZERO] * len(cell.peepholes) if P is None else map(self._number, P[d].reshape(-1, H))
        self.P = dict(zip(cell.peepholes, peepholes, strict=True))
        self.initial = tuple(self._number(initial_state(c, tensors, name, d)) for name in ("h", *cell.inner))
        self.before: Number = None
        self.multiplied: Number = None
        self.wait: NDArray[np.int64] | None = None
        if observed is not None and c.T:
            reported = arithmetic.reported_state(in_order(observed[:, d], positions)[:-1])
            self.before = self.multiplied = arithmetic.concatenate((self.initial[0][np.newaxis], reported))
        if c.operands is not None:
            self.X = c.operands.of_inputs(self.X, c.lengths, positions)
            self.wait = c.T - c.lengths if c.operands.by_clock and c.directions[d] == "reverse" else None
            if self.before is not None:
                self.multiplied = multiplied(c.operands, self.before, c.T, c.lengths, self.wait)

    def _number(self, tensor: Any) -> Number:
        return self.arithmetic.exact(tensor) if isinstance(tensor, np.ndarray) else tensor

    def input_sums(self, X: Number) -> Number:
        """Return Xt*(W^T) + Wb for all gates."""
        return _plus(self.arithmetic.product(X, self.W), self.Wb)

    def recurrent_sums(self, H: Number) -> Number:
        """Return Ht-1*(R^T) + Rb for all gates."""
        return _plus(self.arithmetic.product(H, self.R), self.Rb)

    def recurrent(self, x: Number, letter: str) -> Number:
        """Return x*(R^T) + Rb of one gate."""
        if letter not in self._of_gates:
            block = self.blocks[letter][-1]
            bias = ZERO if self._bias is None else self._number(self._bias[block])
            self._of_gates[letter] = self.arithmetic.weights(self._matrix[block]), bias
        weights, bias = self._of_gates[letter]
        return _plus(self.arithmetic.product(x, weights), bias)


def _plus(product: Number, bias: Number) -> Number:
    """Return a product, which nothing else holds, plus a bias."""
    if bias is not ZERO:
        product += bias
    return product


def initial_state(c: Configuration, tensors: Tensors, name: str, d: int) -> Any:
    """Return initial_h or initial_c of one direction, (N, H); zeros by default."""
    tensor = tensors.get(f"initial_{name}")
    if tensor is None:
        return np.zeros((c.N, c.H))
    return tensor[d if c.layout == 0 else (slice(None), d)]


def states_of(
    c: Configuration,
    tensors: Tensors,
    arithmetic: Any,
    d: int,
    observed: Any = None,
    noted: dict[str, list[Number]] | None = None,
) -> States:
    """Return H and the inner states of one direction after each step, (T, N, H) in processing order.

    observed
        Y (T, D, N, H) that a target reported, in float64 or as a number. Each step then starts from the reported state
        (step-local). None: each step starts from the computed one (free run).
    noted
        Gets the values of gates by letter (:class:`.cell.Parameters`).
    """
    direction = Direction(c, tensors, arithmetic, d, observed)
    functions = zip(c.activations[d], c.clips, strict=True)
    p = Parameters(
        tuple(partial(arithmetic.activate, function, clip=clip) for function, clip in functions),
        direction.P,
        c.coupled,
        c.linear_before_reset,
        arithmetic,
        direction.recurrent,
        noted=noted,
    )
    if c.T == 0:
        return (arithmetic.exact(np.zeros((0, c.N, c.H))),) * (1 + len(c.cell.inner))
    steps = _free_run(c, p, direction) if direction.before is None else _step_local(c, p, direction)
    return tuple(arithmetic.concatenate(parts) for parts in zip(*steps, strict=True))


def _blocks(c: Configuration) -> list[slice]:
    """Return the steps that are computed at once."""
    size = max(1, _BLOCK // max(1, c.N * len(c.cell.gates) * c.H))
    return [slice(start, min(start + size, c.T)) for start in range(0, c.T, size)]


def _step_local(c: Configuration, p: Parameters, direction: Direction) -> list[States]:
    """Run steps whose Ht-1 are known: only inner states pass from step to step."""
    inner, states = direction.initial[1:], []
    if is_large(c):
        # glibc gives large freed arrays back to the system, which clears them before it hands them out again: a quarter
        # of the time. Up to 32 MiB, it keeps arrays as large as the largest one freed so far.
        np.empty((1 << 25) - (1 << 16), np.uint8)
    for steps in _blocks(c):
        XW = Gates(direction.input_sums(direction.X[steps]), direction.blocks)
        HR = Gates(direction.recurrent_sums(direction.multiplied[steps]), direction.blocks)
        p.t = steps.start
        states.append(c.cell.equations(p, XW, HR, direction.before[steps], *inner))
        inner = tuple(p.arithmetic.carry_state(state[-1]) for state in states[-1][1:])
    return states


def _free_run(c: Configuration, p: Parameters, direction: Direction) -> list[States]:
    """Run one step after the other, each from the state before."""
    arithmetic, wait, X = p.arithmetic, direction.wait, direction.X
    H, inner = direction.initial[0][np.newaxis], direction.initial[1:]
    if wait is not None:
        X = X[later(c.T, -wait)]
    states = []
    for steps in _blocks(c):
        sums = direction.input_sums(X[steps])
        for t in range(steps.stop - steps.start):
            p.t = steps.start + t
            operand, had = H, None
            if c.operands is not None:
                had = steps_had(p.t, p.t + 1, c.N, wait)
                operand = c.operands.of_states(H, had, c.lengths)
            XW = Gates(sums[t : t + 1], direction.blocks)
            HR = Gates(direction.recurrent_sums(operand), direction.blocks)
            states.append(c.cell.equations(p, XW, HR, H, *inner))
            last = H, inner
            H = arithmetic.feedback(states[-1][0])
            inner = tuple([arithmetic.carry_state(state[-1]) for state in states[-1][1:]])
            if had is not None and c.ragged:  # other rows depend on the state of a row that waits, or has ended
                H, inner = held(arithmetic, had, c.lengths, last, (H, inner))
    if wait is not None:
        whole = [arithmetic.concatenate(parts) for parts in zip(*states, strict=True)]
        states = [tuple(state[later(c.T, wait)] for state in whole)]
    return states


def outputs_of(c: Configuration, tensors: Tensors, states: list[States], arithmetic: Any) -> dict[str, Number]:
    """Return all outputs in the node's layout, from the states of its directions."""
    names = ("h", *c.cell.inner)
    valid = (np.arange(c.T)[:, np.newaxis] < c.lengths)[..., np.newaxis]
    Y: list[Number] = []
    last: dict[str, list[Number]] = {f"Y_{name}": [] for name in names}
    for d, of_direction in enumerate(states):
        H = in_order(of_direction[0], processing_order(c.T, c.lengths, c.directions[d]))
        if c.ragged:  # "sequence_lens": Y is 0 past the length of a row
            H = arithmetic.where(valid, H, arithmetic.exact(np.zeros(())))
        Y.append(H[:, np.newaxis])
        for name, state in zip(names, of_direction, strict=True):
            last[f"Y_{name}"].append(_last(c, tensors, state, name, d, arithmetic)[np.newaxis])
    outputs = {"Y": arithmetic.concatenate(Y, 1)}
    outputs |= {name: arithmetic.concatenate(parts) for name, parts in last.items()}
    if c.layout == 1:
        outputs = {n: v.transpose(*((2, 0, 1, 3) if n == "Y" else (1, 0, 2))) for n, v in outputs.items()}
    return outputs


def _last(c: Configuration, tensors: Tensors, state: Number, name: str, d: int, arithmetic: Any) -> Number:
    """Return the state after each row's last step, (N, H); of a row without steps the initial state or zeros."""
    if c.T and not c.ragged:
        return state[-1]
    start = np.zeros((c.N, c.H)) if c.empty == "zero" else initial_state(c, tensors, name, d)
    start = arithmetic.exact(start) if isinstance(start, np.ndarray) else start
    last = state[np.maximum(c.lengths - 1, 0), np.arange(c.N)] if c.T else start
    return arithmetic.where((c.lengths > 0)[:, np.newaxis], last, start)


def run(c: Configuration, tensors: Tensors, arithmetic: Any, observed: Any = None) -> dict[str, Number]:
    """Return all outputs of a node by name, in its layout. Arguments are those of :func:`states_of`."""
    directions = range(len(c.directions))
    states = [states_of(c, tensors, arithmetic, d, observed) for d in directions]
    return outputs_of(c, tensors, states, arithmetic)

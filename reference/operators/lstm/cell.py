"""LSTM, versions 1, 7, 14 and 22: the equations of its document."""

from __future__ import annotations

from ...recurrent.cell import Absent, Cell, Gates, Number, Parameters, Recurrent, States


def shares(p: Parameters, S: Gates, C: Number) -> tuple[Number, Number]:
    """it and ft from Ct-1.

    S stands for Xt*(W^T) + Wb + Ht-1*(R^T) + Rb, for all gates: the documents' sums, grouped. ABSENT peepholes fall out
    of them.
    """
    if p.coupled == "forget":
        f = p.f(S.f + p.P["f"] * C)
        i = 1.0 - f
    else:
        i = p.f(S.i + p.P["i"] * C)
        f = 1.0 - i if p.coupled == "input" else p.f(S.f + p.P["f"] * C)
    return i, f


def candidate(p: Parameters, S: Gates) -> Number:
    """ct, which no peephole reaches."""
    return p.g(S.c)


def gates(p: Parameters, S: Gates, C: Number) -> tuple[Number, Number, Number]:
    """it, ft and ct from Ct-1."""
    return (*shares(p, S, C), candidate(p, S))


def output(p: Parameters, S: Gates, C: Number) -> Number:
    """Ht from Ct."""
    o = p.f(S.o + p.P["o"] * C)
    return o * p.h(C)


def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Ht and Ct after every step. Only the cell state is scanned; without peepholes its gates do not wait for it."""
    (C,) = inner
    S = X + H
    c = candidate(p, S)
    if isinstance(p.P["i"], Absent) and isinstance(p.P["f"], Absent):
        i, f = shares(p, S, C)
        states = p.arithmetic.recurrence(f, i * c, C)
    else:
        steps = []
        for t in range(len(S.number)):
            i, f = shares(p, S[t], C)
            C = f * C + i * c[t]
            steps.append(C)
        states = p.arithmetic.stack(steps)
    return output(p, S, states), states


LSTM = Cell(
    op_type="LSTM",
    gates="iofc",
    activations=("Sigmoid", "Tanh", "Tanh"),
    inner=("c",),
    peepholes="iof",
    unmarked=frozenset({1}),
    walk=walk,
)

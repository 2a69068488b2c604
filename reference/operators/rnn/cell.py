"""RNN, versions 1, 7, 14 and 22: the equation of its document."""

from __future__ import annotations

from ...recurrent.cell import Cell, Gates, Number, Parameters, Recurrent, States


def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Ht after every step. X stands for Xt*(Wi^T) + Wbi and H for Ht-1*(Ri^T) + Rbi."""
    return (p.f(X.i + H.i),)


RNN = Cell(
    op_type="RNN",
    gates="i",
    activations=("Tanh",),
    inner=(),
    peepholes="",
    unmarked=frozenset({1}),
    walk=walk,
)

"""GRU, versions 1, 3, 7, 14 and 22: the equations of its document."""

from __future__ import annotations

from ...recurrent.cell import Cell, Gates, Number, Parameters, Recurrent, States


def candidate(p: Parameters, X: Gates, H: Recurrent, r: Number) -> Number:
    """ht, the hidden gate. H.h stands for Ht-1*(Rh^T) + Rbh, H.through for the same of what the reset gate leaves of
    Ht-1; X.h stands for Xt*(Wh^T) + Wbh."""
    if p.linear_before_reset:
        return p.g(X.h + r * H.h)
    return p.g(X.h + H.through(r * H.state, "h"))


def walk(p: Parameters, X: Gates, H: Recurrent, inner: tuple[Number, ...]) -> States:
    """Ht after every step: (1 - zt) (.) ht + zt (.) Ht-1."""
    z, r = p.f(X.z + H.z), p.f(X.r + H.r)
    h = candidate(p, X, H, r)
    return (p.arithmetic.interpolation(z, h, H.state),)


GRU = Cell(
    op_type="GRU",
    gates="zrh",
    activations=("Sigmoid", "Tanh"),
    inner=(),
    peepholes="",
    unmarked=frozenset({1, 3}),
    walk=walk,
    read=lambda linear_before_reset: "zrh" if linear_before_reset else "zr",
    without_defaults=frozenset({1}),
)

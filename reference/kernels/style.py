"""Styles of conforming kernels: the roundings and summation orders of real kernels."""

from __future__ import annotations

from dataclasses import dataclass

ORDERS = ("library", "forward", "backward", "lanes", "fused", "tiles", "shuffled")
INTERPOLATIONS = ("complement", "difference", "from-old", "in-turn")
RESETS = ("rounded", "fused", "apart")


@dataclass(frozen=True)
class Style:
    """Roundings and summation order of a kernel.

    work
        Format of elementwise arithmetic; None: the tensor's own.
    accumulator
        Format in which products are summed; None: the tensor's own, float32 for half types.
    operands
        Format to which operands of matrix products are rounded first, ``tf32`` included; None: they are not rounded.
    order
        Order of a sum: ``library`` (NumPy's), ``forward``, ``backward``, ``lanes`` (eight sums over every eighth term,
        added in pairs), ``fused`` (multiply-add with one rounding a term, in the cell state too), ``tiles`` (sums of 32
        terms, added in order), ``shuffled`` (as threads finish).
    stores_sums
        Whether XW, HR and each of their sums with a bias is stored in the tensor's type.
    stores_gates
        Whether results of activations are stored in the tensor's type.
    stores_state
        Whether states are rounded to the tensor's type between steps.
    activation
        ``exact`` (rounded once), ``formula`` (the document's, in the work format), ``careful`` (formulas that neither
        overflow nor cancel), ``logistic`` (tanh from sigmoid), ``loose`` (anywhere in three quarters of the standard
        envelope), ``edge`` (at the limits of these three quarters), ``divided`` (quotients within 2.5 ulp),
        ``reciprocal`` (products with reciprocals within 2.5 ulp).
    flushes
        Whether subnormal numbers become zero; this conforms only in the class ``flushing``.
    swallows_nan
        Whether Relu and clip turn NaN into a number.
    interpolation
        Formula for two states and a gate z: ``complement``, (1 - z)h + zH; ``difference``, h + z(H - h); ``from-old``,
        H + (1 - z)(h - H); ``in-turn``, h - zh + zH.
    own_complement
        Whether 1 - Sigmoid(x) is evaluated as Sigmoid(-x), with its own error.
    reset
        How a gate is applied to a sum that is a term of another sum: ``rounded``, product and sum; ``fused``,
        multiply-add; ``apart``, distributed over the terms.
    saturates
        Whether numbers too large for the tensor's type are stored as its largest number instead of infinity.
    truncates
        Whether storing in the tensor's type truncates. No class allows this, because the errors then add up.
    """

    name: str
    work: str | None = None
    accumulator: str | None = None
    operands: str | None = None
    order: str = "library"
    stores_sums: bool = False
    stores_gates: bool = False
    stores_state: bool = True
    activation: str = "exact"
    flushes: bool = False
    swallows_nan: bool = False
    interpolation: str = "complement"
    own_complement: bool = False
    reset: str = "rounded"
    saturates: bool = False
    truncates: bool = False


# Each of `stored-sums-edge`, `saturating`, `divided` and `reciprocal` once exposed error bounds that were too narrow.
STYLES: dict[str, Style] = {
    s.name: s
    for s in (
        Style("library"),
        Style("forward", order="forward", activation="formula"),
        Style("lanes", order="lanes", activation="logistic", swallows_nan=True, interpolation="in-turn"),
        Style("fused", order="fused", activation="loose", interpolation="difference", reset="fused"),
        Style(
            "stored-sums-edge",
            stores_sums=True,
            order="backward",
            activation="edge",
            swallows_nan=True,
            interpolation="from-old",
            own_complement=True,
            reset="apart",
        ),
        Style("wide", work="float64", accumulator="float64"),
        Style("wide-state", work="float32", stores_state=False, activation="loose"),
        Style("saturating", work="float32", stores_state=False, saturates=True, activation="edge"),
        Style("divided", order="tiles", activation="divided", interpolation="in-turn"),
        Style("reciprocal", work="float32", order="shuffled", activation="reciprocal", interpolation="from-old"),
    )
}
